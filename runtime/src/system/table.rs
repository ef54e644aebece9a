//! The system calls that `sys` knows, and what each policy does with them: data for the
//! documentation, checked against the decoder.

/// What the policies do with a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCall {
    /// Linux's number for x86-64.
    pub number: i64,
    /// Its name.
    pub name: &'static str,
    /// What `compute` does.
    pub compute: &'static str,
    /// What `files` does.
    pub files: &'static str,
}

const SAME: &str = "as `compute`";
const REFUSED: &str = "refused, `EACCES`";

const fn row(
    number: i64,
    name: &'static str,
    compute: &'static str,
    files: &'static str,
) -> SystemCall {
    SystemCall {
        number,
        name,
        compute,
        files,
    }
}

/// Every call that is known, by number. All others are refused with `ENOSYS`; in the policy `none`
/// all are refused with `EPERM` but the two that end the call.
pub const SYSTEM_CALLS: &[SystemCall] = &[
    row(0, "read", "standard input", "and granted files"),
    row(
        1,
        "write",
        "standard output, standard error",
        "and granted files",
    ),
    row(
        2,
        "open",
        REFUSED,
        "below granted directories: regular files and directories",
    ),
    row(3, "close", "the extension's own descriptors", SAME),
    row(4, "stat", REFUSED, "below granted directories"),
    row(
        5,
        "fstat",
        "the streams: terminal or pipe",
        "and granted files",
    ),
    row(6, "lstat", REFUSED, "below granted directories"),
    row(8, "lseek", "`ESPIPE`", "granted files and directories"),
    row(
        16,
        "ioctl",
        "`TCGETS`, `TIOCGWINSZ` of a terminal; else `ENOTTY`",
        SAME,
    ),
    row(17, "pread64", "`ESPIPE`", "granted files"),
    row(18, "pwrite64", "`ESPIPE`", "granted files"),
    row(19, "readv", "as `read`, at most 1024 buffers", SAME),
    row(20, "writev", "as `write`, at most 1024 buffers", SAME),
    row(21, "access", REFUSED, "below granted directories"),
    row(24, "sched_yield", "done", SAME),
    row(32, "dup", "the extension's own descriptors", SAME),
    row(33, "dup2", "the extension's own descriptors", SAME),
    row(35, "nanosleep", "done, until the call's deadline", SAME),
    row(39, "getpid", "2", SAME),
    row(60, "exit", "ends the call, as `exit_group`", SAME),
    row(
        62,
        "kill",
        "to itself: ends the call as a fault; else refused, `EPERM`",
        SAME,
    ),
    row(63, "uname", "the same names for every domain", SAME),
    row(
        72,
        "fcntl",
        "`F_DUPFD`, `F_GETFD`, `F_SETFD`, `F_GETFL`, `F_SETFL`",
        "and `F_GETLK`, `F_SETLK`, `F_SETLKW`",
    ),
    row(
        73,
        "flock",
        "`EINVAL`",
        "granted files; the lock is the open description's",
    ),
    row(74, "fsync", "`EINVAL`", "granted files and directories"),
    row(75, "fdatasync", "`EINVAL`", "granted files and directories"),
    row(
        76,
        "truncate",
        REFUSED,
        "below directories granted for writing",
    ),
    row(77, "ftruncate", "`EINVAL`", "files open for writing"),
    row(79, "getcwd", "`/`", "the extension's own working directory"),
    row(80, "chdir", REFUSED, "to granted directories"),
    row(81, "fchdir", "`ENOTDIR`", "to granted directories"),
    row(
        82,
        "rename",
        REFUSED,
        "within one directory granted for writing",
    ),
    row(
        83,
        "mkdir",
        REFUSED,
        "below directories granted for writing",
    ),
    row(
        84,
        "rmdir",
        REFUSED,
        "below directories granted for writing",
    ),
    row(
        85,
        "creat",
        REFUSED,
        "below directories granted for writing",
    ),
    row(
        86,
        "link",
        REFUSED,
        "within one directory granted for writing",
    ),
    row(
        87,
        "unlink",
        REFUSED,
        "below directories granted for writing",
    ),
    row(
        88,
        "symlink",
        REFUSED,
        "below directories granted for writing; relative, without `..`",
    ),
    row(89, "readlink", REFUSED, "below granted directories"),
    row(
        90,
        "chmod",
        REFUSED,
        "below directories granted for writing; no set-id bits",
    ),
    row(
        91,
        "fchmod",
        "`EINVAL`",
        "files open for writing; no set-id bits",
    ),
    row(95, "umask", "the extension's own", SAME),
    row(96, "gettimeofday", "done", SAME),
    row(98, "getrusage", "the thread's processor time", SAME),
    row(100, "times", "the thread's processor time", SAME),
    row(102, "getuid", "1000", SAME),
    row(104, "getgid", "1000", SAME),
    row(107, "geteuid", "1000", SAME),
    row(108, "getegid", "1000", SAME),
    row(110, "getppid", "1", SAME),
    row(111, "getpgrp", "2", SAME),
    row(186, "gettid", "2", SAME),
    row(200, "tkill", "as `kill`", SAME),
    row(201, "time", "done", SAME),
    row(217, "getdents64", "`ENOTDIR`", "granted directories"),
    row(
        228,
        "clock_gettime",
        "done; processor time is the thread's",
        SAME,
    ),
    row(229, "clock_getres", "done", SAME),
    row(
        230,
        "clock_nanosleep",
        "done, until the call's deadline",
        SAME,
    ),
    row(231, "exit_group", "ends the call with the status", SAME),
    row(234, "tgkill", "as `kill`", SAME),
    row(257, "openat", REFUSED, "as `open`"),
    row(258, "mkdirat", REFUSED, "as `mkdir`"),
    row(262, "newfstatat", REFUSED, "as `stat`, `lstat`, `fstat`"),
    row(263, "unlinkat", REFUSED, "as `unlink`, `rmdir`"),
    row(264, "renameat", REFUSED, "as `rename`"),
    row(265, "linkat", REFUSED, "as `link`"),
    row(266, "symlinkat", REFUSED, "as `symlink`"),
    row(267, "readlinkat", REFUSED, "as `readlink`"),
    row(268, "fchmodat", REFUSED, "as `chmod`"),
    row(269, "faccessat", REFUSED, "as `access`"),
    row(
        280,
        "utimensat",
        REFUSED,
        "below directories granted for writing",
    ),
    row(292, "dup3", "the extension's own descriptors", SAME),
    row(316, "renameat2", REFUSED, "as `rename`; flags are `EINVAL`"),
    row(318, "getrandom", "done", SAME),
];
