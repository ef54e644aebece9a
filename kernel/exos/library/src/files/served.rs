//! What is done with files of servers: calls, with bytes in the area that both have.

use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::{Kind, NAME, Space};
use postern_exos_abi::protocol::{
    DATA, Entry, Operation, PATH, SECOND, UNMOUNTS, WORDS, entry_size, status, walk,
};

use crate::files::mounts::{self, Server};
use crate::files::paths::{self, Path, Target};
use crate::files::{offsets, trusted};
use crate::process::{registry, signals};

/// An open file: the file, and a place of offsets with its server above it.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its number.
    pub node: u64,
    /// The place, and the server.
    pub word: u64,
}

impl File {
    /// The one that a descriptor's words are.
    pub fn of([node, word]: [u64; 2]) -> File {
        File { node, word }
    }

    /// Whose it is.
    pub fn server(self) -> Server {
        Server::of(self.word)
    }

    /// The place of its offset.
    pub fn place(self) -> u64 {
        self.word & 0xffff
    }

    /// One descriptor more, or one less.
    pub fn again(self) {
        // It is one of those already, so there is a place.
        let _ = mounts::opened(self.server(), self.node);
    }

    /// One descriptor less.
    pub fn close(self) {
        mounts::closed(self.server(), self.node);
    }

    fn call(self, operation: Operation, argument: u32, a: u64, b: u64) -> Result<u64, Errno> {
        let words = [operation.with(argument), self.node, a, b];
        mounts::call(self.server(), words)
    }

    /// What is known of it.
    pub fn status(self) -> Result<[u64; WORDS], Errno> {
        let _busy = signals::hold();
        self.call(Operation::Status, 0, 0, 0)?;
        Ok(core::array::from_fn(|index| {
            mounts::answer(self.server(), index)
        }))
    }

