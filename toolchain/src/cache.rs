//! What is made once and kept in the user's cache.
//!
//! Names in the cache are hashes of everything that goes into the thing, so that it is never stale.
//! It is filled under another name and renamed when it is whole: who finds it finds all of it, and
//! several drivers at once do not disturb each other. What a killed driver left unfinished is
//! removed by the next one that makes something.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::CompileError;

/// The folder of everything that is made once and kept.
pub fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .filter(|path| path.is_absolute())
        .unwrap_or_else(std::env::temp_dir);
    base.join("postern")
}

/// A number for a name in the cache.
pub fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Fills the folder `name` of the cache with `fill`, unless it is there.
pub fn cached<E: From<CompileError>>(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let folder = cache().join(name);
    if folder.exists() {
        return Ok(folder);
    }
    remove_left(&cache());
    let unfinished = Unfinished::new(cache().join(format!(
        "{name}.{}.{:?}",
        std::process::id(),
        std::thread::current().id()
    )))?;
    fill(&unfinished.path)?;
    // Another driver may have been quicker.
    unfinished.rename(&folder).or_else(
        |error| {
            if folder.exists() { Ok(()) } else { Err(error) }
        },
    )?;
    Ok(folder)
}

/// Fills the folder `lib` of `folder` with `fill`, unless it is there. It takes long, so that
/// others wait instead of doing it, too.
pub fn built<E: From<CompileError>>(
    folder: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let lib = folder.join("lib");
    if lib.exists() {
        return Ok(lib);
    }
    let _lock = lock(&folder.join("lock"))?;
    if lib.exists() {
        return Ok(lib);
    }
    let unfinished = Unfinished::new(folder.join("lib.unfinished"))?;
    fill(&unfinished.path)?;
    unfinished.rename(&lib)?;
    Ok(lib)
}

/// A file that one process at a time holds; it is given back when the process ends, however that
/// is.
fn lock(path: &Path) -> Result<File, CompileError> {
    let file = File::create(path).map_err(CompileError::file(path))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        eprintln!(
            "postern: another process is building the library for extensions; waiting for it"
        );
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| CompileError::file(path)(error.into()))?;
    }
    Ok(file)
}

/// A folder that is being filled: locked, so that others see that somebody is at it, and gone when
/// this is dropped.
struct Unfinished {
    path: PathBuf,
    _lock: File,
}

impl Unfinished {
    fn new(path: PathBuf) -> Result<Self, CompileError> {
        let error = CompileError::file(&path);
        let _ = std::fs::remove_dir_all(&path);
        loop {
            std::fs::create_dir_all(&path).map_err(&error)?;
            let folder = File::open(&path).map_err(&error)?;
            flock(&folder, FlockOperation::LockExclusive).map_err(|e| error(e.into()))?;
            // Between the two, another driver may have taken it for left.
            let same = |there: std::fs::Metadata| {
                folder
                    .metadata()
                    .is_ok_and(|here| here.ino() == there.ino())
            };
            if std::fs::metadata(&path).is_ok_and(same) {
                return Ok(Self {
                    path: path.clone(),
                    _lock: folder,
                });
            }
        }
    }

    fn rename(&self, to: &Path) -> Result<(), CompileError> {
        std::fs::rename(&self.path, to).map_err(CompileError::file(to))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes the unfinished folders whose makers are gone.
fn remove_left(cache: &Path) {
    let Ok(entries) = std::fs::read_dir(cache) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(process) = maker(&name.to_string_lossy()) else {
            continue;
        };
        // A process of another container is not seen here, but its lock is.
        let path = entry.path();
        if !Path::new("/proc").join(process.to_string()).exists()
            && let Ok(folder) = File::open(&path)
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// The process in the name of an unfinished folder, `NAME.PROCESS.ThreadId(NUMBER)`.
fn maker(name: &str) -> Option<u32> {
    let (rest, thread) = name.rsplit_once('.')?;
    let number = thread.strip_prefix("ThreadId(")?.strip_suffix(')')?;
    number.parse::<u64>().ok()?;
    rest.rsplit_once('.')?.1.parse().ok()
}

/// Writes files below a folder.
pub fn write(folder: &Path, files: &[(&str, &str)]) -> Result<(), CompileError> {
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(CompileError::file(&path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_driver_left_is_removed_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("postern-left-{}", std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = child.id();
        child.wait().unwrap();
        let here = std::process::id();
        let kept = [
            "library-12".to_owned(),
            "crate-one-1.2.3".to_owned(),
            format!("library-34.{here}.ThreadId(1)"),
            format!("library-34.{gone}"),
            format!("library-56.{gone}.ThreadId(2)"),
        ];
        for name in &kept {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        // A process that is not seen, but holds its lock.
        let held = File::open(folder.join(&kept[4])).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let left = folder.join(format!("library-34.{gone}.ThreadId(1)"));
        std::fs::create_dir_all(&left).unwrap();
        std::fs::write(left.join("memory.c"), "").unwrap();
        remove_left(&folder);
        assert!(!left.exists());
        for name in &kept {
            assert!(folder.join(name).exists(), "{name}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_was_not_finished_is_not_there() {
        let folder = std::env::temp_dir().join(format!("postern-built-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let fails = built(&folder, |unfinished| {
            write(unfinished, &[("one", "1")])?;
            Err(CompileError::file(unfinished)(std::io::Error::other("no")))
        });
        assert!(fails.is_err());
        assert!(!folder.join("lib").exists() && !folder.join("lib.unfinished").exists());
        let lib = built(&folder, |unfinished| write(unfinished, &[("one", "1")])).unwrap();
        assert!(lib.join("one").is_file());
        built(&folder, |_| -> Result<(), CompileError> {
            panic!("it is there")
        })
        .unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
