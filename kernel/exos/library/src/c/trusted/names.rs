//! Names and addresses as text: <netdb.h>, <arpa/inet.h>.

use core::ffi::{c_char, c_int, c_void};
use core::net::Ipv4Addr;
use core::ptr::{null, null_mut};

use postern_exos_abi::errno::{self, Errno};

use crate::c::trusted::sockets::Name;
use crate::c::trusted::{answer, string};
use crate::net::names;

unsafe extern "C" {
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

const INTERNET: c_int = 2;

fn parse(text: &[u8]) -> Option<Ipv4Addr> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// # Safety
/// A string, and room for an address.
#[unsafe(no_mangle)]
unsafe extern "C" fn inet_pton(family: c_int, text: *const c_char, to: *mut [u8; 4]) -> c_int {
    if family != INTERNET {
        return answer(Err(errno::AFNOSUPPORT));
    }
    // SAFETY: the caller says so.
    match parse(unsafe { string(text) }) {
        Some(address) => {
            // SAFETY: as above.
            unsafe { to.write_unaligned(address.octets()) };
            1
        }
        None => 0,
    }
}

/// # Safety
/// As [`inet_pton`].
#[unsafe(no_mangle)]
unsafe extern "C" fn inet_aton(text: *const c_char, to: *mut [u8; 4]) -> c_int {
    // SAFETY: as there.
    unsafe { inet_pton(INTERNET, text, to) }
}

/// # Safety
/// A string.
#[unsafe(no_mangle)]
unsafe extern "C" fn inet_addr(text: *const c_char) -> u32 {
    // SAFETY: the caller says so.
    let address = parse(unsafe { string(text) });
    address.map_or(u32::MAX, |address| u32::from_ne_bytes(address.octets()))
}

/// An address's text, ended by a zero.
fn text(address: [u8; 4]) -> [u8; 16] {
    use core::fmt::Write;
    struct Text([u8; 16], usize);
    impl Write for Text {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            let end = self.1 + text.len();
            let place = self.0.get_mut(self.1..end).ok_or(core::fmt::Error)?;
            place.copy_from_slice(text.as_bytes());
            self.1 = end;
            Ok(())
        }
    }
    let mut text = Text([0; 16], 0);
    let _ = write!(text, "{}", Ipv4Addr::from(address));
    text.0
}

/// # Safety
/// An address, and so much room.
#[unsafe(no_mangle)]
unsafe extern "C" fn inet_ntop(
    family: c_int,
    address: *const [u8; 4],
    to: *mut c_char,
    room: u32,
) -> *const c_char {
    if family != INTERNET || room < 16 {
        let error = if family == INTERNET {
            errno::NOSPC
        } else {
            errno::AFNOSUPPORT
        };
        answer::<c_int>(Err(error));
        return null();
    }
    // SAFETY: the caller says so.
    unsafe {
        let text = text(address.read_unaligned());
        to.cast::<[u8; 16]>().write_unaligned(text);
    }
    to
}

static mut TEXT: [u8; 16] = [0; 16];

#[unsafe(no_mangle)]
extern "C" fn inet_ntoa(address: u32) -> *const c_char {
    let to = &raw mut TEXT;
    // SAFETY: only this function writes there, and C reads what it gave until it is called again.
    unsafe { to.write(text(address.to_ne_bytes())) };
    to.cast()
}

/// `struct addrinfo`.
#[repr(C)]
struct Found {
    flags: c_int,
    family: c_int,
    kind: c_int,
    protocol: c_int,
    length: u32,
    address: *mut Name,
    canonical: *mut c_char,
    next: *mut Found,
}

/// One of them and its address, in one piece of memory.
#[repr(C)]
struct Both {
    found: Found,
    name: Name,
}

const PASSIVE: c_int = 1;
const NUMERIC: c_int = 4;
const NONAME: c_int = -2;
const AGAIN: c_int = -3;
const FAIL: c_int = -4;
const FAMILY: c_int = -6;
const KIND: c_int = -7;
const SERVICE: c_int = -8;
const MEMORY: c_int = -10;

fn port(service: &[u8]) -> Option<u16> {
    match service {
        b"" => Some(0),
        b"http" => Some(80),
        b"domain" => Some(53),
        b"echo" => Some(7),
        digits => core::str::from_utf8(digits).ok()?.parse().ok(),
    }
}

