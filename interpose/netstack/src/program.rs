//! Addresses and lists of pieces in the program's memory.

use crate::host;
use crate::wait::errno;
use alloc::vec::Vec;
use smoltcp::wire::{IpAddress, IpEndpoint, Ipv4Address};

const INET: u16 = 2;

/// Reads an address (`struct sockaddr_in`): the family, with the rest if it is one of IPv4.
pub fn address(at: u64, bytes: u64) -> Result<(u16, IpEndpoint), i64> {
    let mut name = [0; 16];
    if bytes < 2 {
        return Err(errno::EINVAL);
    }
    let length = (bytes as usize).min(name.len());
    if !host::read(at, &mut name[..length]) {
        return Err(errno::EFAULT);
    }
    let family = u16::from_le_bytes([name[0], name[1]]);
    if family == INET && length < name.len() {
        return Err(errno::EINVAL);
    }
    let port = u16::from_be_bytes([name[2], name[3]]);
    let address = Ipv4Address::new(name[4], name[5], name[6], name[7]);
    Ok((family, IpEndpoint::new(IpAddress::Ipv4(address), port)))
}

/// Writes one, as far as there is room, and how long it is.
pub fn put_address(at: u64, length_at: u64, endpoint: IpEndpoint) -> Result<(), i64> {
    if at == 0 {
        return Ok(());
    }
    let mut room = [0; 4];
    if !host::read(length_at, &mut room) {
        return Err(errno::EFAULT);
    }
    let name = name(endpoint);
    let room = u32::from_le_bytes(room) as usize;
    let written = host::write(at, &name[..room.min(name.len())])
        && host::write(length_at, &(name.len() as u32).to_le_bytes());
    written.then_some(()).ok_or(errno::EFAULT)
}

/// An address as programs have it.
pub fn name(endpoint: IpEndpoint) -> [u8; 16] {
    let mut name = [0; 16];
    let IpAddress::Ipv4(address) = endpoint.addr;
    name[..2].copy_from_slice(&INET.to_le_bytes());
    name[2..4].copy_from_slice(&endpoint.port.to_be_bytes());
    name[4..8].copy_from_slice(&address.octets());
    name
}

/// Pieces of the program's memory: where each is, and how long.
pub type Pieces = Vec<(u64, u64)>;

/// Reads a list of them (`struct iovec`).
pub fn pieces(at: u64, count: u64) -> Result<Pieces, i64> {
    const MOST: u64 = 1024;
    if count > MOST {
        return Err(errno::EINVAL);
    }
    let mut bytes = alloc::vec![0; 16 * count as usize];
    if !host::read(at, &mut bytes) {
        return Err(errno::EFAULT);
    }
    let word = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    Ok((0..count as usize)
        .map(|at| (word(16 * at), word(16 * at + 8)))
        .collect())
}

/// What is left of them behind so many bytes.
pub fn behind(pieces: &Pieces, mut skipped: u64) -> Pieces {
    let mut rest = Pieces::new();
    for (at, length) in pieces {
        let here = skipped.min(*length);
        skipped -= here;
        if here < *length {
            rest.push((at + here, length - here));
        }
    }
    rest
}

/// How many bytes they have.
pub fn total(pieces: &Pieces) -> u64 {
    pieces
        .iter()
        .fold(0, |sum, (_, length)| length.saturating_add(sum))
}

/// A message (`struct msghdr`).
#[derive(Clone, Debug)]
pub struct Message {
    pub at: u64,
    pub name: u64,
    pub name_length: u32,
    pub pieces: Pieces,
}

impl Message {
    /// Reads it.
    pub fn read(at: u64) -> Result<Message, i64> {
        let mut bytes = [0; 56];
        if !host::read(at, &mut bytes) {
            return Err(errno::EFAULT);
        }
        let word = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        Ok(Message {
            at,
            name: word(0),
            name_length: word(8) as u32,
            pieces: pieces(word(16), word(24))?,
        })
    }

    /// Writes what came with what was received: from whom, no control messages, flags.
    pub fn answer(&self, from: Option<IpEndpoint>, flags: u32) -> Result<(), i64> {
        let length = match from.filter(|_| self.name != 0) {
            Some(from) => {
                let name = name(from);
                let room = (self.name_length as usize).min(name.len());
                if !host::write(self.name, &name[..room]) {
                    return Err(errno::EFAULT);
                }
                name.len() as u32
            }
            None => 0,
        };
        let written = host::write(self.at + 8, &length.to_le_bytes())
            && host::write(self.at + 40, &0u64.to_le_bytes())
            && host::write(self.at + 48, &flags.to_le_bytes());
        written.then_some(()).ok_or(errno::EFAULT)
    }
}
