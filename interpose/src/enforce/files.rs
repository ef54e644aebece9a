//! Calls with paths, made in their caller's place on what their paths were found to lead to.

use super::caller::Caller;
use super::calls::{self, Begin, Last, PathOf};
use super::walk::{self, Place, by_number};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW, Uid,
    chmod, chownat, fstat, ftruncate, inotify, linkat, mkdirat, mknodat, open, openat,
    renameat_with, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::process::umask;
use std::os::fd::{AsFd, OwnedFd};

/// What came of a call.
#[derive(Debug)]
pub enum Made {
    /// Its result.
    Result(i64),
    /// A file, which the caller has from now on; whether it closes when a program is executed.
    File(OwnedFd, bool),
    /// The kernel makes it.
    ByKernel,
    /// Another has made a file meanwhile where there was none: all is to be looked at again.
    Again,
}

/// Finds what a call's path leads to. `words` are the call's.
pub fn place(
    caller: &Caller,
    words: &[u64; 6],
    (word, begin, last): PathOf,
) -> Result<Place, Errno> {
    let descriptor = match begin {
        Begin::Here => libc::AT_FDCWD,
        Begin::Folder(folder) => words[folder] as i32,
        Begin::File(file) | Begin::Descriptor(file) => {
            return walk::of_descriptor(caller, words[file] as i32);
        }
    };
    let has = |word: usize, flag: i32| words[word] as i32 & flag == flag;
    let follows = match last {
        Last::Followed => true,
        Last::Meant => false,
        Last::AsOpened(flags) => {
            !has(flags, libc::O_NOFOLLOW) && !has(flags, libc::O_CREAT | libc::O_EXCL)
        }
        Last::Unless(flags) => !has(flags, libc::AT_SYMLINK_NOFOLLOW),
        Last::If(flags) => has(flags, libc::AT_SYMLINK_FOLLOW),
        Last::Watched(mask) => !has(mask, libc::IN_DONT_FOLLOW as i32),
    };
    let path = caller.string(words[word])?;
    caller.still()?;
    let empty = match last {
        Last::Unless(flags) | Last::If(flags) => has(flags, libc::AT_EMPTY_PATH),
        _ => false,
    };
    match path.is_empty() && empty && descriptor != libc::AT_FDCWD {
        true => walk::of_descriptor(caller, descriptor),
        false => walk::find(caller, descriptor, &path, follows),
    }
}

/// What else is copied for a call with a path: the string that a new link says, or times.
pub fn text(caller: &Caller, number: i64, words: &[u64; 6]) -> Result<Vec<u8>, Errno> {
    let mut times = [0; 32];
    let times = match number {
        libc::SYS_symlink | libc::SYS_symlinkat => return caller.string(words[0]),
        libc::SYS_utime => &mut times[..16],
        libc::SYS_utimes | libc::SYS_futimesat | libc::SYS_utimensat => &mut times[..],
        _ => return Ok(Vec::new()),
    };
    match calls::text_word(number).map(|word| words[word]) {
        None | Some(0) => Ok(Vec::new()),
        Some(at) => caller.read(at, times).map(|()| times.to_vec()),
    }
}

/// Times as a call has them; without any, it is now.
fn times(number: i64, bytes: &[u8]) -> Result<Timestamps, Errno> {
    let word = |at: usize| {
        let word = bytes.get(8 * at..8 * at + 8).unwrap_or(&[0; 8]);
        word.try_into().map_or(0, i64::from_le_bytes)
    };
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let micro = |at: usize| match word(at) {
        micro @ 0..1_000_000 => Ok(1000 * micro),
        _ => Err(Errno::INVAL),
    };
    let [last_access, last_modification] = match number {
        _ if bytes.is_empty() => [time(0, UTIME_NOW); 2],
        libc::SYS_utime => [time(word(0), 0), time(word(1), 0)],
        libc::SYS_utimensat => [time(word(0), word(1)), time(word(2), word(3))],
        _ => [time(word(0), micro(1)?), time(word(2), micro(3)?)],
    };
    Ok(Timestamps {
        last_access,
        last_modification,
    })
}

