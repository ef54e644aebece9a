//! Servers of files, and what this process has open of theirs. A server is known by its place among
//! the services and its birth, so that one that comes after it is another one.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::{Error, PAGE, books, entry, slices, time};
use postern_exos_abi::address::FILES;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::protocol::{HELD, Operation, PAGES, VERSION, word};
use postern_exos_abi::service::{SERVICES, Service};

use crate::files::trusted;
use crate::ipc::{area, keep};
use crate::process::{registry, signals};

/// Bytes of a server's place: the area, of which the last page is that of answers.
const AREA: u64 = 8 * PAGE as u64;

/// Slices in which a server may be busy, or silent, before it is as if it were broken: a disk may
/// have much to write.
const PATIENCE: u32 = 1 << 16;
/// The same for a server that may have to wait for others itself, before clocks and signals are
/// looked at.
const TURNS: u32 = 1 << 10;
/// Seconds for which such a server may be busy, with this request or with others'. It has an end of
/// its own before that.
const LONGEST: u64 = 300;

/// The environment of such a server that is asked now, plus 1.
static ASKED: AtomicU64 = AtomicU64::new(0);
/// Since when it is waited for longer than is usual, on the processor's clock; 0: it is not.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// Whether it is waited for still.
fn waits_on() -> bool {
    let now = slices::clock().max(1);
    let since = match SINCE.load(Relaxed) {
        0 => {
            SINCE.store(now, Relaxed);
            now
        }
        since => since,
    };
    now.saturating_sub(since) / time::frequency() < LONGEST && !signals::interrupts()
}

/// A call has not been answered in the time that others' procedures have.
fn impatient(environment: u16) -> bool {
    ASKED.load(Relaxed) == u64::from(environment) + 1 && waits_on()
}

/// Seconds of it at least: while the disk works, slices are short, since all yield.
const SECONDS: u64 = 5;

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its place among the services.
    pub place: usize,
    /// Its environment's birth.
    pub birth: u32,
}

impl Server {
    /// In one word, of which the lower 16 bits are free.
    pub fn word(self) -> u64 {
        (self.place as u64) << 16 | u64::from(self.birth) << 32
    }

    /// That of a word.
    pub fn of(word: u64) -> Server {
        Server {
            place: (word >> 16 & 0xffff) as usize,
            birth: (word >> 32) as u32,
        }
    }
}

/// By places: the birth of the server that has this process's area, plus 1; 0: none has.
static ATTACHED: [AtomicU64; SERVICES] = [const { AtomicU64::new(0) }; SERVICES];

struct Open {
    server: AtomicU64,
    node: AtomicU64,
    /// Descriptors; 0: the place is free.
    count: AtomicU64,
}

#[unsafe(link_section = ".bss..lazy")]
static OPEN: [Open; HELD] = [const {
    Open {
        server: AtomicU64::new(0),
        node: AtomicU64::new(0),
        count: AtomicU64::new(0),
    }
}; HELD];

/// Places of those that are not free; most processes have none.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// Those.
fn open() -> impl Iterator<Item = &'static Open> {
    let count = OPENED.load(Relaxed) as usize;
    let there = OPEN.iter().filter(|open| open.count.load(Relaxed) != 0);
    there.take(count)
}

impl Open {
    fn is(&self, server: Server, node: u64) -> bool {
        self.server.load(Relaxed) == server.word() && self.node.load(Relaxed) == node
    }
}

/// Where the area of a server stands.
pub fn area_of(server: Server) -> u64 {
    FILES + server.place as u64 * AREA
}

fn answers_of(server: Server) -> u64 {
    area_of(server) + (PAGES * PAGE) as u64
}

/// A word of the last answer of a server that is attached.
pub fn answer(server: Server, index: usize) -> u64 {
    match is_attached(server) {
        true => trusted::answer(answers_of(server), index),
        false => 0,
    }
}

fn is_attached(server: Server) -> bool {
    let attached = ATTACHED.get(server.place);
    attached.is_some_and(|word| word.load(Relaxed) == u64::from(server.birth) + 1)
}

/// The service that a server is, if it is still there.
fn service(server: Server) -> Result<&'static Service, Errno> {
    let one = registry::services().all.get(server.place);
    let one =
        one.filter(|one| one.pid.load(Relaxed) != 0 && one.birth.load(Relaxed) == server.birth);
    one.ok_or(errno::STALE)
}

/// Calls a server once.
fn ask(server: Server, words: [u64; 4]) -> Result<u64, Errno> {
    let one = service(server)?;
    let environment = one.environment.load(Relaxed) as u16;
    if books::is_self(environment) {
        return Err(errno::BUSY);
    }
    let waits = one.words[word::VOLATILE].load(Relaxed) != 0;
    let patience = if waits { TURNS } else { PATIENCE };
    if waits {
        ASKED.store(u64::from(environment) + 1, Relaxed);
        SINCE.store(0, Relaxed);
    }
    let least = if waits {
        0
    } else {
        SECONDS * time::frequency()
    };
    let former = entry::set_patience(patience);
    entry::set_patience_cycles(least);
    let answer = ask_patiently(server, environment, words, waits);
    entry::set_patience_cycles(0);
    entry::set_patience(former);
    if waits {
        ASKED.store(0, Relaxed);
    }
    answer
}

