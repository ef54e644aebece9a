//! Sockets: <sys/socket.h>.

use core::ffi::{c_int, c_void};
use core::net::Ipv4Addr;
use core::slice;
use core::sync::atomic::Ordering::Relaxed;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_net::stack::{Address, Kind, Side};

use crate::c::trusted::answer;
use crate::files::descriptors::flag;
use crate::net::sockets::{self, Received, message};

/// `struct sockaddr_in`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Name {
    family: u16,
    port: [u8; 2],
    host: [u8; 4],
    zero: [u8; 8],
}

const INTERNET: c_int = 2;
const NAME: u32 = size_of::<Name>() as u32;

impl Name {
    /// A host's port.
    pub fn of(host: Ipv4Addr, port: u16) -> Name {
        Name::new(Address { host, port })
    }

    fn new(address: Address) -> Name {
        Name {
            family: INTERNET as u16,
            port: address.port.to_be_bytes(),
            host: address.host.octets(),
            zero: [0; 8],
        }
    }

    fn address(&self) -> Result<Address, Errno> {
        match c_int::from(self.family) {
            INTERNET => Ok(Address {
                host: Ipv4Addr::from(self.host),
                port: u16::from_be_bytes(self.port),
            }),
            _ => Err(errno::AFNOSUPPORT),
        }
    }
}

/// The address that C says.
///
/// # Safety
/// There are so many bytes, or it is null.
unsafe fn read(name: *const Name, length: u32) -> Result<Address, Errno> {
    if name.is_null() || length < NAME {
        return Err(errno::INVAL);
    }
    // SAFETY: the caller says so.
    unsafe { name.read_unaligned() }.address()
}

/// Says an address to C, as much as there is room for.
///
/// # Safety
/// There is room for so many bytes as the length says, or one of both is null.
unsafe fn write(address: Address, name: *mut Name, length: *mut u32) {
    if name.is_null() || length.is_null() {
        return;
    }
    let named = Name::new(address);
    // SAFETY: the caller says so.
    unsafe {
        let room = length.read_unaligned().min(NAME);
        let from = (&raw const named).cast::<u8>();
        name.cast::<u8>()
            .copy_from_nonoverlapping(from, room as usize);
        length.write_unaligned(NAME);
    }
}

/// Bytes of C's.
///
/// # Safety
/// There are so many.
unsafe fn bytes<'a>(bytes: *const u8, length: usize) -> &'a [u8] {
    match length {
        0 => &[],
        // SAFETY: the caller says so.
        _ => unsafe { slice::from_raw_parts(bytes, length) },
    }
}

/// Room of C's.
///
/// # Safety
/// There is so much, and nobody else uses it.
unsafe fn room<'a>(bytes: *mut u8, length: usize) -> &'a mut [u8] {
    match length {
        0 => &mut [],
        // SAFETY: the caller says so.
        _ => unsafe { slice::from_raw_parts_mut(bytes, length) },
    }
}

const STREAM: c_int = 1;
const DATAGRAM: c_int = 2;
const RAW: c_int = 3;
const ICMP: c_int = 1;
const TCP: c_int = 6;
const UDP: c_int = 17;

#[unsafe(no_mangle)]
extern "C" fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    let flags = kind as u64 & (flag::NONBLOCK | flag::CLOSES);
    let kind = kind & 0xf;
    let made = match (family, kind, protocol) {
        (INTERNET, STREAM, 0 | TCP) => sockets::socket(Kind::Stream, flags),
        (INTERNET, DATAGRAM, 0 | UDP) => sockets::socket(Kind::Datagram, flags),
        (INTERNET, RAW, ICMP) => sockets::socket(Kind::Raw, flags),
        (INTERNET, STREAM | DATAGRAM | RAW, _) => Err(errno::PROTONOSUPPORT),
        (INTERNET, ..) => Err(errno::INVAL),
        _ => Err(errno::AFNOSUPPORT),
    };
    answer(made)
}

