//! Frames that an environment sends: how many are under way, and that they are done with.
//!
//! Invariant: under an environment's lock its count of frames is how many of them, of this birth,
//! the network is not done with; there are not more than [`FRAMES`].

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::device::FRAMES;
use postern_aegis_abi::{Context, Error};

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// One more frame of an environment's is under way: the environment's birth, which tells it
    /// from later ones of this number. `few`: only if it has no other.
    ///
    /// # Errors
    /// [`Error::Again`] if it has as many as it may have.
    pub fn begin_frame(&self, owner: u16, few: bool) -> Result<u32, Error> {
        let _lock = self.lock_environment(owner);
        if !self.lives(owner) {
            return Err(Error::NoEnvironment);
        }
        let record = self.environment(owner);
        let frames = record.frames.load(Relaxed);
        let most = if few { 1 } else { FRAMES as u32 };
        if frames >= most {
            return Err(Error::Again);
        }
        record.frames.store(frames + 1, Relaxed);
        Ok(record.birth.load(Relaxed))
    }

    /// A frame was not sent after all.
    pub fn cancel_frame(&self, owner: u16, birth: u32) {
        let _lock = self.lock_environment(owner);
        self.one_less(owner, birth);
    }

    /// The network is done with a frame of an environment's, which is told if it still lives.
    pub fn end_frame(&self, owner: u16, birth: u32) {
        let _lock = self.lock_environment(owner);
        if self.one_less(owner, birth) && self.lives(owner) {
            self.context(owner)[offset_of!(Context, sent) / 8].fetch_add(1, Relaxed);
            self.raise_locked(owner, Context::EVENT_SENT);
        }
    }

    /// Counts a frame less, if the environment is still that of this birth. Its lock is held.
    fn one_less(&self, owner: u16, birth: u32) -> bool {
        let record = self.environment(owner);
        let same = record.birth.load(Relaxed) == birth;
        if same {
            let frames = record.frames.load(Relaxed);
            record.frames.store(frames.saturating_sub(1), Relaxed);
        }
        same
    }
}
