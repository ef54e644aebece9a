//! A filter's machine code, judged.

use alloc::vec::Vec;

use postern_verifier::{Bounds, Facts, Layout, Violation, bounded_buffer_len, verify_within};

/// The function's types as the extension ABI spells them.
pub const SIGNATURE: &str = "I(pII)";

/// Machine code of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    text: Vec<u8>,
}

impl Code {
    pub(crate) fn new(text: Vec<u8>) -> Code {
        Code { text }
    }

    /// The bytes; the function begins with the first one, wherever they lie.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// What the verifier says of it in its profile `Bounded`: that it ends by itself, and after how
    /// many instructions at most.
    ///
    /// # Errors
    /// The code is refused, which is a mistake of this crate.
    pub fn verify(&self) -> Result<Facts, Violation> {
        self.verify_within(Bounds::MAX)
    }

    /// As [`Code::verify`], and refuses code that could run more instructions, or nest calls
    /// deeper, than `bounds` says: for hosts whose users bring the expressions.
    ///
    /// # Errors
    /// The code is above the bounds; or as there.
    pub fn verify_within(&self, bounds: Bounds) -> Result<Facts, Violation> {
        let mut buffer = alloc::vec![0; bounded_buffer_len(self.text.len())];
        verify_within(&self.text, &Layout::new(0), bounds, &mut buffer)
    }
}
