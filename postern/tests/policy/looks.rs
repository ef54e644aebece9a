//! What is refused was not opened before, and a listing takes no memory for the names that it did
//! not give.

use crate::guest::{DATA, DENIED, Guest, INVALID, MISSING, NEW, PATH, granted};
use crate::support;
use postern::{Access, Policy, Rules};
use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

const LOOP: i64 = -(libc::ELOOP as i64);

/// Everything that an extension can try at a path.
fn try_everything(guest: &Guest, path: &str, expected: &[i64]) {
    let modes = [libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR];
    let more = [
        0,
        libc::O_CREAT,
        libc::O_CREAT | libc::O_TRUNC,
        libc::O_CREAT | libc::O_EXCL,
        libc::O_TRUNC,
        libc::O_APPEND,
        libc::O_NONBLOCK,
        libc::O_NOFOLLOW,
        libc::O_DIRECTORY,
        libc::O_TMPFILE,
        libc::O_SYNC,
    ];
    let check = |what: &str, result: i64| {
        assert!(expected.contains(&result), "{what} of {path}: {result}");
    };
    for mode in modes {
        for more in more {
            check(
                &format!("open {:#o}", mode | more),
                guest.open(path, mode | more, 0o600),
            );
        }
    }
    let place = guest.memory + DATA;
    check("truncate", guest.on(libc::SYS_truncate, path, &[0]));
    check("chmod", guest.on(libc::SYS_chmod, path, &[0o600]));
    check("chdir", guest.on(libc::SYS_chdir, path, &[]));
    let named = guest.path(PATH, path);
    for flags in [0, libc::AT_SYMLINK_NOFOLLOW.into()] {
        check(
            "utimensat",
            guest.sys(libc::SYS_utimensat, &[-100, named, 0, flags]),
        );
    }
    // These say what there is.
    assert_eq!(guest.on(libc::SYS_stat, path, &[place]), 0, "{path}");
    assert!(guest.on(libc::SYS_access, path, &[0]) <= 0);
}

#[test]
fn whoever_waits_at_a_pipe_is_not_woken() {
    let (directory, guest) = granted(Access::ReadWrite);
    let pipe = directory.path("granted/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    symlink("pipe", directory.path("granted/to-pipe")).unwrap();
    let (send, thread) = mpsc::channel();
    let (woken, wakes) = mpsc::channel();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            // SAFETY: it has no arguments and touches no memory.
            send.send(unsafe { libc::gettid() }).unwrap();
            let mut file = OpenOptions::new().write(true).open(pipe).unwrap();
            woken.send(()).unwrap();
            file.write_all(b"x")
        }
    });
    let call = format!("/proc/self/task/{}/syscall", thread.recv().unwrap());
    // Until it is inside `openat`.
    while !std::fs::read_to_string(&call).unwrap().starts_with("257 ") {
        std::thread::yield_now();
    }
    let not_directory = -i64::from(libc::ENOTDIR);
    let exists = -i64::from(libc::EEXIST);
    let errors = [DENIED, INVALID, LOOP, not_directory, exists];
    try_everything(&guest, "/data/pipe", &errors);
    try_everything(&guest, "/data/to-pipe", &errors);
    assert!(wakes.try_recv().is_err(), "the writer was let go");
    // Now a reader comes who has the right to.
    let reading = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(&pipe);
    let written = writer.join().unwrap();
    written.expect("the reader that let it go is there");
    let mut text = String::new();
    reading.unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "x");
    // Names may come and go without any opening.
    assert_eq!(
        guest.on_both(libc::SYS_rename, "/data/text", "/data/pipe"),
        0
    );
    assert_eq!(guest.on(libc::SYS_unlink, "/data/to-pipe", &[]), 0);
}

