//! Text of a bounded size.

use core::fmt::{self, Write};

/// A few words; what has no room is lost, and an error.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    bytes: [u8; 64],
    length: usize,
}

impl Default for Words {
    fn default() -> Words {
        Words {
            bytes: [0; 64],
            length: 0,
        }
    }
}

impl Words {
    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Write for Words {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
