//! Which calls a supervisor is asked about, which nobody may make, and where they have their paths.

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The supervisor is asked.
    Asked,
    /// So is it if this word is not zero.
    AskedIf(usize),
    /// So is it if this word is one of these.
    AskedFor(usize, &'static [u32]),
    /// It has this error.
    Refused(i32),
    /// It has the error if this word has one of these bits.
    RefusedIf(i32, usize, u32),
    /// It has the error if this word is one of these.
    RefusedFor(i32, usize, &'static [u32]),
    /// It has `EPERM` unless each of so many first words is the supervisor's own user, or -1: then
    /// it changes nothing.
    SameUser(usize),
    /// The same of its group.
    SameGroup(usize),
}

use Treatment::{Asked, AskedFor, AskedIf, Refused, RefusedFor, RefusedIf, SameGroup, SameUser};
use libc::{ENOSYS, EOPNOTSUPP, EPERM};

/// Namespaces that a process or thread would have of its own.
const NAMESPACES: u32 = 0x7e02_0000;
/// That of clocks, which has the bits of a signal in `clone`.
const TIME_NAMESPACE: u32 = 0x80;
/// What types into a terminal, and what says to whom a descriptor's signals go, by a number in
/// memory: `TIOCSTI`, `TIOCLINUX`, `FIOSETOWN`, `SIOCSPGRP`. What `userfaultfd` does, by its
/// device. What changes a file by a descriptor that only reads: `FS_IOC_SETFLAGS`,
/// `FS_IOC_FSSETXATTR`, `FS_IOC_SETVERSION`; subvolumes of btrfs, which are made, marked and
/// removed by their names.
const REFUSED_REQUESTS: &[u32] = &[
    0x5412,
    0x541c,
    0x8901,
    0x8902,
    0xaa00,
    0x4008_6602,
    0x4004_6602,
    0x401c_5820,
    0x4008_7602,
    0x4004_7602,
    0x5000_9401,
    0x5000_940e,
    0x5000_940f,
    0x5000_9417,
    0x5000_9418,
    0x5000_943f,
    0x4008_941a,
];
/// The same by `fcntl`: `F_SETOWN`, `F_SETOWN_EX`.
const OWNS: &[u32] = &[SET_OWNER, 15];
const SET_OWNER: u32 = 8;

/// Protocols whose options connect and bind: SCTP.
const CONNECTS: &[u32] = &[132];

/// The last call that is known (`listns`): what kernels have behind it is nobody's.
pub const LAST: u32 = 470;

/// With it, what is executed is restricted: memory files are made by the supervisor.
pub const MEMORY_FILES: (i64, Treatment) = (libc::SYS_memfd_create, Asked);

/// All calls that do not simply pass.
pub const CALLS: &[(i64, Treatment)] = &[
    (libc::SYS_open, Asked),
    (libc::SYS_openat, Asked),
    (libc::SYS_creat, Asked),
    (libc::SYS_truncate, Asked),
    (libc::SYS_rename, Asked),
    (libc::SYS_renameat, Asked),
    (libc::SYS_renameat2, Asked),
    (libc::SYS_mkdir, Asked),
    (libc::SYS_mkdirat, Asked),
    (libc::SYS_rmdir, Asked),
    (libc::SYS_unlink, Asked),
    (libc::SYS_unlinkat, Asked),
    (libc::SYS_link, Asked),
    (libc::SYS_linkat, Asked),
    (libc::SYS_symlink, Asked),
    (libc::SYS_symlinkat, Asked),
    (libc::SYS_mknod, Asked),
    (libc::SYS_mknodat, Asked),
    (libc::SYS_chmod, Asked),
    (libc::SYS_fchmodat, Asked),
    (libc::SYS_fchmod, Asked),
    (libc::SYS_chown, Asked),
    (libc::SYS_lchown, Asked),
    (libc::SYS_fchownat, Asked),
    (libc::SYS_fchown, Asked),
    (libc::SYS_utime, Asked),
    (libc::SYS_utimes, Asked),
    (libc::SYS_futimesat, Asked),
    (libc::SYS_utimensat, Asked),
    (libc::SYS_inotify_add_watch, Asked),
    (libc::SYS_execve, Asked),
    (libc::SYS_execveat, Asked),
    (libc::SYS_socket, Asked),
    (libc::SYS_connect, Asked),
    (libc::SYS_bind, Asked),
    (libc::SYS_sendto, AskedIf(4)),
    (libc::SYS_sendmsg, Asked),
    (libc::SYS_sendmmsg, Asked),
    (libc::SYS_kill, Asked),
    (libc::SYS_tkill, Asked),
    (libc::SYS_tgkill, Asked),
    (libc::SYS_rt_sigqueueinfo, Asked),
    (libc::SYS_rt_tgsigqueueinfo, Asked),
    (libc::SYS_pidfd_send_signal, Asked),
    // Queues and memory that processes find by names and numbers.
    (libc::SYS_mq_open, Asked),
    (libc::SYS_mq_unlink, Asked),
    (libc::SYS_shmget, Asked),
    (libc::SYS_shmat, Asked),
    (libc::SYS_shmctl, Asked),
    (libc::SYS_msgget, Asked),
    (libc::SYS_msgsnd, Asked),
    (libc::SYS_msgrcv, Asked),
    (libc::SYS_msgctl, Asked),
    (libc::SYS_semget, Asked),
    (libc::SYS_semop, Asked),
    (libc::SYS_semtimedop, Asked),
    (libc::SYS_semctl, Asked),
    // Programs do without these where a kernel has them not; their words are in memory.
    (libc::SYS_openat2, Refused(ENOSYS)),
    (libc::SYS_fchmodat2, Refused(ENOSYS)),
    (libc::SYS_clone3, Refused(ENOSYS)),
    (libc::SYS_io_uring_setup, Refused(ENOSYS)),
    (libc::SYS_io_uring_enter, Refused(ENOSYS)),
    (libc::SYS_io_uring_register, Refused(ENOSYS)),
    (libc::SYS_setxattr, Refused(EOPNOTSUPP)),
    (libc::SYS_lsetxattr, Refused(EOPNOTSUPP)),
    (libc::SYS_fsetxattr, Refused(EOPNOTSUPP)),
    (463, Refused(ENOSYS)), // setxattrat
    (libc::SYS_removexattr, Refused(EOPNOTSUPP)),
    (libc::SYS_lremovexattr, Refused(EOPNOTSUPP)),
    (libc::SYS_fremovexattr, Refused(EOPNOTSUPP)),
    (466, Refused(ENOSYS)), // removexattrat
    (467, Refused(ENOSYS)), // open_tree_attr
    (469, Refused(ENOSYS)), // file_setattr
    // Other processes, the supervisor among them.
    (libc::SYS_ptrace, Refused(EPERM)),
    (libc::SYS_process_vm_readv, Asked),
    (libc::SYS_process_vm_writev, Asked),
    (libc::SYS_process_madvise, Refused(EPERM)),
    (libc::SYS_pidfd_getfd, Refused(EPERM)),
    (libc::SYS_prlimit64, AskedIf(0)),
    (libc::SYS_sched_setaffinity, AskedIf(0)),
    (libc::SYS_sched_setparam, AskedIf(0)),
    (libc::SYS_sched_setscheduler, AskedIf(0)),
    (libc::SYS_sched_setattr, AskedIf(0)),
    (libc::SYS_setpriority, Asked),
    (libc::SYS_ioprio_set, Asked),
    (libc::SYS_migrate_pages, AskedIf(0)),
    (libc::SYS_move_pages, AskedIf(0)),
    (libc::SYS_setpgid, AskedIf(1)),
    (libc::SYS_vhangup, Refused(EPERM)),
    (libc::SYS_ioctl, RefusedFor(EPERM, 1, REFUSED_REQUESTS)),
    (libc::SYS_fcntl, AskedFor(1, OWNS)),
    (libc::SYS_setsockopt, RefusedFor(EPERM, 1, CONNECTS)),
    // Another user, root or view of files: the supervisor makes calls with its own.
    (libc::SYS_setuid, SameUser(1)),
    (libc::SYS_setgid, SameGroup(1)),
    (libc::SYS_setreuid, SameUser(2)),
    (libc::SYS_setregid, SameGroup(2)),
    (libc::SYS_setresuid, SameUser(3)),
    (libc::SYS_setresgid, SameGroup(3)),
    (libc::SYS_setfsuid, SameUser(1)),
    (libc::SYS_setfsgid, SameGroup(1)),
    (libc::SYS_setgroups, Refused(EPERM)),
    (libc::SYS_capset, Refused(EPERM)),
    (libc::SYS_clone, RefusedIf(EPERM, 0, NAMESPACES)),
    (
        libc::SYS_unshare,
        RefusedIf(EPERM, 0, NAMESPACES | TIME_NAMESPACE),
    ),
    (libc::SYS_setns, Refused(EPERM)),
    (libc::SYS_chroot, Refused(EPERM)),
    (libc::SYS_pivot_root, Refused(EPERM)),
    (libc::SYS_mount, Refused(EPERM)),
    (libc::SYS_umount2, Refused(EPERM)),
    (libc::SYS_open_tree, Refused(EPERM)),
    (libc::SYS_move_mount, Refused(EPERM)),
    (libc::SYS_fsopen, Refused(EPERM)),
    (libc::SYS_fsconfig, Refused(EPERM)),
    (libc::SYS_fsmount, Refused(EPERM)),
    (libc::SYS_fspick, Refused(EPERM)),
    (libc::SYS_mount_setattr, Refused(EPERM)),
    // Files without paths, and the machine.
    (libc::SYS_open_by_handle_at, Refused(EPERM)),
    (libc::SYS_fanotify_init, Refused(EPERM)),
    (libc::SYS_bpf, Refused(EPERM)),
    (libc::SYS_perf_event_open, Refused(EPERM)),
    (libc::SYS_userfaultfd, Refused(EPERM)),
    (libc::SYS_init_module, Refused(EPERM)),
    (libc::SYS_finit_module, Refused(EPERM)),
    (libc::SYS_delete_module, Refused(EPERM)),
    (libc::SYS_kexec_load, Refused(EPERM)),
    (libc::SYS_kexec_file_load, Refused(EPERM)),
    (libc::SYS_reboot, Refused(EPERM)),
    (libc::SYS_swapon, Refused(EPERM)),
    (libc::SYS_swapoff, Refused(EPERM)),
    (libc::SYS_acct, Refused(EPERM)),
    (libc::SYS_quotactl, Refused(EPERM)),
    (libc::SYS_quotactl_fd, Refused(EPERM)),
    (libc::SYS_iopl, Refused(EPERM)),
    (libc::SYS_ioperm, Refused(EPERM)),
    (libc::SYS_add_key, Refused(EPERM)),
    (libc::SYS_request_key, Refused(EPERM)),
    (libc::SYS_keyctl, Refused(EPERM)),
    (libc::SYS_settimeofday, Refused(EPERM)),
    (libc::SYS_clock_settime, Refused(EPERM)),
    (libc::SYS_adjtimex, Refused(EPERM)),
    (libc::SYS_clock_adjtime, Refused(EPERM)),
    (libc::SYS_uselib, Refused(ENOSYS)),
    (libc::SYS_sethostname, Refused(EPERM)),
    (libc::SYS_setdomainname, Refused(EPERM)),
];

/// The words of a call that are numbers of 32 bits, whose upper halves the kernel does not look at:
/// nor may the agent.
pub fn halves(number: i64) -> &'static [usize] {
    match number {
        libc::SYS_socket | libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => &[0, 1, 2],
        libc::SYS_kill | libc::SYS_tkill | libc::SYS_rt_sigqueueinfo => &[0, 1],
        libc::SYS_pidfd_send_signal => &[0, 1, 3],
        libc::SYS_sendto => &[0, 3],
        libc::SYS_truncate | libc::SYS_execve | libc::SYS_sendmsg | libc::SYS_sendmmsg => &[],
        libc::SYS_execveat => &[0, 4],
        libc::SYS_connect | libc::SYS_bind => &[0],
        libc::SYS_mq_open => &[1, 2],
        libc::SYS_mq_unlink => &[],
        libc::SYS_memfd_create => &[1],
        libc::SYS_shmget => &[0, 2],
        libc::SYS_msgget | libc::SYS_msgctl => &[0, 1],
        libc::SYS_msgsnd => &[0, 3],
        libc::SYS_msgrcv => &[0, 4],
        libc::SYS_semop | libc::SYS_semtimedop => &[0, 2],
        libc::SYS_shmat => &[0, 2],
        libc::SYS_shmctl => &[0, 1],
        libc::SYS_semget => &[0, 1, 2],
        libc::SYS_semctl => &[0, 1, 2],
        // Those with paths, which are put in later.
        _ => &[0, 1, 2, 3, 4],
    }
}

