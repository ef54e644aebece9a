//! Open files and directories, locks on them, and when they are closed.

use crate::guest::{
    BAD, DATA, DENIED, Directory, Guest, INVALID, MISSING, PATH, REFUSED, granted, held,
};
use postern::{Access, Policy, Rules};

#[test]
fn files_are_written_read_and_looked_at() {
    use std::os::unix::fs::MetadataExt;
    let (directory, guest) = granted(Access::ReadWrite);
    let host = |name: &str| directory.path("granted").join(name);
    let flags = libc::O_CREAT | libc::O_RDWR | libc::O_EXCL;
    let file = guest.open("/data/new", flags, 0o666);
    assert_eq!(file, 3);
    assert_eq!(guest.open("/data/new", flags, 0), -i64::from(libc::EEXIST));
    assert_eq!(guest.write(file, b"0123456789"), 10);
    assert_eq!(
        guest.sys(libc::SYS_lseek, &[file, -4, libc::SEEK_END.into()]),
        6
    );
    assert_eq!(guest.read(file, 100), b"6789");
    assert_eq!(
        guest.sys(libc::SYS_lseek, &[file, 2, libc::SEEK_SET.into()]),
        2
    );
    assert_eq!(
        guest.sys(libc::SYS_lseek, &[file, 3, libc::SEEK_CUR.into()]),
        5
    );
    let place = guest.memory + DATA;
    assert_eq!(guest.sys(libc::SYS_pread64, &[file, place, 0, 1]), 0);
    assert_eq!(guest.sys(libc::SYS_pread64, &[file, place, 3, 1]), 3);
    assert_eq!(guest.get(DATA, 3), b"123");
    guest.put(DATA, b"AB");
    assert_eq!(guest.sys(libc::SYS_pwrite64, &[file, place, 2, 8]), 2);
    assert_eq!(
        guest.read(file, 100),
        b"567AB",
        "the position is the descriptor's"
    );
    let again = guest.sys(libc::SYS_dup, &[file]);
    assert_eq!(
        guest.sys(libc::SYS_lseek, &[again, 1, libc::SEEK_SET.into()]),
        1
    );
    assert_eq!(guest.read(file, 1), b"1", "duplicates share the position");
    assert_eq!(guest.sys(libc::SYS_ftruncate, &[file, 4]), 0);
    assert_eq!(guest.sys(libc::SYS_fsync, &[file]), 0);
    assert_eq!(std::fs::read(host("new")).unwrap(), b"0123");
    let add = guest.open("/data/new", libc::O_WRONLY | libc::O_APPEND, 0);
    assert_eq!(guest.write(add, b"+"), 1);
    assert_eq!(
        guest.sys(libc::SYS_fcntl, &[add, libc::F_GETFL.into(), 0]),
        0o2001
    );
    assert_eq!(
        guest.sys(libc::SYS_fcntl, &[add, libc::F_SETFD.into(), 1]),
        0
    );
    assert_eq!(
        guest.sys(libc::SYS_fcntl, &[add, libc::F_GETFD.into(), 0]),
        1
    );
    assert_eq!(std::fs::read(host("new")).unwrap(), b"0123+");

    // The kernel's structure, but for the owner.
    let found = std::fs::metadata(host("new")).unwrap();
    let fields = |guest: &Guest| {
        let bytes = guest.get(DATA, 144);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        (
            word(8),
            word(16),
            word(24) as u32,
            word(28) as u32,
            word(48),
            word(88),
        )
    };
    let expected = (found.ino(), 1, found.mode(), 1000, 5, found.mtime() as u64);
    assert_eq!(guest.sys(libc::SYS_fstat, &[file, place]), 0);
    assert_eq!(fields(&guest), expected);
    assert_eq!(guest.on(libc::SYS_stat, "/data/new", &[place]), 0);
    assert_eq!(fields(&guest), expected);
    assert_eq!(guest.on(libc::SYS_lstat, "/data/good", &[place]), 0);
    assert_eq!(fields(&guest).2 & libc::S_IFMT, libc::S_IFLNK);

    let times = [5i64, 6, 7, 8].map(i64::to_le_bytes).concat();
    let times = guest.put(DATA, &times);
    let path = guest.path(PATH, "/data/new");
    assert_eq!(guest.sys(libc::SYS_utimensat, &[-100, path, times, 0]), 0);
    assert_eq!(std::fs::metadata(host("new")).unwrap().mtime(), 7);
    assert_eq!(guest.on(libc::SYS_chmod, "/data/new", &[0o6640]), 0);
    assert_eq!(
        std::fs::metadata(host("new")).unwrap().mode() & 0o7777,
        0o640
    );
    assert_eq!(
        guest.on_both(libc::SYS_link, "/data/new", "/data/sub/two"),
        0
    );
    assert_eq!(
        guest.on_both(libc::SYS_rename, "/data/new", "/data/sub/one"),
        0
    );
    assert_eq!(guest.on(libc::SYS_unlink, "/data/sub/two", &[]), 0);
    assert_eq!(
        guest.on(libc::SYS_unlink, "/data/sub", &[]),
        -i64::from(libc::EISDIR)
    );
    let full = -i64::from(libc::ENOTEMPTY);
    assert_eq!(guest.on(libc::SYS_rmdir, "/data/sub", &[]), full);
    assert_eq!(guest.on(libc::SYS_mkdir, "/data/more", &[0o777]), 0);
    assert_eq!(
        std::fs::metadata(host("more")).unwrap().mode() & 0o777,
        0o755
    );
    assert_eq!(guest.on(libc::SYS_rmdir, "/data/more", &[]), 0);
    // A file that never had a name.
    let unnamed = guest.open("/data", libc::O_TMPFILE | libc::O_RDWR, 0o600);
    // Not every file system has them.
    if unnamed != -i64::from(libc::EOPNOTSUPP) {
        assert_eq!(guest.write(unnamed, b"hidden"), 6, "{unnamed}");
    }
    assert_eq!(std::fs::read_dir(host("")).unwrap().count(), 6);
    assert_eq!(
        guest.read(file, 9).len(),
        3,
        "a file lives as long as it is open"
    );
}

