//! Who is inside a domain, or in one of its services, and who waits for whom to leave.
//!
//! Invariant: whoever waits here says so in its own thread's state before it looks, and waits for
//! no thread that waits, directly or over others, for it. So threads whose services close each
//! other's domains do not wait for ever: at least one of them goes on.

use super::call_state::{self, CallPhase};
use super::control::{Control, ServiceEntry};
use super::pause::Pause;
use super::thread::{self, Registry, Thread};
use super::{machine, mask, shim, stale};
use std::ptr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;
use std::time::{Duration, Instant};

/// Nobody is inside one domain, and nobody can enter while this is there.
pub struct Quiescent {
    /// The domain's number: no other has it, nor ever had.
    generation: u32,
}

impl Quiescent {
    /// Whether it is the domain with this number that nobody is inside.
    pub(crate) fn is_of(&self, generation: u32) -> bool {
        self.generation == generation
    }
}

/// Runs `work` if nobody is inside a domain, as [`while_empty`]; for code that is taken away.
/// Whoever calls it holds a lock that a fork takes, so that no child finds the domain waiting for
/// this.
pub fn while_quiescent(control: &Control, work: impl FnOnce(&Quiescent)) -> bool {
    // A handler on this thread that calls the domain would wait for itself.
    let _signals = mask::SignalsBlocked::new();
    while_empty(control, |nobody| (work(nobody), true)).is_some()
}

/// Runs `work` if nobody is inside a domain. Who wants in waits for it, so it takes microseconds
/// and waits for nobody. The domain is afterwards as it was, or poisoned if `work` says that it is
/// not whole.
pub fn while_empty<R>(control: &Control, work: impl FnOnce(&Quiescent) -> (R, bool)) -> Option<R> {
    let here = Target::domain(control);
    // Before callers wait: it looks at states itself.
    stale::forget_left();
    if occupied(here, |_| true) {
        return None;
    }
    let moving = control.lifecycle.begin_move()?;
    machine::barrier();
    if occupied(here, |_| true) {
        moving.undo();
        return None;
    }
    let generation = control.generation();
    let (done, whole) = work(&Quiescent { generation });
    moving.end(whole);
    Some(done)
}

/// What is to be left.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    control: &'a Control,
    /// Null: the domain as a whole.
    service: *const ServiceEntry,
}

