//! Blocks of packets (TPACKET_V3): few wakes of the host and no byte lost between packets, for
//! captures that only look.
//!
//! Invariant: a packet's bytes lie inside of the block that is the host's, and behind its header.

use super::header::{ADDRESS, BLOCK, Header, PacketPosition, words};
use crate::error::SourceError;
use crate::trusted::word;
use postern::Shared;

/// Milliseconds after which the kernel hands over a block that is not full.
pub(super) const RETIRE: u32 = 20;
/// Where a block's descriptor has its status; and its number of packets, then the place of the
/// first.
const STATUS: usize = 8;
const COUNT: usize = 12;
/// Bytes of a packet's header.
const HEADER: usize = 48;

/// A block that is the host's now: packets that are left, and where the next one is in the area.
struct Open {
    left: u32,
    at: usize,
}

/// Where the host is.
pub(super) struct Blocks {
    count: usize,
    current: usize,
    open: Option<Open>,
}

impl Blocks {
    pub fn new(count: usize) -> Blocks {
        Blocks {
            count,
            current: 0,
            open: None,
        }
    }

    /// The next packet that the kernel has handed over.
    pub fn next(&mut self, area: &Shared) -> Result<Option<Header>, SourceError> {
        loop {
            let block = self.current * BLOCK;
            match self.open {
                Some(Open { left: 0, .. }) => {
                    self.open = None;
                    word::store(area, block + STATUS, libc::TP_STATUS_KERNEL);
                    self.current = (self.current + 1) % self.count;
                }
                Some(Open { left, at }) => {
                    let (header, next) = header(area, at, block)?;
                    self.open = Some(Open {
                        left: left - 1,
                        at: next,
                    });
                    return Ok(Some(header));
                }
                None if word::load(area, block + STATUS) & libc::TP_STATUS_USER != 0 => {
                    let mut fields = [0; 8];
                    area.read(block + COUNT, &mut fields)?;
                    let [left, first] = words(&fields);
                    self.open = Some(Open {
                        left,
                        at: block + first as usize,
                    });
                }
                None => return Ok(None),
            }
        }
    }
}

/// The header at `at`, and where the next one is.
fn header(area: &Shared, at: usize, block: usize) -> Result<(Header, usize), SourceError> {
    let end = block + BLOCK;
    let mut bytes = [0; HEADER + ADDRESS];
    if at < block || !at.is_multiple_of(4) || at + bytes.len() > end {
        return Err(SourceError::Ring("a header outside of its block"));
    }
    area.read(at, &mut bytes)?;
    let [next, seconds, nanos, captured, wire, status] = words(&bytes);
    let [places, _, tag, kind] = words(&bytes[24..]);
    let mac = (places & 0xffff) as usize;
    let frame = at + mac;
    if mac < HEADER || frame as u64 + u64::from(captured) > end as u64 {
        return Err(SourceError::Ring("a packet outside of its block"));
    }
    let mut address = [0; ADDRESS];
    address.copy_from_slice(&bytes[HEADER..]);
    let header = Header {
        captured,
        wire,
        seconds,
        nanos,
        status,
        tag: tag as u16,
        tag_kind: kind as u16,
        address,
        place: PacketPosition {
            aside: false,
            at: frame,
        },
    };
    Ok((header, at + next as usize))
}