/// The word of a call with a path that points to what else is copied: what a new link says, or
/// times.
pub fn text_word(number: i64) -> Option<usize> {
    match number {
        libc::SYS_symlink | libc::SYS_symlinkat => Some(0),
        libc::SYS_utime | libc::SYS_utimes => Some(1),
        libc::SYS_futimesat | libc::SYS_utimensat => Some(2),
        _ => None,
    }
}

/// The process or thread that a call is about which processes may make about themselves alone: the
/// agent is not asked. 0: about none.
pub fn is_about(number: i64, words: &[u64; 6]) -> Option<u32> {
    const ANOTHER: u32 = u32::MAX;
    match number {
        libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => Some(words[0] as u32),
        libc::SYS_fcntl if words[1] as u32 == SET_OWNER => Some(words[2] as u32),
        libc::SYS_fcntl => Some(ANOTHER),
        libc::SYS_prlimit64
        | libc::SYS_sched_setaffinity
        | libc::SYS_sched_setparam
        | libc::SYS_sched_setscheduler
        | libc::SYS_sched_setattr
        | libc::SYS_migrate_pages
        | libc::SYS_move_pages => Some(words[0] as u32),
        libc::SYS_setpriority if words[0] as i32 == libc::PRIO_PROCESS as i32 => {
            Some(words[1] as u32)
        }
        // `IOPRIO_WHO_PROCESS`.
        libc::SYS_ioprio_set if words[0] as u32 == 1 => Some(words[1] as u32),
        // Groups and users.
        libc::SYS_setpriority | libc::SYS_ioprio_set => Some(ANOTHER),
        _ => None,
    }
}

