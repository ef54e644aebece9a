//! Static files as they are sent to those who ask for them plainly: small ones from memory, large
//! ones by the kernel (`sendfile`).
//!
//! Invariant: what is kept is what the file has at the moment of the request: its name is looked up
//! each time, and inode, size and times must be those of the file that was read. One that changed
//! so recently that its times may not show another change is not kept.

use crate::files::{self, Files};
use rustix::fs::{AtFlags, Stat, fstat, statat};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Files up to this size are kept.
const SMALL: u64 = 64 << 10;
/// Bytes of all that are kept, and how many.
const KEPT: usize = 16 << 20;
const MOST: usize = 4096;
/// What a file takes besides its bytes.
const OVERHEAD: usize = 1024;
/// How long a file must have been left alone. The times of some file systems have no more than even
/// seconds; and whoever writes sets them before the bytes, between which the kernel may let it
/// wait.
const SETTLED_NS: i128 = 3_000_000_000;

/// What tells a file from all others, and from itself before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(stat: &Stat) -> Stamp {
        Stamp {
            file: (stat.st_dev, stat.st_ino),
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }

    /// `None` for what was modified before 1970.
    fn modified(&self) -> Option<SystemTime> {
        let (seconds, nanoseconds) = self.modified;
        let since = Duration::new(seconds.try_into().ok()?, nanoseconds.try_into().ok()?);
        UNIX_EPOCH.checked_add(since)
    }

    /// Whether a change that came now would show.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_nanos() as i128);
        let latest = self.changed.max(self.modified);
        let latest = i128::from(latest.0) * 1_000_000_000 + i128::from(latest.1);
        now - latest > SETTLED_NS
    }
}

/// A file's answer.
#[derive(Debug)]
pub struct StaticFile {
    /// All of the head but the date.
    pub head: Vec<u8>,
    /// What follows.
    pub content: Content,
    /// Bytes of it.
    pub size: u64,
    name: Vec<u8>,
    stamp: Stamp,
    used: AtomicU64,
}

/// A file's bytes.
#[derive(Debug)]
pub enum Content {
    /// They are here.
    Small(Vec<u8>),
    /// They are there. It was opened for one request, and is not kept.
    Large(File),
}

/// Those that are kept, by the paths that mean them.
#[derive(Debug, Default)]
pub struct KeptFiles {
    files: RwLock<Kept>,
    /// Counts requests.
    clock: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    files: HashMap<Vec<u8>, Arc<StaticFile>>,
    bytes: usize,
}

impl KeptFiles {
    /// The file that a path of no escapes means; `None` if there is more to say to it than the
    /// file.
    pub fn get(&self, files: &Files, path: &[u8]) -> Option<Arc<StaticFile>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let kept = self.files.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = kept.files.get(path) {
            let found = statat(files.folder(), &*file.name, AtFlags::empty());
            if found.is_ok_and(|found| Stamp::of(&found) == file.stamp) {
                file.used.store(now, Ordering::Relaxed);
                return Some(file.clone());
            }
            drop(kept);
            self.forget(path);
        } else {
            drop(kept);
        }
        let file = Arc::new(read(files, path)?);
        if let Content::Small(_) = file.content
            && file.stamp.is_settled()
        {
            file.used.store(now, Ordering::Relaxed);
            self.keep(path, &file);
        }
        Some(file)
    }

    fn forget(&self, path: &[u8]) {
        let mut kept = self.files.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = kept.files.remove(path) {
            kept.bytes -= file.takes();
        }
    }

    fn keep(&self, path: &[u8], file: &Arc<StaticFile>) {
        let mut kept = self.files.write().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += file.takes();
        if let Some(former) = kept.files.insert(path.to_owned(), file.clone()) {
            kept.bytes -= former.takes();
        }
        while kept.bytes > KEPT || kept.files.len() > MOST {
            let used = |file: &StaticFile| file.used.load(Ordering::Relaxed);
            let oldest = kept.files.iter().min_by_key(|(_, file)| used(file));
            let Some(path) = oldest.map(|(path, _)| path.clone()) else {
                return;
            };
            if let Some(file) = kept.files.remove(&path) {
                kept.bytes -= file.takes();
            }
        }
    }
}

