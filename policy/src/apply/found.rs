//! What lies at a path, looked at before anything is done with it.
//!
//! To open is to act: it wakes whoever waits at the other end of a pipe, and devices rewind, reset
//! or hang up. So a path is looked at first, by a descriptor that opens nothing (`O_PATH`).
//! Invariant: what is opened or changed is the very thing that was looked at, a regular file or a
//! directory, whatever its path means by then.

use crate::rules::Grant;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use postern_runtime::system::Failure;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, Timestamps};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Flags of every opening: none waits, and none gives the process a terminal.
pub(super) const QUIET: i32 = libc::O_NONBLOCK | libc::O_NOCTTY;

/// A thing below a granted directory, not opened.
pub(super) struct Found<'a> {
    grant: &'a Grant,
    below: &'a Path,
    follow: bool,
    /// Names it, and can do nothing else.
    place: OwnedFd,
    pub(super) stat: Stat,
}

impl<'a> Found<'a> {
    /// Looks at a path; at a symbolic link at its end only if it is not followed.
    pub(super) fn look(
        grant: &'a Grant,
        below: &'a Path,
        follow: bool,
    ) -> Result<Found<'a>, Failure> {
        let mut options = OpenOptions::new();
        let nofollow = if follow { 0 } else { libc::O_NOFOLLOW };
        options.read(true).custom_flags(libc::O_PATH | nofollow);
        let found = grant.directory.open_with(below, &options);
        let place: OwnedFd = found.map_err(failure)?.into_std().into();
        let stat = rustix::fs::fstat(&place)?;
        Ok(Found {
            grant,
            below,
            follow,
            place,
            stat,
        })
    }

    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Refuses all but regular files and directories with bytes that are just bytes. Devices, pipes
    /// and sockets reach farther than the directory that they lie in.
    pub(super) fn plain(&self) -> Result<(), Failure> {
        match self.kind() {
            FileType::Symlink => Err(Errno::LOOP.into()),
            FileType::RegularFile | FileType::Directory => not_of_the_kernel(&self.place),
            _ => Err(Failure::Refused(Errno::ACCESS)),
        }
    }

    /// As a directory in which something is changed, if it is plain.
    pub(super) fn directory(self) -> Result<Dir, Failure> {
        if self.kind() != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        self.plain()?;
        Ok(Dir::from_std_file(self.place.into()))
    }

    /// Opens it, if it is plain. `flags` say how it is read and written.
    pub(super) fn open(&self, flags: i32) -> Result<OwnedFd, Failure> {
        self.plain()?;
        let how = OFlags::from_bits_retain((flags | QUIET | libc::O_CLOEXEC) as u32);
        match rustix::fs::open(self.link(), how, Mode::empty()) {
            Err(Errno::NOENT) => self.open_again(flags),
            file => Ok(file?),
        }
    }

    /// Changes its permissions, if it is plain.
    pub(super) fn set_mode(&self, mode: u32) -> Result<(), Failure> {
        self.plain()?;
        let mode = Mode::from_raw_mode(mode);
        match rustix::fs::chmodat(CWD, self.link(), mode, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(rustix::fs::fchmod(self.open(libc::O_RDONLY)?, mode)?),
            done => Ok(done?),
        }
    }

    /// Changes its times, if it is plain.
    pub(super) fn set_times(&self, times: &Timestamps) -> Result<(), Failure> {
        self.plain()?;
        match rustix::fs::utimensat(CWD, self.link(), times, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(rustix::fs::futimens(self.open(libc::O_RDONLY)?, times)?),
            done => Ok(done?),
        }
    }

    /// A path that leads to it and to nothing else. The thread's, because the process's is gone
    /// when its first thread has ended.
    fn link(&self) -> String {
        format!("/proc/thread-self/fd/{}", self.place.as_raw_fd())
    }

    /// Opens by the path, once more, where there is no `/proc`. Only whoever exchanges the file
    /// just now can have something else opened, and that is not used. (A file that a layered file
    /// system copies to be written may have another number then, so what is opened by its link is
    /// not compared.)
    fn open_again(&self, flags: i32) -> Result<OwnedFd, Failure> {
        let access = flags & libc::O_ACCMODE;
        let nofollow = if self.follow { 0 } else { libc::O_NOFOLLOW };
        let mut options = OpenOptions::new();
        options
            .read(access != libc::O_WRONLY)
            .write(access != libc::O_RDONLY)
            .append(flags & libc::O_APPEND != 0)
            .custom_flags(flags & !(libc::O_ACCMODE | libc::O_APPEND) | QUIET | nofollow);
        let file = self.grant.directory.open_with(self.below, &options);
        let file: OwnedFd = file.map_err(failure)?.into_std().into();
        let stat = rustix::fs::fstat(&file)?;
        if (stat.st_dev, stat.st_ino) != (self.stat.st_dev, self.stat.st_ino) {
            return Err(Errno::AGAIN.into());
        }
        Ok(file)
    }
}

