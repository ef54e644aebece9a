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
    let former = entry::set_patience(PATIENCE);
    entry::set_patience_cycles(SECONDS * time::frequency());
    let answer = ask_patiently(server, words);
    entry::set_patience_cycles(0);
    entry::set_patience(former);
    answer
}

fn ask_patiently(server: Server, words: [u64; 4]) -> Result<u64, Errno> {
    let environment = service(server)?.environment.load(Relaxed) as u16;
    if books::is_self(environment) {
        return Err(errno::BUSY);
    }
    let (since, mut looks) = (slices::clock(), 0);
    while looks < PATIENCE || slices::clock().saturating_sub(since) < SECONDS * time::frequency() {
        looks = looks.saturating_add(1);
        let answer = entry::call_procedure(environment, words);
        match answer.error {
            0 => return Errno::of(answer.word).map_or(Ok(answer.word), Err),
            error if error == Error::Busy as i64 => {}
            error if error == Error::NoEnvironment as i64 => return Err(errno::STALE),
            _ => return Err(errno::IO),
        }
        // Whoever has its number now may be somebody else.
        if books::environment(environment).birth.load(Relaxed) != server.birth {
            return Err(errno::STALE);
        }
        if entry::yield_to(environment).is_err() {
            entry::yield_slice();
        }
    }
    Err(errno::IO)
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
    if matches!(result, Err(errno::NOTCONN | errno::STALE))
        && let Some(attached) = ATTACHED.get(server.place)
        && (result == Err(errno::NOTCONN) || service(server).is_err())
    {
        attached.store(0, Relaxed);
    }
    match result {
        Err(errno::NOTCONN) => Err(errno::IO),
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
