//! Sockets as C has them: descriptors that stand for sockets of this process's stack. A copy of the
//! process has the same descriptors and no sockets: calls on them are `ENOTCONN`.

use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::signal;
use postern_exos_abi::start::DESCRIPTORS;
use postern_exos_net::stack::{Address, Kind, Neighbourhood, Ready, SOCKETS, Side};

use crate::files::descriptors::{self, Descriptor, flag, kind};
use crate::net::own::{self, Net};
use crate::net::place::{self, Known};
use crate::net::wait::{self, Until};
use crate::process::signals;

/// How long reads and writes wait, in microseconds; 0: for ever.
static PATIENCE: [[AtomicU64; 2]; SOCKETS] = [const { [const { AtomicU64::new(0) }; 2] }; SOCKETS];

/// Flags of calls, as C has them.
pub mod message {
    /// What is read stays to be read.
    pub const PEEK: i32 = 2;
    /// The call does not wait.
    pub const DONTWAIT: i32 = 0x40;
    /// No signal if nobody reads.
    pub const NOSIGNAL: i32 = 0x4000;
    /// Waits until all has come.
    pub const WAITALL: i32 = 0x100;
    /// How long a datagram was is told, though it was cut.
    pub const TRUNC: i32 = 0x20;
}

/// Microseconds that an unknown neighbour is waited for.
const NEIGHBOUR: u64 = 3_000_000;
/// Microseconds between questions for one.
const ASK: u64 = 500_000;

fn descriptor(kind: Kind, number: usize, flags: u64) -> Descriptor {
    let of = match kind {
        Kind::Stream => 1,
        Kind::Datagram => 2,
        Kind::Raw => 3,
    };
    Descriptor {
        kind: kind::SOCKET,
        flags: 2 | flags & (flag::NONBLOCK | flag::CLOSES),
        words: [number as u64 | of << 32, own::birth().into()],
    }
}

/// A socket of a descriptor: its number in the stack, and the descriptor's flags.
fn find(number: i32) -> Result<(usize, u64), Errno> {
    let descriptor = descriptors::get(number)?;
    if descriptor.kind != kind::SOCKET {
        return Err(errno::NOTSOCK);
    }
    let [socket, birth] = descriptor.words;
    if birth != u64::from(own::birth()) {
        return Err(errno::NOTCONN);
    }
    Ok((socket as u32 as usize, descriptor.flags))
}

/// How long a call waits: to read (0), or to write (1).
fn until(socket: usize, flags: u64, message: i32, which: usize) -> Until {
    if flags & flag::NONBLOCK != 0 || message & message::DONTWAIT != 0 {
        return Until::Now;
    }
    match PATIENCE
        .get(socket)
        .map_or(0, |both| both[which & 1].load(Relaxed))
    {
        0 => Until::Ever,
        patience => Until::after(patience),
    }
}

/// A new socket: its descriptor.
pub fn socket(kind: Kind, flags: u64) -> Result<i32, Errno> {
    let number = own::with(|net| net.stack.socket(kind))?;
    forget_patience(number);
    put(kind, number, flags)
}

fn forget_patience(socket: usize) {
    for word in PATIENCE.get(socket).into_iter().flatten() {
        word.store(0, Relaxed);
    }
}

fn put(kind: Kind, number: usize, flags: u64) -> Result<i32, Errno> {
    let _hold = signals::hold();
    descriptors::add(0, descriptor(kind, number, flags)).inspect_err(|_| end(number))
}

fn end(number: usize) {
    own::with_some(|net| {
        let (stack, mut claiming) = net.parts();
        stack.close(number, &mut claiming);
        // What was written goes, and an end is told.
        net.poll();
        net.tend();
    });
}

/// A descriptor was closed: its socket ends with the last one.
pub fn closed(was: Descriptor) {
    let [socket, birth] = was.words;
    let same = |number: i32| {
        descriptors::get(number)
            .is_ok_and(|other| other.kind == kind::SOCKET && other.words == was.words)
    };
    if birth == u64::from(own::birth()) && !(0..DESCRIPTORS as i32).any(same) {
        end(socket as u32 as usize);
    }
}

/// Has a socket an address of its own.
pub fn bind(number: i32, to: Address) -> Result<(), Errno> {
    let (socket, _) = find(number)?;
    own::with(|net| {
        let (stack, mut claiming) = net.parts();
        stack.bind(socket, to, &mut claiming)
    })
}

/// Has a socket be asked for connections.
pub fn listen(number: i32, backlog: i32) -> Result<(), Errno> {
    let (socket, _) = find(number)?;
    own::with(|net| {
        let (stack, mut claiming) = net.parts();
        stack.listen(socket, usize::try_from(backlog).unwrap_or(0), &mut claiming)
    })
}

