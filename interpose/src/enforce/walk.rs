//! Paths: what file one leads to, found a name at a time.
//!
//! The walk is the supervisor's own, since links of `/proc` mean another file for each process, and
//! so that what the agent is told is what is used: each step holds the folder or file that it has
//! found ([`Place`]), and nothing is looked up again by more than one name.

use super::caller::{Caller, PATH};
use super::reach;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, fstatfs, openat, readlinkat, stat};
use rustix::io::Errno;
use rustix::process::getpid;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// What a path leads to.
#[derive(Debug)]
pub struct Place {
    /// The folder that it is in.
    pub folder: OwnedFd,
    /// Its name there.
    pub name: Vec<u8>,
    /// What is there: a link itself, if links were not to be followed.
    pub target: Option<OwnedFd>,
    /// The path ends with a slash.
    pub slash: bool,
    /// It was found by what a process has, and not by its name.
    pub held: bool,
}

/// Links that one path follows, at most.
const LINKS: u32 = 40;

fn hold(folder: impl AsFd, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | flags;
    openat(folder, name, flags, Mode::empty())
}

/// Finds what a path leads to, from a folder on. With `follows`, a link that it ends with is none.
pub fn find(caller: &Caller, folder: i32, path: &[u8], follows: bool) -> Result<Place, Errno> {
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    let root = || hold(CWD, b"/", OFlags::DIRECTORY);
    let mut current = match path[0] {
        b'/' => root()?,
        _ => caller.folder(folder)?,
    };
    let mut rest = path.to_vec();
    let mut links = 0;
    loop {
        let start = rest.iter().position(|byte| *byte != b'/');
        let Some(start) = start else {
            // The root, or what a link to a folder with a slash was.
            let target = hold(&current, b".", OFlags::empty())?;
            return Ok(Place {
                folder: current,
                name: b".".to_vec(),
                target: Some(target),
                slash: true,
                held: true,
            });
        };
        let end = rest[start..].iter().position(|byte| *byte == b'/');
        let end = end.map_or(rest.len(), |end| start + end);
        let name = rest[start..end].to_vec();
        let behind = rest.split_off(end);
        let last = behind.iter().all(|byte| *byte == b'/');
        let slash = last && !behind.is_empty();
        let mut found = match hold(&current, &name, OFlags::NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) if last => {
                return Ok(Place {
                    folder: current,
                    name,
                    target: None,
                    slash,
                    held: false,
                });
            }
            Err(error) => return Err(error),
        };
        let mut kind = FileType::from_raw_mode(fstat(&found)?.st_mode);
        let mut held = name == b"." || name == b"..";
        if kind == FileType::Symlink && (!last || slash || follows) {
            links += 1;
            if links > LINKS {
                return Err(Errno::LOOP);
            }
            may_follow(&current, &found)?;
            match text(caller, &current, &name, &found)? {
                Some(text) => {
                    if text.first() == Some(&b'/') {
                        current = root()?;
                    }
                    if text.is_empty() {
                        return Err(Errno::NOENT);
                    }
                    rest = text;
                    rest.extend(behind);
                    if rest.len() >= 2 * PATH {
                        return Err(Errno::NAMETOOLONG);
                    }
                    continue;
                }
                None => {
                    is_nobodys(caller, &current)?;
                    found = hold(&current, &name, OFlags::empty())?;
                    held = true;
                    kind = FileType::from_raw_mode(fstat(&found)?.st_mode);
                }
            }
        }
        if last {
            if slash && kind != FileType::Directory {
                return Err(Errno::NOTDIR);
            }
            is_nobodys(caller, &found)?;
            return Ok(Place {
                folder: current,
                name,
                target: Some(found),
                slash,
                held,
            });
        }
        current = found;
        rest = behind;
    }
}

/// What a descriptor of the caller's is for.
pub fn of_descriptor(caller: &Caller, number: i32) -> Result<Place, Errno> {
    let target = caller.folder(number)?;
    is_nobodys(caller, &target)?;
    Ok(Place {
        folder: hold(
            CWD,
            format!("/proc/{}/fd", caller.thread).as_bytes(),
            OFlags::empty(),
        )?,
        name: number.to_string().into_bytes(),
        target: Some(target),
        slash: false,
        held: true,
    })
}