/// # Safety
/// The address is so long.
#[unsafe(no_mangle)]
unsafe extern "C" fn bind(number: c_int, name: *const Name, length: u32) -> c_int {
    // SAFETY: the caller says so.
    let to = unsafe { read(name, length) };
    answer(to.and_then(|to| sockets::bind(number, to)).map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn listen(number: c_int, backlog: c_int) -> c_int {
    answer(sockets::listen(number, backlog).map(|()| 0))
}

/// # Safety
/// Room for an address, as the length says, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn accept4(
    number: c_int,
    name: *mut Name,
    length: *mut u32,
    flags: c_int,
) -> c_int {
    let accepted = sockets::accept(number, flags as u64);
    answer(accepted.map(|(new, from)| {
        // SAFETY: the caller says so.
        unsafe { write(from, name, length) };
        new
    }))
}

/// # Safety
/// As [`accept4`].
#[unsafe(no_mangle)]
unsafe extern "C" fn accept(number: c_int, name: *mut Name, length: *mut u32) -> c_int {
    // SAFETY: as there.
    unsafe { accept4(number, name, length, 0) }
}

/// # Safety
/// The address is so long.
#[unsafe(no_mangle)]
unsafe extern "C" fn connect(number: c_int, name: *const Name, length: u32) -> c_int {
    // SAFETY: the caller says so; a family of 0 is what ends an association.
    let to = unsafe {
        match name.is_null() || length < 2 || name.cast::<u16>().read_unaligned() != 0 {
            true => read(name, length),
            false => Ok(Address::NONE),
        }
    };
    answer(to.and_then(|to| sockets::connect(number, to)).map(|()| 0))
}

/// # Safety
/// The bytes, and the address if there is one, are so long.
#[unsafe(no_mangle)]
unsafe extern "C" fn sendto(
    number: c_int,
    from: *const u8,
    length: usize,
    flags: c_int,
    name: *const Name,
    name_length: u32,
) -> isize {
    // SAFETY: the caller says so.
    let to = match name.is_null() {
        true => Ok(None),
        // SAFETY: as above.
        false => unsafe { read(name, name_length) }.map(Some),
    };
    // SAFETY: as above.
    let bytes = unsafe { bytes(from, length) };
    let sent = to.and_then(|to| sockets::send(number, bytes, flags, to));
    answer(sent.map(|count| count as isize))
}

/// # Safety
/// There are so many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn send(number: c_int, from: *const u8, length: usize, flags: c_int) -> isize {
    // SAFETY: as said.
    unsafe { sendto(number, from, length, flags, core::ptr::null(), 0) }
}

fn count(received: &Received, flags: c_int) -> isize {
    match flags & message::TRUNC != 0 {
        true => received.all as isize,
        false => received.count as isize,
    }
}

/// # Safety
/// There is room for so many bytes, and for an address or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn recvfrom(
    number: c_int,
    to: *mut u8,
    length: usize,
    flags: c_int,
    name: *mut Name,
    name_length: *mut u32,
) -> isize {
    // SAFETY: the caller says so.
    let to = unsafe { room(to, length) };
    let received = sockets::receive(number, to, flags);
    answer(received.map(|received| {
        // SAFETY: as above.
        unsafe { write(received.from, name, name_length) };
        count(&received, flags)
    }))
}

/// # Safety
/// There is room for so many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn recv(number: c_int, to: *mut u8, length: usize, flags: c_int) -> isize {
    let nobody = core::ptr::null_mut();
    // SAFETY: as said.
    unsafe { recvfrom(number, to, length, flags, nobody, core::ptr::null_mut()) }
}

/// `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Piece {
    base: *mut u8,
    length: usize,
}

/// `struct msghdr`.
#[repr(C)]
struct Message {
    name: *mut Name,
    name_length: u32,
    pieces: *mut Piece,
    count: usize,
    control: *mut c_void,
    control_length: usize,
    flags: c_int,
}

/// Pieces of a message at most, and bytes of one that is no connection's.
const PIECES: usize = 1024;
const LONGEST: usize = 2048;

/// # Safety
/// The message's pieces are so many and so long.
unsafe fn pieces<'a>(message: &Message) -> Result<&'a [Piece], Errno> {
    match message.count {
        0 => Ok(&[]),
        // SAFETY: the caller says so.
        count if count <= PIECES => Ok(unsafe { slice::from_raw_parts(message.pieces, count) }),
        _ => Err(errno::MSGSIZE),
    }
}