/// Whether the link that a path ends with is followed.
#[derive(Clone, Copy, Debug)]
pub enum Last {
    /// It is.
    Followed,
    /// It is what is meant.
    Meant,
    /// As the flags of `open` in this word say.
    AsOpened(usize),
    /// Unless `AT_SYMLINK_NOFOLLOW` is in this word.
    Unless(usize),
    /// If `AT_SYMLINK_FOLLOW` is in this word.
    If(usize),
    /// Unless `IN_DONT_FOLLOW` is in this word.
    Watched(usize),
}

/// Where a path begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// In the working folder.
    Here,
    /// At the descriptor in this word.
    Folder(usize),
    /// It is the file of the descriptor in this word; there are no words of a path.
    File(usize),
    /// It is the file of the descriptor in this word; the path's word is null.
    Descriptor(usize),
}

/// A path in a call: its word, where it begins, and how it ends.
pub type PathOf = (usize, Begin, Last);

/// The paths of a call, and the call that stands for it where the agent is asked.
pub fn paths(number: i64, words: &[u64; 6]) -> Option<(&'static [PathOf], i64)> {
    use Begin::{Descriptor, File, Folder, Here};
    use Last::{AsOpened, Followed, If, Meant, Unless, Watched};
    let paths: &'static [PathOf] = match number {
        libc::SYS_open => &[(0, Here, AsOpened(1))],
        libc::SYS_openat => &[(1, Folder(0), AsOpened(2))],
        libc::SYS_creat | libc::SYS_truncate | libc::SYS_chmod | libc::SYS_chown => {
            &[(0, Here, Followed)]
        }
        libc::SYS_rename | libc::SYS_link => &[(0, Here, Meant), (1, Here, Meant)],
        libc::SYS_renameat | libc::SYS_renameat2 => &[(1, Folder(0), Meant), (3, Folder(2), Meant)],
        libc::SYS_linkat => &[(1, Folder(0), If(4)), (3, Folder(2), Meant)],
        libc::SYS_mkdir | libc::SYS_rmdir | libc::SYS_unlink => &[(0, Here, Meant)],
        libc::SYS_mknod | libc::SYS_lchown => &[(0, Here, Meant)],
        libc::SYS_mkdirat | libc::SYS_unlinkat | libc::SYS_mknodat => &[(1, Folder(0), Meant)],
        libc::SYS_symlink => &[(1, Here, Meant)],
        libc::SYS_symlinkat => &[(2, Folder(1), Meant)],
        libc::SYS_fchmodat => &[(1, Folder(0), Followed)],
        libc::SYS_fchownat | libc::SYS_execveat => &[(1, Folder(0), Unless(4))],
        libc::SYS_execve => &[(0, Here, Followed)],
        libc::SYS_utime | libc::SYS_utimes => &[(0, Here, Followed)],
        libc::SYS_futimesat => &[(1, Folder(0), Followed)],
        libc::SYS_utimensat if words[1] == 0 => &[(1, Descriptor(0), Followed)],
        libc::SYS_utimensat => &[(1, Folder(0), Unless(3))],
        libc::SYS_inotify_add_watch => &[(1, Here, Watched(2))],
        libc::SYS_fchmod => return Some((&[(1, File(0), Followed)], libc::SYS_fchmodat)),
        libc::SYS_fchown => return Some((&[(1, File(0), Followed)], libc::SYS_fchownat)),
        _ => return None,
    };
    Some((paths, number))
}
