//! The agent: which of the program's calls are the stack's.

use crate::descriptor;
use crate::host::{self, Call};
use crate::lock;
use crate::packets;
use crate::setting::{self, Made, number};
use crate::stack::Stack;
use crate::transfer;
use crate::wait::{self, For, Outcome, Wait, errno};
use crate::{keeper, options, program};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use smoltcp::wire::IpAddress;

/// What the agent returns.
const PASS: i32 = 0;
const ANSWER: i32 = 1;
const PASS_AFTER: i32 = 2;

const POLL: u64 = 7;
const SELECT: u64 = 23;
const EPOLL_CTL: u64 = 233;
const PSELECT: u64 = 270;
const PPOLL: u64 = 271;

/// Whether there has been a socket yet.
static ANY: AtomicU32 = AtomicU32::new(0);

/// While frames come, a thread looks for them itself for so long, before it sleeps.
const SPIN: u64 = 30_000;
/// And so long after the last.
const WHILE: u64 = 1_000_000;

/// Before the tree's first call.
#[unsafe(no_mangle)]
pub extern "C" fn pt_agent_begin() {
    let words = (0..)
        .map_while(host::argument)
        .collect::<alloc::vec::Vec<_>>();
    let begun = options::read(&words).and_then(|options| {
        let interface = packets::open(&options)?;
        let ring = packets::ring(&interface, packets::room()?, options.checks);
        let seed = host::clock() ^ u64::from(host::process()) << 32;
        lock::begin(Stack::new(ring, &options, interface.hardware, seed));
        Ok(interface.file)
    });
    match begun {
        Ok(file) => {
            if !host::keep(file as u32) || !packets::map() {
                host::fail("netstack: the rings of packets cannot be mapped");
            }
            let copy = duplicate(file);
            if descriptor::hand(copy, 0).is_err() {
                host::fail("netstack: the keeper is not there");
            }
        }
        Err(why) => host::fail(&alloc::format!("netstack: {why}")),
    }
}

/// A copy of a descriptor.
fn duplicate(file: u64) -> u64 {
    const DUP: u64 = 32;
    host::now(DUP, [file, 0, 0, 0, 0, 0]) as u64
}

/// A program begins: it has no mappings yet.
#[unsafe(no_mangle)]
pub extern "C" fn pt_agent_program() {
    if !packets::map() {
        host::fail("netstack: the rings of packets cannot be mapped");
    }
}

/// What goes on without calls.
#[unsafe(no_mangle)]
pub extern "C" fn pt_agent_keep() {
    keeper::keep();
}

/// Before each call.
///
/// # Safety
/// The record is the caller's to be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pt_agent(call: *mut Call) -> i32 {
    // SAFETY: the host's promise.
    let call = unsafe { &mut *call };
    let said = match call.number {
        number::SOCKET => setting::kind(call.arguments).map(|kind| make(kind, call)),
        _ if ANY.load(Relaxed) == 0 => None,
        POLL | PPOLL | SELECT | PSELECT | EPOLL_CTL => {
            watch(call);
            None
        }
        0 | 1 | 16 | 19 | 20 | 40 | 42..=52 | 54 | 55 | 288 | 299 | 307 => {
            descriptor::inode(call.arguments[0]).and_then(|inode| of_socket(call, inode))
        }
        _ => None,
    };
    match said {
        None => PASS,
        Some(Said::Wait) => PASS_AFTER,
        Some(Said::Result(result)) => {
            call.result = result;
            ANSWER
        }
    }
}

