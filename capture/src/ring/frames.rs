//! Frames of one packet (TPACKET_V2): each wakes the host as it comes, for those who answer.
//!
//! A packet that is longer than a frame, as those are that the kernel has put together of many, is
//! queued at the socket, too, and is copied from there to memory aside, which viewers see as well.
//!
//! Invariant: a packet's bytes lie inside of the frame that is the host's, or of the memory aside,
//! and queued packets are taken in the order of their frames.

use super::header::{ADDRESS, BLOCK, Header, PacketPosition, words};
use crate::error::SourceError;
use crate::trusted::socket::Socket;
use crate::trusted::word;
use postern::Shared;

/// Bytes of a frame: an Ethernet frame of the usual size, and its header.
pub(super) const FRAME: usize = 2048;
/// Bytes of a packet's header, and where its status is.
const HEADER: usize = 32;
const STATUS: usize = 0;
/// Where a packet aside begins: before it is room for a tag.
const ASIDE: usize = 16;
/// The longest packet.
const LONGEST: usize = 1 << 18;

/// Where the host is.
pub(super) struct Frames {
    count: usize,
    current: usize,
    /// The current frame is the host's.
    held: bool,
    snaplen: u32,
    /// The last packet that was longer than a frame.
    pub aside: Shared,
    buffer: Vec<u8>,
}

impl Frames {
    pub fn new(blocks: usize, snaplen: u32) -> Result<Frames, SourceError> {
        let builder = Shared::builder().name("large packet");
        Ok(Frames {
            count: blocks * (BLOCK / FRAME),
            current: 0,
            held: false,
            snaplen,
            aside: builder.zeroed(ASIDE + LONGEST)?,
            buffer: Vec::new(),
        })
    }

    /// The next packet that the kernel has handed over.
    pub fn next(&mut self, area: &Shared, socket: &Socket) -> Result<Option<Header>, SourceError> {
        if self.held {
            self.held = false;
            word::store(area, self.current * FRAME + STATUS, libc::TP_STATUS_KERNEL);
            self.current = (self.current + 1) % self.count;
        }
        let at = self.current * FRAME;
        if word::load(area, at + STATUS) & libc::TP_STATUS_USER == 0 {
            return Ok(None);
        }
        self.held = true;
        let mut header = header(area, at)?;
        if header.status & libc::TP_STATUS_COPY != 0 {
            self.take(socket, &mut header)?;
        }
        Ok(Some(header))
    }

    /// Takes the whole packet of a header from the queue. If it is not there the frame has its
    /// beginning.
    fn take(&mut self, socket: &Socket, header: &mut Header) -> Result<(), SourceError> {
        self.buffer.resize(LONGEST, 0);
        let mut received = socket.receive(&mut self.buffer);
        // That the interface went down is told once, and before the packets that came until then.
        if matches!(&received, Err(error) if error.raw_os_error() == Some(libc::ENETDOWN)) {
            received = socket.receive(&mut self.buffer);
        }
        let Ok(whole) = received else {
            return Ok(());
        };
        let kept = whole.min(LONGEST).min(self.snaplen as usize);
        let bytes = self.buffer.get(..kept).unwrap_or_default();
        self.aside.write(ASIDE, bytes)?;
        header.captured = kept as u32;
        header.place = PacketPosition {
            aside: true,
            at: ASIDE,
        };
        Ok(())
    }
}

fn header(area: &Shared, at: usize) -> Result<Header, SourceError> {
    let mut bytes = [0; HEADER + ADDRESS];
    area.read(at, &mut bytes)?;
    let [status, wire, captured, places, seconds, nanos, tag] = words(&bytes);
    let mac = (places & 0xffff) as usize;
    if mac < HEADER || mac as u64 + u64::from(captured) > FRAME as u64 {
        return Err(SourceError::Ring("a packet outside of its frame"));
    }
    let mut address = [0; ADDRESS];
    address.copy_from_slice(&bytes[HEADER..]);
    Ok(Header {
        captured,
        wire,
        seconds,
        nanos,
        status,
        tag: tag as u16,
        tag_kind: (tag >> 16) as u16,
        address,
        place: PacketPosition {
            aside: false,
            at: at + mac,
        },
    })
}