/// A connection that was asked for: its descriptor, and whom it is with.
pub fn accept(number: i32, flags: u64) -> Result<(i32, Address), Errno> {
    let (socket, own_flags) = find(number)?;
    let until = until(socket, own_flags, 0, 0);
    let (new, remote) = wait::attempt(until, |net| net.stack.accept(socket))?;
    forget_patience(new);
    Ok((put(Kind::Stream, new, flags)?, remote))
}

/// Has a neighbour be known to whom frames for an address go.
fn meet(to: Ipv4Addr, until: Until) -> Result<(), Errno> {
    let next = own::with(|net| net.stack.view().next(to).ok_or(errno::NETUNREACH))?;
    let own = own::with(|net| Ok(net.stack.view().is_own(next)))?;
    if own || Known.find(next).is_some() {
        return Ok(());
    }
    let end = own::now() + NEIGHBOUR;
    let mut again = 0;
    loop {
        let now = own::now();
        if now >= again {
            place::ask(next);
            again = now + ASK;
        }
        if Known.find(next).is_some() {
            return Ok(());
        }
        if now >= end {
            return Err(errno::HOSTUNREACH);
        }
        until.left().ok_or(errno::AGAIN)?;
        postern_aegis::entry::yield_slice();
        if signals::poll() {
            return Err(errno::INTR);
        }
    }
}

/// Asks for a connection, or has datagrams go to one address; waits until it is made.
pub fn connect(number: i32, to: Address) -> Result<(), Errno> {
    let (socket, flags) = find(number)?;
    let waits = until(socket, flags, 0, 1);
    if own::with(|net| net.stack.kind(socket))? != Kind::Stream {
        return own::with(|net| {
            let (stack, mut claiming) = net.parts();
            stack.associate(socket, to, &mut claiming)
        });
    }
    match meet(to.host, waits) {
        // The first segment is lost, and goes again when the neighbour is known.
        Ok(()) | Err(errno::AGAIN) => {}
        Err(error) => return Err(error),
    }
    let asked = own::with(|net| {
        let (stack, mut claiming) = net.parts();
        let asked = stack.connect(socket, to, &mut claiming);
        net.poll();
        asked
    });
    if asked != Err(errno::INPROGRESS) || waits == Until::Now {
        return asked;
    }
    let made = wait::attempt(waits, |net| match net.stack.connected(socket) {
        Err(errno::INPROGRESS) => Err(errno::AGAIN),
        made => made,
    });
    match made {
        Err(errno::AGAIN) => Err(errno::INPROGRESS),
        made => made,
    }
}

/// A signal, and the error, where nobody reads.
fn broken<T>(result: Result<T, Errno>, message: i32) -> Result<T, Errno> {
    if result.as_ref().err() == Some(&errno::PIPE) && message & message::NOSIGNAL == 0 {
        signals::raise(signal::PIPE)?;
    }
    result
}

/// Sends bytes: to a connection, or as a datagram to who is given or connected.
pub fn send(number: i32, bytes: &[u8], message: i32, to: Option<Address>) -> Result<usize, Errno> {
    let (socket, flags) = find(number)?;
    let waits = until(socket, flags, message, 1);
    match own::with(|net| net.stack.kind(socket))? {
        Kind::Stream => {
            let sent = send_all(socket, bytes, waits);
            broken(sent, message)
        }
        Kind::Datagram => {
            let known = to
                .or_else(|| remote(number).ok())
                .ok_or(errno::DESTADDRREQ)?;
            meet(known.host, waits)?;
            let sent = wait::attempt(waits, |net| {
                let (stack, mut claiming) = net.parts();
                stack.send_to(socket, bytes, to, &mut claiming)
            });
            broken(sent, message)
        }
        Kind::Raw => {
            let to = to.ok_or(errno::DESTADDRREQ)?;
            meet(to.host, waits)?;
            if let [8, 0, _, _, high, low, ..] = *bytes {
                hear_echo(u16::from_be_bytes([high, low]))?;
            }
            wait::attempt(waits, |net| {
                let (stack, outlet) = net.way_out();
                stack.send_raw(bytes, to.host, outlet, &Known)
            })
        }
    }
}

/// Has answers to echoes come that this process sends.
fn hear_echo(number: u16) -> Result<(), Errno> {
    own::with(|net| net.hear_echo(number))
}

/// All bytes, unless the call is not to wait or is interrupted.
fn send_all(socket: usize, bytes: &[u8], waits: Until) -> Result<usize, Errno> {
    let mut done = 0;
    loop {
        let rest = bytes.get(done..).unwrap_or_default();
        let sent = wait::attempt(waits, |net| net.stack.send(socket, rest));
        match sent {
            Ok(more) => done += more,
            Err(_) if done > 0 => return Ok(done),
            Err(error) => return Err(error),
        }
        if done >= bytes.len() {
            return Ok(done);
        }
    }
}