/// Where a name is made, moved or taken away: its directory was looked at and is not the kernel's,
/// where names are more than names.
pub(super) struct Name {
    pub(super) directory: Dir,
    /// One name, perhaps with a slash behind it. No call that makes, moves or takes away follows
    /// it.
    pub(super) name: OsString,
}

impl Name {
    /// Looks at the directory of a path's last name. `nameless` is the error if it ends in dots.
    pub(super) fn look(grant: &Grant, below: &Path, nameless: Errno) -> Result<Name, Failure> {
        let dot = below.as_os_str().as_bytes().ends_with(b"/.");
        let (Some(parent), Some(name), false) = (below.parent(), below.file_name(), dot) else {
            Found::look(grant, below, true)?;
            return Err(nameless.into());
        };
        let mut name = name.to_owned();
        if below.as_os_str().as_bytes().ends_with(b"/") {
            name.push("/");
        }
        let here = parent.as_os_str().is_empty();
        let parent = if here { Path::new(".") } else { parent };
        Ok(Name {
            directory: Found::look(grant, parent, true)?.directory()?,
            name,
        })
    }
}

/// Refuses a file in a file system that stands for the kernel's own things, where bytes are not
/// just bytes: `/proc/self/mem` is the host's memory.
pub(super) fn not_of_the_kernel(file: &OwnedFd) -> Result<(), Failure> {
    // From linux/magic.h and the file systems' own sources. Some lie below others, so that who
    // grants /sys grants them, too.
    const KINDS: [i64; 30] = [
        0x9fa0,      // proc
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
        0xcafe_4a11, // bpf
        0x27_e0eb,   // cgroup
        0x6367_7270, // cgroup2
        0x1cd1,      // devpts
        0xde5e_81e4, // efivarfs
        0x6265_6570, // configfs
        0x6165_676c, // pstore
        0xf97c_ff8c, // selinuxfs
        0x4249_4e4d, // binfmt_misc
        0x6573_5543, // fusectl
        0x5a3c_69f0, // apparmorfs
        0x4341_5d53, // smackfs
        0x0765_5821, // resctrl
        0x6759_6969, // rpc_pipefs
        0x6e66_7364, // nfsd
        0xabba_1974, // xenfs
        0x6c6f_6f70, // binderfs
        0x0a64_7361, // functionfs
        0xaee7_1ee7, // gadgetfs
        0x1980_0202, // mqueue
        0x0187,      // autofs
        0x6e73_6673, // nsfs
        0x5049_4446, // pidfs
        0x6f70_726f, // oprofilefs
        0x23c9_b64e, // spufs
    ];
    match KINDS.contains(&rustix::fs::fstatfs(file)?.f_type) {
        true => Err(Failure::Refused(Errno::ACCESS)),
        false => Ok(()),
    }
}

/// What the system or `cap-std` says of a path.
pub(super) fn failure(error: io::Error) -> Failure {
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