/// What a link says; `None` for those that are no text: they lead where a process has something.
fn text(
    caller: &Caller,
    folder: &OwnedFd,
    name: &[u8],
    link: &OwnedFd,
) -> Result<Option<Vec<u8>>, Errno> {
    /// The number of the root's node in each `/proc`.
    const ROOT: u64 = 1;
    let of_processes = is_of_processes(link)?;
    if of_processes && fstat(folder)?.st_ino != ROOT {
        return Ok(None);
    }
    if of_processes && name == b"self" {
        return Ok(Some(caller.status()?.process.to_string().into_bytes()));
    }
    if of_processes && name == b"thread-self" {
        let (process, thread) = (caller.status()?.process, caller.thread);
        return Ok(Some(format!("{process}/task/{thread}").into_bytes()));
    }
    Ok(Some(readlinkat(link, c"", Vec::new())?.into_bytes()))
}

/// In folders where everybody may leave links (`/tmp`), those of others are not followed, but the
/// folder's owner's.
fn may_follow(folder: &OwnedFd, link: &OwnedFd) -> Result<(), Errno> {
    const OPEN_TO_ALL: u32 = 0o1002;
    let (folder, link) = (fstat(folder)?, fstat(link)?);
    let own = link.st_uid == rustix::process::geteuid().as_raw() || link.st_uid == folder.st_uid;
    match folder.st_mode & OPEN_TO_ALL == OPEN_TO_ALL && !own {
        true => Err(Errno::ACCESS),
        false => Ok(()),
    }
}

fn is_of_processes(file: impl AsFd) -> Result<bool, Errno> {
    const PROC_SUPER_MAGIC: i64 = 0x9fa0;
    Ok(fstatfs(file)?.f_type as i64 == PROC_SUPER_MAGIC)
}

/// Whether `/proc` has processes by the numbers that this one knows them by.
pub fn is_own_namespace() -> bool {
    let own = getpid().as_raw_nonzero().to_string();
    let said = readlinkat(CWD, "/proc/self", Vec::new());
    said.is_ok_and(|said| said.as_bytes() == own.as_bytes())
}

/// What `/proc` has of this process is nobody's: this process opens files, and may open its own.
/// Nor is another process's memory the caller's, which would be a way around what is refused to
/// `ptrace`, or files by their places in memory. Where it is mounted for other numbers of
/// processes, all is refused.
fn is_nobodys(caller: &Caller, file: &OwnedFd) -> Result<(), Errno> {
    if !is_of_processes(file)? {
        return Ok(());
    }
    if fstat(file)?.st_dev != stat("/proc")?.st_dev {
        return Err(Errno::ACCESS);
    }
    let path = path_of(file.as_fd())?;
    let parts = path.split(|byte| *byte == b'/');
    let numbers = parts.filter_map(|part| std::str::from_utf8(part).ok()?.parse().ok());
    let memory = path.ends_with(b"/mem");
    // What is behind these links may be executed, wherever it is.
    if path.ends_with(b"/map_files") {
        return Err(Errno::ACCESS);
    }
    for number in numbers {
        if reach::is_ours(number) || (memory && !reach::is_own(caller, number)?) {
            return Err(Errno::ACCESS);
        }
    }
    Ok(())
}

/// A path for calls of this process's: the file itself.
pub fn by_number(file: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn path_of(file: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    Ok(readlinkat(CWD, by_number(file), Vec::new())?.into_bytes())
}

impl Place {
    /// Its path from the root on, without links.
    pub fn path(&self) -> Result<Vec<u8>, Errno> {
        if let Some(target) = self.target.as_ref().filter(|_| self.held) {
            let path = path_of(target.as_fd())?;
            // Pipes and sockets have none.
            if path.first() == Some(&b'/') {
                return Ok(path);
            }
        }
        let mut path = path_of(self.folder.as_fd())?;
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend(&self.name);
        Ok(path)
    }

    /// Whether who opens it may wait for somebody else, as at a pipe.
    pub fn may_wait(&self) -> bool {
        use FileType::{Directory, RegularFile, Symlink};
        self.target.as_ref().is_some_and(|file| {
            let kind = fstat(file).map(|status| FileType::from_raw_mode(status.st_mode));
            !matches!(kind, Ok(Directory | RegularFile | Symlink))
        })
    }

    /// What is there.
    pub fn target(&self) -> Result<&OwnedFd, Errno> {
        self.target.as_ref().ok_or(Errno::NOENT)
    }
}