/// Behind a call that waited.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pt_agent_after(call: *mut Call) {
    // SAFETY: the host's promise.
    let call = unsafe { &mut *call };
    let mut result = call.result;
    let mut note = call.note;
    loop {
        let next = step(|stack| {
            let Some(wait) = stack.end_wait(note) else {
                return Next::Result(errno::EINTR);
            };
            if let Some(result) = interrupted(&wait, result) {
                return Next::Result(result);
            }
            stack.turn();
            match perform(stack, &wait.call, wait.inode, wait.done) {
                Tried::Done(result) => Next::Result(result),
                Tried::Made(made) => Next::Made(made),
                Tried::Pass => Next::Result(errno::EOPNOTSUPP),
                // Another thread was faster.
                Tried::Block(what, done, at) => {
                    let wait = Wait { what, done, ..wait };
                    Next::Again(wait, stack.begin_wait(at, wait))
                }
            }
        });
        match next {
            Ok(Next::Result(value)) => {
                call.result = value;
                return;
            }
            Ok(Next::Made(made)) => {
                call.result = hand(made);
                return;
            }
            Ok(Next::Again(again, number)) => {
                note = number;
                result = match wait::again(again.what, again.call.arguments[0]) {
                    true => 1,
                    false => errno::EINTR,
                };
            }
            Err(lock::Lost) => {
                call.result = errno::ENETDOWN;
                return;
            }
        }
    }
}

enum Next {
    Result(i64),
    Made(Made),
    Again(Wait, u64),
}

/// A call that waited has this result if it did not wait to the end.
fn interrupted(wait: &Wait, result: i64) -> Option<i64> {
    match (result, wait.what) {
        // What is sent already counts.
        (..0, For::Output) if wait.done > 0 && wait.call.number != number::CONNECT => {
            Some(wait.done as i64)
        }
        (..0, _) => Some(result),
        (0, For::Output) if wait.call.number == number::CONNECT => Some(errno::EINPROGRESS),
        (0, For::Output) if wait.done > 0 => Some(wait.done as i64),
        (0, For::Output) => Some(errno::EAGAIN),
        _ => None,
    }
}

/// What is said of a call.
enum Said {
    Result(i64),
    /// It passes as another.
    Wait,
}

/// What came of an attempt.
enum Tried {
    Done(i64),
    Made(Made),
    Pass,
    Block(For, u64, usize),
}

/// Does something with the stack, and has the keeper do what is owed then.
fn step<R>(what: impl FnOnce(&mut Stack) -> R) -> Result<R, lock::Lost> {
    let (result, owes) = lock::with(|stack| {
        stack.now = host::clock();
        let result = what(stack);
        let owes = core::mem::take(&mut stack.has_changed) && stack.owes();
        stack.ring.tell();
        (result, owes)
    })?;
    if owes {
        descriptor::call_keeper();
    }
    Ok(result)
}

fn make(kind: u64, call: &Call) -> Said {
    ANY.store(1, Relaxed);
    let flags = call.arguments[1] & 0xffff_ffff;
    Said::Result(match lock::with(|stack| stack.make(kind, flags)) {
        Ok(Ok(made)) => hand(made),
        Ok(Err(error)) => error,
        Err(lock::Lost) => errno::ENETDOWN,
    })
}

/// The keeper has its end: the program's descriptor.
fn hand((mine, keepers, at): Made) -> i64 {
    match descriptor::hand(keepers, at) {
        Ok(()) => mine as i64,
        Err(error) => {
            descriptor::close(mine);
            error
        }
    }
}