fn mode(bits: u64) -> Mode {
    Mode::from_raw_mode(bits as u32 & 0o7777)
}

fn done(result: Result<(), Errno>) -> Result<Made, Errno> {
    result.map(|()| Made::Result(0))
}

/// Makes a call, whose paths lead to `places`.
pub fn make(
    caller: &Caller,
    number: i64,
    words: &[u64; 6],
    places: &[Place],
    text: &[u8],
) -> Result<Made, Errno> {
    let first = places.first().ok_or(Errno::INVAL)?;
    let second = || places.get(1).ok_or(Errno::INVAL);
    // The thread has a mask of its own.
    let masked = || caller.status().map(|status| umask(status.mask));
    let (folder, name) = (&first.folder, first.name.as_slice());
    match number {
        libc::SYS_open => opened(caller, first, words[1] as i32, words[2]),
        libc::SYS_openat => opened(caller, first, words[2] as i32, words[3]),
        libc::SYS_creat => {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            opened(caller, first, flags, words[1])
        }
        libc::SYS_truncate => {
            let bytes = i64::try_from(words[1]).map_err(|_| Errno::INVAL)? as u64;
            // A pipe is none, and would be waited for.
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let path = by_number(first.target()?.as_fd());
            let file = open(path, flags, Mode::empty());
            let file = file.map_err(|error| {
                if error == Errno::NXIO {
                    Errno::INVAL
                } else {
                    error
                }
            });
            done(ftruncate(file?, bytes))
        }
        libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 => {
            let to = second()?;
            let flags = match number {
                libc::SYS_renameat2 => RenameFlags::from_bits_retain(words[4] as u32),
                _ => RenameFlags::empty(),
            };
            let ends = first.slash || to.slash;
            let folder_moves = first.target.as_ref().is_some_and(is_folder);
            if ends && !folder_moves && first.target.is_some() {
                return Err(Errno::NOTDIR);
            }
            done(renameat_with(
                folder,
                name,
                &to.folder,
                to.name.as_slice(),
                flags,
            ))
        }
        libc::SYS_mkdir | libc::SYS_mkdirat => {
            let bits = words[if number == libc::SYS_mkdir { 1 } else { 2 }];
            masked()?;
            done(mkdirat(folder, name, mode(bits)))
        }
        libc::SYS_rmdir => done(unlinkat(folder, name, AtFlags::REMOVEDIR)),
        libc::SYS_unlink | libc::SYS_unlinkat => {
            let flags = if number == libc::SYS_unlink {
                0
            } else {
                words[2] as u32
            };
            if first.slash && flags == 0 {
                // It is a folder, or there is nothing.
                return Err(first.target().map_or_else(|error| error, |_| Errno::ISDIR));
            }
            done(unlinkat(folder, name, AtFlags::from_bits_retain(flags)))
        }
        libc::SYS_link | libc::SYS_linkat => {
            let to = second()?;
            let old = first.target()?;
            if to.slash {
                return Err(Errno::NOENT);
            }
            let follow = AtFlags::SYMLINK_FOLLOW;
            let new = to.name.as_slice();
            done(
                match first.held
                    || (number == libc::SYS_linkat
                        && words[4] as i32 & libc::AT_SYMLINK_FOLLOW != 0)
                {
                    true => linkat(CWD, by_number(old.as_fd()), &to.folder, new, follow),
                    false => linkat(folder, name, &to.folder, new, AtFlags::empty()),
                },
            )
        }
        libc::SYS_symlink | libc::SYS_symlinkat => match first.slash {
            true => Err(Errno::NOENT),
            false => done(symlinkat(text, folder, name)),
        },
        libc::SYS_mknod | libc::SYS_mknodat => {
            let at = if number == libc::SYS_mknod { 1 } else { 2 };
            let kind = match words[at] as u32 & libc::S_IFMT {
                0 => FileType::RegularFile,
                bits => FileType::from_raw_mode(bits),
            };
            if first.slash {
                return Err(Errno::NOENT);
            }
            masked()?;
            done(mknodat(folder, name, kind, mode(words[at]), words[at + 1]))
        }
        libc::SYS_chmod => done(chmod(by_number(first.target()?.as_fd()), mode(words[1]))),
        libc::SYS_fchmodat => done(chmod(by_number(first.target()?.as_fd()), mode(words[2]))),
        libc::SYS_fchmod => done(chmod(by_number(first.target()?.as_fd()), mode(words[1]))),
        libc::SYS_chown | libc::SYS_lchown | libc::SYS_fchown => owned(first, words[1], words[2]),
        libc::SYS_fchownat => owned(first, words[2], words[3]),
        libc::SYS_utime | libc::SYS_utimes | libc::SYS_futimesat | libc::SYS_utimensat => {
            // The path leads to the file itself, be it a link.
            let path = by_number(first.target()?.as_fd());
            done(utimensat(
                CWD,
                path,
                &times(number, text)?,
                AtFlags::empty(),
            ))
        }
        libc::SYS_inotify_add_watch => {
            let watches = caller.descriptor(words[0] as i32)?;
            let path = by_number(first.target()?.as_fd());
            let mask = inotify::WatchFlags::from_bits_retain(words[2] as u32);
            inotify::add_watch(watches, path, mask).map(|number| Made::Result(number.into()))
        }
        libc::SYS_execve | libc::SYS_execveat => first.target().map(|_| Made::ByKernel),
        _ => Err(Errno::NOSYS),
    }
}

