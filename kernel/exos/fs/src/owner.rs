//! Whose memory the cache's frames are.

use postern_exos_abi::errno::{self, Errno};

use crate::disk::Block;

/// Who owns the frames of the cache: it has the time, and may show frames to others.
pub trait Owner {
    /// Nanoseconds since 1970.
    fn now(&mut self) -> u64;

    /// A frame is shown to others, until [`Owner::take_back`] is called for it: the number of its
    /// page and the capability to read it. Its bytes stay as they are so long. Called once for a
    /// frame until it is taken back, however often it is asked for.
    fn lend(&mut self, frame: &Block) -> Result<(u32, u64), Errno> {
        let _ = frame;
        Err(errno::NOTSUP)
    }

    /// The frame is used for something else: whoever had the capability must not see that.
    fn take_back(&mut self, frame: &Block) {
        let _ = frame;
    }
}