/// A call of one of the stack's sockets; `None`: the socket is another's.
fn of_socket(call: &mut Call, inode: u64) -> Option<Said> {
    let asked = *call;
    let next = step(|stack| {
        let at = stack.find(inode)?;
        if is_for_this_machine(&asked) {
            descriptor::become_kernels(asked.arguments[0], stack.kind_of(at));
            return None;
        }
        let mut tried = perform(stack, &asked, inode, 0);
        if let Tried::Block(what, done, at) = tried {
            let file = asked.arguments[0];
            if does_not_wait(&asked) {
                return Some(Next::Result(stack.not_now(at, file, &asked, what, done)));
            }
            let begun = stack.now;
            let (mut done, mut at, mut what) = (done, at, what);
            while stack.now - stack.last_frame < WHILE && stack.now - begun < SPIN {
                if !stack.turn() {
                    core::hint::spin_loop();
                    continue;
                }
                tried = perform(stack, &asked, inode, done);
                match tried {
                    Tried::Block(next, sent, place) => (what, done, at) = (next, sent, place),
                    _ => break,
                }
            }
            if let Tried::Block(..) = tried {
                let wait = Wait {
                    call: asked,
                    inode,
                    what,
                    done,
                };
                return Some(Next::Again(wait, stack.begin_wait(at, wait)));
            }
        }
        Some(match tried {
            Tried::Done(result) => Next::Result(result),
            Tried::Made(made) => Next::Made(made),
            _ => return None,
        })
    });
    Some(match next {
        Err(lock::Lost) => Said::Result(errno::ENETDOWN),
        Ok(None) => return None,
        Ok(Some(Next::Result(result))) => {
            if result == errno::EPIPE {
                broken_pipe(&asked);
            }
            Said::Result(result)
        }
        Ok(Some(Next::Made(made))) => Said::Result(hand(made)),
        Ok(Some(Next::Again(wait, note))) => {
            let timeout = lock::with(|stack| stack.send_timeout(inode)).unwrap_or(-1);
            match wait::instead(wait.what, asked.arguments[0], timeout) {
                Some((number, words)) => {
                    (call.number, call.arguments, call.note) = (number, words, note);
                    Said::Wait
                }
                None => Said::Result(errno::ENOBUFS),
            }
        }
    })
}

/// The signal of those who write where nobody reads, unless they say otherwise.
fn broken_pipe(call: &Call) {
    const TGKILL: u64 = 234;
    const SIGPIPE: u64 = 13;
    const NO_SIGNAL: u64 = 0x4000;
    if transfer::flags(call.number, &call.arguments) & NO_SIGNAL == 0 {
        let (process, thread) = (host::process().into(), host::thread().into());
        host::now(TGKILL, [process, thread, SIGPIPE, 0, 0, 0]);
    }
}

/// Whether a call is not to wait.
fn does_not_wait(call: &Call) -> bool {
    const DONT_WAIT: u64 = 0x40;
    transfer::flags(call.number, &call.arguments) & DONT_WAIT != 0
        || descriptor::is_nonblocking(call.arguments[0])
}

/// Whether a call is about an address of this machine alone: the kernel's network has that.
fn is_for_this_machine(call: &Call) -> bool {
    let (at, bytes) = match call.number {
        number::CONNECT | number::BIND => (call.arguments[1], call.arguments[2]),
        transfer::number::SENDTO => (call.arguments[4], call.arguments[5]),
        _ => return false,
    };
    let address = (at != 0).then(|| program::address(at, bytes));
    matches!(address, Some(Ok((2, to))) if matches!(to.addr, IpAddress::Ipv4(of) if of.is_loopback()))
}

/// Tries a call.
fn perform(stack: &mut Stack, call: &Call, inode: u64, done: u64) -> Tried {
    const NONE: Tried = Tried::Done(errno::EBADF);
    let Some(at) = stack.find(inode) else {
        return NONE;
    };
    let (words, file) = (&call.arguments, call.arguments[0]);
    let receives = matches!(call.number, 0 | 19 | 43 | 45 | 47 | 288 | 299);
    let outcome = match call.number {
        number::ACCEPT | number::ACCEPT4 => {
            let flags = if call.number == number::ACCEPT4 {
                words[3]
            } else {
                0
            };
            match stack.accept_one(at, words, flags) {
                Ok(Some(made)) => {
                    stack.unsignal(at, file);
                    return Tried::Made(made);
                }
                Ok(None) => Ok(Outcome::Block(For::Input, 0)),
                Err(error) => Err(error),
            }
        }
        number::CONNECT
        | number::IOCTL
        | number::SHUTDOWN..=number::GETPEERNAME
        | number::SETSOCKOPT
        | number::GETSOCKOPT => stack.set(at, call.number, words, done),
        _ => stack.transfer(at, call.number, words, done),
    };
    if receives {
        stack.unsignal(at, file);
    }
    match outcome {
        Ok(Outcome::Done(result)) => Tried::Done(result),
        Ok(Outcome::Pass) => Tried::Pass,
        Ok(Outcome::Block(what, done)) => Tried::Block(what, done, at),
        Err(error) => Tried::Done(error),
    }
}