fn is_folder(file: &OwnedFd) -> bool {
    let kind = fstat(file).map(|status| FileType::from_raw_mode(status.st_mode));
    kind == Ok(FileType::Directory)
}

fn owned(place: &Place, user: u64, group: u64) -> Result<Made, Errno> {
    let id = |word: u64| Some(word as u32).filter(|id| *id != u32::MAX);
    let user = id(user).map(Uid::from_raw);
    let group = id(group).map(Gid::from_raw);
    done(chownat(
        place.target()?,
        c"",
        user,
        group,
        AtFlags::EMPTY_PATH,
    ))
}

/// Opens what a path led to: that file and no other, or a new one.
fn opened(caller: &Caller, place: &Place, flags: i32, bits: u64) -> Result<Made, Errno> {
    let has = |flag: i32| flags & flag == flag;
    if has(libc::O_PATH) {
        // Such a file gives nothing by itself, and the kernel hands none over.
        return Ok(Made::ByKernel);
    }
    let closes = has(libc::O_CLOEXEC);
    // No terminal becomes the supervisor's.
    let all = OFlags::from_bits_retain(flags as u32) | OFlags::NOCTTY | OFlags::CLOEXEC;
    let new = has(libc::O_CREAT) || has(libc::O_TMPFILE);
    if new {
        umask(caller.status()?.mask);
    }
    let Some(target) = &place.target else {
        if !has(libc::O_CREAT) {
            return Err(Errno::NOENT);
        }
        if place.slash {
            return Err(Errno::ISDIR);
        }
        let all = all | OFlags::EXCL | OFlags::NOFOLLOW;
        return match openat(&place.folder, place.name.as_slice(), all, mode(bits)) {
            Err(Errno::EXIST) if !has(libc::O_EXCL) => Ok(Made::Again),
            made => made.map(|file| Made::File(file, closes)),
        };
    };
    let kind = FileType::from_raw_mode(fstat(target)?.st_mode);
    if has(libc::O_CREAT) && has(libc::O_EXCL) {
        return Err(Errno::EXIST);
    }
    if kind == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    if has(libc::O_CREAT) && kind == FileType::Directory {
        return Err(Errno::ISDIR);
    }
    let all = all - (OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW);
    let file = open(by_number(target.as_fd()), all, mode(bits))?;
    Ok(Made::File(file, closes))
}
