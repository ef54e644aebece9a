//! The socket whose frames the stack has: its interface, its filter, its rings' place.

use crate::options::Options;
use crate::ring::{self, Ring};
use crate::{chosen, host, lock};
use alloc::alloc::{Layout, alloc};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use postern_filter::classic;

const SOCKET: u64 = 41;
const BIND: u64 = 49;
const SETSOCKOPT: u64 = 54;
const IOCTL: u64 = 16;
const FCNTL: u64 = 72;
const CLOSE: u64 = 3;
const MMAP: u64 = 9;

/// An interface, as `ioctl` is asked about it (`struct ifreq`).
#[repr(C)]
struct Request {
    name: [u8; 16],
    value: [u8; 24],
}

/// What is to be known of an interface.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// The socket.
    pub file: u64,
    /// Its Ethernet address.
    pub hardware: [u8; 6],
    /// Bytes of a packet, at most.
    pub packet: usize,
}

fn option(file: u64, level: u64, name: u64, value: &[u32]) -> i64 {
    let at = host::address(value);
    host::now(
        SETSOCKOPT,
        [file, level, name, at, 4 * value.len() as u64, 0],
    )
}

/// Opens it, with a filter for this address.
///
/// # Errors
/// A sentence.
pub fn open(options: &Options) -> Result<Interface, String> {
    const PACKET: u64 = 17;
    const RAW: u64 = 3;
    const DUPLICATE: u64 = 0;
    const HIGH: u64 = 900;
    const LEVEL: u64 = 263;
    const VERSION: u64 = 10;
    const RECEIVE: u64 = 5;
    const SEND: u64 = 13;
    const BYPASS: u64 = 20;
    const INCOMING: u64 = 23;
    let name = &options.interface;
    let chosen = chosen::of(options)?;
    let low = host::now(SOCKET, [PACKET, RAW, 0, 0, 0, 0]);
    if low < 0 {
        return Err(format!(
            "{name}: a socket for packets needs the right CAP_NET_RAW (error {})",
            -low
        ));
    }
    // Programs find the low numbers free.
    let file = host::now(FCNTL, [low as u64, DUPLICATE, HIGH, 0, 0, 0]);
    host::now(CLOSE, [low as u64, 0, 0, 0, 0, 0]);
    let file = u64::try_from(file).map_err(|_| format!("{name}: no descriptor above 900"))?;
    let interface = ask(file, name)?;
    let rings = |slots: usize, bytes: usize, block: usize| {
        [block, slots * bytes / block, bytes, slots].map(|word| word as u32)
    };
    const SEND_BLOCK: usize = 64 << 10;
    let received = rings(ring::RECEIVE, ring::RECEIVE_BYTES, ring::RECEIVE_BYTES);
    let sent = rings(ring::SEND, ring::SEND_BYTES, SEND_BLOCK);
    filter(file, &chosen)?;
    option(file, LEVEL, BYPASS, &[1]);
    option(file, LEVEL, INCOMING, &[1]);
    if option(file, LEVEL, VERSION, &[1]) < 0
        || option(file, LEVEL, RECEIVE, &received) < 0
        || option(file, LEVEL, SEND, &sent) < 0
    {
        return Err(format!(
            "{name}: the kernel has no memory for rings of packets"
        ));
    }
    bind(file, interface.0, name)?;
    Ok(interface.1)
}