impl Stack {
    /// Takes the byte that says that there is something to read, if there is not.
    fn unsignal(&mut self, at: usize, file: u64) {
        let sockets = &self.sockets;
        if let Some(socket) = self.table[at].as_mut()
            && socket.is_signalled
            && !socket.readiness(sockets).readable
        {
            descriptor::take_signal(file);
            socket.is_signalled = false;
        }
    }

    /// The result of a call that does not wait.
    fn not_now(&mut self, at: usize, file: u64, call: &Call, what: For, done: u64) -> i64 {
        if let Some(socket) = self.table[at].as_mut().filter(|of| !of.is_filled)
            && what == For::Output
        {
            socket.is_filled = descriptor::fill(file);
        }
        self.has_changed = true;
        match call.number {
            number::CONNECT => errno::EINPROGRESS,
            _ if done > 0 => done as i64,
            _ => errno::EAGAIN,
        }
    }

    fn send_timeout(&mut self, inode: u64) -> i32 {
        let socket = self.find(inode).and_then(|at| self.table[at].as_ref());
        socket.map_or(-1, |socket| socket.send_timeout)
    }

    /// The kind of a socket, for the kernel.
    fn kind_of(&self, at: usize) -> u64 {
        let socket = self.table[at].as_ref();
        socket.map_or(1, |socket| if socket.is_datagram() { 2 } else { 1 })
    }

    /// Somebody asks the kernel whether it is ready.
    fn watched(&mut self, file: u64) {
        if let Some(at) = descriptor::inode(file).and_then(|inode| self.find(inode)) {
            let sockets = &mut self.sockets;
            let Some(socket) = self.table[at].as_mut() else {
                return;
            };
            socket.refresh(sockets);
            let ready = socket.readiness(sockets);
            if !ready.writable && !socket.is_filled {
                socket.is_filled = descriptor::fill(file);
            }
            if !ready.readable && socket.is_signalled {
                descriptor::take_signal(file);
                socket.is_signalled = false;
            }
            socket.is_watched = true;
            self.has_changed = true;
        }
    }
}

/// Sockets are watched from now on that `poll`, `select` and `epoll` are told of.
fn watch(call: &Call) {
    const MOST: u64 = 1024;
    const DELETE: u64 = 2;
    let [first, second, third, fourth, ..] = call.arguments;
    let _ = step(|stack| match call.number {
        EPOLL_CTL if second & 0xffff_ffff != DELETE => stack.watched(third & 0xffff_ffff),
        EPOLL_CTL => {}
        POLL | PPOLL => {
            let count = second.min(MOST);
            let mut list = alloc::vec![0u8; 8 * count as usize];
            if host::read(first, &mut list) {
                stack.turn();
                for of in list.chunks_exact(8) {
                    let file = i32::from_le_bytes([of[0], of[1], of[2], of[3]]);
                    if file >= 0 {
                        stack.watched(file as u64);
                    }
                }
            }
        }
        _ => {
            let bytes = (first & 0xffff_ffff).min(MOST).div_ceil(64) as usize * 8;
            let mut all = alloc::vec![0u8; bytes];
            let mut set = alloc::vec![0u8; bytes];
            for at in [second, third, fourth] {
                if at != 0 && host::read(at, &mut set) {
                    all.iter_mut()
                        .zip(&set)
                        .for_each(|(all, more)| *all |= more);
                }
            }
            stack.turn();
            for file in (0..8 * bytes).filter(|file| all[file / 8] >> (file % 8) & 1 != 0) {
                stack.watched(file as u64);
            }
        }
    });
}
