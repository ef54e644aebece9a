//! Calls about paths: each is located below a granted directory first, and `cap-std` keeps what is
//! done there from leaving it.

use super::found::{Found, Name, QUIET, failure};
use super::work::{PERMISSIONS, Work};
use crate::Access;
use crate::descriptors::Open;
use crate::file::{Directory, File};
use crate::layout;
use crate::policy::Base;
use crate::rules::{self, Grant, PathTarget};
use crate::{FileTime, GuestPath, Target, WORKING_DIRECTORY};
use cap_std::fs::Dir;
use postern_runtime::system::{Answer, Done, Failure};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `O_LARGEFILE` as the kernel has it; the C library's is 0.
const LARGE_FILE: i32 = 0o100000;

/// Of a file that may have to be made.
#[derive(Clone, Copy)]
struct NewFile {
    /// Whether it may be.
    create: bool,
    /// Its permissions.
    mode: u32,
}

impl<'a> Work<'a> {
    /// Where a path leads, in a policy that grants files at all.
    fn locate(&self, path: &GuestPath) -> Result<(PathTarget<'a>, Vec<u8>), Failure> {
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

    /// A name that may be made, moved or taken away, and the granted directory that it is below.
    fn name(&self, path: &GuestPath, nameless: Errno) -> Result<(&'a Grant, Name), Failure> {
        let (grant, below) = self.changeable(path)?;
        Ok((grant, Name::look(grant, &below, nameless)?))
    }

    /// Makes a name. It counts if it was made.
    fn make<T>(&self, made: impl FnOnce() -> Result<T, Errno>) -> Result<T, Failure> {
        self.room().take_name()?;
        Ok(made().inspect_err(|_| self.room().give_name_back())?)
    }

    /// A path below a directory in which things may be changed.
    fn changeable(&self, path: &GuestPath) -> Result<(&'a Grant, PathBuf), Failure> {
        let (grant, below) = match self.locate(path)?.0 {
            PathTarget::In(grant, below) => (grant, below),
            _ => return Err(Failure::Refused(Errno::ACCESS)),
        };
        match grant.access {
            Access::ReadWrite => Ok((grant, below)),
            Access::Read => Err(Failure::Refused(Errno::ROFS)),
        }
    }

    pub(super) fn open_path(&self, path: &GuestPath, flags: i32, mode: u32) -> Answer {
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
        let unnamed = flags & libc::O_TMPFILE & !libc::O_DIRECTORY != 0;
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let directory = flags & libc::O_DIRECTORY != 0;
        let create = flags & libc::O_CREAT != 0;
        // As in the kernel.
        if unnamed && !(writes && directory && !create) || create && directory {
            return Err(Errno::INVAL.into());
        }
        // So that nothing was done where there is no number for it.
        self.system.state().table.has_room()?;
        let close_on_exec = flags & libc::O_CLOEXEC != 0;
        let changes = libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND;
        let (place, joined) = self.locate(path)?;
        let (grant, below) = match place {
            PathTarget::In(grant, below) => (grant, below),
            PathTarget::Above(_) if writes => return Err(Errno::ISDIR.into()),
            PathTarget::Above(names) => {
                let directory = Directory::new(None, joined, names);
                return self.add(Open::Directory(directory), close_on_exec);
            }
            PathTarget::Outside if flags & libc::O_CREAT != 0 => {
                return Err(Failure::Refused(Errno::ACCESS));
            }
            PathTarget::Outside => return Err(Failure::Refused(Errno::NOENT)),
        };
        let read_only = grant.access == Access::Read;
        if read_only && (writes || flags & (changes & !libc::O_CREAT) != 0) {
            return Err(Failure::Refused(Errno::ROFS));
        }
        let mut create = create;
        if create && read_only {
            // As on a read-only file system: what exists can be opened.
            if flags & libc::O_EXCL != 0 || Found::look(grant, &below, true).is_err() {
                return Err(Failure::Refused(Errno::ROFS));
            }
            create = false;
        }
        let new = NewFile {
            create,
            mode: mode & PERMISSIONS & !self.system.state().table.mask,
        };
        let file = self.open_or_create(grant, &below, flags, new)?;
        let stat = rustix::fs::fstat(&file)?;
        let gone = libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC | libc::O_TMPFILE | libc::O_CLOEXEC;
        let status = flags & !gone;
        let open = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                Open::File(File::new(file, status, &stat).below(&grant.directory))
            }
            FileType::Directory => {
                let directory = Directory::new(Some(file), joined, Vec::new());
                Open::Directory(directory.below(&grant.directory))
            }
            _ => return Err(Failure::Refused(Errno::ACCESS)),
        };
        self.add(open, close_on_exec)
    }

    /// Opens what lies at a path, after a look at it; or makes a file where nothing was, which is
    /// nothing else then.
    fn open_or_create(
        &self,
        grant: &Grant,
        below: &Path,
        flags: i32,
        new: NewFile,
    ) -> Result<OwnedFd, Failure> {
        /// Links that are followed to a file that is to be made, and races that are lost, before
        /// the caller hears of it.
        const ATTEMPTS: usize = 40;
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let truncates = flags & libc::O_TRUNC != 0;
        let append = if writes { flags & libc::O_APPEND } else { 0 };
        let passed = flags & (libc::O_ACCMODE | libc::O_DSYNC | libc::O_SYNC) | append;
        let exclusive = new.create && flags & libc::O_EXCL != 0;
        let follow = !exclusive && flags & libc::O_NOFOLLOW == 0;
        if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            let follow = flags & libc::O_NOFOLLOW == 0;
            let directory = Found::look(grant, below, follow)?.directory()?;
            let how = passed | flags & libc::O_EXCL | libc::O_TMPFILE;
            return self.create(&directory, Path::new("."), how, new.mode);
        }
        let mut below = below.to_owned();
        for _ in 0..ATTEMPTS {
            if new.create && below.as_os_str().as_bytes().ends_with(b"/") {
                Name::look(grant, &below, Errno::ISDIR)?;
                return Err(Errno::ISDIR.into());
            }
            match Found::look(grant, &below, follow) {
                Ok(_) if exclusive => return Err(Errno::EXIST.into()),
                Ok(found) => {
                    let kind = found.kind();
                    if flags & libc::O_DIRECTORY != 0 && kind != FileType::Directory {
                        return Err(Errno::NOTDIR.into());
                    }
                    if (writes || truncates || new.create) && kind == FileType::Directory {
                        return Err(Errno::ISDIR.into());
                    }
                    let file = found.open(passed)?;
                    // Once it is open: then it is what was found. As in the kernel, whoever may
                    // write may do this to what it only reads.
                    match (truncates, writes) {
                        (true, true) => rustix::fs::ftruncate(&file, 0)?,
                        (true, false) => rustix::fs::ftruncate(found.open(libc::O_WRONLY)?, 0)?,
                        _ => {}
                    }
                    return Ok(file);
                }
                Err(Failure::Error(Errno::NOENT)) if new.create => {}
                Err(failure) => return Err(failure),
            }
            // Where a link leads to nothing, the file is made that it names.
            if follow && let Ok(text) = grant.directory.read_link_contents(&below) {
                if text.is_absolute() {
                    return Err(Failure::Refused(Errno::ACCESS));
                }
                below.pop();
                below.push(text);
                continue;
            }
            let Name { directory, name } = Name::look(grant, &below, Errno::ISDIR)?;
            let how = passed | libc::O_CREAT | libc::O_EXCL;
            match self.create(&directory, Path::new(&name), how, new.mode) {
                // Somebody else made it meanwhile.
                Err(Failure::Error(Errno::EXIST)) if !exclusive => {}
                done => return done,
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Makes a file in a directory: a new name, which is no path and follows nothing, or in `.` one
    /// without a name.
    fn create(
        &self,
        directory: &Dir,
        name: &Path,
        how: i32,
        mode: u32,
    ) -> Result<OwnedFd, Failure> {
        let how = OFlags::from_bits_retain((how | QUIET | libc::O_CLOEXEC) as u32);
        let mode = Mode::from_raw_mode(mode);
        self.make(|| rustix::fs::openat(directory, name, how, mode))
    }

    pub(super) fn stat(&self, target: &Target) -> Answer {
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
                PathTarget::In(grant, below) => stat(&Found::look(grant, &below, *follow)?.stat),
                PathTarget::Above(_) => above(),
                PathTarget::Outside => Err(Failure::Refused(Errno::NOENT)),
            },
        }
    }

    pub(super) fn access(&self, path: &GuestPath, mode: i32) -> Answer {
        if mode & !(libc::R_OK | libc::W_OK | libc::X_OK) != 0 {
            return Err(Errno::INVAL.into());
        }
        let (grant, below) = match self.locate(path)?.0 {
            PathTarget::In(grant, below) => (grant, below),
            PathTarget::Above(_) if mode & libc::W_OK == 0 => return Ok(Done::value(0)),
            PathTarget::Above(_) => return Err(Failure::Refused(Errno::ACCESS)),
            PathTarget::Outside => return Err(Failure::Refused(Errno::NOENT)),
        };
        let stat = Found::look(grant, &below, true)?.stat;
        if mode & libc::W_OK != 0 && grant.access == Access::Read {
            return Err(Errno::ROFS.into());
        }
        match mode as u32 & !granted_bits(&stat) {
            0 => Ok(Done::value(0)),
            _ => Err(Errno::ACCESS.into()),
        }
    }

    pub(super) fn read_link(&self, path: &GuestPath, length: usize) -> Answer {
        if length == 0 {
            return Err(Errno::INVAL.into());
        }
        let (grant, below) = match self.locate(path)?.0 {
            PathTarget::In(grant, below) => (grant, below),
            PathTarget::Above(_) => return Err(Errno::INVAL.into()),
            PathTarget::Outside => return Err(Failure::Refused(Errno::NOENT)),
        };
        let text = grant.directory.read_link_contents(below).map_err(failure)?;
        let mut bytes = text.into_os_string().into_encoded_bytes();
        bytes.truncate(length);
        Ok(Done::counted(bytes))
    }

    pub(super) fn remove(&self, path: &GuestPath, is_directory: bool) -> Answer {
        let (nameless, flags) = match is_directory {
            true => (Errno::NOTEMPTY, AtFlags::REMOVEDIR),
            false => (Errno::ISDIR, AtFlags::empty()),
        };
        let (_, Name { directory, name }) = self.name(path, nameless)?;
        rustix::fs::unlinkat(directory, name, flags)?;
        Ok(Done::value(0))
    }

    /// Two paths of one granted directory. Between two it is as between two file systems.
    fn both(
        &self,
        from: &GuestPath,
        to: &GuestPath,
        nameless: [Errno; 2],
    ) -> Result<(Name, Name), Failure> {
        let (grant, from) = self.name(from, nameless[0])?;
        let (other, to) = self.name(to, nameless[1])?;
        if !std::ptr::eq(grant, other) {
            return Err(Errno::XDEV.into());
        }
        Ok((from, to))
    }

    pub(super) fn rename(&self, from: &GuestPath, to: &GuestPath, flags: u32) -> Answer {
        let (from, to) = self.both(from, to, [Errno::BUSY; 2])?;
        if flags != 0 {
            return Err(Errno::INVAL.into());
        }
        rustix::fs::renameat(from.directory, from.name, to.directory, to.name)?;
        Ok(Done::value(0))
    }

    pub(super) fn link(&self, from: &GuestPath, to: &GuestPath) -> Answer {
        let (grant, below) = self.changeable(from)?;
        // The kernel would follow it then.
        if below.as_os_str().as_bytes().ends_with(b"/") {
            return Err(match Found::look(grant, &below, true)?.kind() {
                FileType::Directory => Errno::PERM.into(),
                _ => Errno::NOTDIR.into(),
            });
        }
        let (from, to) = self.both(from, to, [Errno::PERM, Errno::EXIST])?;
        self.make(|| {
            let flags = AtFlags::empty();
            rustix::fs::linkat(from.directory, from.name, to.directory, to.name, flags)
        })?;
        Ok(Done::value(0))
    }

    /// Only links that stay below their own directory: the host, too, may follow them one day.
    pub(super) fn symbolic_link(&self, text: &[u8], path: &GuestPath) -> Answer {
        let (_, Name { directory, name }) = self.name(path, Errno::EXIST)?;
        if text.starts_with(b"/") || text.split(|&b| b == b'/').any(|part| part == b"..") {
            return Err(Failure::Refused(Errno::PERM));
        }
        self.make(|| rustix::fs::symlinkat(text, directory, name))?;
        Ok(Done::value(0))
    }

    pub(super) fn make_directory(&self, path: &GuestPath, mode: u32) -> Answer {
        let (_, Name { directory, name }) = match self.locate(path)?.0 {
            // It exists, which matters more to programs that make all of a path's directories.
            PathTarget::Above(_) => return Err(Errno::EXIST.into()),
            PathTarget::In(_, below) if below == Path::new(".") => return Err(Errno::EXIST.into()),
            _ => self.name(path, Errno::EXIST)?,
        };
        let mask = self.system.state().table.mask;
        let mode = Mode::from_raw_mode(mode & PERMISSIONS & !mask);
        self.make(|| rustix::fs::mkdirat(directory, name, mode))?;
        Ok(Done::value(0))
    }

    pub(super) fn set_length(&self, target: &Target, length: i64) -> Answer {
        match target {
            Target::Open(file) => match &*self.open(*file)? {
                Open::File(file) => file.set_length(length, &self.room()),
                _ => Err(Errno::INVAL.into()),
            },
            Target::Path { path, .. } => {
                let (grant, below) = self.changeable(path)?;
                let found = Found::look(grant, &below, true)?;
                match found.kind() {
                    FileType::RegularFile => {}
                    FileType::Directory => return Err(Errno::ISDIR.into()),
                    _ => return Err(Errno::INVAL.into()),
                }
                let (file, stat) = (found.open(libc::O_WRONLY)?, found.stat);
                File::new(file, libc::O_WRONLY, &stat).set_length(length, &self.room())
            }
        }
    }

    pub(super) fn set_times(
        &self,
        target: &Target,
        access: FileTime,
        modification: FileTime,
    ) -> Answer {
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
                Found::look(grant, &below, *follow)?.set_times(&times)?;
            }
        }
        Ok(Done::value(0))
    }

    pub(super) fn set_mode(&self, target: &Target, mode: u32) -> Answer {
        let mode = mode & PERMISSIONS;
        match target {
            Target::Open(file) => match &*self.open(*file)? {
                Open::File(file) if file.status.writable() => {
                    rustix::fs::fchmod(file.fd(), Mode::from_raw_mode(mode))?;
                    Ok(Done::value(0))
                }
                Open::File(_) => Err(Failure::Refused(Errno::ROFS)),
                _ => Err(Errno::INVAL.into()),
            },
            Target::Path { path, .. } => {
                let (grant, below) = self.changeable(path)?;
                Found::look(grant, &below, true)?.set_mode(mode)?;
                Ok(Done::value(0))
            }
        }
    }

    pub(super) fn get_directory(&self, length: usize) -> Answer {
        let mut path = self.system.state().table.directory.clone();
        path.push(0);
        if path.len() > length {
            return Err(Errno::RANGE.into());
        }
        Ok(Done::counted(path))
    }

    pub(super) fn change_directory(&self, target: &Target) -> Answer {
        let to = match target {
            Target::Open(file) => match &*self.open(*file)? {
                Open::Directory(directory) => directory.path.clone(),
                _ => return Err(Errno::NOTDIR.into()),
            },
            Target::Path { path, .. } => {
                let (place, joined) = self.locate(path)?;
                match place {
                    PathTarget::In(grant, below) => {
                        if Found::look(grant, &below, true)?.kind() != FileType::Directory {
                            return Err(Errno::NOTDIR.into());
                        }
                    }
                    PathTarget::Above(_) => {}
                    PathTarget::Outside => return Err(Failure::Refused(Errno::NOENT)),
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
