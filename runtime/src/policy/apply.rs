//! Does what was decoded and granted: to streams and open files by their descriptors, to paths below granted directories.

use super::call::{Call, FileTime, GuestPath, LockAction, Target, WORKING_DIRECTORY};
use super::descriptors::Open;
use super::file::{Directory, File, Room};
use super::rules::{self, Grant, Place};
use super::{Answer, Base, Done, Failure, Policy, System, compute, layout};
use crate::Access;
use crate::service::Caller;
use cap_std::fs::{
    DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt,
};
use rustix::fs::{FileType, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Permissions that an extension can give: no set-user-id and its kin.
const PERMISSIONS: u32 = 0o777;

/// `O_LARGEFILE` as the kernel has it; the C library's is 0.
const LARGE_FILE: i32 = 0o100000;

/// A call being done.
struct Work<'a> {
    system: &'a System,
    policy: &'a Arc<Policy>,
}

/// Does a call that the host, if it was asked, allowed.
pub(super) fn apply(
    system: &System,
    policy: &Arc<Policy>,
    caller: &Caller<'_>,
    call: &Call,
) -> Answer {
    if policy.base == Base::None {
        return Err(Failure::Refused(Errno::PERM));
    }
    let work = Work { system, policy };
    match call {
        Call::Read { file, at, length } => match &*work.open(*file)? {
            Open::Stream(stream) if at.is_none() => stream.read(*length),
            Open::Stream(_) => Err(Errno::SPIPE.into()),
            Open::File(file) => file.read(*at, *length),
            Open::Directory(_) => Err(Errno::ISDIR.into()),
        },
        Call::Write { file, at, bytes } => match &*work.open(*file)? {
            Open::Stream(stream) if at.is_none() => stream.write(bytes),
            Open::Stream(_) => Err(Errno::SPIPE.into()),
            Open::File(file) => file.write(*at, bytes, &work.room()),
            Open::Directory(_) => Err(Errno::BADF.into()),
        },
        Call::Close { file } => work.close(*file),
        Call::Seek {
            file,
            offset,
            whence,
        } => match &*work.open(*file)? {
            Open::Stream(_) => Err(Errno::SPIPE.into()),
            Open::File(file) => file.seek(*offset, *whence),
            Open::Directory(directory) => directory.seek(system.shard, *offset, *whence),
        },
        Call::Sync { file, data_only } => match &*work.open(*file)? {
            Open::File(file) => file.sync(*data_only),
            Open::Directory(Directory {
                file: Some(file), ..
            }) => {
                rustix::fs::fsync(file)?;
                Ok(Done::value(0))
            }
            _ => Err(Errno::INVAL.into()),
        },
        Call::ListDirectory { file, length } => match &*work.open(*file)? {
            Open::Directory(directory) => directory.list(system.shard, *length),
            _ => Err(Errno::NOTDIR.into()),
        },
        Call::Device { file, request, .. } => match &*work.open(*file)? {
            Open::Stream(stream) => stream.device(*request),
            _ => Err(Errno::NOTTY.into()),
        },
        Call::Duplicate {
            file,
            to,
            least,
            close_on_exec,
            distinct,
        } => {
            if *distinct && *to == Some(*file) {
                return Err(Errno::INVAL.into());
            }
            work.duplicate(*file, *to, *least, *close_on_exec)
        }
        Call::DescriptorFlags { file, set } => work.descriptor_flags(*file, *set),
        Call::StatusFlags { file, set } => work.status_flags(*file, *set),
        Call::Lock {
            file,
            action,
            kind,
            whence,
            start,
            length,
        } => work.lock(*file, *action, *kind, (*whence, *start, *length)),
        Call::LockWhole { file, operation } => match &*work.open(*file)? {
            Open::File(file) => file.lock_whole(*operation),
            _ => Err(Errno::INVAL.into()),
        },
        Call::Mask { mode } => {
            let mut state = system.state();
            let before = std::mem::replace(&mut state.table.mask, mode & PERMISSIONS);
            Ok(Done::value(before.into()))
        }
        Call::Open { path, flags, mode } => work.open_path(path, *flags, *mode),
        Call::Stat(target) => work.stat(target),
        Call::Access { path, mode } => work.access(path, *mode),
        Call::ReadLink { path, length } => work.read_link(path, *length),
        Call::Remove { path, directory } => work.remove(path, *directory),
        Call::Rename { from, to, flags } => work.rename(from, to, *flags),
        Call::Link { from, to } => work.link(from, to),
        Call::SymbolicLink { text, path } => work.symbolic_link(text, path),
        Call::MakeDirectory { path, mode } => work.make_directory(path, *mode),
        Call::SetLength { target, length } => work.set_length(target, *length),
        Call::SetTimes {
            target,
            access,
            modification,
        } => work.set_times(target, *access, *modification),
        Call::SetMode { target, mode } => work.set_mode(target, *mode),
        Call::GetDirectory { length } => work.get_directory(*length),
        Call::ChangeDirectory(target) => work.change_directory(target),
        _ => compute::apply(caller, call),
    }
}