#[test]
fn directories_are_listed_and_walked() {
    let (_directory, guest) = granted(Access::ReadWrite);
    let place = guest.memory + DATA;
    let list = |path: &str, room: i64| {
        let file = guest.open(path, libc::O_RDONLY | libc::O_DIRECTORY, 0);
        assert!(file >= 0, "{path}: {file}");
        let mut names = Vec::new();
        loop {
            let read = guest.sys(libc::SYS_getdents64, &[file, place, room]);
            assert!(read >= 0, "{read}");
            let bytes = guest.get(DATA, read as usize);
            if bytes.is_empty() {
                break;
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let size = usize::from(u16::from_le_bytes([rest[16], rest[17]]));
                let name = rest[19..size].split(|&b| b == 0).next().unwrap();
                names.push(String::from_utf8(name.to_vec()).unwrap());
                rest = &rest[size..];
            }
        }
        assert_eq!(guest.sys(libc::SYS_lseek, &[file, 0, 0]), 0);
        assert!(guest.sys(libc::SYS_getdents64, &[file, place, 4096]) > 0);
        assert_eq!(guest.close(file), 0);
        names.sort();
        names
    };
    let names = [".", "..", "absolute", "good", "out", "sub", "text", "up"];
    assert_eq!(list("/data", 4096), names);
    assert_eq!(list("/data/", 40), names, "in small pieces");
    assert_eq!(list("/", 4096), [".", "..", "data"]);
    assert_eq!(guest.open("/", libc::O_RDWR, 0), -i64::from(libc::EISDIR));
    let file = guest.open("/data", libc::O_RDONLY, 0);
    assert_eq!(guest.sys(libc::SYS_getdents64, &[file, place, 8]), INVALID);
    // From an open directory, and from the working directory.
    let path = guest.path(PATH, "sub/../text");
    assert!(guest.sys(libc::SYS_openat, &[file, path, 0, 0]) > 0);
    assert_eq!(guest.on(libc::SYS_chdir, "/data/sub", &[]), 0);
    assert!(guest.open("../text", 0, 0) > 0);
    assert_eq!(guest.sys(libc::SYS_getcwd, &[place, 100]), 10);
    assert_eq!(guest.get(DATA, 10), b"/data/sub\0");
    assert_eq!(guest.sys(libc::SYS_fchdir, &[file]), 0);
    assert!(guest.open("text", 0, 0) > 0);
    assert_eq!(
        guest.on(libc::SYS_chdir, "text", &[]),
        -i64::from(libc::ENOTDIR)
    );
    assert_eq!(guest.sys(libc::SYS_openat, &[77, path, 0, 0]), BAD);
    assert_eq!(guest.open("text/x", 0, 0), -i64::from(libc::ENOTDIR));
    assert_eq!(guest.open("", 0, 0), MISSING);
}

