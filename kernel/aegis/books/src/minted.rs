//! Capabilities that a processor minted last.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Two of them, one to control an environment and one of another right: who makes a process
/// presents the same two for page after page.
#[derive(Debug, Default)]
pub struct Minted([Last; 2]);

/// What one is of, and the word; all zeros are of nobody, since births begin with 1.
#[derive(Debug, Default)]
pub(crate) struct Last {
    of: [AtomicU64; 2],
    word: AtomicU64,
}

impl Minted {
    /// None yet.
    pub const fn new() -> Minted {
        Minted(
            [const {
                Last {
                    of: [const { AtomicU64::new(0) }; 2],
                    word: AtomicU64::new(0),
                }
            }; 2],
        )
    }

    /// The one to control, or the other.
    #[inline(always)]
    pub(crate) fn of_kind(&self, control: bool) -> &Last {
        &self.0[usize::from(!control)]
    }
}

impl Last {
    /// The word, if it is of this.
    #[inline(always)]
    pub fn get(&self, of: [u64; 2]) -> Option<u64> {
        let same = [0, 1].map(|word| self.of[word].load(Relaxed)) == of;
        same.then(|| self.word.load(Relaxed))
    }

    /// Keeps a word.
    #[inline(always)]
    pub fn keep(&self, of: [u64; 2], word: u64) -> u64 {
        self.word.store(word, Relaxed);
        for (to, from) in self.of.iter().zip(of) {
            to.store(from, Relaxed);
        }
        word
    }
}