/// What the system or `cap-std` says of a path.
fn failure(error: io::Error) -> Failure {
    if let Some(error) = Errno::from_io_error(&error) {
        return error.into();
    }
    match error.kind() {
        // The path led out of the granted directory.
        io::ErrorKind::PermissionDenied => Failure::Refused(Errno::ACCESS),
        io::ErrorKind::NotFound => Errno::NOENT.into(),
        io::ErrorKind::AlreadyExists => Errno::EXIST.into(),
        io::ErrorKind::InvalidInput => Errno::INVAL.into(),
        _ => Errno::IO.into(),
    }
}

fn done(result: io::Result<()>) -> Answer {
    result.map(|()| Done::value(0)).map_err(failure)
}

impl<'a> Work<'a> {
    fn room(&self) -> Room<'a> {
        Room {
            written: &self.system.written,
            most: self.policy.rules.written,
            file_size: self.policy.rules.file_size,
        }
    }

    fn open(&self, file: i32) -> Result<Arc<Open>, Errno> {
        self.system.state().table.get(file)
    }

    /// Adds an open file, unless the policy that granted it is over.
    fn add(&self, open: Open, close_on_exec: bool) -> Answer {
        let open = Arc::new(open);
        let mut state = self.system.state();
        if !Arc::ptr_eq(&state.policy, self.policy) {
            drop(state);
            return Err(Failure::Refused(Errno::ACCESS));
        }
        // The reference kept here is the last one if there is no room, and it is dropped after the lock.
        let number = state.table.add(open.clone(), 0, close_on_exec);
        drop(state);
        Ok(Done::value(number?.into()))
    }

    fn close(&self, file: i32) -> Answer {
        let open = self.system.state().table.remove(file)?;
        self.unlock(&open);
        Ok(Done::value(0))
    }

    /// As in POSIX, closing any descriptor of a file gives back all of the domain's locks on it.
    fn unlock(&self, open: &Open) {
        let Open::File(file) = open else { return };
        let holder = self.system.state().table.locks.remove(&file.identity);
        if let Some(Open::File(holder)) = holder.as_deref() {
            holder.unlock();
        }
    }

    fn duplicate(&self, file: i32, to: Option<i32>, least: i32, close_on_exec: bool) -> Answer {
        let mut state = self.system.state();
        let open = state.table.get(file)?;
        let Some(to) = to else {
            let number = state.table.add(open, least, close_on_exec)?;
            return Ok(Done::value(number.into()));
        };
        if to == file {
            return Ok(Done::value(to.into()));
        }
        let closed = state.table.put(to, open, close_on_exec)?;
        drop(state);
        if let Some(closed) = closed {
            self.unlock(&closed);
        }
        Ok(Done::value(to.into()))
    }

    fn descriptor_flags(&self, file: i32, set: Option<i32>) -> Answer {
        let mut state = self.system.state();
        let close_on_exec = state.table.close_on_exec(file)?;
        match set {
            Some(flags) => {
                *close_on_exec = flags & libc::FD_CLOEXEC != 0;
                Ok(Done::value(0))
            }
            None => Ok(Done::value(i64::from(*close_on_exec))),
        }
    }

    fn status_flags(&self, file: i32, set: Option<i32>) -> Answer {
        let open = self.open(file)?;
        let Some(flags) = set else {
            return Ok(Done::value(open.status().get().into()));
        };
        if let Open::File(file) = &*open {
            file.set_append(flags & libc::O_APPEND != 0)?;
        }
        open.status().set(flags);
        Ok(Done::value(0))
    }

    fn lock(
        &self,
        file: i32,
        action: LockAction,
        kind: i16,
        (whence, start, length): (i16, i64, i64),
    ) -> Answer {
        let open = self.open(file)?;
        let Open::File(file) = &*open else {
            return Err(Errno::INVAL.into());
        };
        let (start, length) = file.range(whence, start, length)?;
        // The first description that locks a file holds all of the domain's locks on it, as a process would.
        let holder = {
            let mut state = self.system.state();
            let holder = state.table.locks.entry(file.identity);
            holder.or_insert_with(|| open.clone()).clone()
        };
        match &*holder {
            Open::File(holder) => match holder.lock(action, kind, start, length) {
                // The holder was opened for less than this one.
                Err(Failure::Error(Errno::BADF)) if !std::ptr::eq(holder, file) => {
                    Err(Errno::NOLCK.into())
                }
                answer => answer,
            },
            _ => Err(Errno::INVAL.into()),
        }
    }

    /// Where a path leads, in a policy that grants files at all.
    fn locate(&self, path: &GuestPath) -> Result<(Place<'a>, Vec<u8>), Failure> {
        if self.policy.base != Base::Files {
            return Err(Failure::Refused(Errno::ACCESS));
        }
        let base = if path.directory == WORKING_DIRECTORY || path.bytes.starts_with(b"/") {
            self.system.state().table.directory.clone()
        } else {
            match &*self.open(path.directory)? {
                Open::Directory(directory) => directory.path.clone(),
                _ => return Err(Errno::NOTDIR.into()),
            }
        };
        let place = self.policy.rules.locate(&base, &path.bytes)?;
        Ok((place, rules::joined(&base, &path.bytes)))
    }

    /// A path below a directory in which things may be changed.
    fn changeable(&self, path: &GuestPath) -> Result<(&'a Grant, PathBuf), Failure> {
        let (grant, below) = match self.locate(path)?.0 {
            Place::In(grant, below) => (grant, below),
            _ => return Err(Failure::Refused(Errno::ACCESS)),
        };
        match grant.access {
            Access::ReadWrite => Ok((grant, below)),
            Access::Read => Err(Failure::Refused(Errno::ROFS)),
        }
    }

    fn open_path(&self, path: &GuestPath, flags: i32, mode: u32) -> Answer {
        const KNOWN: i32 = libc::O_ACCMODE
            | libc::O_CREAT
            | libc::O_EXCL
            | libc::O_NOCTTY
            | libc::O_TRUNC
            | libc::O_APPEND
            | libc::O_NONBLOCK
            | libc::O_DSYNC
            | libc::O_SYNC
            | LARGE_FILE
            | libc::O_DIRECTORY
            | libc::O_TMPFILE
            | libc::O_NOFOLLOW
            | libc::O_NOATIME
            | libc::O_CLOEXEC;
        if flags & !KNOWN != 0 || flags & libc::O_ACCMODE == libc::O_ACCMODE {
            return Err(Failure::Refused(Errno::INVAL));
        }
        let close_on_exec = flags & libc::O_CLOEXEC != 0;
        let changes = libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND;
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let (place, joined) = self.locate(path)?;
        let (grant, below) = match place {
            Place::In(grant, below) => (grant, below),
            Place::Above(_) if writes => return Err(Errno::ISDIR.into()),
            Place::Above(names) => {
                let directory = Directory::new(None, joined, names);
                return self.add(Open::Directory(directory), close_on_exec);
            }
            Place::Outside if flags & libc::O_CREAT != 0 => {
                return Err(Failure::Refused(Errno::ACCESS));
            }
            Place::Outside => return Err(Failure::Refused(Errno::NOENT)),
        };
        let read_only = grant.access == Access::Read;
        if read_only && (writes || flags & (changes & !libc::O_CREAT) != 0) {
            return Err(Failure::Refused(Errno::ROFS));
        }
        let mut create = flags & libc::O_CREAT != 0;
        if create && read_only {
            // As on a read-only file system: what exists can be opened.
            if flags & libc::O_EXCL != 0 || self.look(grant, &below, true).is_err() {
                return Err(Failure::Refused(Errno::ROFS));
            }
            create = false;
        }
        let unnamed = flags & libc::O_TMPFILE == libc::O_TMPFILE;
        if unnamed || create && self.look(grant, &below, false).is_err() {
            self.room().take_name()?;
        }
        let mask = self.system.state().table.mask;
        let mut options = OpenOptions::new();
        options
            .read(flags & libc::O_ACCMODE != libc::O_WRONLY)
            .write(writes)
            .mode(mode & PERMISSIONS & !mask);
        // Truncated below, once it is known to be a file.
        let passed = libc::O_NOFOLLOW | libc::O_TMPFILE | libc::O_DSYNC | libc::O_SYNC;
        let exclusive = create && flags & libc::O_EXCL != 0;
        options.create(create).create_new(exclusive);
        options.append(writes && flags & libc::O_APPEND != 0);
        options.custom_flags(flags & passed | libc::O_NONBLOCK | libc::O_NOCTTY);
        let file: OwnedFd = grant
            .directory
            .open_with(&below, &options)
            .map_err(failure)?
            .into_std()
            .into();
        if is_of_the_kernel(&file)? {
            return Err(Failure::Refused(Errno::ACCESS));
        }
        let stat = rustix::fs::fstat(&file)?;
        let gone = libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC | libc::O_TMPFILE | libc::O_CLOEXEC;
        let status = flags & !gone;
        let open = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                if flags & libc::O_TRUNC != 0 && writes {
                    rustix::fs::ftruncate(&file, 0)?;
                }
                Open::File(File::new(file, status, &stat))
            }
            FileType::Directory => Open::Directory(Directory::new(Some(file), joined, Vec::new())),
            // Devices, pipes and sockets reach farther than the directory that they lie in.
            _ => return Err(Failure::Refused(Errno::ACCESS)),
        };
        self.add(open, close_on_exec)
    }

    /// What lies at a path, without opening it.
    fn look(&self, grant: &Grant, below: &Path, follow: bool) -> Result<OwnedFd, Failure> {
        let mut options = OpenOptions::new();
        let nofollow = if follow { 0 } else { libc::O_NOFOLLOW };
        options.read(true).custom_flags(libc::O_PATH | nofollow);
        let found = grant.directory.open_with(below, &options);
        Ok(found.map_err(failure)?.into_std().into())
    }

    fn stat(&self, target: &Target) -> Answer {
        let stat = |stat: &Stat| Ok(Done::bytes(layout::stat(stat)));
        match target {
            Target::Open(file) => match &*self.open(*file)? {
                Open::Stream(stream) => stream.stat(),
                Open::File(file) => stat(&rustix::fs::fstat(file.fd())?),
                Open::Directory(Directory {
                    file: Some(file), ..
                }) => stat(&rustix::fs::fstat(file)?),
                Open::Directory(_) => above(),
            },
            Target::Path { path, follow } => match self.locate(path)?.0 {
                Place::In(grant, below) => {
                    let found = self.look(grant, &below, *follow)?;
                    stat(&rustix::fs::fstat(found)?)
                }
                Place::Above(_) => above(),
                Place::Outside => Err(Failure::Refused(Errno::NOENT)),
            },
        }
    }

    fn access(&self, path: &GuestPath, mode: i32) -> Answer {
        if mode & !(libc::R_OK | libc::W_OK | libc::X_OK) != 0 {
            return Err(Errno::INVAL.into());
        }
        let (grant, below) = match self.locate(path)?.0 {
            Place::In(grant, below) => (grant, below),
            Place::Above(_) if mode & libc::W_OK == 0 => return Ok(Done::value(0)),
            Place::Above(_) => return Err(Failure::Refused(Errno::ACCESS)),
            Place::Outside => return Err(Failure::Refused(Errno::NOENT)),
        };
        let stat = rustix::fs::fstat(self.look(grant, &below, true)?)?;
        if mode & libc::W_OK != 0 && grant.access == Access::Read {
            return Err(Errno::ROFS.into());
        }
        match mode as u32 & !granted_bits(&stat) {
            0 => Ok(Done::value(0)),
            _ => Err(Errno::ACCESS.into()),
        }
    }

    fn read_link(&self, path: &GuestPath, length: usize) -> Answer {
        if length == 0 {
            return Err(Errno::INVAL.into());
        }
        let (grant, below) = match self.locate(path)?.0 {
            Place::In(grant, below) => (grant, below),
            Place::Above(_) => return Err(Errno::INVAL.into()),
            Place::Outside => return Err(Failure::Refused(Errno::NOENT)),
        };
        let text = grant.directory.read_link_contents(below).map_err(failure)?;
        let mut bytes = text.into_os_string().into_encoded_bytes();
        bytes.truncate(length);
        Ok(Done::counted(bytes))
    }

    fn remove(&self, path: &GuestPath, directory: bool) -> Answer {
        let (grant, below) = self.changeable(path)?;
        done(match directory {
            true => grant.directory.remove_dir(below),
            false => grant.directory.remove_file(below),
        })
    }

    /// Two paths of one granted directory. Between two it is as between two file systems.
    fn both(
        &self,
        from: &GuestPath,
        to: &GuestPath,
    ) -> Result<(&'a Grant, PathBuf, PathBuf), Failure> {
        let (grant, from) = self.changeable(from)?;
        let (other, to) = self.changeable(to)?;
        if !std::ptr::eq(grant, other) {
            return Err(Errno::XDEV.into());
        }
        Ok((grant, from, to))
    }

    fn rename(&self, from: &GuestPath, to: &GuestPath, flags: u32) -> Answer {
        let (grant, from, to) = self.both(from, to)?;
        if flags != 0 {
            return Err(Errno::INVAL.into());
        }
        done(grant.directory.rename(from, &grant.directory, to))
    }

    fn link(&self, from: &GuestPath, to: &GuestPath) -> Answer {
        let (grant, from, to) = self.both(from, to)?;
        self.room().take_name()?;
        done(grant.directory.hard_link(from, &grant.directory, to))
    }

    /// Only links that stay below their own directory: the host, too, may follow them one day.
    fn symbolic_link(&self, text: &[u8], path: &GuestPath) -> Answer {
        let (grant, below) = self.changeable(path)?;
        if text.starts_with(b"/") || text.split(|&b| b == b'/').any(|part| part == b"..") {
            return Err(Failure::Refused(Errno::PERM));
        }
        self.room().take_name()?;
        done(grant.directory.symlink(OsStr::from_bytes(text), below))
    }

    fn make_directory(&self, path: &GuestPath, mode: u32) -> Answer {
        let (grant, below) = match self.locate(path)?.0 {
            // It exists, which matters more to programs that make all of a path's directories.
            Place::Above(_) => return Err(Errno::EXIST.into()),
            Place::In(_, below) if below == Path::new(".") => return Err(Errno::EXIST.into()),
            _ => self.changeable(path)?,
        };
        self.room().take_name()?;
        let mask = self.system.state().table.mask;
        let mut builder = DirBuilder::new();
        builder.mode(mode & PERMISSIONS & !mask);
        done(grant.directory.create_dir_with(below, &builder))
    }

    fn set_length(&self, target: &Target, length: i64) -> Answer {
        match target {
            Target::Open(file) => match &*self.open(*file)? {
                Open::File(file) => file.set_length(length, &self.room()),
                _ => Err(Errno::INVAL.into()),
            },
            Target::Path { path, .. } => {
                let (grant, below) = self.changeable(path)?;
                let mut options = OpenOptions::new();
                options
                    .write(true)
                    .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
                let file = grant.directory.open_with(below, &options);
                let file: OwnedFd = file.map_err(failure)?.into_std().into();
                let stat = rustix::fs::fstat(&file)?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                    return Err(Errno::INVAL.into());
                }
                File::new(file, libc::O_WRONLY, &stat).set_length(length, &self.room())
            }
        }
    }

    fn set_times(&self, target: &Target, access: FileTime, modification: FileTime) -> Answer {
        let time = |time: FileTime| Timespec {
            tv_sec: time.seconds,
            tv_nsec: time.nanoseconds,
        };
        let times = Timestamps {
            last_access: time(access),
            last_modification: time(modification),
        };
        match target {
            Target::Open(file) => match &*self.open(*file)? {
                Open::File(file) if file.status.writable() => {
                    rustix::fs::futimens(file.fd(), &times)?;
                }
                Open::File(_) => return Err(Failure::Refused(Errno::ROFS)),
                _ => return Err(Errno::INVAL.into()),
            },
            Target::Path { path, follow } => {
                let (grant, below) = self.changeable(path)?;
                let mut options = OpenOptions::new();
                let nofollow = if *follow { 0 } else { libc::O_NOFOLLOW };
                let flags = libc::O_NONBLOCK | libc::O_NOCTTY | nofollow;
                options.read(true).custom_flags(flags);
                let file = grant.directory.open_with(below, &options);
                rustix::fs::futimens(file.map_err(failure)?, &times)?;
            }
        }
        Ok(Done::value(0))
    }

    fn set_mode(&self, target: &Target, mode: u32) -> Answer {
        let mode = mode & PERMISSIONS;
        match target {
            Target::Open(file) => match &*self.open(*file)? {
                Open::File(file) if file.status.writable() => {
                    rustix::fs::fchmod(file.fd(), rustix::fs::Mode::from_raw_mode(mode))?;
                    Ok(Done::value(0))
                }
                Open::File(_) => Err(Failure::Refused(Errno::ROFS)),
                _ => Err(Errno::INVAL.into()),
            },
            Target::Path { path, .. } => {
                let (grant, below) = self.changeable(path)?;
                let permissions = Permissions::from_mode(mode);
                done(grant.directory.set_permissions(below, permissions))
            }
        }
    }

    fn get_directory(&self, length: usize) -> Answer {
        let mut path = self.system.state().table.directory.clone();
        path.push(0);
        if path.len() > length {
            return Err(Errno::RANGE.into());
        }
        Ok(Done::counted(path))
    }

    fn change_directory(&self, target: &Target) -> Answer {
        let to = match target {
            Target::Open(file) => match &*self.open(*file)? {
                Open::Directory(directory) => directory.path.clone(),
                _ => return Err(Errno::NOTDIR.into()),
            },
            Target::Path { path, .. } => {
                let (place, joined) = self.locate(path)?;
                match place {
                    Place::In(grant, below) => {
                        let stat = rustix::fs::fstat(self.look(grant, &below, true)?)?;
                        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                            return Err(Errno::NOTDIR.into());
                        }
                    }
                    Place::Above(_) => {}
                    Place::Outside => return Err(Failure::Refused(Errno::NOENT)),
                }
                joined
            }
        };
        if to.len() >= 4096 {
            return Err(Errno::NAMETOOLONG.into());
        }
        self.system.state().table.directory = to;
        Ok(Done::value(0))
    }
}