/// What was received.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Bytes that there was room for.
    pub count: usize,
    /// Bytes of the datagram.
    pub all: usize,
    /// Who sent them.
    pub from: Address,
}

/// Receives bytes of a connection, or a datagram.
pub fn receive(number: i32, to: &mut [u8], message: i32) -> Result<Received, Errno> {
    let (socket, flags) = find(number)?;
    let waits = until(socket, flags, message, 0);
    let peek = message & message::PEEK != 0;
    let kind = own::with(|net| net.stack.kind(socket))?;
    if kind == Kind::Stream {
        let count = receive_stream(socket, to, message, waits)?;
        return Ok(Received {
            count,
            all: count,
            from: Address::NONE,
        });
    }
    wait::attempt(waits, |net| {
        let (count, all, from) = match kind {
            Kind::Raw => {
                let (count, host) = net.stack.receive_raw(to, peek)?;
                (count, count, Address { host, port: 0 })
            }
            _ => net.stack.receive_from(socket, to, peek)?,
        };
        Ok(Received { count, all, from })
    })
}

fn receive_stream(
    socket: usize,
    to: &mut [u8],
    message: i32,
    waits: Until,
) -> Result<usize, Errno> {
    let peek = message & message::PEEK != 0;
    let all = message & message::WAITALL != 0 && !peek;
    let mut done = 0;
    loop {
        let rest = to.get_mut(done..).unwrap_or_default();
        let received = wait::attempt(waits, |net| net.stack.receive(socket, rest, peek));
        match received {
            Ok(0) => return Ok(done),
            Ok(more) => done += more,
            Err(_) if done > 0 => return Ok(done),
            Err(error) => return Err(error),
        }
        if !all || done >= to.len() {
            // A window that was opened is told soon, not with the next segment only.
            return Ok(done);
        }
    }
}

/// Shuts a side down.
pub fn shutdown(number: i32, side: Side) -> Result<(), Errno> {
    let (socket, _) = find(number)?;
    own::with(|net| {
        let done = net.stack.shutdown(socket, side);
        net.poll();
        done
    })
}

/// Its own address.
pub fn local(number: i32) -> Result<Address, Errno> {
    let (socket, _) = find(number)?;
    own::with(|net| net.stack.local(socket))
}

/// Whom it talks to.
pub fn remote(number: i32) -> Result<Address, Errno> {
    let (socket, _) = find(number)?;
    own::with(|net| net.stack.remote(socket))
}

/// What can be done without waiting. Sockets of a parent's are ended.
pub fn ready(number: i32) -> Result<Ready, Errno> {
    match find(number) {
        Ok((socket, _)) => own::with(|net| {
            net.poll();
            net.stack.ready(socket)
        }),
        Err(errno::NOTCONN) => Ok(Ready {
            error: true,
            ended: true,
            ..Ready::default()
        }),
        Err(error) => Err(error),
    }
}

/// Does something with a socket's options.
pub fn option<T>(
    number: i32,
    act: impl FnOnce(&mut Net, usize) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let (socket, _) = find(number)?;
    own::with(|net| act(net, socket))
}

/// How long reads (0) and writes (1) wait, in microseconds; 0: for ever.
pub fn patience(number: i32, which: usize) -> Result<&'static AtomicU64, Errno> {
    let (socket, _) = find(number)?;
    let both = PATIENCE.get(socket).ok_or(errno::BADF)?;
    both.get(which).ok_or(errno::INVAL)
}

/// Microseconds that a process which ends waits until what it wrote has arrived.
const LINGER: u64 = 5_000_000;
/// The same until the other side has ended its connections, too.
const AWAIT_END: u64 = 500_000;

/// This process ends, or becomes another program: what it wrote is sent, and its connections end.
pub fn leave() {
    let number = own::with_some(|_| ()).map_or(0, |()| SOCKETS);
    for socket in 0..number {
        own::with_some(|net| {
            let (stack, mut claiming) = net.parts();
            stack.close(socket, &mut claiming);
        });
    }
    let begun = own::now();
    while let Some(left) = own::with_some(|net| {
        net.poll();
        net.tend();
        let waited = own::now().saturating_sub(begun);
        let most = match net.stack.sends() {
            true => LINGER,
            false => AWAIT_END,
        };
        if net.stack.leaving() == 0 || waited > most {
            net.stack.abandon();
            net.poll();
            return 0;
        }
        net.rest().unwrap_or(most).max(1)
    })
    .filter(|left| *left != 0)
    {
        wait::rest(left);
    }
}