#[test]
fn a_refused_device_was_not_opened() {
    let flags = libc::O_NOCTTY;
    let master = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open("/dev/ptmx");
    let Ok(master) = master else {
        println!("not run: there are no terminals here");
        return;
    };
    let (mut number, unlocked) = (0i32, 0i32);
    // SAFETY: the one writes an integer, the other reads one.
    let ready = unsafe {
        libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) == 0
            && libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number) == 0
    };
    assert!(ready);
    let rules = Rules::new()
        .grant("/pts", "/dev/pts", Access::ReadWrite)
        .unwrap();
    let guest = Guest::new(Policy::files(rules));
    let path = format!("/pts/{number}");
    let hung_up = || {
        let mut poll = libc::pollfd {
            fd: master.as_raw_fd(),
            events: 0,
            revents: 0,
        };
        // SAFETY: one record, and its count.
        assert!(unsafe { libc::poll(&raw mut poll, 1, 0) } >= 0);
        poll.revents & libc::POLLHUP != 0
    };
    assert!(!hung_up());
    let not_directory = -i64::from(libc::ENOTDIR);
    let exists = -i64::from(libc::EEXIST);
    let errors = [
        DENIED,
        INVALID,
        not_directory,
        exists,
        -i64::from(libc::EOPNOTSUPP),
    ];
    try_everything(&guest, &path, &errors);
    assert!(!hung_up(), "the terminal was opened, and closed again");
    // So it would have shown.
    drop(
        OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(format!("/dev/pts/{number}")),
    );
    assert!(hung_up());
}

#[test]
fn files_are_made_where_links_lead_and_opened_as_they_are_found() {
    let (directory, guest) = granted(Access::ReadWrite);
    let inside = |name: &str| directory.path("granted").join(name);
    let link = |text: &str, name: &str| symlink(Path::new(text), inside(name)).unwrap();
    link("sub/later", "first");
    link("first", "second");
    link("sub/../../new", "leads-out");
    link("/etc/new", "elsewhere");
    link("round", "round");
    assert_eq!(guest.open("/data/second", libc::O_RDONLY, 0), MISSING);
    let file = guest.open("/data/second", NEW, 0o640);
    assert_eq!(guest.write(file, b"made"), 4);
    assert_eq!(std::fs::read(inside("sub/later")).unwrap(), b"made");
    for path in ["/data/leads-out", "/data/elsewhere"] {
        assert_eq!(guest.open(path, NEW, 0o640), DENIED, "{path}");
    }
    assert_eq!(guest.open("/data/round", NEW, 0o640), LOOP);
    assert_eq!(guest.open("/data/second", NEW | libc::O_NOFOLLOW, 0), LOOP);
    let exclusive = NEW | libc::O_EXCL;
    assert_eq!(
        guest.open("/data/elsewhere", exclusive, 0),
        -i64::from(libc::EEXIST)
    );
    assert_eq!(guest.open("/data/no/file", NEW, 0), MISSING);
    assert_eq!(guest.open("/data/sub", NEW, 0), -i64::from(libc::EISDIR));
    let both = libc::O_CREAT | libc::O_DIRECTORY;
    assert_eq!(guest.open("/data/sub", both, 0), INVALID);
    // What is open is what was found: permissions are looked at, contents kept, the position and
    // flags its own.
    let file = guest.open("/data/sub/later", libc::O_RDWR | libc::O_APPEND, 0);
    assert_eq!(guest.write(file, b" more"), 5);
    assert_eq!(std::fs::read(inside("sub/later")).unwrap(), b"made more");
    assert_eq!(guest.on(libc::SYS_truncate, "/data/first", &[2]), 0);
    assert_eq!(guest.on(libc::SYS_chmod, "/data/first", &[0]), 0);
    assert_eq!(guest.on(libc::SYS_chmod, "/data/first", &[0o600]), 0);
    assert_eq!(std::fs::read(inside("sub/later")).unwrap(), b"ma");
    assert_eq!(
        guest.on(libc::SYS_truncate, "/data/sub", &[0]),
        -i64::from(libc::EISDIR)
    );
}

/// Resident memory of the process in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = text.split(' ').nth(1).unwrap();
    pages.parse::<usize>().unwrap() * 4096
}

/// The names that a listing gave, and the `d_off` behind each.
fn records(mut bytes: &[u8]) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let size = usize::from(u16::from_le_bytes([bytes[16], bytes[17]]));
        let name = bytes[19..size].split(|&b| b == 0).next().unwrap();
        let next = i64::from_le_bytes(bytes[8..16].try_into().unwrap());
        found.push((String::from_utf8(name.to_vec()).unwrap(), next));
        bytes = &bytes[size..];
    }
    found
}

