//! Frames in rings that the kernel shares (`TPACKET_V2` of `packet(7)`): smoltcp's device.
//!
//! Invariant: nothing outside of the rings is touched, whatever their words say. Whoever has the
//! window can write them, so each length is compared with what a slot has.
//!
//! ```text
//! ring:  slots to receive | slots to send
//! slot:  status, length, length here, where (16 bits) … frame
//! ```

use crate::{checksum, host};
use core::sync::atomic::{AtomicU32, Ordering};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// Slots to receive: each takes what a sender on this machine hands over in one piece, 64 KiB.
pub const RECEIVE: usize = 256;
pub const RECEIVE_BYTES: usize = 128 << 10;
/// Slots to send.
pub const SEND: usize = 1024;
pub const SEND_BYTES: usize = 2048;
/// Bytes of both.
pub const BYTES: usize = RECEIVE * RECEIVE_BYTES + SEND * SEND_BYTES;

/// A frame's header.
const HEADER: usize = 14;
/// Where a frame to send begins in its slot.
const SENT_AT: usize = 32;
/// Frames that wait until the kernel is told of them, at most.
const BATCH: usize = 64;

/// Bits of the status of a slot to receive: it is the program's; sums need no look.
const USER: u32 = 1;
const NOT_READY: u32 = 1 << 3;
const VALID: u32 = 1 << 7;
/// And of a slot to send: the kernel shall take it.
const REQUEST: u32 = 1;

/// The rings, of the socket with this number.
#[derive(Debug)]
pub struct Ring {
    /// Where they begin.
    start: usize,
    file: u64,
    frame: usize,
    checks: bool,
    next: usize,
    next_to_send: usize,
    /// Frames that the kernel has not been told of.
    untold: usize,
}

impl Ring {
    /// Rings that lie at an address, a multiple of a page's size, for frames of so many bytes.
    ///
    /// # Safety
    /// [`BYTES`] from there on are mapped for good, and nobody has a reference to them.
    pub unsafe fn new(start: usize, file: u64, frame: usize, checks: bool) -> Ring {
        Ring {
            start,
            file,
            frame: frame.min(SEND_BYTES - SENT_AT),
            checks,
            next: 0,
            next_to_send: 0,
            untold: 0,
        }
    }

    /// Where the rings lie.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The socket.
    pub fn file(&self) -> u64 {
        self.file
    }

    fn received(&self) -> usize {
        self.start + self.next * RECEIVE_BYTES
    }

    fn sent(&self) -> usize {
        self.start + RECEIVE * RECEIVE_BYTES + self.next_to_send * SEND_BYTES
    }

    /// The status of a slot.
    fn status(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: slots lie in the rings, at multiples of 2 KiB.
        unsafe { &*(slot as *const AtomicU32) }
    }

    fn word(slot: usize, at: usize) -> u32 {
        // SAFETY: as above.
        unsafe { ((slot + at) as *const u32).read_volatile() }
    }

    /// Tells the kernel of frames.
    pub fn tell(&mut self) {
        const SENDTO: u64 = 44;
        const DONT_WAIT: u64 = 0x40;
        if core::mem::take(&mut self.untold) > 0 {
            host::now(SENDTO, [self.file, 0, 0, DONT_WAIT, 0, 0]);
        }
    }

    /// The frame in the next slot, if there is one and it lies in its slot. Slots that say
    /// something else are the kernel's again.
    fn take(&mut self) -> Option<Received> {
        for _ in 0..RECEIVE {
            let slot = self.received();
            let status = self.status(slot).load(Ordering::Acquire);
            if status & USER == 0 {
                return None;
            }
            self.next = (self.next + 1) % RECEIVE;
            let length = Self::word(slot, 8) as usize;
            let at = (Self::word(slot, 12) & 0xffff) as usize;
            if at >= SENT_AT && length >= HEADER && at + length <= RECEIVE_BYTES {
                let received = Received {
                    slot,
                    at: slot + at,
                    length,
                };
                if !self.checks || status & (VALID | NOT_READY) != 0 || received.is_right() {
                    return Some(received);
                }
            }
            self.status(slot).store(0, Ordering::Release);
        }
        None
    }
}

/// A frame that was received. Its slot is the kernel's again when it is dropped.
#[derive(Debug)]
pub struct Received {
    slot: usize,
    at: usize,
    length: usize,
}

impl Received {
    fn bytes(&self) -> &[u8] {
        // SAFETY: in its slot; the kernel writes there no more, until the status says so.
        unsafe { core::slice::from_raw_parts(self.at as *const u8, self.length) }
    }

    fn is_right(&self) -> bool {
        const IPV4: [u8; 2] = [8, 0];
        let (head, packet) = self.bytes().split_at(HEADER);
        head[12..14] != IPV4 || checksum::is_right(packet)
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // SAFETY: slots lie in the rings, at multiples of 2 KiB.
        let status = unsafe { &*(self.slot as *const AtomicU32) };
        status.store(0, Ordering::Release);
    }
}

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, what: F) -> R {
        what(self.bytes())
    }
}

/// Room for a frame.
#[derive(Debug)]
pub struct Sent<'a>(&'a mut Ring);

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, what: F) -> R {
        let ring = self.0;
        let slot = ring.sent();
        let length = length.min(SEND_BYTES - SENT_AT);
        // SAFETY: in its slot, which is not the kernel's, or nobody had got this token.
        let frame = unsafe { core::slice::from_raw_parts_mut((slot + SENT_AT) as *mut u8, length) };
        let result = what(frame);
        // SAFETY: as above.
        unsafe { ((slot + 4) as *mut u32).write_volatile(length as u32) };
        ring.status(slot).store(REQUEST, Ordering::Release);
        ring.next_to_send = (ring.next_to_send + 1) % SEND;
        ring.untold += 1;
        if ring.untold >= BATCH {
            ring.tell();
        }
        result
    }
}

impl Device for Ring {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, now: Instant) -> Option<(Received, Sent<'_>)> {
        self.transmit(now)?;
        let received = self.take()?;
        Some((received, Sent(self)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        let slot = self.sent();
        if self.status(slot).load(Ordering::Acquire) != 0 {
            // The kernel has not come so far; it is told again, and if it has no room now, frames
            // stay where they are.
            self.untold += 1;
            self.tell();
            if self.status(slot).load(Ordering::Acquire) != 0 {
                return None;
            }
        }
        Some(Sent(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.frame;
        // Those of received frames are looked at here.
        capabilities.checksum.tcp = Checksum::Tx;
        capabilities.checksum.udp = Checksum::Tx;
        capabilities
    }
}