/// # Safety
/// Strings or null, what is wanted or null, and room for a pointer.
#[unsafe(no_mangle)]
unsafe extern "C" fn getaddrinfo(
    name: *const c_char,
    service: *const c_char,
    hints: *const Found,
    to: *mut *mut Found,
) -> c_int {
    // SAFETY: the caller says so.
    let (text, service) = unsafe { (string(name), string(service)) };
    // SAFETY: as above.
    let hints = unsafe { hints.as_ref() };
    let (flags, family, kind) = hints.map_or((0, 0, 0), |h| (h.flags, h.family, h.kind));
    if !matches!(family, 0 | INTERNET) {
        return FAMILY;
    }
    if !(0..=3).contains(&kind) {
        return KIND;
    }
    let Some(port) = port(service) else {
        return SERVICE;
    };
    let local = if flags & PASSIVE != 0 {
        Ipv4Addr::UNSPECIFIED
    } else {
        Ipv4Addr::LOCALHOST
    };
    let found = match (name.is_null(), parse(text)) {
        (true, _) => Ok(names::one(local)),
        (false, None) if flags & NUMERIC != 0 => Err(errno::NOENT),
        (false, _) => names::find(text),
    };
    let (all, count) = match found {
        Ok(found) => found,
        Err(errno::NOENT) => return NONAME,
        Err(errno::AGAIN) => return AGAIN,
        Err(_) => return FAIL,
    };
    let mut next: *mut Found = null_mut();
    for host in all.iter().take(count).rev() {
        // SAFETY: memory for one, which is written before anybody reads it.
        unsafe {
            let both = calloc(1, size_of::<Both>()).cast::<Both>();
            if both.is_null() {
                freeaddrinfo(next);
                return MEMORY;
            }
            let address = &raw mut (*both).name;
            address.write(Name::of(*host, port));
            let kind = if kind == 0 { 1 } else { kind };
            both.cast::<Found>().write(Found {
                flags: 0,
                family: INTERNET,
                kind,
                protocol: [0, 6, 17, 1][kind as usize & 3],
                length: size_of::<Name>() as u32,
                address,
                canonical: null_mut(),
                next,
            });
            next = both.cast();
        }
    }
    // SAFETY: as above.
    unsafe { to.write(next) };
    0
}

/// # Safety
/// What [`getaddrinfo`] gave.
#[unsafe(no_mangle)]
unsafe extern "C" fn freeaddrinfo(mut found: *mut Found) {
    while !found.is_null() {
        // SAFETY: the caller says so; each is one piece of memory.
        unsafe {
            let next = (*found).next;
            free(found.cast());
            found = next;
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn gai_strerror(error: c_int) -> *const c_char {
    let words = match error {
        0 => c"no error",
        NONAME => c"no such name",
        AGAIN => c"no server answers; try again",
        FAIL => c"there is no network",
        FAMILY => c"addresses are of IP, version 4",
        KIND => c"no such kind of socket",
        SERVICE => c"a service is a port's number",
        MEMORY => c"no memory",
        _ => c"unknown error",
    };
    words.as_ptr()
}

/// `struct hostent`.
#[repr(C)]
struct Host {
    name: *const c_char,
    aliases: *const *const c_char,
    family: c_int,
    length: c_int,
    addresses: *const *const u8,
}

/// What `gethostbyname` gives.
struct Place {
    host: Host,
    addresses: [[u8; 4]; 8],
    pointers: [*const u8; 9],
    none: [*const c_char; 1],
}

static mut HOST: Place = Place {
    host: Host {
        name: null(),
        aliases: null(),
        family: INTERNET,
        length: 4,
        addresses: null(),
    },
    addresses: [[0; 4]; 8],
    pointers: [null(); 9],
    none: [null()],
};

/// `h_errno`.
#[unsafe(export_name = "h_errno")]
static mut H_ERRNO: c_int = 0;

/// # Safety
/// A string.
#[unsafe(no_mangle)]
unsafe extern "C" fn gethostbyname(name: *const c_char) -> *const Host {
    // SAFETY: the caller says so.
    let found: Result<names::Addresses, Errno> = names::find(unsafe { string(name) });
    let place = &raw mut HOST;
    // SAFETY: only this function writes there, and C reads what it gave until it is called again.
    unsafe {
        match found {
            Ok((all, count)) => {
                (*place).pointers = [null(); 9];
                for (index, address) in all.iter().take(count.min(8)).enumerate() {
                    (*place).addresses[index] = address.octets();
                    (*place).pointers[index] = (&raw const (*place).addresses[index]).cast();
                }
                (*place).host = Host {
                    name,
                    aliases: (&raw const (*place).none).cast(),
                    family: INTERNET,
                    length: 4,
                    addresses: (&raw const (*place).pointers).cast(),
                };
                &raw const (*place).host
            }
            Err(error) => {
                (&raw mut H_ERRNO).write(if error == errno::NOENT { 1 } else { 2 });
                null()
            }
        }
    }
}