/// # Safety
/// A message.
#[unsafe(no_mangle)]
unsafe extern "C" fn sendmsg(number: c_int, message: &Message, flags: c_int) -> isize {
    // SAFETY: the caller says so.
    let Ok(all) = (unsafe { pieces(message) }) else {
        return answer(Err(errno::MSGSIZE));
    };
    let (name, length) = (message.name, message.name_length);
    if let [one] = all {
        // SAFETY: as above.
        return unsafe { sendto(number, one.base, one.length, flags, name, length) };
    }
    // Small ones together: a datagram is one, and a connection has fewer segments.
    let mut copy = [0; LONGEST];
    let mut used = 0;
    for piece in all {
        let Some(place) = copy
            .get_mut(used..)
            .and_then(|rest| rest.get_mut(..piece.length))
        else {
            return answer(Err(errno::MSGSIZE));
        };
        // SAFETY: as above.
        place.copy_from_slice(unsafe { bytes(piece.base, piece.length) });
        used += piece.length;
    }
    // SAFETY: as above.
    unsafe { sendto(number, copy.as_ptr(), used, flags, name, length) }
}

/// # Safety
/// A message.
#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(number: c_int, message: &mut Message, flags: c_int) -> isize {
    // SAFETY: the caller says so.
    let Ok(all) = (unsafe { pieces(message) }) else {
        return answer(Err(errno::MSGSIZE));
    };
    let (name, length) = (message.name, &raw mut message.name_length);
    (message.control_length, message.flags) = (0, 0);
    let mut copy = [0; LONGEST];
    let most = all
        .iter()
        .map(|piece| piece.length)
        .sum::<usize>()
        .min(LONGEST);
    // SAFETY: as above.
    let got = unsafe { recvfrom(number, copy.as_mut_ptr(), most, flags, name, length) };
    let mut rest = copy
        .get(..usize::try_from(got).unwrap_or(0))
        .unwrap_or_default();
    for piece in all {
        let (now, later) = rest.split_at(piece.length.min(rest.len()));
        // SAFETY: as above.
        unsafe { room(piece.base, now.len()) }.copy_from_slice(now);
        rest = later;
    }
    got
}

#[unsafe(no_mangle)]
extern "C" fn shutdown(number: c_int, how: c_int) -> c_int {
    let side = match how {
        0 => Ok(Side::Read),
        1 => Ok(Side::Write),
        2 => Ok(Side::Both),
        _ => Err(errno::INVAL),
    };
    answer(
        side.and_then(|side| sockets::shutdown(number, side))
            .map(|()| 0),
    )
}

/// # Safety
/// Room for an address, as the length says.
#[unsafe(no_mangle)]
unsafe extern "C" fn getsockname(number: c_int, name: *mut Name, length: *mut u32) -> c_int {
    // SAFETY: the caller says so.
    answer(
        sockets::local(number)
            .map(|local| unsafe { write(local, name, length) })
            .map(|()| 0),
    )
}

/// # Safety
/// Room for an address, as the length says.
#[unsafe(no_mangle)]
unsafe extern "C" fn getpeername(number: c_int, name: *mut Name, length: *mut u32) -> c_int {
    // SAFETY: the caller says so.
    answer(
        sockets::remote(number)
            .map(|remote| unsafe { write(remote, name, length) })
            .map(|()| 0),
    )
}

/// Options, as <sys/socket.h> and <netinet/tcp.h> have them.
const SOCKET: c_int = 1;
const REUSEADDR: c_int = 2;
const TYPE: c_int = 3;
const ERROR: c_int = 4;
const BROADCAST: c_int = 6;
const SNDBUF: c_int = 7;
const RCVBUF: c_int = 8;
const KEEPALIVE: c_int = 9;
const LINGER: c_int = 13;
const RCVTIMEO: c_int = 20;
const SNDTIMEO: c_int = 21;
const ACCEPTCONN: c_int = 30;
const NODELAY: c_int = 1;

/// `struct timeval`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Time {
    seconds: i64,
    microseconds: i64,
}

