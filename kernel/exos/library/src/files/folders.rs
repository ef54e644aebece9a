//! Paths of folders that are open, for what is done beside them. The last few are known.

use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::protocol::PATH;

use crate::files::descriptors::{Descriptor, kind};
use crate::files::paths::Path;

/// Folders whose paths are known.
const KNOWN: usize = 8;

struct Known {
    /// The words of the descriptor, the second of which no other open file has.
    words: [AtomicU64; 2],
    path: [AtomicU8; PATH],
    length: AtomicUsize,
}

#[unsafe(link_section = ".bss..lazy")]
static ALL: [Known; KNOWN] = [const {
    Known {
        words: [const { AtomicU64::new(0) }; 2],
        path: [const { AtomicU8::new(0) }; PATH],
        length: AtomicUsize::new(0),
    }
}; KNOWN];

/// Which is written next.
#[unsafe(link_section = ".bss..lazy")]
static NEXT: AtomicUsize = AtomicUsize::new(0);

fn is(known: &Known, words: [u64; 2]) -> bool {
    known.length.load(Relaxed) != 0 && [0, 1].map(|word| known.words[word].load(Relaxed)) == words
}

/// A folder of a path has been opened.
pub fn opened(words: [u64; 2], path: &Path) {
    let former = ALL.iter().find(|known| is(known, words));
    let known = former.unwrap_or_else(|| &ALL[NEXT.fetch_add(1, Relaxed) % KNOWN]);
    for (to, word) in known.words.iter().zip(words) {
        to.store(word, Relaxed);
    }
    for (to, byte) in known.path.iter().zip(path.bytes()) {
        to.store(*byte, Relaxed);
    }
    known.length.store(path.bytes().len(), Relaxed);
}

/// The path of a folder that is open. `ENOTSUP`: too many others have been opened since.
pub fn path_of(descriptor: Descriptor) -> Result<Path, Errno> {
    if !matches!(descriptor.kind, kind::SERVED | kind::FOLDER) {
        return Err(errno::NOTDIR);
    }
    let known = ALL.iter().find(|known| is(known, descriptor.words));
    let known = known.ok_or(errno::NOTSUP)?;
    let mut bytes = [0; PATH];
    let length = known.length.load(Relaxed).min(PATH);
    for (to, byte) in bytes.iter_mut().zip(&known.path).take(length) {
        *to = byte.load(Relaxed);
    }
    Path::of(&bytes[..length])
}