impl StaticFile {
    fn takes(&self) -> usize {
        OVERHEAD + self.size as usize + self.head.len() + 2 * self.name.len()
    }
}

fn read(files: &Files, path: &[u8]) -> Option<StaticFile> {
    let (file, name) = files.find(path).ok()??;
    let stat = fstat(&file).ok()?;
    let (stamp, size) = (Stamp::of(&stat), u64::try_from(stat.st_size).ok()?);
    // Of the same look as the size: a file that grows meanwhile is sent as it was.
    let head = files::head(size, stamp.modified()?, &name);
    let content = match size <= SMALL {
        true => {
            let mut bytes = vec![0; size as usize];
            file.read_exact_at(&mut bytes, 0).ok()?;
            // Nobody wrote it meanwhile.
            if Stamp::of(&fstat(&file).ok()?) != stamp {
                return None;
            }
            Content::Small(bytes)
        }
        false => Content::Large(file),
    };
    Some(StaticFile {
        head,
        content,
        size,
        name,
        stamp,
        used: AtomicU64::new(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{remove_file, rename, write};
    use std::os::unix::fs::symlink;

    fn settle(path: &std::path::Path) {
        let before = SystemTime::now() - std::time::Duration::from_secs(10);
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(before)
            .unwrap();
        while !Stamp::of(&rustix::fs::stat(path).unwrap()).is_settled() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    fn bytes(kept: &KeptFiles, files: &Files, path: &str) -> Option<Vec<u8>> {
        let file = kept.get(files, path.as_bytes())?;
        match &file.content {
            Content::Small(bytes) => Some(bytes.clone()),
            Content::Large(_) => None,
        }
    }

    #[test]
    fn what_is_kept_is_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write(at("secret"), "out").unwrap();
        let public = at("public");
        std::fs::create_dir(&public).unwrap();
        let page = public.join("a.txt");
        write(&page, "one").unwrap();
        settle(&page);
        let (kept, files) = (KeptFiles::default(), Files::new(&public).unwrap());
        let now = |expected: Option<&str>| {
            for _ in 0..2 {
                let found = bytes(&kept, &files, "/a.txt");
                assert_eq!(found.as_deref(), expected.map(str::as_bytes));
            }
        };
        now(Some("one"));
        assert_eq!(kept.files.read().unwrap().files.len(), 1);
        // Written in place with the same size, at once and again.
        for text in ["two", "six", "ten"] {
            write(&page, text).unwrap();
            now(Some(text));
        }
        settle(&page);
        now(Some("ten"));
        // Another file of the name; a link out; nothing.
        write(public.join("b.txt"), "new").unwrap();
        rename(public.join("b.txt"), &page).unwrap();
        now(Some("new"));
        remove_file(&page).unwrap();
        symlink("../secret", &page).unwrap();
        now(None);
        remove_file(&page).unwrap();
        now(None);
        let (none, kept) = (
            bytes(&kept, &files, "/../secret"),
            kept.files.read().unwrap(),
        );
        assert_eq!((none, kept.bytes, kept.files.len()), (None, 0, 0));
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..2 * KEPT / SMALL as usize)
            .map(|n| format!("/{n}"))
            .collect();
        for name in &names {
            write(folder.path().join(&name[1..]), vec![b'x'; SMALL as usize]).unwrap();
        }
        settle(&folder.path().join(&names[names.len() - 1][1..]));
        let (kept, files) = (KeptFiles::default(), Files::new(folder.path()).unwrap());
        for name in &names {
            assert_eq!(bytes(&kept, &files, name).unwrap().len(), SMALL as usize);
            assert!(kept.files.read().unwrap().bytes <= KEPT);
        }
        let all = kept.files.read().unwrap();
        assert!(all.files.contains_key(names[names.len() - 1].as_bytes()));
        assert!(!all.files.contains_key(names[0].as_bytes()));
        assert!(all.files.len() > names.len() / 3);
    }
}