impl<'a> Target<'a> {
    /// A domain.
    pub fn domain(control: &'a Control) -> Target<'a> {
        let service = ptr::null();
        Target { control, service }
    }

    /// One of a domain's services.
    pub fn service(control: &'a Control, service: *const ServiceEntry) -> Target<'a> {
        Target { control, service }
    }

    /// Whether this thread is inside, or waits there in a call: for a service, or for a peer.
    fn holds(&self, index: usize, t: &Thread) -> bool {
        let here = |control: *const Control| ptr::eq(control, self.control);
        let all = self.service.is_null();
        let meant = |service: *const ServiceEntry| all || ptr::eq(service, self.service);
        let waits = || match all {
            true => self.control.slot(index).waiting.load(SeqCst) != 0,
            false => t
                .waiting()
                .any(|(_, r)| here(r.control.load(SeqCst)) && meant(r.service.load(SeqCst))),
        };
        let inside = || here(t.control.load(SeqCst)) && meant(t.service.load(SeqCst));
        call_state::holds(|word| t.word(word), waits, inside, !all)
    }
}

/// Whether one of the threads that `counts` is inside.
pub fn occupied(target: Target<'_>, counts: impl Fn(&Thread) -> bool) -> bool {
    let registry = thread::registry();
    registry
        .iter()
        .any(|(i, t)| counts(t) && target.holds(i, t))
}

/// Says of the calling thread what it waits for.
struct Waiting;

impl Waiting {
    fn begin(target: Target<'_>) -> Waiting {
        let me = thread::current();
        me.awaits_service.store(target.service.cast_mut(), SeqCst);
        me.awaits
            .store(ptr::from_ref(target.control).cast_mut(), SeqCst);
        Waiting
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        thread::current().awaits.store(ptr::null_mut(), SeqCst);
    }
}

/// Has the calling thread's own calls of a domain end, for this reason: the innermost one when its
/// service returns, those that wait once they are the innermost.
pub fn end_mine(control: &Control, kind: u32) {
    let me = thread::current();
    stale::forget_left();
    if me.call_state.own() == CallPhase::InService
        && me.innermost().is_some_and(|c| ptr::eq(c, control))
    {
        shim::end_when_back_of(me, kind, 0, None);
    }
    for (sequence, call) in me.waiting() {
        if call.is_of(control) {
            call.end(sequence, kind);
        }
    }
}

/// Waits until every thread that was inside has been seen outside once, save this one and those
/// that wait for it. Whoever comes in later has found that it may not, or that the service is
/// another. `remind` is called before each look, also for those that are not waited for.
pub fn wait(target: Target<'_>, mut remind: impl FnMut()) {
    let _waiting = Waiting::begin(target);
    // What they stored before they looked is seen from here on.
    machine::barrier();
    let me = thread::current();
    let mut inside = holders(target, |t| !ptr::eq(t, me));
    let mut pause = Pause::default();
    while !inside.is_empty() {
        remind();
        {
            let registry = thread::registry();
            let dependents = dependents(&registry, me);
            inside.retain(|holder| {
                let held = holder.is_held(&registry, target);
                held.is_some_and(|t| !dependents.contains(&ptr::from_ref(t)))
            });
        }
        if !inside.is_empty() {
            pause.again();
        }
    }
}

/// Waits until every thread that was inside, this one too, has been seen outside once, as [`wait`];
/// false if that takes longer.
pub(crate) fn wait_for_all(target: Target<'_>, longest: Duration) -> bool {
    thread::barrier();
    let mut inside = holders(target, |_| true);
    let (since, mut pause) = (Instant::now(), Pause::default());
    while !inside.is_empty() {
        if since.elapsed() > longest {
            return false;
        }
        pause.again();
        let registry = thread::registry();
        inside.retain(|holder| holder.is_held(&registry, target).is_some());
    }
    true
}

/// A thread that was seen inside.
struct Holder {
    index: usize,
    tid: u32,
}

impl Holder {
    /// The thread, if it is inside still.
    fn is_held<'a>(&self, registry: &'a Registry, target: Target<'_>) -> Option<&'a Thread> {
        let thread = registry.get(self.index)?;
        let same = thread.tid.load(SeqCst) == self.tid;
        (same && target.holds(self.index, thread)).then_some(thread)
    }
}

/// Whether anybody is inside a domain that lets nobody in any more. The calling thread has
/// forgotten what it left behind ([`stale::forget_left`]).
///
/// Where no thread but the calling one has a data stack in the domain, nobody else is looked at,
/// and no barrier sent: no other call can be inside, and one that begins gets a data stack first,
/// on the slow path. It counts that ([`Control::stacks_given`]), has a fence, and then looks at the
/// lifecycle; here the lifecycle was changed, there is a fence, and then the count is read. So
/// either the count shows that thread, or the thread finds the domain closed.
pub fn anybody(control: &Control) -> bool {
    let here = Target::domain(control);
    let me = thread::current();
    let registered = !me.extra.load(SeqCst).is_null();
    let index = || me.index();
    let mine = registered && control.slot(index()).stack.load(SeqCst) != 0;
    fence(SeqCst);
    if control.stacks_given.load(SeqCst) <= u32::from(mine) {
        return mine && here.holds(index(), me);
    }
    thread::barrier();
    occupied(here, |_| true)
}

/// The threads that `counts` and that are inside.
fn holders(target: Target<'_>, counts: impl Fn(&Thread) -> bool) -> Vec<Holder> {
    let registry = thread::registry();
    let held = registry
        .iter()
        .filter(|&(i, t)| counts(t) && target.holds(i, t));
    let holder = |(index, t): (usize, &Thread)| Holder {
        index,
        tid: t.tid.load(SeqCst),
    };
    held.map(holder).collect()
}

/// The threads that wait for `me` to leave something, and those that wait for these.
fn dependents(registry: &Registry, me: &Thread) -> Vec<*const Thread> {
    let mut found = vec![ptr::from_ref(me)];
    loop {
        let holds = |target: Target<'_>| {
            let mut known = registry
                .iter()
                .filter(|(_, t)| found.contains(&ptr::from_ref(*t)));
            known.any(|(i, t)| target.holds(i, t))
        };
        let waits = |t: &Thread| {
            t.awaits()
                .is_some_and(|(control, service)| holds(Target { control, service }))
        };
        let more: Vec<*const Thread> = registry
            .iter()
            .map(|(_, t)| t)
            .filter(|t| !found.contains(&ptr::from_ref(*t)) && waits(t))
            .map(ptr::from_ref)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}
