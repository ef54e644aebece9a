//! A system call as a value: what the extension asked for, decoded.
//!
//! Invariant: everything is owned. Strings and buffers were copied out of the window once, so what
//! a policy looks at is what is done, whatever other threads of the extension write meanwhile.

/// Names an open file of the domain. Any number may come.
pub type Descriptor = i32;

/// The `directory` of a path that is relative to the working directory (`AT_FDCWD`).
pub const WORKING_DIRECTORY: Descriptor = -100;

/// A path in the extension's eyes: bytes as they came, without the NUL, at most 4095.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestPath {
    /// What a relative path begins at: a descriptor, or [`WORKING_DIRECTORY`].
    pub directory: Descriptor,
    /// The path.
    pub bytes: Vec<u8>,
}

/// What a call about a file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An open file.
    Open(Descriptor),
    /// A path.
    Path {
        /// Which.
        path: GuestPath,
        /// Whether a symbolic link at its end is followed.
        follow: bool,
    },
}

/// In which form a time is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeForm {
    /// `struct timespec`.
    Timespec,
    /// `struct timeval`.
    Timeval,
    /// Seconds as the result; as a `long`, too, where there is room.
    Seconds,
}

/// A time to set, in seconds and nanoseconds. The nanoseconds may be Linux's `UTIME_NOW` or
/// `UTIME_OMIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileTime {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds.
    pub nanoseconds: i64,
}

/// A number about the process, of which every domain sees the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in Linux")]
pub enum Identity {
    Process,
    Parent,
    Thread,
    Group,
    User,
    EffectiveUser,
    UserGroup,
    EffectiveUserGroup,
}

/// What is done with a lock on a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAction {
    /// Find out who is in the way.
    Query,
    /// Set or release, at once or not at all.
    Set,
    /// Set or release, and wait until that is possible.
    Wait,
}

