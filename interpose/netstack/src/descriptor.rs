//! Sockets by the program's descriptors. Each is one end of a pair of the kernel's, whose other end
//! the keeper has: so `dup`, `fork`, `exec`, `close`, `epoll`, `poll` and `select` are the kernel's
//! own.
//!
//! | the program's end is | if the keeper |
//! |---|---|
//! | readable | has written a byte; the agent takes it when there is nothing to read any more |
//! | not writable | has not read what the agent wrote there, when there was no room |
//! | at its end | has shut its own one down |

use crate::host;
use crate::wait::errno;

const READ_NOW: u64 = 0x40;
const SENDTO: u64 = 44;
const RECVFROM: u64 = 45;
const SENDMSG: u64 = 46;
const RECVMSG: u64 = 47;
const CLOSE: u64 = 3;

/// The kernel's number of a socket; `None` if the descriptor is none.
pub fn inode(file: u64) -> Option<u64> {
    const FSTAT: u64 = 5;
    const FORMAT: u64 = 0o170_000;
    const SOCKET: u64 = 0o140_000;
    let mut status = [0u64; 18];
    let at = host::place(status.as_mut_ptr() as usize);
    if host::now(FSTAT, [file, at, 0, 0, 0, 0]) != 0 {
        return None;
    }
    let status = host::written(&status);
    (status[3] & FORMAT == SOCKET).then_some(status[1])
}

/// Whether calls on it do not wait.
pub fn is_nonblocking(file: u64) -> bool {
    const FCNTL: u64 = 72;
    const GET_FLAGS: u64 = 3;
    const NONBLOCK: i64 = 0o4000;
    let flags = host::now(FCNTL, [file, GET_FLAGS, 0, 0, 0, 0]);
    flags >= 0 && flags & NONBLOCK != 0
}

/// Makes a pair, with flags of `socket` for the program's end: this one, and the keeper's.
pub fn pair(flags: u64) -> Result<(u64, u64), i64> {
    const SOCKETPAIR: u64 = 53;
    const SETSOCKOPT: u64 = 54;
    const UNIX: u64 = 1;
    const STREAM: u64 = 1;
    const SOCKET_LEVEL: u64 = 1;
    const SEND_BUFFER: u64 = 7;
    let mut ends = [0u32; 2];
    let at = host::place(ends.as_mut_ptr() as usize);
    let made = host::now(SOCKETPAIR, [UNIX, STREAM | flags, 0, at, 0, 0]);
    if made < 0 {
        return Err(made);
    }
    let [mine, keepers] = host::written(&ends).map(u64::from);
    // As small as it can be: one message fills it.
    let least = [0u32];
    let least = host::address(&least);
    host::now(SETSOCKOPT, [mine, SOCKET_LEVEL, SEND_BUFFER, least, 4, 0]);
    Ok((mine, keepers))
}

/// Closes one.
pub fn close(file: u64) {
    host::now(CLOSE, [file, 0, 0, 0, 0, 0]);
}

/// There is nothing to read any more.
pub fn take_signal(file: u64) {
    let mut byte = [0u8];
    let at = host::place(byte.as_mut_ptr() as usize);
    host::now(RECVFROM, [file, at, 1, READ_NOW, 0, 0]);
}

/// There is no room any more. Whether its end says so.
pub fn fill(file: u64) -> bool {
    static NOTHING: [u8; 1024] = [0; 1024];
    const NO_SIGNAL: u64 = 0x4000;
    let at = host::address(&NOTHING);
    host::now(SENDTO, [file, at, 1024, READ_NOW | NO_SIGNAL, 0, 0]) > 0
}

/// The keeper is to look what it owes. If it has not read what it was told before, it will.
pub fn call_keeper() {
    static NOTHING: [u8; 1] = [0];
    const NO_SIGNAL: u64 = 0x4000;
    let at = host::address(&NOTHING);
    let keeper = host::keeper() as u64;
    host::now(SENDTO, [keeper, at, 1, READ_NOW | NO_SIGNAL, 0, 0]);
}

/// A message with a descriptor (`struct msghdr`, `struct iovec`, `struct cmsghdr`).
#[derive(Clone, Copy)]
#[repr(C)]
struct Message {
    name: [u64; 2],
    pieces: [u64; 2],
    control: [u64; 2],
    flags: u64,
    piece: [u64; 2],
    header: [u64; 2],
    file: u64,
    word: u64,
}

impl Message {
    fn new(word: u64, file: u64) -> Message {
        const LENGTH: u64 = 20;
        const RIGHTS: u64 = 1 << 32 | 1;
        Message {
            name: [0; 2],
            pieces: [0, 1],
            control: [0, 24],
            flags: 0,
            piece: [0, 8],
            header: [LENGTH, RIGHTS],
            file,
            word,
        }
    }

    /// Says where its parts are.
    fn place(&mut self) -> u64 {
        let of = |field: usize| host::place(field);
        self.piece[0] = of((&raw const self.word) as usize);
        self.pieces[0] = of((&raw const self.piece) as usize);
        self.control[0] = of((&raw const self.header) as usize);
        of((&raw const *self) as usize)
    }
}

/// Hands a descriptor to the keeper, with a word, and closes it here.
pub fn hand(file: u64, word: u64) -> Result<(), i64> {
    const NO_SIGNAL: u64 = 0x4000;
    let mut message = Message::new(word, file);
    let at = message.place();
    let sent = host::wait(SENDMSG, [host::keeper() as u64, at, NO_SIGNAL, 0, 0, 0]);
    close(file);
    match sent {
        8 => Ok(()),
        _ => Err(errno::ENETDOWN),
    }
}

/// What the keeper was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A word, and a descriptor.
    Handed(u64, u64),
    /// To look what it owes.
    Called,
    Nothing,
    /// The tree has ended.
    Ended,
}

/// What the keeper was told next, by its standard input.
pub fn told() -> Told {
    const CLOSE_ON_EXEC: u64 = 0x4000_0000;
    let mut message = Message::new(0, 0);
    message.header = [0; 2];
    let at = message.place();
    let got = host::now(RECVMSG, [0, at, READ_NOW | CLOSE_ON_EXEC, 0, 0, 0]);
    let message = host::written(&message);
    match got {
        0 => Told::Ended,
        8 if message.header[0] == 20 => Told::Handed(message.word, message.file & 0xffff_ffff),
        _ if got > 0 => Told::Called,
        errno::EAGAIN | errno::EINTR => Told::Nothing,
        _ => Told::Ended,
    }
}

/// A socket of the stack's becomes one of the kernel's, by the same descriptor.
pub fn become_kernels(file: u64, kind: u64) {
    const SOCKET: u64 = 41;
    const INET: u64 = 2;
    const FCNTL: u64 = 72;
    const GET_DESCRIPTOR: u64 = 1;
    const GET: u64 = 3;
    const SET: u64 = 4;
    const DUP3: u64 = 292;
    const CLOSE_ON_EXEC: u64 = 0o2000000;
    let new = host::now(SOCKET, [INET, kind, 0, 0, 0, 0]);
    let Ok(new) = u64::try_from(new) else {
        return;
    };
    let flags = host::now(FCNTL, [file, GET, 0, 0, 0, 0]) as u64;
    host::now(FCNTL, [new, SET, flags, 0, 0, 0]);
    let closes = host::now(FCNTL, [file, GET_DESCRIPTOR, 0, 0, 0, 0]) & 1 != 0;
    let closes = if closes { CLOSE_ON_EXEC } else { 0 };
    host::now(DUP3, [new, file, closes, 0, 0, 0]);
    close(new);
}