#[test]
fn a_large_directory_costs_what_the_extension_has_room_for() {
    const FILES: usize = 20_000;
    support::succeeds_in_child(
        "looks::a_large_directory_costs_what_the_extension_has_room_for",
        || {
            let (directory, guest) = granted(Access::ReadWrite);
            let many = directory.path("granted/sub");
            for number in 0..FILES {
                let name = format!("{number:05}-with-a-name-of-some-length");
                std::fs::File::create(many.join(name)).unwrap();
            }
            let list = |file: i64, room: i64| {
                let place = guest.memory + DATA;
                let read = guest.sys(libc::SYS_getdents64, &[file, place, room]);
                assert!(read >= 0, "{read}");
                records(&guest.get(DATA, read as usize))
            };
            // Every descriptor that there may be, each in the middle of its listing.
            let open = || guest.open("/data/sub", libc::O_RDONLY | libc::O_DIRECTORY, 0);
            let first = open();
            assert!(!list(first, 1 << 20).is_empty());
            let before = resident();
            let files: Vec<i64> = (0..200).map(|_| open()).collect();
            for &file in &files {
                let given = list(file, 1 << 20);
                assert!(
                    !given.is_empty() && given.len() < FILES / 10,
                    "{}",
                    given.len()
                );
            }
            let grown = resident().saturating_sub(before);
            assert!(grown < 16 << 20, "{grown} bytes for 200 listings");

            // And all names come, each once.
            assert_eq!(guest.sys(libc::SYS_lseek, &[first, 0, 0]), 0);
            let mut all = Vec::new();
            loop {
                let given = list(first, 1 << 20);
                if given.is_empty() {
                    break;
                }
                all.extend(given);
            }
            let mut names: Vec<&String> = all.iter().map(|(name, _)| name).collect();
            names.sort();
            names.dedup();
            assert_eq!((names.len(), all.len()), (FILES + 2, FILES + 2));
            // From the place behind any name it goes on with the next one; two descriptors do not
            // disturb each other.
            for at in [0, 1, 77, FILES / 2] {
                let from = all[at].1;
                assert_eq!(guest.sys(libc::SYS_lseek, &[first, from, 0]), from);
                assert_eq!(list(first, 4096)[0].0, all[at + 1].0);
            }
            let again = list(files[0], 200);
            assert_eq!(guest.sys(libc::SYS_lseek, &[files[0], -1, 0]), INVALID);
            assert!(!again.is_empty());
        },
    );
}

/// Mounts in a name space of this thread's own; false where that is not allowed.
fn mount(kind: &str, at: &Path, options: &str) -> bool {
    std::fs::create_dir_all(at).unwrap();
    let [kind, at, options] =
        [kind, at.to_str().unwrap(), options].map(|text| CString::new(text).unwrap());
    // SAFETY: texts that end.
    unsafe {
        libc::mount(
            kind.as_ptr(),
            at.as_ptr(),
            kind.as_ptr(),
            0,
            options.as_ptr().cast(),
        ) == 0
    }
}

/// Whether what this thread mounts from now on is mounted for nobody else.
fn own_mounts() -> bool {
    // SAFETY: no memory is touched but texts that end.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
    }
}

