//! Structures as Linux lays them out for x86-64 programs, written byte by byte.

use rustix::fs::Stat;

/// User and group that an extension believes to be. Not root, because some programs do more when
/// they are.
pub(super) const USER: u32 = 1000;
/// Whom everybody else's files belong to in its eyes: nobody.
const OTHERS: u32 = 65534;

/// `struct termios` of a terminal in its usual mode: carriage return and newline converted, lines,
/// echo, signals.
pub(super) const TERMINAL: [u8; 36] = {
    let mut bytes = [0; 36];
    let modes = [0x0500u32, 0x0005, 0x00bf, 0x8a3b];
    let mut i = 0;
    while i < 16 {
        bytes[i] = (modes[i / 4] >> (8 * (i % 4))) as u8;
        i += 1;
    }
    bytes
};

/// A structure under construction.
struct Layout(Vec<u8>);

impl Layout {
    fn new(size: usize) -> Layout {
        Layout(vec![0; size])
    }

    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.0[at..at + N].copy_from_slice(&bytes);
    }

    fn long(&mut self, at: usize, value: i64) {
        self.put(at, value.to_le_bytes());
    }

    fn int(&mut self, at: usize, value: u32) {
        self.put(at, value.to_le_bytes());
    }
}

/// `struct timespec`, and `struct timeval` with microseconds.
pub(super) fn time(seconds: i64, fraction: i64) -> Vec<u8> {
    let mut layout = Layout::new(16);
    layout.long(0, seconds);
    layout.long(8, fraction);
    layout.0
}

/// `struct tms`: user time in ticks.
pub(super) fn tms(ticks: i64) -> Vec<u8> {
    let mut layout = Layout::new(32);
    layout.long(0, ticks);
    layout.0
}

/// `struct rusage`: user time.
pub(super) fn rusage(seconds: i64, microseconds: i64) -> Vec<u8> {
    let mut layout = Layout::new(144);
    layout.long(0, seconds);
    layout.long(8, microseconds);
    layout.0
}

/// `struct winsize`.
pub(super) fn window_size(rows: u16, columns: u16) -> Vec<u8> {
    let mut layout = Layout::new(8);
    layout.put(0, rows.to_le_bytes());
    layout.put(2, columns.to_le_bytes());
    layout.0
}

/// `struct utsname`: the same for every domain.
pub(super) fn system_name() -> Vec<u8> {
    let mut layout = Layout::new(390);
    let names = ["Linux", "postern", "5.10.0", "#1", "x86_64", "(none)"];
    for (i, name) in names.iter().enumerate() {
        layout.0[65 * i..65 * i + name.len()].copy_from_slice(name.as_bytes());
    }
    layout.0
}

/// `struct stat` of a stream.
pub(super) fn stream_stat(mode: u32) -> Vec<u8> {
    let mut layout = Layout::new(144);
    layout.long(16, 1);
    layout.int(24, mode);
    layout.int(28, USER);
    layout.int(32, USER);
    layout.long(56, 4096);
    layout.0
}

/// `struct stat` of a granted file. The process's own user and group appear as the extension's, all
/// others as nobody.
pub(super) fn stat(stat: &Stat) -> Vec<u8> {
    let owner = |id: u32, own: u32| if id == own { USER } else { OTHERS };
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut layout = Layout::new(144);
    layout.long(0, stat.st_dev as i64);
    layout.long(8, stat.st_ino as i64);
    layout.long(16, stat.st_nlink as i64);
    layout.int(24, stat.st_mode);
    layout.int(28, owner(stat.st_uid, user.as_raw()));
    layout.int(32, owner(stat.st_gid, group.as_raw()));
    layout.long(48, stat.st_size);
    layout.long(56, stat.st_blksize);
    layout.long(64, stat.st_blocks);
    let times = [
        (stat.st_atime, stat.st_atime_nsec as i64),
        (stat.st_mtime, stat.st_mtime_nsec as i64),
        (stat.st_ctime, stat.st_ctime_nsec as i64),
    ];
    for (i, (seconds, nanoseconds)) in times.into_iter().enumerate() {
        layout.long(72 + 16 * i, seconds);
        layout.long(80 + 16 * i, nanoseconds);
    }
    layout.0
}

/// `struct linux_dirent64`.
pub(super) fn directory_entry(inode: u64, next: u64, kind: u8, name: &[u8]) -> Vec<u8> {
    let size = (19 + name.len() + 1).next_multiple_of(8);
    let mut layout = Layout::new(size);
    layout.long(0, inode as i64);
    layout.long(8, next as i64);
    layout.put(16, (size as u16).to_le_bytes());
    layout.put(18, [kind]);
    layout.0[19..19 + name.len()].copy_from_slice(name);
    layout.0
}

/// `struct flock`.
pub(super) fn flock(kind: i16, whence: i16, start: i64, length: i64, process: i32) -> Vec<u8> {
    let mut layout = Layout::new(32);
    layout.put(0, kind.to_le_bytes());
    layout.put(2, whence.to_le_bytes());
    layout.long(8, start);
    layout.long(16, length);
    layout.int(24, process as u32);
    layout.0
}
