//! What a call brings besides its arguments.

use super::control::Control;

/// What a call brings besides its arguments: bytes that are laid below the domain's data stack,
/// whose offset is the first argument, and a limit of time.
pub struct CallPayload<'a> {
    parts: [&'a [u8]; 2],
    /// Where the bytes were laid.
    pub at: u32,
    /// Nanoseconds after which the call is interrupted; 0 is none.
    pub limit: u64,
}

impl<'a> CallPayload<'a> {
    /// These bytes, one part behind the other, without a limit of time.
    pub fn new(parts: [&'a [u8]; 2]) -> CallPayload<'a> {
        CallPayload {
            parts,
            at: 0,
            limit: 0,
        }
    }

    /// Where the bytes go on the data stack that is used down to `r15`.
    pub(super) fn place(&self, control: &Control, r15: u32) -> Option<u32> {
        let bytes = self.parts[0].len().checked_add(self.parts[1].len())?;
        let bytes = u32::try_from(bytes).ok()?.checked_next_multiple_of(16)?;
        r15.checked_sub(bytes)
            .filter(|&at| at >= control.stack_bottom(r15))
    }

    /// Lays the bytes there. The window must be held by a published call.
    pub(super) fn unload(&mut self, control: &Control, at: u32) {
        let second = at + self.parts[0].len() as u32;
        // A data stack is private memory that stays as long as the domain.
        // SAFETY: `place` found room for both above the data stack's bottom.
        unsafe {
            let _ = control.write(at, self.parts[0]);
            let _ = control.write(second, self.parts[1]);
        }
        self.at = at;
    }
}
