//! Calls with addresses: made in their caller's place, on a copy of its socket's descriptor, with
//! the address that the agent was asked about.

use super::agent::Copies;
use super::caller::Caller;
use super::files::Made;
use super::named::{self, Named};
use super::walk::{self, Place, by_number};
use crate::trusted::foreign;
use rustix::io::Errno;
use rustix::process::{Signal, fchdir, umask};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Bytes of an address, and of a path in one.
const ADDRESS: usize = 128;
const LOCAL: usize = 108;
/// Bytes of one message, and of what goes along with it.
const MESSAGE: usize = 4 << 20;
const CONTROL: usize = 64 << 10;
/// Pieces that a message has, at most.
const PIECES: u64 = 1024;
/// Descriptors that go along with a message, as the kernel has it (`SCM_MAX_FD`).
const MOST_FILES: usize = 253;
/// Bytes of a `struct msghdr`, behind which a `struct mmsghdr` has its length.
const HEADER: usize = 56;

/// An address as the agent is told of it, and as it is used.
#[derive(Debug, Default)]
pub struct Address {
    pub told: Vec<u8>,
    used: Vec<u8>,
    /// What the path of a local socket was found to lead to.
    place: Option<Place>,
}

/// Bytes of messages that are held at once, and of those that are held now.
const HELD: usize = 64 << 20;
static ALL_HELD: AtomicUsize = AtomicUsize::new(0);

/// Room for a message.
#[derive(Debug)]
pub struct Room(usize);

impl Room {
    fn take(bytes: usize) -> Result<Room, Errno> {
        let room = Room(bytes);
        match ALL_HELD.fetch_add(bytes, SeqCst) + bytes <= HELD {
            true => Ok(room),
            false => Err(Errno::NOBUFS),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        ALL_HELD.fetch_sub(self.0, SeqCst);
    }
}

/// A call with an address, or a name.
#[derive(Debug)]
pub enum Deed {
    Named(Named),
    Connect(Address),
    Bind(Address),
    Send {
        address: Address,
        bytes: Vec<u8>,
        room: Room,
        control: Vec<u8>,
        /// Descriptors that go along, which the control bytes name.
        files: Vec<OwnedFd>,
        flags: i32,
        /// Where the message's length is told.
        length_at: Option<u64>,
    },
}

/// Copies an address. `finds` is whether the file of a local socket is to be there.
fn address(caller: &Caller, at: u64, bytes: u64, finds: bool) -> Result<Address, Errno> {
    if bytes as u32 as usize > ADDRESS {
        return Err(Errno::INVAL);
    }
    let mut told = vec![0; bytes as u32 as usize];
    caller.read(at, &mut told)?;
    caller.still()?;
    let local = told.starts_with(&(libc::AF_UNIX as u16).to_le_bytes());
    let path = told.get(2..).unwrap_or(&[]);
    let path = path.split(|byte| *byte == 0).next().unwrap_or(&[]);
    if !local || path.is_empty() {
        let used = told.clone();
        return Ok(Address {
            told,
            used,
            place: None,
        });
    }
    let place = walk::find(caller, libc::AT_FDCWD, path, finds)?;
    let of_path = |path: &[u8]| {
        let mut address = (libc::AF_UNIX as u16).to_le_bytes().to_vec();
        address.extend(path);
        address.push(0);
        match address.len() > 2 + LOCAL {
            true => Err(Errno::NAMETOOLONG),
            false => Ok(address),
        }
    };
    let used = match (&place.target, finds) {
        (Some(target), true) => of_path(by_number(target.as_fd()).as_bytes())?,
        (None, true) => return Err(Errno::NOENT),
        (Some(_), false) => return Err(Errno::ADDRINUSE),
        (None, false) => of_path(&place.name)?,
    };
    Ok(Address {
        told: of_path(&place.path()?)?,
        used,
        place: Some(place),
    })
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}

/// Copies what a call needs, and has the agent's words for it: the call's number and words with the
/// addresses of copies. `None` for other calls.
pub fn copy(
    caller: &Caller,
    number: i64,
    words: &[u64; 6],
    copies: &mut Copies,
) -> Result<Option<(Deed, i64, [u64; 6])>, Errno> {
    let mut told = *words;
    let deed = match number {
        libc::SYS_connect | libc::SYS_bind => {
            let address = address(caller, words[1], words[2], number == libc::SYS_connect)?;
            told[1] = copies.add(address.told.clone());
            told[2] = address.told.len() as u64;
            match number {
                libc::SYS_connect => Deed::Connect(address),
                _ => Deed::Bind(address),
            }
        }
        libc::SYS_sendto => {
            let address = address(caller, words[4], words[5], true)?;
            told[4] = copies.add(address.told.clone());
            told[5] = address.told.len() as u64;
            let bytes = usize::try_from(words[2])
                .ok()
                .filter(|bytes| *bytes <= MESSAGE);
            let bytes = bytes.ok_or(Errno::MSGSIZE)?;
            let room = Room::take(bytes)?;
            let mut message = vec![0; bytes];
            caller.read(words[1], &mut message)?;
            Deed::Send {
                address,
                room,
                bytes: message,
                control: Vec::new(),
                files: Vec::new(),
                flags: words[3] as i32,
                length_at: None,
            }
        }
        libc::SYS_sendmsg | libc::SYS_sendmmsg => {
            let many = number == libc::SYS_sendmmsg;
            if many && words[2] as u32 == 0 {
                return Err(Errno::INVAL);
            }
            let flags = words[if many { 3 } else { 2 }] as i32;
            let (mut header, deed) = message(caller, words[1], flags, many)?;
            if let Deed::Send { address, .. } = &deed {
                let at = match address.told.is_empty() {
                    true => 0,
                    false => copies.add(address.told.clone()),
                };
                header[..8].copy_from_slice(&at.to_le_bytes());
                header[8..12].copy_from_slice(&(address.told.len() as u32).to_le_bytes());
            }
            told = [words[0], copies.add(header.to_vec()), flags as u64, 0, 0, 0];
            return Ok(Some((deed, libc::SYS_sendmsg, told)));
        }
        _ => match named::copy(caller, number, &mut told, copies)? {
            Some(named) => Deed::Named(named),
            None => return Ok(None),
        },
    };
    Ok(Some((deed, number, told)))
}

/// Copies a message.
fn message(
    caller: &Caller,
    at: u64,
    flags: i32,
    many: bool,
) -> Result<([u8; HEADER], Deed), Errno> {
    let mut header = [0; HEADER];
    caller.read(at, &mut header)?;
    let (name, name_bytes) = (word(&header, 0), word(&header, 8) as u32);
    let (pieces, count) = (word(&header, 16), word(&header, 24));
    let (control_at, control_bytes) = (word(&header, 32), word(&header, 40));
    let address = match name == 0 || name_bytes == 0 {
        true => Address::default(),
        false => address(caller, name, name_bytes.into(), true)?,
    };
    if count > PIECES {
        return Err(Errno::MSGSIZE);
    }
    let mut table = vec![0; 16 * count as usize];
    caller.read(pieces, &mut table)?;
    let mut whole = 0;
    for piece in table.chunks_exact(16) {
        let more = usize::try_from(word(piece, 8)).map_err(|_| Errno::INVAL)?;
        if more > MESSAGE - whole {
            return Err(Errno::MSGSIZE);
        }
        whole += more;
    }
    let room = Room::take(whole)?;
    let mut bytes = vec![0; whole];
    let mut start = 0;
    for piece in table.chunks_exact(16) {
        let end = start + word(piece, 8) as usize;
        caller.read(word(piece, 0), &mut bytes[start..end])?;
        start = end;
    }
    if control_bytes > CONTROL as u64 {
        return Err(Errno::NOBUFS);
    }
    let mut control = vec![
        0;
        if control_at == 0 {
            0
        } else {
            control_bytes as usize
        }
    ];
    caller.read(control_at, &mut control)?;
    caller.still()?;
    let files = take_along(caller, &mut control)?;
    let deed = Deed::Send {
        address,
        bytes,
        room,
        control,
        files,
        flags,
        length_at: many.then(|| at.wrapping_add(HEADER as u64)),
    };
    Ok((header, deed))
}

/// Descriptors that a message takes along become this process's own.
fn take_along(caller: &Caller, control: &mut [u8]) -> Result<Vec<OwnedFd>, Errno> {
    use std::os::fd::AsRawFd;
    /// Bytes in front of what one part has: its length, level and kind.
    const HEAD: usize = 16;
    let mut files = Vec::new();
    let mut at = 0;
    while at + HEAD <= control.len() {
        let bytes = usize::try_from(word(control, at)).map_err(|_| Errno::INVAL)?;
        let end = at.checked_add(bytes).filter(|end| *end <= control.len());
        let end = end.filter(|_| bytes >= HEAD).ok_or(Errno::INVAL)?;
        let rights = (libc::SCM_RIGHTS as u64) << 32 | libc::SOL_SOCKET as u64;
        if word(control, at + 8) == rights {
            for number in control[at + HEAD..end].chunks_exact_mut(4) {
                if files.len() == MOST_FILES {
                    return Err(Errno::INVAL);
                }
                let theirs = i32::from_le_bytes(number.try_into().map_err(|_| Errno::INVAL)?);
                let file = caller.descriptor(theirs)?;
                number.copy_from_slice(&file.as_raw_fd().to_le_bytes());
                files.push(file);
            }
        }
        at = end.next_multiple_of(8);
    }
    Ok(files)
}

impl Deed {
    /// Whether it may wait for somebody else.
    pub fn may_wait(&self) -> bool {
        matches!(self, Deed::Connect(_) | Deed::Send { .. })
    }

