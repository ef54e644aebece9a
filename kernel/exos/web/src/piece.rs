//! Bytes by their place in memory, and what a platform has to give.

use crate::sum::Sum;

/// Bytes of memory, which are sent from where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The page's number in bits 12 to 43, the offset in it below.
    pub place: u64,
    /// The capability to read the page, if it is another's.
    pub capability: u64,
    /// Bytes, all of them in this page.
    pub length: usize,
    /// Their sum.
    pub sum: Sum,
}

/// What became of a frame that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It goes.
    Yes,
    /// There is no room for it now.
    Later,
    /// A piece is not there any more, or may not be read.
    Gone,
}

/// Pieces of a frame besides its headers, at most.
pub const PIECES: usize = 6;

/// Where frames go.
pub trait Wire {
    /// Sends a frame: headers, which are copied, and pieces, which are not.
    fn send(&mut self, headers: &[u8], pieces: &[Piece]) -> Sent;
}

/// What is sent, by number.
pub trait Store {
    /// The piece of an object that begins at an offset: to the end of a chunk, or `most` bytes.
    /// `None`: the bytes are not there any more.
    fn piece(&mut self, object: u32, offset: u64, most: usize) -> Option<Piece>;
}