/// `struct flock` over bytes from `start`.
fn lock(guest: &Guest, file: i64, command: i32, kind: i32, start: i64, length: i64) -> i64 {
    let words = [i64::from(kind), start, length, 0];
    let place = guest.put(DATA, &words.map(i64::to_le_bytes).concat());
    guest.sys(libc::SYS_fcntl, &[file, command.into(), place])
}

#[test]
fn locks_are_between_domains() {
    let directory = Directory::new();
    let rules = Rules::new()
        .grant("/", &directory.0, Access::ReadWrite)
        .unwrap();
    let policy = Policy::files(rules);
    let (one, two) = (Guest::new(policy.clone()), Guest::new(policy));
    let flags = libc::O_CREAT | libc::O_RDWR;
    let file = one.open("/base", flags, 0o644);
    let second = one.open("/base", flags, 0o644);
    let other = two.open("/base", flags, 0o644);
    let (set, get) = (libc::F_SETLK, libc::F_GETLK);
    let busy = -i64::from(libc::EAGAIN);
    assert_eq!(lock(&one, file, set, libc::F_WRLCK, 10, 5), 0);
    // The same domain's other descriptor is the same owner, as for a process.
    assert_eq!(lock(&one, second, set, libc::F_WRLCK, 10, 5), 0);
    assert_eq!(lock(&two, other, set, libc::F_RDLCK, 12, 1), busy);
    assert_eq!(lock(&two, other, set, libc::F_RDLCK, 15, 0), 0);
    assert_eq!(lock(&one, file, set, libc::F_WRLCK, 15, 1), busy);
    assert_eq!(lock(&two, other, get, libc::F_WRLCK, 0, 0), 0);
    let found: Vec<i64> = two
        .get(DATA, 24)
        .chunks(8)
        .map(|word| i64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    assert_eq!((found[0] as i16, found[1], found[2]), (1, 10, 5));
    // Closing any descriptor of the file gives all back, as POSIX has it.
    assert_eq!(one.close(second), 0);
    assert_eq!(lock(&two, other, set, libc::F_WRLCK, 0, 0), 0);
    assert_eq!(lock(&one, file, set, libc::F_RDLCK, 0, 1), busy);
    two.domain.reset().unwrap();
    assert_eq!(lock(&one, file, libc::F_SETLKW, libc::F_WRLCK, 0, 0), 0);
    let whole = |guest: &Guest, file, how: i32| guest.sys(libc::SYS_flock, &[file, how.into()]);
    assert_eq!(whole(&one, file, libc::LOCK_EX), 0);
    assert_eq!(whole(&one, file, libc::LOCK_EX | libc::LOCK_NB), 0);
    let other = two.open("/base", flags, 0o644);
    assert_eq!(whole(&two, other, libc::LOCK_SH | libc::LOCK_NB), busy);
    assert_eq!(whole(&one, file, libc::LOCK_UN), 0);
    assert_eq!(whole(&two, other, libc::LOCK_SH | libc::LOCK_NB), 0);
    assert_eq!(whole(&two, other, 64), INVALID);
    assert_eq!(lock(&one, file, set, 77, 0, 0), INVALID);
    assert_eq!(lock(&one, 1, set, libc::F_WRLCK, 0, 0), INVALID);
}

#[test]
fn files_are_closed_by_reset_by_another_policy_and_with_the_domain() {
    let (directory, guest) = granted(Access::ReadWrite);
    let open = || guest.open("/data/text", libc::O_RDONLY, 0);
    assert_eq!((open(), open(), held(&directory)), (3, 4, 3));
    guest.domain.reset().unwrap();
    assert_eq!(held(&directory), 1, "the grant stays");
    assert_eq!(open(), 3);
    guest.domain.set_policy(Policy::compute());
    assert_eq!(held(&directory), 0);
    assert_eq!((guest.close(3), open()), (BAD, DENIED));
    guest.domain.set_policy(Policy::none());
    assert_eq!(guest.sys(libc::SYS_getpid, &[]), REFUSED);
    let (directory, guest) = granted(Access::ReadWrite);
    assert_eq!(guest.open("/data/text", libc::O_RDONLY, 0), 3);
    drop(guest);
    assert_eq!(held(&directory), 0);
}
