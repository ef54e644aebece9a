//! Where paths may lead, and what a granted directory allows.

use crate::guest::{
    BAD, DATA, DENIED, Directory, Guest, INVALID, MISSING, NEW, PATH, READ_ONLY, REFUSED, granted,
};
use postern::{Access, Policy, Rules};

#[test]
fn paths_stay_in_the_granted_directory() {
    let (directory, guest) = granted(Access::ReadWrite);
    let secret = directory.path("secret");
    let absolute = secret.to_str().unwrap();
    let outside = [
        "/data/../secret",
        "/data/sub/../../secret",
        "/data/out",
        "/data/absolute",
        "/data/up/secret",
        "/data/up/granted/text",
        "/secret",
        "/etc/passwd",
        "secret",
        absolute,
        "/proc/self/root/etc/passwd",
        "/data/../../../../../../../etc/passwd",
        "/data/sub/../../../../../../../etc/passwd",
    ];
    for path in outside {
        for flags in [
            libc::O_RDONLY,
            libc::O_RDWR,
            NEW,
            libc::O_RDONLY | libc::O_PATH,
        ] {
            let opened = guest.open(path, flags, 0o644);
            let expected = [DENIED, MISSING, INVALID, -i64::from(libc::EXDEV)];
            assert!(expected.contains(&opened), "{path}: {opened}");
        }
        let place = guest.memory + DATA;
        assert!(guest.on(libc::SYS_stat, path, &[place]) < 0, "{path}");
        assert!(guest.on(libc::SYS_chmod, path, &[0]) < 0, "{path}");
        assert!(guest.on(libc::SYS_truncate, path, &[0]) < 0, "{path}");
        assert!(guest.on(libc::SYS_chdir, path, &[]) < 0, "{path}");
        assert!(guest.on(libc::SYS_access, path, &[0]) < 0, "{path}");
        for (from, to) in [(path, "/data/x"), ("/data/text", path)] {
            if !["/data/out", "/data/absolute"].contains(&path) {
                assert!(guest.on_both(libc::SYS_rename, from, to) < 0, "{path}");
                assert!(guest.on_both(libc::SYS_link, from, to) < 0, "{path}");
            }
        }
        assert!(guest.on(libc::SYS_rmdir, path, &[]) < 0, "{path}");
        assert!(guest.on(libc::SYS_mkdir, path, &[0o755]) < 0, "{path}");
    }
    assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
    assert!(guest.domain.counters().refused_system_calls > 0);
    // Links of its own must not lead out either.
    for text in ["/etc", "../secret", "sub/../../secret", ".."] {
        let made = guest.on_both(libc::SYS_symlink, text, "/data/link");
        assert_eq!(made, REFUSED, "{text}");
    }
    assert_eq!(guest.on_both(libc::SYS_symlink, "text", "/data/link"), 0);
    for path in [
        "/data/text",
        "/data/link",
        "/data/good",
        "/data/sub/../text",
    ] {
        let file = guest.open(path, libc::O_RDONLY, 0);
        assert_eq!(guest.read(file, 100), b"some text", "{path}");
        assert_eq!(guest.close(file), 0);
    }
    let place = guest.memory + DATA;
    let read = guest.on(libc::SYS_readlink, "/data/link", &[place, 3]);
    assert_eq!((read, &guest.get(DATA, 3)[..]), (3, &b"tex"[..]));
}

#[test]
fn a_read_only_directory_stays_as_it_is() {
    let (directory, guest) = granted(Access::Read);
    let file = guest.open("/data/text", libc::O_RDONLY, 0);
    assert_eq!(guest.read(file, 4), b"some");
    assert_eq!(guest.write(file, b"x"), BAD);
    assert_eq!(guest.sys(libc::SYS_ftruncate, &[file, 0]), INVALID);
    assert_eq!(guest.sys(libc::SYS_fchmod, &[file, 0]), READ_ONLY);
    let place = guest.memory + DATA;
    assert_eq!(guest.sys(libc::SYS_utimensat, &[file, 0, 0, 0]), READ_ONLY);
    for flags in [
        libc::O_WRONLY,
        libc::O_RDWR,
        NEW,
        libc::O_TRUNC,
        libc::O_APPEND,
    ] {
        assert_eq!(guest.open("/data/text", flags, 0), READ_ONLY, "{flags:#o}");
    }
    // As on a read-only file system, what exists may be "created".
    assert!(guest.open("/data/text", libc::O_CREAT, 0o644) > 0);
    assert_eq!(guest.open("/data/new", libc::O_CREAT, 0o644), READ_ONLY);
    for (number, words) in [
        (libc::SYS_unlink, &[][..]),
        (libc::SYS_truncate, &[0]),
        (libc::SYS_chmod, &[0o777]),
        (libc::SYS_creat, &[0o644]),
    ] {
        assert_eq!(guest.on(number, "/data/text", words), READ_ONLY, "{number}");
    }
    assert_eq!(guest.on(libc::SYS_mkdir, "/data/new", &[0o755]), READ_ONLY);
    assert_eq!(guest.on(libc::SYS_rmdir, "/data/sub", &[]), READ_ONLY);
    assert_eq!(
        guest.on_both(libc::SYS_rename, "/data/text", "/data/x"),
        READ_ONLY
    );
    assert_eq!(
        guest.on_both(libc::SYS_link, "/data/text", "/data/x"),
        READ_ONLY
    );
    assert_eq!(
        guest.on_both(libc::SYS_symlink, "text", "/data/x"),
        READ_ONLY
    );
    assert_eq!(
        guest.on(libc::SYS_access, "/data/text", &[libc::W_OK.into()]),
        READ_ONLY
    );
    assert_eq!(
        guest.on(libc::SYS_access, "/data/text", &[libc::R_OK.into()]),
        0
    );
    let path = guest.path(PATH, "/data/text");
    assert_eq!(
        guest.sys(libc::SYS_utimensat, &[-100, path, 0, 0]),
        READ_ONLY
    );
    assert_eq!(guest.sys(libc::SYS_newfstatat, &[-100, path, place, 0]), 0);
    let names = std::fs::read_dir(directory.path("granted"))
        .unwrap()
        .count();
    assert_eq!(names, 6);
    assert_eq!(
        std::fs::read(directory.path("granted/text")).unwrap(),
        b"some text"
    );
}

