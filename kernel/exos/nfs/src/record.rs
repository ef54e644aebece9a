//! Messages in a stream: each is a record of fragments, whose lengths stand before them (RFC
//! 5531, section 11).

use alloc::vec::Vec;

use crate::xdr::Malformed;

const LAST: u32 = 1 << 31;

/// Bytes of a record at most: more than any answer that is asked for.
pub const MOST: usize = 1 << 18;

/// Fragments of a record at most, so that empty ones come to an end.
const FRAGMENTS: u32 = 256;

/// The mark that stands before a message of one fragment.
pub fn mark(message: &[u8]) -> [u8; 4] {
    (message.len() as u32 | LAST).to_be_bytes()
}

/// Bytes of a stream, of which records are taken.
#[derive(Clone, Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
}

impl Records {
    /// More bytes have come. There is room for [`Records::room`].
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// How many bytes may be put; none when a whole record waits or none can come.
    pub fn room(&self) -> usize {
        (MOST + 4 * FRAGMENTS as usize).saturating_sub(self.bytes.len())
    }

    /// Takes the first record, if it is whole. What is malformed spoils the stream: it has to be
    /// connected again.
    pub fn take(&mut self, record: &mut Vec<u8>) -> Result<bool, Malformed> {
        record.clear();
        let mut rest = self.bytes.as_slice();
        for _ in 0..FRAGMENTS {
            let Some((mark, behind)) = rest.split_first_chunk() else {
                return Ok(false);
            };
            let mark = u32::from_be_bytes(*mark);
            let length = (mark & !LAST) as usize;
            if length > MOST - record.len() {
                return Err(Malformed);
            }
            let Some((fragment, behind)) = behind.split_at_checked(length) else {
                return Ok(false);
            };
            record.extend(fragment);
            rest = behind;
            if mark & LAST != 0 {
                let taken = self.bytes.len() - rest.len();
                self.bytes.drain(..taken);
                return Ok(true);
            }
        }
        Err(Malformed)
    }

    /// The stream has begun anew.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}