fn ask_patiently(
    server: Server,
    environment: u16,
    words: [u64; 4],
    waits: bool,
) -> Result<u64, Errno> {
    let (since, mut turns) = (slices::clock(), 0u32);
    let is_over = || slices::clock().saturating_sub(since) >= SECONDS * time::frequency();
    loop {
        let answer = entry::call_procedure(environment, words);
        match answer.error {
            0 => return Errno::of(answer.word).map_or(Ok(answer.word), Err),
            error if error == Error::Busy as i64 => {}
            error if error == Error::NoEnvironment as i64 => return Err(errno::STALE),
            error if error == Error::Again as i64 => {
                // It may do still what was asked, with the area: from now on there is another one.
                forget(server);
                return Err(if waits { impatience() } else { errno::IO });
            }
            _ => return Err(errno::IO),
        }
        turns = turns.saturating_add(1);
        match waits {
            true if turns > TURNS && !waits_on() => return Err(impatience()),
            false if turns > PATIENCE && is_over() => return Err(errno::IO),
            _ => {}
        }
        // Whoever has its number now may be somebody else.
        if books::environment(environment).birth.load(Relaxed) != server.birth {
            return Err(errno::STALE);
        }
        if entry::yield_to(environment).is_err() {
            entry::yield_slice();
        }
    }
}

/// Why a server is not waited for any more.
fn impatience() -> Errno {
    signals::end_if_killed();
    match signals::interrupts() {
        true => errno::INTR,
        false => errno::TIMEDOUT,
    }
}

/// A server has no area of this process's.
fn forget(server: Server) {
    if let Some(attached) = ATTACHED.get(server.place) {
        attached.store(0, Relaxed);
    }
}

/// Whether a server serves no more.
pub fn is_gone(server: Server) -> bool {
    service(server).is_err()
}

/// Has a server have an area in common with this process.
pub fn attach(server: Server) -> Result<(), Errno> {
    if is_attached(server) {
        return service(server).map(drop);
    }
    let _busy = signals::hold();
    entry::on_impatience(impatient);
    let one = service(server)?;
    if one.words[word::VERSION].load(Relaxed) != VERSION {
        return Err(errno::PROTO);
    }
    let attached = ATTACHED.get(server.place).ok_or(errno::STALE)?;
    attached.store(0, Relaxed);
    let from = area_of(server);
    if trusted::has_table(from) {
        area::clear(from, PAGES + 1);
    }
    let mut numbers = [0; PAGES + 1];
    let places = (from..).step_by(PAGE).take(PAGES + 1);
    let kept = keep::fresh(places, &mut numbers).map_err(|_| errno::NOMEM)?;
    let mut held = [0; HELD];
    let here = open().filter(|open| open.server.load(Relaxed) == server.word());
    for (to, open) in held.iter_mut().zip(here) {
        *to = open.node.load(Relaxed);
    }
    trusted::bring(answers_of(server), &numbers[..PAGES], &held);
    let words = [
        Operation::Attach.with(0),
        numbers[PAGES].into(),
        kept.write,
        0,
    ];
    ask(server, words)?;
    attached.store(u64::from(server.birth) + 1, Relaxed);
    Ok(())
}

/// Calls a server. What the call takes stands in the area, which is attached.
pub fn call(server: Server, words: [u64; 4]) -> Result<u64, Errno> {
    let _busy = signals::hold();
    attach(server)?;
    let result = ask(server, words);
    match result {
        Err(errno::NOTCONN) => {
            forget(server);
            Err(errno::IO)
        }
        Err(errno::STALE) if service(server).is_err() => {
            forget(server);
            Err(errno::STALE)
        }
        result => result,
    }
}

/// A descriptor more is of a file that the server has held for this process.
pub fn opened(server: Server, node: u64) -> Result<(), Errno> {
    if let Some(open) = open().find(|open| open.is(server, node)) {
        open.count.fetch_add(1, Relaxed);
        return Ok(());
    }
    let free = OPEN.iter().find(|open| open.count.load(Relaxed) == 0);
    let free = free.ok_or(errno::MFILE)?;
    free.server.store(server.word(), Relaxed);
    free.node.store(node, Relaxed);
    free.count.store(1, Relaxed);
    OPENED.fetch_add(1, Relaxed);
    Ok(())
}

/// One less. The last one is told to the server.
pub fn closed(server: Server, node: u64) {
    if let Some(open) = open().find(|open| open.is(server, node))
        && open.count.fetch_sub(1, Relaxed) == 1
    {
        OPENED.fetch_sub(1, Relaxed);
        // Who does not hear it has nothing open of this process any more, or will find that out.
        let _ = call(server, [Operation::Close.with(0), node, 0, 0]);
    }
}

/// A child that has not begun has open what this process has.
pub fn tell_child(pid: u32) -> Result<(), Errno> {
    let mut told: u64 = 0;
    for open in open() {
        let server = Server::of(open.server.load(Relaxed));
        let bit = 1 << (server.place % 64);
        if told & bit != 0 {
            continue;
        }
        match call(server, [Operation::Child.with(0), pid.into(), 0, 0]) {
            Ok(_) => told |= bit,
            // Of a server that is no more nobody has anything.
            Err(errno::STALE | errno::IO) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Servers of files that there are now.
pub fn all() -> impl Iterator<Item = Server> {
    let services = registry::services().all.iter().enumerate();
    services.filter_map(|(place, one)| {
        let birth = one.birth.load(Relaxed);
        let has_files = one.pid.load(Relaxed) != 0 && one.name.0[0].load(Relaxed) == b'/';
        has_files.then_some(Server { place, birth })
    })
}

/// Has all files be on the disk for good.
pub fn synchronise() {
    for server in all() {
        // Who has asked cannot be told of failures.
        let _ = call(server, [Operation::Synchronise.with(0), 0, 0, 0]);
    }
}

/// In a copy of a process: it has no areas.
pub fn in_copy() {
    for attached in &ATTACHED {
        attached.store(0, Relaxed);
    }
}
