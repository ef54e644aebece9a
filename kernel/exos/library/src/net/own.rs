//! This process's network: its stack, and what stands between that and the kernel. It is made when the
//! first socket is, and a copy of the process has none: its descriptors stand for nothing.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use postern_aegis::{books, entry, slices, time};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_net::ports::Claim;
use postern_exos_net::stack::Stack;

use crate::net::ground::{self, Claiming, Claims};
use crate::net::inlet::Inlet;
use crate::net::outlet::Outlet;
use crate::net::place::{self, Known};
use crate::net::trusted;
use crate::process::signals;

/// The network of a process.
#[derive(Debug)]
pub struct Net {
    /// Its sockets.
    pub stack: Stack,
    inlet: Inlet,
    outlet: Outlet,
    claims: Claims,
    /// Whose it is: the birth of an environment.
    birth: u32,
    /// What the service's page said last: how often it had changed.
    changes: u64,
}

/// What the end of a slice looks at: where the ring's count stands, what it was when all was seen, and
/// when the stack has something to do. 0: there is no stack.
static RING: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);
static DUE: AtomicU64 = AtomicU64::new(u64::MAX);
/// Whose that is.
static WHOSE: AtomicU64 = AtomicU64::new(0);
static LISTENS: AtomicBool = AtomicBool::new(false);

/// The birth of this environment, which no other has.
pub fn birth() -> u32 {
    books::environment(books::own_number()).birth.load(Relaxed)
}

/// Microseconds of the processor's clock.
pub fn now() -> u64 {
    (u128::from(slices::clock()) * 1_000_000 / u128::from(time::frequency())) as u64
}

impl Net {
    fn new() -> Result<Net, Errno> {
        let place = place::place()?;
        let memory = |_| errno::NOMEM;
        let net = Net {
            stack: Stack::new(place::view(&place), ground::random()),
            inlet: Inlet::new().map_err(memory)?,
            outlet: Outlet::new().map_err(memory)?,
            claims: Claims::default(),
            birth: birth(),
            changes: 0,
        };
        if !LISTENS.swap(true, Relaxed) {
            // Frames and alarms end a sleep; there is nothing else to do about them.
            entry::on_events(|_| {});
        }
        Ok(net)
    }

    /// Takes what has come, and sends what is due. Takes no memory.
    pub fn poll(&mut self) {
        self.follow();
        self.inlet.look();
        let (inlet, outlet) = (&mut self.inlet, &mut self.outlet);
        self.stack.poll(now(), inlet, outlet, &Known);
        let (ring, seen) = self.inlet.watch();
        SEEN.store(seen, Relaxed);
        RING.store(ring, Relaxed);
        DUE.store(self.stack.due().unwrap_or(u64::MAX), Relaxed);
        WHOSE.store(self.birth.into(), Relaxed);
    }

    /// Is where the service says, if that has changed.
    fn follow(&mut self) {
        let Some(page) = place::bound() else {
            return;
        };
        let changes = page.changes.load(Relaxed);
        if changes != self.changes
            && let Some(place) = page.place()
        {
            self.changes = changes;
            let view = place::view(&place);
            if view != self.stack.view() {
                self.stack.set_view(view);
            }
        }
    }

    /// The stack, and what it claims ports by.
    pub fn parts(&mut self) -> (&mut Stack, Claiming<'_>) {
        let address = self.stack.view().address;
        let claiming = Claiming {
            claims: &mut self.claims,
            inlet: &self.inlet,
            address,
        };
        (&mut self.stack, claiming)
    }

    /// The stack, and where frames go.
    pub fn way_out(&mut self) -> (&mut Stack, &mut Outlet) {
        (&mut self.stack, &mut self.outlet)
    }

    /// Has answers to echoes of a number come.
    pub fn hear_echo(&mut self, number: u16) -> Result<(), Errno> {
        let (_, mut claiming) = self.parts();
        claiming.claim_once(Claim::Echo(number))
    }

    /// Frees what is over. Where memory may be taken and given.
    pub fn tend(&mut self) {
        let (stack, mut claiming) = self.parts();
        stack.tend(&mut claiming);
    }

    /// Microseconds until there is something to do though nothing comes.
    pub fn rest(&mut self) -> Option<u64> {
        if !self.outlet.flush() {
            return Some(0);
        }
        self.stack.due().map(|due| due.saturating_sub(now()))
    }
}

/// Does something with this process's network, which is made if there is none.
pub fn with<T>(act: impl FnOnce(&mut Net) -> Result<T, Errno>) -> Result<T, Errno> {
    let made = trusted::with(|own| own.as_ref().is_some_and(|net| net.birth == birth()));
    if made == Some(false) {
        let net = Net::new()?;
        // A copy's stack is its parent's: no frame comes for it any more.
        let _hold = signals::hold();
        trusted::with(|own| *own = Some(net));
    }
    let _hold = signals::hold();
    // In a handler that has interrupted a call on sockets.
    let done = trusted::with(|own| own.as_mut().map(act));
    done.flatten().unwrap_or(Err(errno::AGAIN))
}

/// The same, if there is a network already.
pub fn with_some<T>(act: impl FnOnce(&mut Net) -> T) -> Option<T> {
    if WHOSE.load(Relaxed) == 0 {
        return None;
    }
    let _hold = signals::hold();
    let own = birth();
    trusted::with(|net| net.as_mut().filter(|net| net.birth == own).map(act)).flatten()
}

/// Whether a frame has come, or time has: looked at when a slice ends.
pub fn is_due() -> bool {
    let ring = RING.load(Relaxed);
    ring != 0
        && WHOSE.load(Relaxed) == u64::from(birth())
        && (trusted::filled(ring) != SEEN.load(Relaxed) || now() >= DUE.load(Relaxed))
}

/// Whether a frame has come.
pub fn has_come() -> bool {
    let ring = RING.load(Relaxed);
    let own = ring != 0 && WHOSE.load(Relaxed) == u64::from(birth());
    own && trusted::filled(ring) != SEEN.load(Relaxed)
}

/// At the end of a slice in which the program computed: answers and repeats what is due.
pub fn attend() {
    if is_due() {
        with_some(Net::poll);
    }
}