#[test]
fn limits_of_files_and_bytes() {
    let directory = Directory::new();
    let rules = Rules::new()
        .grant("/", &directory.0, Access::ReadWrite)
        .unwrap()
        .open_files(6)
        .file_size(10_000)
        .written(40_000);
    let guest = Guest::new(Policy::files(rules));
    let files: Vec<i64> = (0..4)
        .map(|i| guest.open(&format!("/f{i}"), NEW, 0o644))
        .collect();
    let no_number = -i64::from(libc::EMFILE);
    assert_eq!(files, [3, 4, 5, no_number]);
    assert!(!directory.path("f3").exists());
    let big = -i64::from(libc::EFBIG);
    assert_eq!(guest.write(3, &[1; 20_000]), 10_000);
    assert_eq!(guest.write(3, &[1]), big);
    assert_eq!(guest.sys(libc::SYS_ftruncate, &[3, 10_001]), big);
    let place = guest.memory + DATA;
    assert_eq!(guest.sys(libc::SYS_pwrite64, &[3, place, 1, 10_000]), big);
    assert_eq!(guest.sys(libc::SYS_lseek, &[4, 1 << 40, 0]), 1 << 40);
    assert_eq!(guest.write(4, b"x"), big);
    assert_eq!(guest.open("/f0", NEW, 0), no_number);
    let length = |name: &str| directory.path(name).metadata().unwrap().len();
    assert_eq!(length("f0"), 10_000);
    // Three names of 4096 and 10,000 bytes are spent; names that exist cost nothing, nor do those
    // that cannot be made.
    for _ in 0..20 {
        assert!(guest.on(libc::SYS_mkdir, "/f0", &[0o755]) < 0);
        assert!(guest.on_both(libc::SYS_symlink, "f1", "/f0") < 0);
        assert!(guest.on_both(libc::SYS_link, "/f1", "/f0") < 0);
        assert!(guest.on_both(libc::SYS_link, "/f1", "/no/f0") < 0);
    }
    let full = -i64::from(libc::EDQUOT);
    assert_eq!(guest.write(5, &[1; 10_000]), 10_000);
    assert_eq!(guest.close(5), 0);
    assert_eq!(guest.open("/f2", NEW, 0), 5);
    assert_eq!(guest.write(5, &[1; 10_000]), 7_712);
    assert_eq!(guest.write(5, &[1]), full);
    assert_eq!(guest.on(libc::SYS_mkdir, "/d", &[0o755]), full);
    assert_eq!(guest.close(5), 0);
    assert_eq!(guest.open("/new", NEW, 0o644), full);
    assert!(!directory.path("new").exists() && !directory.path("d").exists());
}

#[test]
fn devices_and_pipes_are_not_opened() {
    let (directory, guest) = granted(Access::ReadWrite);
    let pipe = directory.path("granted/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for flags in [libc::O_RDONLY, libc::O_RDWR, NEW] {
        let opened = guest.open("/data/pipe", flags, 0);
        assert!(
            [DENIED, -i64::from(libc::ENXIO)].contains(&opened),
            "{opened}"
        );
    }
    let everything = Rules::new().grant("/", "/", Access::Read).unwrap();
    let guest = Guest::new(Policy::files(everything));
    for path in [
        "/dev/null",
        "/proc/self/mem",
        "/proc/self/environ",
        "/proc",
        "/sys/kernel",
    ] {
        assert_eq!(guest.open(path, libc::O_RDONLY, 0), DENIED, "{path}");
    }
}

#[test]
fn grants_that_make_no_sense_are_refused() {
    let directory = Directory::new();
    for guest in ["relative", "", "/a/../b", "/nul\0"] {
        assert!(
            Rules::new()
                .grant(guest, &directory.0, Access::Read)
                .is_err(),
            "{guest}"
        );
    }
    assert!(
        Rules::new()
            .grant("/a", directory.path("missing"), Access::Read)
            .is_err()
    );
    let rules = Rules::new()
        .grant("/a", &directory.0, Access::Read)
        .unwrap();
    assert!(rules.grant("/a/", &directory.0, Access::Read).is_err());
}