    /// Reads at an offset; fewer only at the end.
    pub fn read_at(self, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < to.len() {
            let wanted = (to.len() - done).min(DATA);
            let at = offset.checked_add(done as u64).ok_or(errno::INVAL)?;
            let _busy = signals::hold();
            let count = match self.call(Operation::Read, 0, at, wanted as u64) {
                Ok(count) => (count as usize).min(wanted),
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            let piece = &mut to[done..done + count];
            trusted::copy_out(mounts::area_of(self.server()), piece);
            done += count;
            if count < wanted {
                break;
            }
        }
        Ok(done)
    }

    /// Writes at an offset, or at the end; how many, and where they end.
    pub fn write_at(self, offset: u64, from: &[u8], ends: bool) -> Result<(usize, u64), Errno> {
        let mut done = 0;
        let mut at = offset;
        while done < from.len() {
            let piece = &from[done..from.len().min(done + DATA)];
            let _busy = signals::hold();
            let written = mounts::attach(self.server()).and_then(|()| {
                trusted::copy_in(mounts::area_of(self.server()), piece);
                self.call(Operation::Write, ends.into(), at, piece.len() as u64)
            });
            let count = match written {
                // No server writes nothing: who tries again would do so for ever.
                Ok(0) if done == 0 => return Err(errno::IO),
                Ok(count) => (count as usize).min(piece.len()),
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            at = mounts::answer(self.server(), 0);
            done += count;
            if count < piece.len() {
                break;
            }
        }
        Ok((done, at))
    }

    /// Reads where the offset is.
    pub fn read(self, to: &mut [u8]) -> Result<usize, Errno> {
        let offset = offsets::word(self.place());
        let at = offset.load(Relaxed);
        let done = self.read_at(at, to)?;
        offset.store(at.wrapping_add(done as u64), Relaxed);
        Ok(done)
    }

    /// Writes there.
    pub fn write(self, from: &[u8], ends: bool) -> Result<usize, Errno> {
        let offset = offsets::word(self.place());
        let (done, at) = self.write_at(offset.load(Relaxed), from, ends)?;
        offset.store(at, Relaxed);
        Ok(done)
    }

    /// Cuts it, or lengthens it by zeros.
    pub fn set_length(self, length: i64) -> Result<(), Errno> {
        let length = u64::try_from(length).map_err(|_| errno::INVAL)?;
        self.call(Operation::SetLength, 0, length, 0).map(drop)
    }

    /// Other permissions.
    pub fn set_mode(self, mode: u32) -> Result<(), Errno> {
        self.call(Operation::SetMode, 0, mode.into(), 0).map(drop)
    }

    /// Another time, in nanoseconds since 1970.
    pub fn set_modified(self, time: u64) -> Result<(), Errno> {
        self.call(Operation::SetModified, 0, time, 0).map(drop)
    }

    /// A lock of bytes, as [`lock`](postern_exos_abi::protocol::lock) says: what is in the way, if it
    /// was asked.
    pub fn lock(self, what: u32, from: u64, count: u64) -> Result<[u64; 4], Errno> {
        let _busy = signals::hold();
        self.call(Operation::Lock, what, from, count)?;
        Ok(core::array::from_fn(|index| {
            mounts::answer(self.server(), index)
        }))
    }

    /// Has it be on the disk for good.
    pub fn synchronise(self) -> Result<(), Errno> {
        self.call(Operation::Synchronise, 0, 0, 0).map(drop)
    }

    /// The page of its server's in which its bytes stand from `index` · 4,096 on, the capability to
    /// read it, and the file's version. `ENOTSUP`: it lends none.
    pub fn page(self, index: u64) -> Result<(u32, u64, u64), Errno> {
        let _busy = signals::hold();
        self.call(Operation::Page, 0, index, 0)?;
        let [number, capability, version] =
            [0, 1, 2].map(|word| mounts::answer(self.server(), word));
        let number = u32::try_from(number).map_err(|_| errno::IO)?;
        Ok((number, capability, version))
    }

    /// The entry of a folder behind its offset, which goes on; `None` at the end.
    pub fn next_entry(self) -> Result<Option<(Entry, [u8; NAME + 1])>, Errno> {
        let _busy = signals::hold();
        let offset = offsets::word(self.place());
        let room = entry_size(NAME) as u64;
        if self.call(Operation::List, 0, offset.load(Relaxed), room)? == 0 {
            return Ok(None);
        }
        let (entry, name) = trusted::entry(mounts::area_of(self.server()));
        offset.store(entry.next, Relaxed);
        Ok(Some((entry, name)))
    }
}

/// Opens what was found at a path's end: it is held already.
pub fn open(server: Server, words: &[u64; WORDS], place: u64) -> Result<[u64; 2], Errno> {
    let file = File {
        node: words[status::NODE],
        word: server.word() | place,
    };
    mounts::opened(server, file.node)?;
    Ok([file.node, file.word])
}

/// The folder of a path's last name and where it is: the name stands at the beginning of the area.
fn parent(path: &[u8]) -> Result<(Server, u64, Path, usize), Errno> {
    // The folder that it names is a name's in another one.
    let named = path
        .split(|byte| *byte == b'/')
        .rfind(|name| !name.is_empty());
    if matches!(named, Some(b"." | b"..")) {
        return Err(errno::BUSY);
    }
    let mut path = Path::of(path)?;
    path.is_folder = false;
    let found = paths::follow(&mut path, walk::PARENT, 0);
    match found.map_err(|error| match error {
        errno::NOENT if paths::is_own(&path) => errno::ROFS,
        error => error,
    })? {
        Target::Served(server, words) if words[status::NODE] != 0 => {
            let name = path.bytes().rsplit(|byte| *byte == b'/').next();
            let length = name.map_or(0, <[u8]>::len);
            // A mount point itself is nobody's to change.
            match words[status::KIND] == Kind::Folder as u64 && words[status::OFFSET] != 0 {
                true => Ok((server, words[status::NODE], path, length)),
                false => Err(errno::BUSY),
            }
        }
        _ => Err(errno::ROFS),
    }
}

/// The last name of a path.
fn name(path: &Path, length: usize) -> &[u8] {
    let from = path.bytes().len().saturating_sub(length);
    path.bytes().get(from..).unwrap_or_default()
}

/// A folder, or a link with a target.
pub fn make(path: &[u8], kind: Kind, mode: u32, target: &[u8]) -> Result<(), Errno> {
    let _busy = signals::hold();
    if target.len() >= PATH {
        return Err(errno::NAMETOOLONG);
    }
    let (server, folder, path, length) = parent(path).map_err(|error| match error {
        errno::BUSY => errno::EXIST,
        error => error,
    })?;
    let area = mounts::area_of(server);
    trusted::copy_in(area, name(&path, length));
    trusted::copy_in(area + SECOND as u64, target);
    trusted::copy_in(area + (SECOND + target.len()) as u64, &[0]);
    let words = [
        Operation::Make.with(kind as u32),
        folder,
        length as u64,
        mode.into(),
    ];
    mounts::call(server, words).map(drop)
}

/// Takes a name away.
pub fn remove(path: &[u8], is_folder: bool) -> Result<(), Errno> {
    let _busy = signals::hold();
    let (server, folder, path, length) = parent(path)?;
    trusted::copy_in(mounts::area_of(server), name(&path, length));
    let words = [
        Operation::Remove.with(is_folder.into()),
        folder,
        length as u64,
        0,
    ];
    mounts::call(server, words).map(drop)
}

/// Another name instead of one.
pub fn rename(from: &[u8], to: &[u8]) -> Result<(), Errno> {
    let _busy = signals::hold();
    let (server, folder, from, length) = parent(from)?;
    let (other, to_folder, to, to_length) = parent(to)?;
    if server != other {
        return Err(errno::XDEV);
    }
    let area = mounts::area_of(server);
    trusted::copy_in(area, name(&from, length));
    trusted::copy_in(area + SECOND as u64, name(&to, to_length));
    let lengths = length as u64 | (to_length as u64) << 32;
    let words = [Operation::Rename.with(0), folder, to_folder, lengths];
    mounts::call(server, words).map(drop)
}

/// One more name of a file.
pub fn link(from: &[u8], to: &[u8]) -> Result<(), Errno> {
    let _busy = signals::hold();
    let mut from = Path::of(from)?;
    let Target::Served(server, words) = paths::follow(&mut from, 0, 0)? else {
        return Err(errno::ROFS);
    };
    let (other, folder, to, length) = parent(to)?;
    if server != other {
        return Err(errno::XDEV);
    }
    trusted::copy_in(mounts::area_of(server), name(&to, length));
    let words = [
        Operation::Link.with(0),
        words[status::NODE],
        folder,
        length as u64,
    ];
    mounts::call(server, words).map(drop)
}

/// Does something with a file by its path, which [`walk`] says how to follow.
pub fn change(path: &[u8], operation: Operation, value: u64, flags: u32) -> Result<(), Errno> {
    let _busy = signals::hold();
    let mut path = Path::of(path)?;
    let Target::Served(server, words) = paths::follow(&mut path, flags, 0)? else {
        return Err(errno::ROFS);
    };
    let words = [operation.with(0), words[status::NODE], value, 0];
    mounts::call(server, words).map(drop)
}

/// How full a file system is.
pub fn space(server: Server) -> Result<Space, Errno> {
    let _busy = signals::hold();
    mounts::call(server, [Operation::Space.with(0), 0, 0, 0])?;
    let [blocks, free, files, free_files] = [0, 1, 2, 3].map(|index| mounts::answer(server, index));
    Ok(Space {
        blocks,
        free,
        files,
        free_files,
    })
}

/// What a link stands for; how many bytes were written.
pub fn target(path: &[u8], to: &mut [u8]) -> Result<usize, Errno> {
    let _busy = signals::hold();
    let mut path = Path::of(path)?;
    let Target::Served(server, words) = paths::follow(&mut path, 0, 0)? else {
        return Err(errno::INVAL);
    };
    let words = [Operation::Target.with(0), words[status::NODE], 0, 0];
    let length = mounts::call(server, words)? as usize;
    let length = length.min(to.len()).min(PATH);
    let to = to.get_mut(..length).unwrap_or_default();
    trusted::copy_out(mounts::area_of(server), to);
    Ok(length)
}

/// Ends the server of a mount point, of whose files nobody may have one open.
pub fn unmount(path: &[u8]) -> Result<(), Errno> {
    let _busy = signals::hold();
    let path = Path::of(path)?;
    let mount = registry::services().mount_of(path.bytes());
    let (place, _, found) = mount
        .filter(|(_, length, _)| *length == path.bytes().len())
        .ok_or(errno::INVAL)?;
    let server = Server {
        place,
        birth: found.birth,
    };
    mounts::call(server, [Operation::Unmount.with(UNMOUNTS), 0, 0, 0]).map(drop)
}

/// What is known of a file by its path; whose it is.
pub fn look(path: &[u8]) -> Result<(Server, [u64; WORDS]), Errno> {
    let mut path = Path::of(path)?;
    match paths::follow(&mut path, walk::FOLLOW, 0)? {
        Target::Served(server, words) => Ok((server, words)),
        _ => Err(errno::NOENT),
    }
}

/// Has a file open without a descriptor, and so without an offset, until it is closed.
pub fn hold(path: &[u8]) -> Result<(File, [u64; WORDS]), Errno> {
    let _busy = signals::hold();
    let mut path = Path::of(path)?;
    match paths::follow(&mut path, walk::FOLLOW | walk::OPEN, 0)? {
        Target::Served(server, words) => {
            let [node, word] = open(server, &words, 0)?;
            Ok((File { node, word }, words))
        }
        _ => Err(errno::NOENT),
    }
}

/// All bytes of a file, if they are so many at most.
pub fn whole(path: &[u8], most: usize) -> Result<Vec<u8>, Errno> {
    let (file, words) = hold(path)?;
    let length = usize::try_from(words[status::SIZE]).ok();
    let length = length.filter(|length| *length <= most).ok_or(errno::FBIG);
    let read = length.and_then(|length| {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| errno::NOMEM)?;
        bytes.resize(length, 0);
        let read = file.read_at(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    });
    file.close();
    read
}
