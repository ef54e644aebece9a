//! Capabilities (section 3.2): words that prove themselves. One is the keyed hash (SipHash-2-4) of
//! an owner's number and birth, a name that the owner gave, and one right; so the kernel keeps
//! none, and a page's new name or owner makes all that were given out for it worthless.
//!
//! Invariant: only these words leave the kernel, never the key. A word has 63 bits, since the
//! result of a call is not below zero.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::call::{
    NAME_EVERYBODY, NAME_NOBODY, RIGHT_CONTROL, RIGHT_READ, RIGHT_WRITE,
};
use postern_aegis_abi::records::{Holding, HoldingKind, Page};
use siphasher::sip::SipHasher24;

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// The capability of a right to an owner's pages and holdings of a name; of the right to
    /// control, to the environment itself, with the name [`NAME_NOBODY`].
    pub fn mint(&self, owner: u16, name: u32, right: u64) -> u64 {
        let birth = self.environment(owner).birth.load(Relaxed);
        let first = u64::from(owner) | right << 16 | u64::from(birth) << 32;
        let of = [first, u64::from(name)];
        let last = self.hardware.minted().of_kind(right == RIGHT_CONTROL);
        last.get(of).unwrap_or_else(|| last.keep(of, self.hash(of)))
    }

    #[inline(never)]
    fn hash(&self, of: [u64; 2]) -> u64 {
        let mut message = [0; 16];
        for (bytes, word) in message.chunks_mut(8).zip(of) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        SipHasher24::new_with_key(self.key).hash(&message) >> 1
    }

    /// Whether a word lets somebody who owns nothing read a page, or write it. A capability to
    /// write lets read, too. The page is locked.
    pub(crate) fn lets(&self, record: &Page, write: bool, word: u64) -> bool {
        let owner = record.owner.load(Relaxed);
        self.proves(owner, &record.write, RIGHT_WRITE, word)
            || !write && self.proves(owner, &record.read, RIGHT_READ, word)
    }

    /// The same of a holding, while holdings are locked. Who may only write to the console does not
    /// read what is typed.
    pub(crate) fn lets_use(&self, holding: &Holding, write: bool, word: u64) -> bool {
        let owner = holding.owner.load(Relaxed);
        let console = holding.kind.load(Relaxed) == HoldingKind::Console as u32;
        let writes = || self.proves(owner, &holding.write, RIGHT_WRITE, word);
        let reads = || self.proves(owner, &holding.read, RIGHT_READ, word);
        if write {
            writes()
        } else {
            reads() || !console && writes()
        }
    }

    /// Whether a word is the capability of an owner's name, or the name needs none.
    #[inline(always)]
    fn proves(&self, owner: u16, name: &AtomicU32, right: u64, word: u64) -> bool {
        match name.load(Relaxed) {
            NAME_NOBODY => false,
            NAME_EVERYBODY => true,
            name => self.mint(owner, name, right) == word,
        }
    }
}
