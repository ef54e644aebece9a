//! Calls that wait: they pass as other calls, for which the kernel lets the thread sleep, be
//! interrupted, and go on by itself; behind them the agent has another look.

use crate::descriptor;
use crate::host::{self, Call};
use crate::stack::Stack;
use core::sync::atomic::{AtomicU64, Ordering};

/// Linux's numbers of errors, as calls return them.
pub mod errno {
    pub const EINTR: i64 = -4;
    pub const EBADF: i64 = -9;
    pub const EAGAIN: i64 = -11;
    pub const EFAULT: i64 = -14;
    pub const EINVAL: i64 = -22;
    pub const EPIPE: i64 = -32;
    pub const EDESTADDRREQ: i64 = -89;
    pub const EMSGSIZE: i64 = -90;
    pub const ENOPROTOOPT: i64 = -92;
    pub const EOPNOTSUPP: i64 = -95;
    pub const EAFNOSUPPORT: i64 = -97;
    pub const EADDRINUSE: i64 = -98;
    pub const EADDRNOTAVAIL: i64 = -99;
    pub const ENETDOWN: i64 = -100;
    pub const ECONNRESET: i64 = -104;
    pub const ENOBUFS: i64 = -105;
    pub const EISCONN: i64 = -106;
    pub const ENOTCONN: i64 = -107;
    pub const EALREADY: i64 = -114;
    pub const EINPROGRESS: i64 = -115;
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Something to read, or somebody who connects.
    Input,
    /// Room, or that a connection is there.
    Output,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(i64),
    /// It is the kernel's.
    Pass,
    /// It waits; so much of it is done.
    Block(For, u64),
}

/// A call that waits.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub call: Call,
    pub inode: u64,
    pub what: For,
    pub done: u64,
}

/// Descriptors of which one waits for room: for each, what `poll` is told (`struct pollfd`). What
/// the kernel writes there is the same for all.
static FOR_ROOM: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

const RECVFROM: u64 = 45;
const POLL: u64 = 7;

/// The kernel's call in a call's place.
pub fn instead(what: For, file: u64, timeout: i32) -> Option<(u64, [u64; 6])> {
    const PEEK: u64 = 2;
    const OUT: u64 = 4 << 32;
    // The kernel writes there.
    static BYTE: AtomicU64 = AtomicU64::new(0);
    match what {
        For::Input => Some((RECVFROM, [file, host::address(&BYTE), 1, PEEK, 0, 0])),
        For::Output => {
            let place = FOR_ROOM.get(file as usize)?;
            place.store(file | OUT, Ordering::SeqCst);
            Some((POLL, [host::address(place), 1, timeout as u64, 0, 0, 0]))
        }
    }
}

/// Waits behind a call, where signals wait, too: false if one does, and nothing came meanwhile.
pub fn again(what: For, file: u64) -> bool {
    const PENDING: u64 = 127;
    const LIMIT: u64 = 100;
    let events = match what {
        For::Input => 1,
        For::Output => 4,
    };
    let list = [file | events << 32];
    let came = host::wait(POLL, [host::address(&list), 1, LIMIT, 0, 0, 0]);
    let signals = [0u64];
    host::now(PENDING, [host::address(&signals), 8, 0, 0, 0, 0]);
    came != 0 || host::written(&signals) == [0]
}

impl Stack {
    /// A call begins to wait: its number.
    pub fn begin_wait(&mut self, at: usize, wait: Wait) -> u64 {
        if let Some(socket) = self.table[at].as_mut() {
            socket.waiting += 1;
            if wait.what == For::Output && !socket.is_filled {
                socket.is_filled = descriptor::fill(wait.call.arguments[0]);
            }
        }
        self.has_changed = true;
        let free = self.waits.iter().position(Option::is_none);
        let number = free.unwrap_or(self.waits.len());
        match free {
            Some(number) => self.waits[number] = Some(wait),
            None => self.waits.push(Some(wait)),
        }
        number as u64 + 1
    }

    /// It has ended.
    pub fn end_wait(&mut self, number: u64) -> Option<Wait> {
        let wait = self
            .waits
            .get_mut((number as usize).wrapping_sub(1))?
            .take()?;
        if let Some(at) = self.find(wait.inode)
            && let Some(socket) = self.table[at].as_mut()
        {
            socket.waiting = socket.waiting.saturating_sub(1);
        }
        Some(wait)
    }
}