#[test]
fn what_lies_below_is_not_the_kernels_nor_need_it_have_the_same_number() {
    support::succeeds_in_child(
        "looks::what_lies_below_is_not_the_kernels_nor_need_it_have_the_same_number",
        || {
            let (directory, guest) = granted(Access::ReadWrite);
            if !own_mounts() {
                println!("not run: this user may not mount");
                return;
            }
            // Granted again, in this thread's name space.
            drop(guest);
            let root = directory.path("granted");
            let files = |root: &Path| {
                let rules = Rules::new().grant("/data", root, Access::ReadWrite);
                Guest::new(Policy::files(rules.unwrap()))
            };
            let guest = files(&root);
            if mount("binfmt_misc", &root.join("formats"), "") {
                for flags in [libc::O_WRONLY, NEW, libc::O_RDONLY] {
                    let opened = guest.open("/data/formats/register", flags, 0o600);
                    assert_eq!(opened, DENIED, "{flags:#o}");
                }
            }
            // Where names are more than names, none is made or taken away.
            if mount("mqueue", &root.join("queues"), "") {
                std::fs::write(root.join("queues/old"), "").unwrap();
                let path = "/data/queues/old";
                assert_eq!(guest.open("/data/queues/new", NEW, 0o600), DENIED);
                assert_eq!(guest.on(libc::SYS_unlink, path, &[]), DENIED);
                assert_eq!(guest.on(libc::SYS_mkdir, "/data/queues/d", &[0]), DENIED);
                let renamed = guest.on_both(libc::SYS_rename, path, "/data/queues/x");
                assert_eq!(renamed, DENIED);
                let names = std::fs::read_dir(root.join("queues")).unwrap();
                assert_eq!(names.count(), 1);
            }
            // A file with two names is another one once it was written, if the layers are two file
            // systems.
            let at = directory.path("layers");
            let (lower, upper) = (at.join("lower"), at.join("upper"));
            std::fs::create_dir_all(&lower).unwrap();
            std::fs::write(lower.join("one"), "text").unwrap();
            std::fs::hard_link(lower.join("one"), lower.join("two")).unwrap();
            let mut ready = mount("tmpfs", &upper, "");
            for name in ["over", "work"] {
                std::fs::create_dir_all(upper.join(name)).unwrap();
            }
            let merged = at.join("merged");
            let options = format!(
                "lowerdir={},upperdir={},workdir={},xino=off",
                lower.display(),
                upper.join("over").display(),
                upper.join("work").display()
            );
            ready &= mount("overlay", &merged, &options);
            if ready {
                let guest = files(&merged);
                let file = guest.open("/data/one", libc::O_WRONLY, 0);
                assert_eq!(guest.write(file, b"T"), 1);
                assert_eq!(std::fs::read(merged.join("one")).unwrap(), b"Text");
            } else {
                println!("not run: there is no overlay");
            }
        },
    );
}

#[test]
fn whoever_exchanges_links_meanwhile_leads_nobody_out() {
    let (directory, guest) = granted(Access::ReadWrite);
    let inside = directory.path("granted");
    std::fs::write(inside.join("sub/secret"), "inside").unwrap();
    symlink("sub", inside.join("way")).unwrap();
    symlink("..", inside.join("other")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let [one, two] = ["way", "other"].map(|name| {
                CString::new(inside.join(name).into_os_string().into_encoded_bytes()).unwrap()
            });
            while !done.load(Ordering::Relaxed) {
                // SAFETY: texts that end.
                unsafe {
                    libc::renameat2(-1, one.as_ptr(), -1, two.as_ptr(), libc::RENAME_EXCHANGE);
                }
            }
        });
        for _ in 0..2000 {
            let file = guest.open("/data/way/secret", libc::O_RDWR | libc::O_TRUNC, 0);
            if file >= 0 {
                assert_eq!(guest.write(file, b"inside"), 6);
                assert_eq!(guest.close(file), 0);
            }
            let file = guest.open("/data/way/made", NEW | libc::O_EXCL, 0o600);
            if file >= 0 {
                assert_eq!(guest.close(file), 0);
            }
            guest.on(libc::SYS_unlink, "/data/way/made", &[]);
            guest.on(libc::SYS_mkdir, "/data/way/folder", &[0o700]);
            guest.on_both(libc::SYS_rename, "/data/way/secret", "/data/way/secret");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(std::fs::read(directory.path("secret")).unwrap(), b"secret");
    for name in ["made", "folder"] {
        assert!(!directory.path(name).exists(), "{name}");
    }
}

#[test]
fn listings_bear_any_room_and_any_place() {
    let (_directory, guest) = granted(Access::ReadWrite);
    let file = guest.open("/data", libc::O_RDONLY | libc::O_DIRECTORY, 0);
    let place = guest.memory + DATA;
    let list = |room: i64| guest.sys(libc::SYS_getdents64, &[file, place, room]);
    for room in 0..24 {
        assert_eq!(list(room), INVALID, "{room}");
    }
    let other = guest.sys(libc::SYS_dup, &[file]);
    for from in [1, 7, 1 << 31, 1 << 40, i64::MAX - 1, i64::MAX, 0] {
        for file in [file, other] {
            let moved = guest.sys(libc::SYS_lseek, &[file, from, 0]);
            assert!(moved == from || moved == INVALID, "{from}: {moved}");
            let given = list(4096);
            assert!((0..=4096).contains(&given), "{from}: {given}");
        }
    }
}
