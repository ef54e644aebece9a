//! What goes on without calls: a process beside the tree takes frames when no program does, sends
//! again what was lost, and has the other ends of all sockets.

use crate::descriptor::{self, Told};
use crate::host;
use crate::lock::{self, Lost};
use crate::packets;
use crate::stack::Stack;

const EPOLL_CTL: u64 = 233;
const EPOLL_WAIT: u64 = 232;
const EPOLL_CREATE: u64 = 291;
const ADD: u64 = 1;
const CHANGE: u64 = 3;
const READABLE: u32 = 1;
/// Only the next time.
const ONCE: u32 = 1 << 30;
/// What the keeper's own descriptors are to `epoll`; sockets are their places.
const CHANNEL: u64 = u64::MAX;
const FRAMES: u64 = u64::MAX - 1;
/// Milliseconds until it looks again, whatever happens.
const AT_LAST: u64 = 100;
/// And if frames came, and no thread waits for any: those that run take them sooner themselves, and
/// would be in each other's way.
const NAP: u64 = 1;

/// `struct epoll_event`, which has no room between its parts.
#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
struct Event {
    what: u32,
    data: u64,
}

fn watch(epoll: u64, how: u64, file: u64, what: u32, data: u64) {
    let event = Event { what, data };
    host::now(EPOLL_CTL, [epoll, how, file, host::address(&event), 0, 0]);
}

/// Until the tree has ended.
pub fn keep() {
    const DUP3: u64 = 292;
    let Told::Handed(_, file) = descriptor::told() else {
        return;
    };
    // By the number that it has in the tree.
    let Ok(number) = lock::with(|stack| stack.ring.file()) else {
        return;
    };
    host::now(DUP3, [file, number, 0, 0, 0, 0]);
    descriptor::close(file);
    more_descriptors();
    let epoll = host::now(EPOLL_CREATE, [0; 6]);
    let Ok(epoll) = u64::try_from(epoll) else {
        return;
    };
    if !packets::map() {
        return;
    }
    watch(epoll, ADD, 0, READABLE, CHANNEL);
    watch(epoll, ADD, number, 0, FRAMES);
    while let Ok(true) = turn(epoll, number) {}
    if lock::is_lost() || leave(number).is_err() {
        end(epoll);
    }
}

/// Each socket of the tree is one of the keeper's descriptors.
fn more_descriptors() {
    const PRLIMIT: u64 = 302;
    const DESCRIPTORS: u64 = 7;
    let mut limits = [0u64; 2];
    let at = host::place(limits.as_mut_ptr() as usize);
    host::now(PRLIMIT, [0, DESCRIPTORS, 0, at, 0, 0]);
    let [_, most] = host::written(&limits);
    let limits = [most; 2];
    host::now(PRLIMIT, [0, DESCRIPTORS, host::address(&limits), 0, 0, 0]);
}

/// False if the tree has ended.
fn turn(epoll: u64, frames: u64) -> Result<bool, Lost> {
    const MOST: usize = 64;
    let (delay, naps) = lock::with(|stack| {
        let some = stack.turn();
        for at in 0..stack.table.len() {
            settle(stack, at);
        }
        stack.has_changed = false;
        stack.sweep();
        stack.ring.tell();
        stack.keeper_naps = (some || stack.is_busy()) && !stack.is_waited_for();
        let most = if stack.keeper_naps { NAP } else { AT_LAST };
        (stack.delay(most), stack.keeper_naps)
    })?;
    if !naps {
        watch(epoll, CHANGE, frames, READABLE | ONCE, FRAMES);
    }
    let mut events = [Event::default(); MOST];
    let at = host::place(events.as_mut_ptr() as usize);
    let got = host::wait(EPOLL_WAIT, [epoll, at, MOST as u64, delay, 0, 0]);
    let events = host::written(&events);
    for event in &events[..usize::try_from(got).unwrap_or(0).min(MOST)] {
        match event.data {
            CHANNEL => {
                if !listen(epoll)? {
                    return Ok(false);
                }
            }
            FRAMES => {}
            // All of the program's descriptors are closed.
            at => lock::with(|stack| {
                let socket = stack.table.get(at as usize).and_then(Option::as_ref);
                if let Some(file) = socket.and_then(|socket| socket.keeper) {
                    descriptor::close(file);
                    stack.remove(at as usize);
                    stack.ring.tell();
                }
            })?,
        }
    }
    Ok(true)
}