/// Whether a file lies in a file system that stands for the kernel's own things, where bytes are not just bytes: `/proc/self/mem` is
/// the host's memory.
fn is_of_the_kernel(file: &OwnedFd) -> Result<bool, Errno> {
    // From linux/magic.h: proc, sysfs, debugfs, tracefs, securityfs, bpf, both cgroups, devpts, efivarfs, configfs, pstore, selinuxfs.
    const KINDS: [i64; 13] = [
        0x9fa0,
        0x6265_6572,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0xcafe_4a11,
        0x27_e0eb,
        0x6367_7270,
        0x1cd1,
        0xde5e_81e4,
        0x6265_6570,
        0x6165_676c,
        0xf97c_ff8c,
    ];
    Ok(KINDS.contains(&rustix::fs::fstatfs(file)?.f_type))
}

/// `struct stat` of a directory above granted ones.
fn above() -> Answer {
    Ok(Done::bytes(layout::stream_stat(libc::S_IFDIR | 0o555)))
}

/// What the process itself may do with a file, as bits of `access`.
fn granted_bits(stat: &Stat) -> u32 {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if user.is_root() {
        let runs = stat.st_mode & 0o111 != 0;
        let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        return if runs || directory { 7 } else { 6 };
    }
    let shift = match () {
        () if stat.st_uid == user.as_raw() => 6,
        () if stat.st_gid == group.as_raw() => 3,
        () => 0,
    };
    stat.st_mode >> shift & 7
}
