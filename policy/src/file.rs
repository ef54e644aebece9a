//! Open files and directories below granted directories.
//!
//! Invariant: only regular files and directories are open here, so nothing that is done with them
//! waits for anybody else (but for a lock). A file's position is kept here and not by the kernel,
//! so that a limit of its size holds whatever other threads do. A directory's is the kernel's:
//! nothing of its names is kept, and a listing takes as much memory and time as the extension has
//! room for, at most [`LISTING`] bytes, however many names there are.

use super::layout;
use super::status::Status;
use super::waiting::waiting;
use crate::LockAction;
use cap_std::fs::Dir;
use postern_gates::lock::{self, Range};
use postern_runtime::system::{Answer, Done, Failure};
use rustix::fs::{FileType, RawDir, SeekFrom, Stat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of directory entries that one call gives at most: a name of 255 bytes fits, a call stays
/// short.
const LISTING: usize = 32 << 10;

/// What a write may still do.
pub(super) struct WriteBudget<'a> {
    /// Bytes written so far by the domain.
    pub(super) written: &'a AtomicU64,
    /// How many it may write.
    pub(super) most: u64,
    /// How long a file may become.
    pub(super) file_size: u64,
}

impl WriteBudget<'_> {
    /// Takes up to `bytes` of what is left.
    pub(super) fn take(&self, bytes: u64) -> Result<u64, Errno> {
        let mut taken = 0;
        let take = |written: u64| {
            taken = bytes.min(self.most.saturating_sub(written));
            Some(written.saturating_add(taken))
        };
        let _ = self
            .written
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if taken == 0 && bytes > 0 {
            return Err(Errno::DQUOT);
        }
        Ok(taken)
    }

    /// What a new name costs.
    const NAME: u64 = 4096;

    /// Takes what a new name costs.
    pub(super) fn take_name(&self) -> Result<(), Errno> {
        match self.take(Self::NAME)? {
            Self::NAME => Ok(()),
            less => {
                self.give_back(less);
                Err(Errno::DQUOT)
            }
        }
    }

    /// Gives back what a name cost that was not made after all.
    pub(super) fn give_name_back(&self) {
        self.give_back(Self::NAME);
    }

    fn give_back(&self, bytes: u64) {
        self.written.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A regular file.
pub(super) struct File {
    file: OwnedFd,
    pub(super) status: Status,
    position: AtomicU64,
    /// Device and inode.
    pub(super) identity: (u64, u64),
    /// The granted directory that it is below.
    pub(super) from: Option<Arc<Dir>>,
}

/// A directory. What is below it is found by its path in the extension's eyes.
pub(super) struct Directory {
    /// `None` for one above the granted ones.
    pub(super) file: Option<OwnedFd>,
    pub(super) path: Vec<u8>,
    pub(super) status: Status,
    /// The granted directory that it is, or is below.
    pub(super) from: Option<Arc<Dir>>,
    /// Of one above the granted ones: the names in it, and how many were listed.
    names: Vec<Vec<u8>>,
    listed: AtomicU64,
}

impl File {
    pub(super) fn new(file: OwnedFd, flags: i32, stat: &Stat) -> File {
        File {
            file,
            status: Status::new(flags),
            position: AtomicU64::new(0),
            identity: (stat.st_dev, stat.st_ino),
            from: None,
        }
    }

    pub(super) fn below(mut self, granted: &Arc<Dir>) -> File {
        self.from = Some(granted.clone());
        self
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.file
    }

    fn size(&self) -> Result<u64, Errno> {
        Ok(rustix::fs::fstat(&self.file)?.st_size.unsigned_abs())
    }

    pub(super) fn read(&self, at: Option<i64>, length: usize) -> Answer {
        if !self.status.readable() {
            return Err(Errno::BADF.into());
        }
        let mut bytes = Vec::with_capacity(length);
        if length == 0 {
            return Ok(Done::counted(bytes));
        }
        let place = at.map_or_else(|| self.position.load(Ordering::Relaxed), i64::unsigned_abs);
        let room = rustix::buffer::spare_capacity(&mut bytes);
        rustix::io::pread(&self.file, room, place)?;
        if at.is_none() {
            let next = place + bytes.len() as u64;
            self.position.store(next, Ordering::Relaxed);
        }
        Ok(Done::counted(bytes))
    }

    pub(super) fn write(&self, at: Option<i64>, bytes: &[u8], room: &WriteBudget<'_>) -> Answer {
        if !self.status.writable() {
            return Err(Errno::BADF.into());
        }
        let length = bytes.len() as u64;
        let append = self.status.get() & libc::O_APPEND != 0;
        // A place of one's own before anything is written, so that threads do not write over each
        // other.
        let place = match at {
            _ if append => self.size()?,
            Some(at) => at.unsigned_abs(),
            None => self.position.fetch_add(length, Ordering::Relaxed),
        };
        let put_back = |written: u64| {
            if at.is_none() && !append {
                self.position.fetch_sub(length - written, Ordering::Relaxed);
            }
        };
        let done = self.write_at(place, bytes, room);
        let written = *done.as_ref().unwrap_or(&0);
        put_back(written);
        if at.is_none() && append {
            self.position.store(place + written, Ordering::Relaxed);
        }
        Ok(Done::value(done? as i64))
    }

    fn write_at(&self, place: u64, bytes: &[u8], room: &WriteBudget<'_>) -> Result<u64, Failure> {
        let length = bytes.len() as u64;
        let below = room.file_size.min(i64::MAX as u64).saturating_sub(place);
        if below == 0 && length > 0 {
            return Err(Errno::FBIG.into());
        }
        let taken = room.take(length.min(below))?;
        let bytes = &bytes[..taken as usize];
        let written = rustix::io::pwrite(&self.file, bytes, place);
        room.give_back(taken - written.map_or(0, |n| n as u64));
        Ok(written? as u64)
    }

    pub(super) fn seek(&self, offset: i64, whence: i32) -> Answer {
        let from = match whence {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => self.position.load(Ordering::Relaxed),
            libc::SEEK_END => self.size()?,
            libc::SEEK_DATA | libc::SEEK_HOLE => {
                let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
                let place = rustix::fs::seek(
                    &self.file,
                    match whence {
                        libc::SEEK_DATA => SeekFrom::Data(offset),
                        _ => SeekFrom::Hole(offset),
                    },
                )?;
                self.position.store(place, Ordering::Relaxed);
                return Ok(Done::value(place as i64));
            }
            _ => return Err(Errno::INVAL.into()),
        };
        let place = from
            .checked_add_signed(offset)
            .filter(|&place| place <= i64::MAX as u64)
            .ok_or(Errno::INVAL)?;
        self.position.store(place, Ordering::Relaxed);
        Ok(Done::value(place as i64))
    }

    pub(super) fn set_length(&self, length: i64, room: &WriteBudget<'_>) -> Answer {
        let length = u64::try_from(length).map_err(|_| Errno::INVAL)?;
        if !self.status.writable() {
            return Err(Errno::INVAL.into());
        }
        if length > room.file_size && length > self.size()? {
            return Err(Errno::FBIG.into());
        }
        rustix::fs::ftruncate(&self.file, length)?;
        Ok(Done::value(0))
    }

    pub(super) fn sync(&self, data_only: bool) -> Answer {
        match data_only {
            true => rustix::fs::fdatasync(&self.file)?,
            false => rustix::fs::fsync(&self.file)?,
        }
        Ok(Done::value(0))
    }

    /// Changes of flags that the kernel must know.
    pub(super) fn set_append(&self, append: bool) -> Result<(), Errno> {
        let mut flags = rustix::fs::fcntl_getfl(&self.file)?;
        flags.set(rustix::fs::OFlags::APPEND, append);
        rustix::fs::fcntl_setfl(&self.file, flags)
    }

    /// The bytes that a lock of this file means, from its start.
    pub(super) fn range(&self, whence: i16, start: i64, length: i64) -> Result<(i64, i64), Errno> {
        let from = match i32::from(whence) {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => self.position.load(Ordering::Relaxed) as i64,
            libc::SEEK_END => self.size()? as i64,
            _ => return Err(Errno::INVAL),
        };
        let start = from.checked_add(start).ok_or(Errno::OVERFLOW)?;
        let (start, length) = match length {
            0.. => (start, length),
            _ => (
                start.checked_add(length).ok_or(Errno::INVAL)?,
                length.checked_neg().ok_or(Errno::INVAL)?,
            ),
        };
        if start < 0 {
            return Err(Errno::INVAL);
        }
        Ok((start, length))
    }

    /// Locks as a process would: this file's open description stands for the whole domain.
    pub(super) fn lock(&self, action: LockAction, kind: i16, start: i64, length: i64) -> Answer {
        let allowed = match i32::from(kind) {
            libc::F_RDLCK => self.status.readable(),
            libc::F_WRLCK => self.status.writable(),
            libc::F_UNLCK => true,
            _ => return Err(Errno::INVAL.into()),
        };
        if !allowed && action != LockAction::Query {
            return Err(Errno::BADF.into());
        }
        let range = Range {
            kind,
            start,
            length,
        };
        match action {
            LockAction::Query => {
                let found = lock::query(&self.file, range)?;
                // The holder's number is the host's affair.
                let bytes = layout::flock(found.kind, 0, found.start, found.length, -1);
                return Ok(Done::bytes(bytes));
            }
            LockAction::Set => lock::set(&self.file, range)?,
            LockAction::Wait => until_free(|| lock::set(&self.file, range))?,
        }
        Ok(Done::value(0))
    }

    /// Locks the whole file for this open description, as `flock` does.
    pub(super) fn lock_whole(&self, operation: i32) -> Answer {
        use rustix::fs::{FlockOperation, flock};
        let tried = match operation & !libc::LOCK_NB {
            libc::LOCK_SH => FlockOperation::NonBlockingLockShared,
            libc::LOCK_EX => FlockOperation::NonBlockingLockExclusive,
            libc::LOCK_UN => FlockOperation::NonBlockingUnlock,
            _ => return Err(Errno::INVAL.into()),
        };
        if operation & libc::LOCK_NB != 0 {
            flock(&self.file, tried)?;
        } else {
            until_free(|| flock(&self.file, tried))?;
        }
        Ok(Done::value(0))
    }

    /// Gives back every lock that this open description has.
    pub(super) fn unlock(&self) {
        let _ = lock::set(
            &self.file,
            Range {
                kind: libc::F_UNLCK as i16,
                start: 0,
                length: 0,
            },
        );
    }
}

/// Tries to lock until it is possible, or the extension's call shall end.
fn until_free(lock: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    waiting(|most| match lock() {
        Err(Errno::AGAIN | Errno::ACCESS) => {
            std::thread::sleep(most.min(Duration::from_millis(1)));
            Ok(None)
        }
        done => done.map(Some),
    })
}

impl Directory {
    pub(super) fn new(file: Option<OwnedFd>, path: Vec<u8>, names: Vec<Vec<u8>>) -> Directory {
        Directory {
            file,
            path,
            status: Status::new(libc::O_RDONLY | libc::O_DIRECTORY),
            from: None,
            names,
            listed: AtomicU64::new(0),
        }
    }

    pub(super) fn below(mut self, granted: &Arc<Dir>) -> Directory {
        self.from = Some(granted.clone());
        self
    }

    /// Whole entries, as many as there is room for, from where the last listing ended.
    pub(super) fn list(&self, length: usize) -> Answer {
        let room = length.min(LISTING);
        let bytes = match &self.file {
            Some(file) => entries(file, room)?,
            None => self.names(room),
        };
        match bytes {
            Some(bytes) => Ok(Done::counted(bytes)),
            None => Err(Errno::INVAL.into()),
        }
    }

    /// Goes on listing from an entry's `d_off`, or from the start.
    pub(super) fn seek(&self, offset: i64, whence: i32) -> Answer {
        let from = |offset: i64| u64::try_from(offset).map_err(|_| Errno::INVAL);
        let Some(file) = &self.file else {
            let place = match whence {
                libc::SEEK_SET => from(offset)?,
                libc::SEEK_CUR => self
                    .listed
                    .load(Ordering::Relaxed)
                    .checked_add_signed(offset)
                    .ok_or(Errno::INVAL)?,
                _ => return Err(Errno::INVAL.into()),
            };
            let place = place.min(self.names.len() as u64 + 2);
            self.listed.store(place, Ordering::Relaxed);
            return Ok(Done::value(place as i64));
        };
        let place = match whence {
            libc::SEEK_SET => SeekFrom::Start(from(offset)?),
            libc::SEEK_CUR => SeekFrom::Current(offset),
            _ => return Err(Errno::INVAL.into()),
        };
        Ok(Done::value(rustix::fs::seek(file, place)? as i64))
    }

    /// As [`entries`], of what is above the granted directories.
    fn names(&self, room: usize) -> Option<Vec<u8>> {
        let dots = [b".".to_vec(), b"..".to_vec()];
        let from = self.listed.load(Ordering::Relaxed);
        let mut next = from;
        let mut bytes = Vec::new();
        for name in dots.iter().chain(&self.names).skip(from as usize) {
            let record = layout::directory_entry(1, next + 1, libc::DT_DIR, name);
            if bytes.len() + record.len() > room {
                if bytes.is_empty() {
                    return None;
                }
                break;
            }
            bytes.extend(record);
            next += 1;
        }
        self.listed.store(next, Ordering::Relaxed);
        Some(bytes)
    }
}

/// The next entries of a directory in the layout of `getdents64`, whole ones, at most `room` bytes
/// of them; `None` if not even one fits.
fn entries(file: &OwnedFd, room: usize) -> Result<Option<Vec<u8>>, Errno> {
    // Records are multiples of 8 bytes, and what the reader may lose by aligning them is beside the
    // room for them.
    let mut buffer = Vec::with_capacity((room & !7) + 7);
    let mut found = RawDir::new(file, &mut buffer.spare_capacity_mut()[..(room & !7) + 7]);
    let mut bytes = Vec::new();
    while let Some(entry) = found.next() {
        let entry = match entry {
            // The directory was removed: nothing is in it.
            Err(Errno::NOENT) => break,
            Err(Errno::INVAL) => return Ok(None),
            entry => entry?,
        };
        let kind = match entry.file_type() {
            FileType::Directory => libc::DT_DIR,
            FileType::RegularFile => libc::DT_REG,
            FileType::Symlink => libc::DT_LNK,
            _ => libc::DT_UNKNOWN,
        };
        let name = entry.file_name().to_bytes();
        let next = entry.next_entry_cookie();
        bytes.extend(layout::directory_entry(entry.ino(), next, kind, name));
        // The kernel's next part is the next call's.
        if found.is_buffer_empty() {
            break;
        }
    }
    Ok(Some(bytes))
}