/// Takes what the tree has to say. False if it has ended.
fn listen(epoll: u64) -> Result<bool, Lost> {
    loop {
        match descriptor::told() {
            Told::Handed(at, file) => {
                let known = lock::with(|stack| {
                    let socket = stack.table.get_mut(at as usize).and_then(Option::as_mut);
                    socket.map(|socket| socket.keeper = Some(file)).is_some()
                })?;
                match known {
                    true => watch(epoll, ADD, file, 0, at),
                    false => descriptor::close(file),
                }
            }
            Told::Called => {}
            Told::Nothing => return Ok(true),
            Told::Ended => return Ok(false),
        }
    }
}

/// Does what is owed to those who wait for a socket.
fn settle(stack: &mut Stack, at: usize) {
    const SENDTO: u64 = 44;
    const RECVFROM: u64 = 45;
    const SHUTDOWN: u64 = 48;
    const DONT_WAIT: u64 = 0x40;
    const NO_SIGNAL: u64 = 0x4000;
    const TRUNCATE: u64 = 0x20;
    const WRITE: u64 = 1;
    static BYTE: [u8; 1] = [0];
    let sockets = &mut stack.sockets;
    let Some(socket) = stack.table[at].as_mut() else {
        return;
    };
    socket.refresh(sockets);
    let ready = socket.readiness(sockets);
    let Some(file) = socket.keeper.filter(|_| socket.owes(ready)) else {
        return;
    };
    if ready.readable && !socket.is_signalled && !socket.has_ended {
        let flags = DONT_WAIT | NO_SIGNAL;
        let at = host::address(&BYTE);
        socket.is_signalled = host::now(SENDTO, [file, at, 1, flags, 0, 0]) == 1;
    }
    if ready.ended && !socket.has_ended {
        host::now(SHUTDOWN, [file, WRITE, 0, 0, 0, 0]);
        socket.has_ended = true;
    }
    if ready.writable && socket.is_filled {
        let mut taken = [0u8; 1024];
        let to = host::place(taken.as_mut_ptr() as usize);
        let flags = DONT_WAIT | TRUNCATE;
        while host::now(RECVFROM, [file, to, 1024, flags, 0, 0]) > 0 {}
        socket.is_filled = false;
    }
}

/// The tree has ended: what it has sent still arrives, and its peers hear that it is gone.
fn leave(frames: u64) -> Result<(), Lost> {
    const POLL: u64 = 7;
    const INPUT: u64 = 1 << 32;
    const STEPS: u32 = 200;
    const STEP: u64 = 10;
    lock::with(|stack| (0..stack.table.len()).for_each(|at| stack.remove(at)))?;
    for _ in 0..STEPS {
        let is_over = lock::with(|stack| {
            stack.turn();
            stack.sweep();
            stack.ring.tell();
            stack.has_left()
        })?;
        if is_over {
            break;
        }
        let frames = [frames | INPUT];
        host::wait(POLL, [host::address(&frames), 1, STEP, 0, 0, 0]);
    }
    lock::with(|stack| {
        stack.abort_all();
        stack.ring.tell();
    })
}

/// The stack is lost: programs find all their sockets at their end.
fn end(epoll: u64) {
    const CLOSE_RANGE: u64 = 436;
    const POLL: u64 = 7;
    const NONE: u64 = 0;
    host::now(CLOSE_RANGE, [3, 899, 0, 0, 0, 0]);
    descriptor::close(epoll);
    // Standard input alone, until it has an end.
    let channel = [NONE];
    host::wait(POLL, [host::address(&channel), 1, u64::MAX, 0, 0, 0]);
}
