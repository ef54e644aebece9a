//! Services that processes offer to all others, in a page that everybody reads at
//! [`SERVICES`](crate::address::SERVICES) and the registry writes. A name that begins with `/` is a
//! mount point, whose server has files: `/` is the disk. An entry ends with the environment that
//! offers it.
//!
//! Words are whole each; several need not fit together, so readers look at the count before and
//! behind: it is odd while something changes.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed};

/// Bytes of a name at most, and one more.
pub const NAME: usize = 48;

/// Services that there are at most.
pub const SERVICES: usize = 31;

/// Words of a service's own.
pub const WORDS: usize = 4;

/// A service: 128 bytes.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Service {
    /// Whose it is: a pid; 0: there is none.
    pub pid: AtomicU32,
    /// The birth of its environment.
    pub birth: AtomicU32,
    /// Its environment: whom requests go to.
    pub environment: AtomicU32,
    /// Unused.
    pub reserved: AtomicU32,
    /// What it says of itself.
    pub words: [AtomicU64; WORDS],
    /// Its name, ended by a zero.
    pub name: Name,
}

/// A name's bytes.
#[repr(transparent)]
#[derive(Debug)]
pub struct Name(pub [AtomicU8; NAME]);

impl Default for Name {
    fn default() -> Name {
        Name([const { AtomicU8::new(0) }; NAME])
    }
}

/// All of them.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Services {
    /// How often something began to change or was changed.
    pub changes: AtomicU64,
    /// Services that were started with the machine and have neither offered anything nor ended:
    /// who misses one waits as long as there are some.
    pub coming: AtomicU32,
    /// Unused.
    pub reserved: [AtomicU32; 29],
    /// The services.
    pub all: [Service; SERVICES],
}

const _: () = assert!(core::mem::size_of::<Services>() == 4096);

/// What is known of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Whose it is: a pid.
    pub pid: u32,
    /// The birth of its environment.
    pub birth: u32,
    /// Its environment.
    pub environment: u16,
    /// What it says of itself.
    pub words: [u64; WORDS],
}

/// Looks at a page that changes meanwhile, before it is given up.
const LOOKS: u32 = 1 << 16;

impl Service {
    /// What it is now, and whether it is of this name.
    fn found(&self, serves: &mut impl FnMut(&[u8]) -> bool) -> Option<Found> {
        let pid = self.pid.load(Relaxed);
        if pid == 0 {
            return None;
        }
        let mut name = [0; NAME];
        for (to, byte) in name.iter_mut().zip(&self.name.0) {
            *to = byte.load(Relaxed);
        }
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        serves(&name[..length]).then(|| Found {
            pid,
            birth: self.birth.load(Relaxed),
            environment: self.environment.load(Relaxed) as u16,
            words: core::array::from_fn(|word| self.words[word].load(Relaxed)),
        })
    }
}

impl Services {
    /// The first service whose name serves; a name is told more than once if the page changes
    /// meanwhile.
    pub fn find(&self, mut serves: impl FnMut(&[u8]) -> bool) -> Option<Found> {
        for _ in 0..LOOKS {
            let before = self.changes.load(Acquire);
            let found = self.all.iter().find_map(|one| one.found(&mut serves));
            core::sync::atomic::fence(Acquire);
            if before.is_multiple_of(2) && self.changes.load(Relaxed) == before {
                return found;
            }
            core::hint::spin_loop();
        }
        None
    }

    /// The mount point that a path is below, or is: which place its service has, and the bytes of
    /// the path that name it.
    pub fn mount_of(&self, path: &[u8]) -> Option<(usize, usize, Found)> {
        for _ in 0..LOOKS {
            let before = self.changes.load(Acquire);
            let mut best: Option<(usize, usize, Found)> = None;
            for (place, one) in self.all.iter().enumerate() {
                let mut length = 0;
                let found = one.found(&mut |name| {
                    length = name.len();
                    is_below(path, name)
                });
                if let Some(found) = found
                    && best.is_none_or(|best| best.1 < length)
                {
                    best = Some((place, length, found));
                }
            }
            core::sync::atomic::fence(Acquire);
            if before.is_multiple_of(2) && self.changes.load(Relaxed) == before {
                return best;
            }
            core::hint::spin_loop();
        }
        None
    }

