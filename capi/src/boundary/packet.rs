//! Packets as C passes them.

use super::{check, null};
use crate::failure::Failure;
use crate::structures::CPacket;
use std::marker::PhantomData;

/// `const pt_packet *`.
#[repr(transparent)]
pub struct PacketIn<'call>(*const CPacket, PhantomData<&'call CPacket>);

impl PacketIn<'_> {
    /// The packet.
    ///
    /// # Errors
    /// NULL.
    pub fn get(self) -> Result<CPacket, Failure> {
        self.optional().ok_or_else(|| null("packet"))
    }

    /// The packet, if there is one.
    pub fn optional(self) -> Option<CPacket> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: not null, so a structure of the host; it has integers only, for which all bytes
        // are valid.
        Some(unsafe { self.0.read() })
    }
}

/// `const pt_packet *` to several of them.
#[repr(transparent)]
pub struct Packets<'call>(*const CPacket, PhantomData<&'call CPacket>);

impl<'call> Packets<'call> {
    /// The packets.
    ///
    /// # Errors
    /// NULL with a count that is not 0; a count that no object has.
    pub fn get(self, count: usize, what: &str) -> Result<&'call [CPacket], Failure> {
        if count == 0 {
            return Ok(&[]);
        }
        let bytes = count.saturating_mul(size_of::<CPacket>());
        check(self.0.is_null(), bytes, what)?;
        // SAFETY: not null, so `count` structures of the host during the call, of integers; and the
        // result ends with it.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) })
    }
}