/// A system call with its arguments. Numbers, flags and modes are Linux's; they are allegations of
/// the extension.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// `exit_group`, `exit`: ends the call, whatever the policy says.
    Exit {
        /// Low 32 bits of the status.
        status: i32,
    },
    /// `read`, `readv`, `pread64`: at most `length` bytes.
    Read {
        /// From where.
        file: Descriptor,
        /// The place in the file, or its position.
        at: Option<i64>,
        /// Room in the extension's buffers.
        length: usize,
    },
    /// `write`, `writev`, `pwrite64`.
    Write {
        /// To where.
        file: Descriptor,
        /// The place in the file, or its position.
        at: Option<i64>,
        /// What; of long writes the first part.
        bytes: Vec<u8>,
    },
    /// `open`, `openat`, `creat`.
    Open {
        /// Which file.
        path: GuestPath,
        /// `O_…`.
        flags: i32,
        /// Permissions of a new file.
        mode: u32,
    },
    /// `close`.
    Close {
        /// Which.
        file: Descriptor,
    },
    /// `lseek`.
    Seek {
        /// Which.
        file: Descriptor,
        /// How far.
        offset: i64,
        /// `SEEK_…`.
        whence: i32,
    },
    /// `stat`, `lstat`, `fstat`, `newfstatat`.
    Stat(Target),
    /// `access`, `faccessat`.
    Access {
        /// Which file.
        path: GuestPath,
        /// `R_OK` and so on.
        mode: i32,
    },
    /// `readlink`, `readlinkat`.
    ReadLink {
        /// Which link.
        path: GuestPath,
        /// Room in the extension's buffer.
        length: usize,
    },
    /// `unlink`, `rmdir`, `unlinkat`.
    Remove {
        /// What.
        path: GuestPath,
        /// Whether it is a directory.
        directory: bool,
    },
    /// `rename`, `renameat`, `renameat2`.
    Rename {
        /// What.
        from: GuestPath,
        /// To which name.
        to: GuestPath,
        /// `RENAME_…`.
        flags: u32,
    },
    /// `link`, `linkat`.
    Link {
        /// An existing file.
        from: GuestPath,
        /// Its second name.
        to: GuestPath,
    },
    /// `symlink`, `symlinkat`.
    SymbolicLink {
        /// What it says.
        text: Vec<u8>,
        /// Its name.
        path: GuestPath,
    },
    /// `mkdir`, `mkdirat`.
    MakeDirectory {
        /// Which.
        path: GuestPath,
        /// Permissions.
        mode: u32,
    },
    /// `getdents64`.
    ListDirectory {
        /// Which.
        file: Descriptor,
        /// Room in the extension's buffer.
        length: usize,
    },
    /// `truncate`, `ftruncate`.
    SetLength {
        /// Of what.
        target: Target,
        /// Bytes.
        length: i64,
    },
    /// `fsync`, `fdatasync`.
    Sync {
        /// Which.
        file: Descriptor,
        /// Whether the file's times may be left out.
        data_only: bool,
    },
    /// `utimensat`.
    SetTimes {
        /// Of what.
        target: Target,
        /// Last access.
        access: FileTime,
        /// Last change.
        modification: FileTime,
    },
    /// `chmod`, `fchmod`, `fchmodat`.
    SetMode {
        /// Of what.
        target: Target,
        /// Permissions.
        mode: u32,
    },
    /// `umask`.
    Mask {
        /// Permissions that new files do not get.
        mode: u32,
    },
    /// `dup`, `dup2`, `dup3`, `fcntl(F_DUPFD)`.
    Duplicate {
        /// Which.
        file: Descriptor,
        /// Exactly this number, which is closed first.
        to: Option<Descriptor>,
        /// Else the lowest number free from here on.
        least: Descriptor,
        /// Whether the new one has `FD_CLOEXEC`.
        close_on_exec: bool,
        /// Whether `to` must differ from `file` (`dup3`).
        distinct: bool,
    },
    /// `fcntl(F_GETFD)`, `fcntl(F_SETFD)`.
    DescriptorFlags {
        /// Which.
        file: Descriptor,
        /// The new ones.
        set: Option<i32>,
    },
    /// `fcntl(F_GETFL)`, `fcntl(F_SETFL)`.
    StatusFlags {
        /// Which.
        file: Descriptor,
        /// The new ones.
        set: Option<i32>,
    },
    /// `fcntl(F_GETLK)`, `fcntl(F_SETLK)`, `fcntl(F_SETLKW)`.
    Lock {
        /// Which.
        file: Descriptor,
        /// What to do.
        action: LockAction,
        /// `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
        kind: i16,
        /// `SEEK_…`.
        whence: i16,
        /// From where.
        start: i64,
        /// How long; 0 is to the end.
        length: i64,
    },
    /// `flock`.
    LockWhole {
        /// Which.
        file: Descriptor,
        /// `LOCK_…`.
        operation: i32,
    },
    /// `getcwd`.
    GetDirectory {
        /// Room in the extension's buffer.
        length: usize,
    },
    /// `chdir`, `fchdir`.
    ChangeDirectory(Target),
    /// `ioctl`.
    Device {
        /// Which.
        file: Descriptor,
        /// What, `TCGETS` for example.
        request: u32,
        /// Room for the answer.
        length: usize,
    },
    /// `clock_gettime`, `gettimeofday`, `time`.
    Time {
        /// `CLOCK_…`.
        clock: i32,
        /// In which form.
        form: TimeForm,
    },
    /// `clock_getres`.
    Resolution {
        /// `CLOCK_…`.
        clock: i32,
    },
    /// `times`, `getrusage`: time spent.
    Usage {
        /// Whether `struct rusage` is wanted, else `struct tms`.
        rusage: bool,
    },
    /// `nanosleep`, `clock_nanosleep`.
    Sleep {
        /// `CLOCK_…`.
        clock: i32,
        /// Whether the time is one of the clock, else a duration.
        absolute: bool,
        /// Seconds.
        seconds: i64,
        /// Nanoseconds.
        nanoseconds: i64,
    },
    /// `sched_yield`.
    Yield,
    /// `getrandom`.
    Random {
        /// How many bytes.
        length: usize,
    },
    /// `getpid` and its kin.
    Identity(Identity),
    /// `uname`.
    SystemName,
    /// `kill`, `tkill`, `tgkill`.
    Signal {
        /// The process or thread.
        to: i32,
        /// The signal.
        signal: i32,
    },
    /// Any other: nothing is known of its arguments.
    Unknown {
        /// Its number.
        number: i64,
        /// The words that came with it.
        words: [u64; 5],
    },
}

impl Call {
    /// The paths that it names, in the extension's eyes and without NULs.
    pub fn paths(&self) -> [Option<&[u8]>; 2] {
        match self {
            Call::Open { path, .. }
            | Call::Access { path, .. }
            | Call::ReadLink { path, .. }
            | Call::Remove { path, .. }
            | Call::MakeDirectory { path, .. }
            | Call::Stat(Target::Path { path, .. })
            | Call::ChangeDirectory(Target::Path { path, .. }) => [Some(&path.bytes), None],
            Call::SetLength { target, .. }
            | Call::SetTimes { target, .. }
            | Call::SetMode { target, .. } => match target {
                Target::Path { path, .. } => [Some(&path.bytes), None],
                Target::Open(_) => [None, None],
            },
            Call::Rename { from, to, .. } | Call::Link { from, to } => {
                [Some(&from.bytes), Some(&to.bytes)]
            }
            Call::SymbolicLink { text, path } => [Some(text), Some(&path.bytes)],
            _ => [None, None],
        }
    }
}