    /// The service of a place, and its name, ended by a zero.
    pub fn at(&self, place: usize) -> Option<(Found, [u8; NAME])> {
        let one = self.all.get(place)?;
        for _ in 0..LOOKS {
            let before = self.changes.load(Acquire);
            let mut name = [0; NAME];
            let found = one.found(&mut |bytes| {
                name[..bytes.len()].copy_from_slice(bytes);
                true
            });
            core::sync::atomic::fence(Acquire);
            if before.is_multiple_of(2) && self.changes.load(Relaxed) == before {
                return found.map(|found| (found, name));
            }
            core::hint::spin_loop();
        }
        None
    }

    /// The service of a name.
    pub fn named(&self, name: &[u8]) -> Option<Found> {
        self.find(|other| other == name)
    }
}

/// Whether a path is a mount point, or below it.
fn is_below(path: &[u8], mount: &[u8]) -> bool {
    match mount {
        b"/" => path.starts_with(b"/"),
        [b'/', ..] => path
            .strip_prefix(mount)
            .is_some_and(|rest| matches!(rest, [] | [b'/', ..])),
        _ => false,
    }
}

/// Whether services may have such a name: 1 to 47 bytes without a zero; a mount point is a path
/// that says each folder once.
pub fn is_name(name: &[u8]) -> bool {
    let plain = !name.is_empty() && name.len() < NAME && !name.contains(&0);
    if !plain || name == b"/" {
        return plain;
    }
    match name.split_first() {
        Some((b'/', rest)) => rest
            .split(|byte| *byte == b'/')
            .all(|part| !matches!(part, b"" | b"." | b"..")),
        _ => true,
    }
}

/// What [`Operation::Serve`](crate::request::Operation::Serve) does with a name, in the mailbox's
/// first number behind the name's twelve.
pub mod what {
    /// Offers it, or says other words of it.
    pub const OFFER: u32 = 0;
    /// Takes it back.
    pub const TAKE_BACK: u32 = 1;
}

/// A name as numbers of the mailbox.
pub fn numbers(name: &[u8]) -> Option<[u32; NAME / 4]> {
    let mut bytes = [0; NAME];
    bytes.get_mut(..name.len())?.copy_from_slice(name);
    let mut numbers = [0; NAME / 4];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
        *number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    Some(numbers)
}

/// The name of numbers of the mailbox, up to its zero: its bytes and how many there are.
pub fn name_of(numbers: [u32; NAME / 4]) -> ([u8; NAME], usize) {
    let mut bytes = [0; NAME];
    for (bytes, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME);
    (bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_below_mount_points() {
        for (path, mount, is) in [
            (&b"/tmp"[..], &b"/tmp"[..], true),
            (b"/tmp/a", b"/tmp", true),
            (b"/tmpa", b"/tmp", false),
            (b"/a", b"/", true),
            (b"/net", b"net", false),
        ] {
            assert_eq!(is_below(path, mount), is, "{path:?} {mount:?}");
        }
    }

    #[test]
    fn names_are_names() {
        for good in [&b"/"[..], b"/mnt", b"net", b"/a/b", b"a b"] {
            assert!(is_name(good), "{good:?}");
            let (bytes, length) = name_of(numbers(good).unwrap());
            assert_eq!(&bytes[..length], good);
        }
        for bad in [
            &b""[..],
            b"//",
            b"/a/",
            b"/./b",
            b"/..",
            b"a\0b",
            &[b'a'; NAME],
        ] {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert!(is_name(&[b'a'; NAME - 1]));
        assert_eq!(numbers(&[b'a'; NAME + 1]), None);
    }
}