fn set(number: c_int, option: (c_int, c_int), value: c_int) -> Result<(), Errno> {
    let on = value != 0;
    sockets::option(number, |net, socket| {
        let stack = &mut net.stack;
        let bytes = usize::try_from(value).unwrap_or(0);
        match option {
            (SOCKET, REUSEADDR) => stack.set_reuse(socket, on),
            (SOCKET, KEEPALIVE) => stack.set_keepalive(socket, on),
            (SOCKET, RCVBUF) => stack.set_room(socket, 0, bytes),
            (SOCKET, SNDBUF) => stack.set_room(socket, 1, bytes),
            // Nobody is sent to but by an address, and ends are told in any case.
            (SOCKET, BROADCAST | LINGER) => Ok(()),
            (TCP, NODELAY) => stack.set_nodelay(socket, on),
            _ => Err(errno::NOPROTOOPT),
        }
    })
}

/// # Safety
/// The value is so long.
#[unsafe(no_mangle)]
unsafe extern "C" fn setsockopt(
    number: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: u32,
) -> c_int {
    let time = level == SOCKET && matches!(option, RCVTIMEO | SNDTIMEO);
    let size = if time {
        size_of::<Time>()
    } else {
        size_of::<c_int>()
    };
    if value.is_null() || (length as usize) < size {
        return answer(Err(errno::INVAL));
    }
    if time {
        // SAFETY: the caller says so.
        let time = unsafe { value.cast::<Time>().read_unaligned() };
        if time.seconds < 0 || !(0..1_000_000).contains(&time.microseconds) {
            return answer(Err(errno::DOM));
        }
        let all = (time.seconds as u64).saturating_mul(1_000_000);
        let all = all.saturating_add(time.microseconds as u64);
        let place = sockets::patience(number, (option == SNDTIMEO) as usize);
        return answer(place.map(|place| place.store(all, Relaxed)).map(|()| 0));
    }
    // SAFETY: as above.
    let value = unsafe { value.cast::<c_int>().read_unaligned() };
    answer(set(number, (level, option), value).map(|()| 0))
}

fn get(number: c_int, option: (c_int, c_int)) -> Result<c_int, Errno> {
    sockets::option(number, |net, socket| {
        let stack = &mut net.stack;
        match option {
            (SOCKET, REUSEADDR) => stack.reuse(socket).map(c_int::from),
            (SOCKET, KEEPALIVE) => stack.keepalive(socket).map(c_int::from),
            (SOCKET, RCVBUF) => stack.room(socket, 0).map(|bytes| bytes as c_int),
            (SOCKET, SNDBUF) => stack.room(socket, 1).map(|bytes| bytes as c_int),
            (SOCKET, ACCEPTCONN) => stack.listens(socket).map(c_int::from),
            (SOCKET, TYPE) => stack.kind(socket).map(|kind| match kind {
                Kind::Stream => STREAM,
                Kind::Datagram => DATAGRAM,
                Kind::Raw => RAW,
            }),
            (SOCKET, ERROR) => {
                net.poll();
                // A connection that is made is so from now on.
                let _ = net.stack.connected(socket);
                let error = net.stack.take_error(socket)?;
                Ok(error.map_or(0, |error| error.0))
            }
            (TCP, NODELAY) => stack.nodelay(socket).map(c_int::from),
            _ => Err(errno::NOPROTOOPT),
        }
    })
}

/// # Safety
/// There is room for so many bytes as the length says.
#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(
    number: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut u32,
) -> c_int {
    let time = level == SOCKET && matches!(option, RCVTIMEO | SNDTIMEO);
    let got = match time {
        true => sockets::patience(number, (option == SNDTIMEO) as usize).map(|place| {
            let all = place.load(Relaxed);
            [(all / 1_000_000) as i64, (all % 1_000_000) as i64]
        }),
        false => get(number, (level, option)).map(|value| [value.into(), 0]),
    };
    let size = if time {
        size_of::<Time>()
    } else {
        size_of::<c_int>()
    };
    answer(got.and_then(|words| {
        if value.is_null() || length.is_null() {
            return Err(errno::FAULT);
        }
        // SAFETY: the caller says so; an int's bytes are the lower ones of a word.
        unsafe {
            let room = (length.read_unaligned() as usize).min(size);
            let from = words.as_ptr().cast::<u8>();
            value.cast::<u8>().copy_from_nonoverlapping(from, room);
            length.write_unaligned(room as u32);
        }
        Ok(0)
    }))
}
