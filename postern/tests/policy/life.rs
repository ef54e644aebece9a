//! Decisions of the host, threads, forks and programs.

use crate::guest::{DATA, FAULT, Guest, NEW, PATH, REFUSED, granted, held, printing};
use crate::support;
use postern::policy::{Call, Request, SYSTEM_CALLS, Target};
use postern::{Access, CallError, Caller, Domain, Policy, Verdict};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

#[test]
fn the_host_decides_call_by_call() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let (printed, base) = printing();
    let policy = Policy::custom(base, move |caller: &Caller<'_>, request: &Request| {
        assert!(!caller.domain().is_poisoned());
        match &request.call {
            Call::Write { file: 1, bytes, .. } if bytes.starts_with(b"bad") => {
                Verdict::Deny(libc::EIO)
            }
            Call::Open { path, .. } => {
                log.lock()
                    .unwrap()
                    .push(String::from_utf8_lossy(&path.bytes).into_owned());
                match &path.bytes[..] {
                    b"/virtual" => Verdict::Emulate(50, Vec::new()),
                    b"/fatal" => Verdict::Kill("asked for /fatal".into()),
                    _ => Verdict::Deny(0),
                }
            }
            Call::Read {
                file: 50, length, ..
            } => {
                assert_eq!(request.room, *length);
                Verdict::Emulate(5, b"virtual file".to_vec())
            }
            Call::Stat(Target::Open(50)) => Verdict::Emulate(0, vec![7; 1000]),
            Call::Unknown { number: 41, words } => Verdict::Emulate(words[0] as i64, Vec::new()),
            _ => Verdict::Allow,
        }
    });
    let guest = Guest::new(policy);
    assert_eq!(guest.write(1, b"good"), 4);
    assert_eq!(guest.write(1, b"bad"), -i64::from(libc::EIO));
    assert_eq!(*printed.lock().unwrap(), b"good");
    assert_eq!(guest.open("/virtual", 0, 0), 50);
    assert_eq!(guest.open("/other", 0, 0), REFUSED);
    let place = guest.put(DATA, &[b'.'; 200]);
    assert_eq!(guest.sys(libc::SYS_read, &[50, place, 8]), 5);
    assert_eq!(
        guest.get(DATA, 10),
        b"virtual ..",
        "no more than there is room for"
    );
    assert_eq!(guest.sys(libc::SYS_fstat, &[50, place]), 0);
    assert_eq!(guest.get(DATA + 142, 4), [7, 7, b'.', b'.']);
    assert_eq!(
        guest.sys(libc::SYS_read, &[50, 8, 8]),
        FAULT,
        "the host is not asked"
    );
    assert_eq!(guest.sys(41, &[9]), 9);
    assert_eq!(guest.sys(42, &[9]), -i64::from(libc::ENOSYS));
    assert_eq!(guest.domain.counters().last_refused, Some(42));
    let end = guest.call.call(libc::SYS_exit_group, 3, 0, 0, 0, 0);
    assert!(matches!(end, Err(CallError::Exited(3))), "{end:?}");
    guest.path(PATH, "/fatal");
    let end = guest.call.call(libc::SYS_open, guest.memory, 0, 0, 0, 0);
    assert!(end.unwrap_err().to_string().contains("asked for /fatal"));
    assert_eq!(*seen.lock().unwrap(), ["/virtual", "/other", "/fatal"]);
}

#[test]
fn the_table_names_what_the_decoder_knows() {
    let unknown = Arc::new(Mutex::new(Vec::new()));
    let found = unknown.clone();
    let policy = Policy::custom(Policy::none(), move |_: &Caller<'_>, request: &Request| {
        if let Call::Unknown { number, .. } = request.call {
            assert_eq!(number, request.number);
            found.lock().unwrap().push(number);
        }
        Verdict::Allow
    });
    let guest = Guest::new(policy);
    let ends = [libc::SYS_exit, libc::SYS_exit_group];
    let numbers = || (-3..600).filter(|n| !ends.contains(n));
    for number in numbers() {
        guest.sys(number, &[]);
    }
    let known: Vec<i64> = SYSTEM_CALLS.iter().map(|call| call.number).collect();
    let wanted: Vec<i64> = numbers().filter(|n| !known.contains(n)).collect();
    assert_eq!(*unknown.lock().unwrap(), wanted);
}

#[test]
fn threads_work_in_one_domain_at_once() {
    let (directory, guest) = granted(Access::ReadWrite);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let guest = guest.clone();
            std::thread::spawn(move || {
                // Each in a page of its own.
                let base = 65536 + thread * 65536;
                for round in 0..100 {
                    let path = guest.path(base, &format!("/data/{thread}-{round}"));
                    let file = guest.sys(libc::SYS_open, &[path, NEW.into(), 0o644]);
                    assert!(file >= 3, "{file}");
                    assert_eq!(guest.sys(libc::SYS_write, &[file, path, 8]), 8);
                    assert_eq!(guest.close(file), 0);
                    assert_eq!(guest.sys(libc::SYS_unlink, &[path]), 0);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(held(&directory), 1);
    assert_eq!(guest.open("/data/text", 0, 0), 3, "no descriptor was lost");
}

#[test]
fn forked_children_make_system_calls_whatever_others_were_at() {
    let (_directory, guest) = granted(Access::ReadWrite);
    let stop = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                let (_directory, busy) = granted(Access::Read);
                while stop.load(Ordering::Relaxed) == 0 {
                    let file = busy.open("/data/text", 0, 0);
                    assert_eq!(busy.close(file), 0, "{file}");
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let status = support::fork(|| {
            let file = guest.open("/data/text", libc::O_RDONLY, 0);
            assert_eq!(guest.read(file, 4), b"some");
            guest.domain.reset().unwrap();
            guest.domain.set_policy(Policy::none());
            guest.sys(libc::SYS_getpid, &[]) == REFUSED
        });
        assert_eq!(status, 0);
    }
    stop.store(1, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn programs_get_arguments_and_end_with_a_status() {
    let (printed, policy) = printing();
    let guest = Guest::new(policy);
    let none: [&str; 0] = [];
    let status = guest.domain.run_main(&["name", "abc"], &["E=1"]);
    assert_eq!(
        (status.unwrap(), &printed.lock().unwrap()[..]),
        (5, &b"E=1abc"[..])
    );
    assert_eq!(guest.domain.run_main(&["name"], &none).unwrap(), 100);
    let bad = guest.domain.run_main(&["name", "a\0b"], &none);
    assert!(matches!(bad, Err(CallError::Arguments(_))), "{bad:?}");
    let long = "x".repeat(2 << 20);
    let bad = guest.domain.run_main(&["name", &long], &none);
    assert!(matches!(bad, Err(CallError::Arguments(_))), "{bad:?}");
    let plain = support::code(&[], &[("f", "v()")], "f: ret").image();
    let bad = Domain::builder(&plain)
        .build()
        .unwrap()
        .run_main(&["x"], &none);
    assert!(matches!(bad, Err(CallError::NoMain)), "{bad:?}");
}