    /// Does it, on the socket that the caller has by a number.
    pub fn make(self, caller: &Caller, number: i32) -> Result<Made, Errno> {
        if let Deed::Named(named) = self {
            return named.make(caller);
        }
        let socket = caller.descriptor(number)?;
        let result = match self {
            Deed::Named(_) => Err(Errno::INVAL),
            Deed::Connect(address) => foreign::connect(socket.as_fd(), &address.used).map(|()| 0),
            Deed::Bind(address) => {
                if let Some(place) = &address.place {
                    // This thread's own folder and mask.
                    fchdir(&place.folder)?;
                    umask(caller.status()?.mask);
                }
                let bound = foreign::bind(socket.as_fd(), &address.used);
                if address.place.is_some() {
                    rustix::process::chdir("/")?;
                }
                bound.map(|()| 0)
            }
            Deed::Send {
                address,
                bytes,
                room,
                control,
                files,
                flags,
                length_at,
            } => {
                let sent = foreign::send(socket.as_fd(), &address.used, &bytes, &control, flags);
                drop((files, bytes, room));
                if sent == Err(Errno::PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
                    caller.signal(Signal::PIPE)?;
                }
                match (sent, length_at) {
                    (Ok(sent), Some(at)) => {
                        // Of several messages one was sent: callers send the others next.
                        caller.write(at, &(sent as u32).to_le_bytes())?;
                        Ok(1)
                    }
                    (sent, _) => sent,
                }
            }
        };
        result.map(Made::Result)
    }
}