/// Its number, address and size.
fn ask(file: u64, name: &str) -> Result<(u32, Interface), String> {
    const FLAGS: u64 = 0x8913;
    const SIZE: u64 = 0x8921;
    const HARDWARE: u64 = 0x8927;
    const INDEX: u64 = 0x8933;
    const UP: u8 = 1;
    const ETHERNET: [u8; 2] = [1, 0];
    let mut request = Request {
        name: [0; 16],
        value: [0; 24],
    };
    match request.name.get_mut(..name.len()) {
        Some(place) if name.len() < 16 => place.copy_from_slice(name.as_bytes()),
        _ => return Err(format!("{name}: no interface has so long a name")),
    }
    let mut get = |what| {
        let at = host::place((&raw mut request) as usize);
        match host::now(IOCTL, [file, what, at, 0, 0, 0]) {
            0 => Ok(host::written(&request.value)),
            _ => Err(format!("{name}: there is no such interface")),
        }
    };
    if get(FLAGS)?[0] & UP == 0 {
        return Err(format!("{name} is down: `ip link set {name} up`"));
    }
    let address = get(HARDWARE)?;
    if address[..2] != ETHERNET {
        return Err(format!("{name} is no Ethernet interface"));
    }
    let size = get(SIZE)?;
    let index = get(INDEX)?;
    let word = |bytes: &[u8; 24]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let mut hardware = [0; 6];
    hardware.copy_from_slice(&address[2..8]);
    let interface = Interface {
        file,
        hardware,
        packet: (word(&size) as usize).clamp(576, 1500),
    };
    Ok((word(&index), interface))
}

fn bind(file: u64, index: u32, name: &str) -> Result<(), String> {
    const PACKET: u32 = 17;
    const ALL: u32 = 0x0300 << 16;
    // `struct sockaddr_ll`: family and protocol, number.
    let address = [PACKET | ALL, index, 0, 0, 0];
    match host::now(BIND, [file, host::address(&address), 20, 0, 0, 0]) {
        0 => Ok(()),
        error => Err(format!("{name}: cannot be bound (error {})", -error)),
    }
}

/// Has the kernel put into the rings what is [`chosen`] alone.
fn filter(file: u64, list: &[classic::Instruction]) -> Result<(), String> {
    const ATTACH: u64 = 26;
    const SOCKET_LEVEL: u64 = 1;
    /// `struct sock_filter`.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Instruction {
        code: u16,
        when: u8,
        otherwise: u8,
        value: u32,
    }
    /// `struct sock_fprog`.
    #[repr(C)]
    struct Program {
        length: u64,
        at: u64,
    }
    let program: Vec<Instruction> = list
        .iter()
        .map(|one| Instruction {
            code: one.code,
            when: one.jt,
            otherwise: one.jf,
            value: one.k,
        })
        .collect();
    let whole = Program {
        length: program.len() as u64,
        at: host::address(&program[..]),
    };
    let words = [file, SOCKET_LEVEL, ATTACH, host::address(&whole), 16, 0];
    match host::now(SETSOCKOPT, words) {
        0 => Ok(()),
        error => Err(format!(
            "the kernel takes no such filter (error {})",
            -error
        )),
    }
}

/// Room for the rings in the window: whole pages.
///
/// # Errors
/// There is no memory.
pub fn room() -> Result<usize, String> {
    let layout = Layout::from_size_align(ring::BYTES, 4096);
    let layout = layout.map_err(|_| String::from("no room for rings"))?;
    // SAFETY: the layout has a size.
    let at = unsafe { alloc(layout) } as usize;
    match at {
        0 => Err(String::from("the window has no room for rings of packets")),
        at => Ok(at),
    }
}

/// Rings in that room.
pub fn ring(interface: &Interface, room: usize, checks: bool) -> Ring {
    const HEADER: usize = 14;
    // SAFETY: it was made by `room`, and is given to this ring alone.
    unsafe { Ring::new(room, interface.file, interface.packet + HEADER, checks) }
}

/// Maps the rings into this process's window. Whether they are there.
pub fn map() -> bool {
    const READ_WRITE: u64 = 3;
    const SHARED_FIXED: u64 = 0x11;
    let Ok((at, file)) = lock::with(|stack| (stack.ring.start(), stack.ring.file())) else {
        return false;
    };
    let at = host::place(at);
    let bytes = ring::BYTES as u64;
    host::now(MMAP, [at, bytes, READ_WRITE, SHARED_FIXED, file, 0]) == at as i64
}
