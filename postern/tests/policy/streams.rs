//! Calls that need no file: what is refused, streams, pointers, clocks, and numbers that make no
//! sense.

use crate::guest::{
    BAD, DATA, FAULT, Guest, INVALID, PATH, REFUSED, Six, granted, image, printing,
};
use crate::support;
use postern::policy::{Input, Sink};
use postern::{Access, CallError, FaultKind, Offset, Policy};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

#[test]
fn none_refuses_and_counts() {
    let guest = Guest::new(Policy::none());
    assert_eq!(guest.sys(libc::SYS_getpid, &[]), REFUSED);
    assert_eq!(guest.write(1, b"x"), REFUSED);
    assert_eq!(guest.sys(i64::MIN, &[-1; 5]), REFUSED);
    assert_eq!(guest.sys(libc::SYS_socket, &[2, 1, 0]), REFUSED);
    let counters = guest.domain.counters();
    assert_eq!(counters.refused_system_calls, 4);
    assert_eq!(counters.last_refused, Some(libc::SYS_socket as u64));
    let end = guest.exit_status(7);
    assert!(matches!(end, Err(CallError::Exited(7))), "{end:?}");
    assert_eq!(guest.domain.counters().system_calls, 1);
    // The end of a call is none of the domain.
    assert_eq!(guest.sys(libc::SYS_getpid, &[]), REFUSED);
}

#[test]
fn streams_go_where_the_host_says() {
    let (printed, policy) = printing();
    let guest = Guest::new(policy.stdin(Input::bytes("some input")));
    assert_eq!(guest.write(1, b"one "), 4);
    assert_eq!(guest.write(2, b"nobody hears"), 12);
    let long = vec![b'x'; (1 << 20) + 100];
    assert_eq!(
        guest.write(1, &long),
        1 << 20,
        "long writes are done in part"
    );
    assert_eq!(guest.write(1, b""), 0);
    assert_eq!(printed.lock().unwrap().len(), 4 + (1 << 20));
    assert_eq!(guest.read(0, 4), b"some");
    assert_eq!(guest.read(0, 100), b" input");
    assert_eq!(guest.read(0, 100), b"");
    assert_eq!(guest.write(0, b"x"), BAD);
    let place = guest.memory + DATA;
    assert_eq!(guest.sys(libc::SYS_read, &[1, place, 4]), BAD);
    let pipe = -i64::from(libc::ESPIPE);
    assert_eq!(guest.sys(libc::SYS_lseek, &[1, 0, 0]), pipe);
    assert_eq!(guest.sys(libc::SYS_pread64, &[0, place, 1, 0]), pipe);
    let terminal = guest.sys(libc::SYS_ioctl, &[1, libc::TCGETS as i64, place]);
    assert_eq!(terminal, -i64::from(libc::ENOTTY));
    assert_eq!(guest.sys(libc::SYS_fstat, &[1, place]), 0);
    let mode = u32::from_le_bytes(guest.get(DATA + 24, 4).try_into().unwrap());
    assert_eq!(mode & libc::S_IFMT, libc::S_IFIFO);
    // A reset begins the input again.
    guest.domain.reset().unwrap();
    assert_eq!(guest.read(0, 100), b"some input");
}

#[test]
fn closing_stdout_twice_harms_nobody_else() {
    let (printed, policy) = printing();
    let (first, second) = (Guest::new(policy.clone()), Guest::new(policy));
    assert_eq!((first.close(1), first.close(1)), (0, BAD));
    assert_eq!(first.write(1, b"lost"), BAD);
    assert_eq!(second.write(1, b"kept"), 4);
    assert_eq!(*printed.lock().unwrap(), b"kept");
    // The process's own are still there, too.
    let inheriting = Guest::new(Policy::compute().stderr(Sink::Inherit));
    assert_eq!((inheriting.close(2), inheriting.close(2)), (0, BAD));
    assert!(std::fs::metadata("/proc/self/fd/2").is_ok());
    // Standard error goes to the terminal's place as long as a duplicate is open.
    assert_eq!(first.sys(libc::SYS_dup, &[2]), 1);
    assert_eq!(first.write(1, b"to stderr"), 9);
    assert_eq!(first.sys(libc::SYS_dup2, &[2, 9]), 9);
    assert_eq!(first.sys(libc::SYS_dup3, &[2, 2, 0]), INVALID);
    assert_eq!(
        first.sys(libc::SYS_fcntl, &[2, libc::F_DUPFD.into(), 9]),
        10
    );
    for number in [-1, i64::MIN | 256, i64::MAX, 1 << 31, 256, 1 << 20] {
        assert_eq!(first.close(number), BAD, "{number}");
        assert_eq!(first.sys(libc::SYS_dup2, &[2, number]), BAD, "{number}");
        let from = libc::F_DUPFD.into();
        assert_eq!(
            first.sys(libc::SYS_fcntl, &[2, from, number]),
            INVALID,
            "{number}"
        );
    }
}

#[test]
fn bad_pointers_are_efault_and_nothing_happens() {
    let (printed, policy) = printing();
    let guest = Guest::new(policy.stdin(Input::bytes("input")));
    let constant = guest.domain.func::<fn() -> Offset>("constant").unwrap();
    let constant = i64::from(constant.call().unwrap().0);
    let bad = [0, 8, 0xffff, 0xffff_ffff, 0xffff_fff0, 0x9000_0000];
    for pointer in bad {
        for (number, words) in [
            (libc::SYS_write, [1, pointer, 32, 0]),
            (libc::SYS_read, [0, pointer, 32, 0]),
            (libc::SYS_writev, [1, pointer, 2, 0]),
            (libc::SYS_readv, [0, pointer, 2, 0]),
            (libc::SYS_clock_gettime, [0, pointer.max(8), 0, 0]),
            (libc::SYS_uname, [pointer, 0, 0, 0]),
            (libc::SYS_getrandom, [pointer, 32, 0, 0]),
            (libc::SYS_fstat, [0, pointer, 0, 0]),
            (libc::SYS_open, [pointer, 0, 0, 0]),
            (libc::SYS_nanosleep, [pointer, 0, 0, 0]),
            (libc::SYS_fcntl, [1, libc::F_SETLK.into(), pointer, 0]),
            (libc::SYS_rename, [pointer, pointer, 0, 0]),
        ] {
            assert_eq!(guest.sys(number, &words), FAULT, "{number} {pointer:#x}");
        }
    }
    // What may be read must not be written.
    assert_eq!(guest.sys(libc::SYS_read, &[0, constant, 4]), FAULT);
    assert_eq!(guest.sys(libc::SYS_write, &[1, constant, 4]), 4);
    assert_eq!(guest.sys(libc::SYS_getrandom, &[0x1_2000, 4, 0]), FAULT);
    assert_eq!(*printed.lock().unwrap(), b"a co");
    // Nothing was taken from the input meanwhile. High halves of pointers do not count.
    let place = guest.memory + DATA;
    assert_eq!(guest.sys(libc::SYS_read, &[0, place | 7 << 32, 3]), 3);
    assert_eq!(guest.get(DATA, 5), b"inp\0\0");
    assert_eq!(guest.sys(libc::SYS_gettimeofday, &[0, 0]), 0);
    assert!(guest.sys(libc::SYS_time, &[0]) > 1_600_000_000);
    // A path without an end.
    let long = guest.put(DATA, &[b'a'; 8192]);
    let too_long = -i64::from(libc::ENAMETOOLONG);
    assert_eq!(guest.sys(libc::SYS_open, &[long, 0, 0]), too_long);
}

#[test]
fn vectors_of_buffers_are_bounded() {
    let (printed, policy) = printing();
    let guest = Guest::new(policy.stdin(Input::bytes("0123456789")));
    let vector = |parts: &[(i64, i64)]| {
        let words = parts.iter().flat_map(|p| [p.0, p.1]);
        let bytes: Vec<u8> = words.flat_map(i64::to_le_bytes).collect();
        guest.put(PATH, &bytes)
    };
    let place = guest.put(DATA, b"abcdef");
    let parts = vector(&[(place, 2), (0, 0), (place + 4, 2)]);
    assert_eq!(guest.sys(libc::SYS_writev, &[1, parts, 3]), 4);
    assert_eq!(*printed.lock().unwrap(), b"abef");
    assert_eq!(guest.sys(libc::SYS_readv, &[0, parts, 3]), 4);
    assert_eq!(guest.get(DATA, 6), b"01cd23");
    for count in [-1, 1025, i64::MIN, i64::MAX] {
        assert_eq!(guest.sys(libc::SYS_writev, &[1, parts, count]), INVALID);
    }
    let parts = vector(&[(place, i64::MAX), (place, i64::MAX)]);
    assert_eq!(guest.sys(libc::SYS_writev, &[1, parts, 2]), INVALID);
    let parts = vector(&[(place, 2), (8, 2)]);
    assert_eq!(guest.sys(libc::SYS_writev, &[1, parts, 2]), FAULT);
    assert_eq!(guest.sys(libc::SYS_readv, &[0, parts, 2]), FAULT);
    assert_eq!(guest.read(0, 1), b"4", "nothing was lost");
    let parts = vector(&[(place, 1 << 20), (8, 1 << 20)]);
    assert_eq!(guest.sys(libc::SYS_writev, &[1, parts, 2]), 1 << 20);
}

#[test]
fn clocks_numbers_and_waiting() {
    let guest = Guest::new(Policy::compute());
    let place = guest.memory + DATA;
    for clock in [0, 1, 2, 3, 4, 5, 6, 7] {
        assert_eq!(guest.sys(libc::SYS_clock_gettime, &[clock, place]), 0);
        assert_eq!(guest.sys(libc::SYS_clock_getres, &[clock, place]), 0);
    }
    for clock in [-1, 8, 100, i64::MIN | 8, i64::MAX] {
        assert_eq!(guest.sys(libc::SYS_clock_gettime, &[clock, place]), INVALID);
    }
    for (number, value) in [
        (libc::SYS_getpid, 2),
        (libc::SYS_getppid, 1),
        (libc::SYS_getuid, 1000),
        (libc::SYS_sched_yield, 0),
        (libc::SYS_umask, 0o022),
    ] {
        assert_eq!(guest.sys(number, &[0o77]), value, "{number}");
    }
    assert_eq!(guest.sys(libc::SYS_umask, &[0]), 0o77);
    assert_eq!(guest.sys(libc::SYS_uname, &[place]), 0);
    assert_eq!(guest.get(DATA, 6), b"Linux\0");
    assert_eq!(guest.sys(libc::SYS_getcwd, &[place, 2]), 2);
    assert_eq!(
        guest.sys(libc::SYS_getcwd, &[place, 1]),
        -i64::from(libc::ERANGE)
    );
    assert_eq!(guest.sys(libc::SYS_getrandom, &[place, 0, 0]), 0);
    assert_eq!(guest.sys(libc::SYS_getrandom, &[place, 64, 0]), 64);
    assert_ne!(guest.get(DATA, 64), [0; 64]);
    let words = |a: i64, b: i64| guest.put(PATH, &[a.to_le_bytes(), b.to_le_bytes()].concat());
    assert_eq!(guest.sys(libc::SYS_nanosleep, &[words(0, 1000), 0]), 0);
    for (a, b) in [(-1, 0), (0, -1), (0, 1_000_000_000), (i64::MIN, i64::MIN)] {
        assert_eq!(guest.sys(libc::SYS_nanosleep, &[words(a, b), 0]), INVALID);
    }
    // Longer than anybody waits: the deadline ends it.
    let sleepy = support::cold(&image())
        .policy(Policy::compute())
        .deadline(Some(Duration::from_millis(20)))
        .build()
        .unwrap();
    let memory = sleepy.func::<fn() -> Offset>("memory").unwrap();
    let time = memory.call().unwrap();
    sleepy.write(time, &i64::MAX.to_le_bytes()).unwrap();
    let call = sleepy.func::<Six>("call").unwrap();
    let end = call.call(libc::SYS_nanosleep, time.0.into(), 0, 0, 0, 0);
    let kind = end.unwrap_err().fault().map(|fault| fault.kind);
    assert_eq!(kind, Some(FaultKind::Deadline));
}

#[test]
fn a_signal_to_itself_ends_the_call() {
    let guest = Guest::new(Policy::compute());
    assert_eq!(guest.sys(libc::SYS_kill, &[2, 0]), 0);
    for other in [1, -1, std::process::id().into(), i64::MIN + 7] {
        assert_eq!(guest.sys(libc::SYS_kill, &[other, 9]), REFUSED, "{other}");
    }
    assert_eq!(guest.sys(libc::SYS_kill, &[2, 65]), INVALID);
    let end = guest
        .call
        .call(libc::SYS_tgkill, 2, 2, 6, 0, 0)
        .unwrap_err();
    let fault = end.fault().expect("a fault");
    assert_eq!(fault.kind, FaultKind::Aborted);
    assert!(end.to_string().contains("SIGABRT"), "{end}");
}

#[test]
fn hostile_numbers_are_errors() {
    let (directory, guest) = granted(Access::ReadWrite);
    let file = guest.open("/data/text", libc::O_RDWR, 0);
    let place = guest.memory + DATA;
    let extreme = [
        i64::MIN,
        i64::MIN + 1,
        -1,
        i64::MAX,
        1 << 62,
        1 << 32,
        (1 << 62) + 1,
    ];
    for number in extreme {
        for other in [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_fstat,
            libc::SYS_close,
        ] {
            if !(0..=file).contains(&i64::from(number as i32)) {
                assert_eq!(guest.sys(other, &[number, place, 10]), BAD, "{number}");
            }
        }
        if number < 0 {
            assert_eq!(
                guest.sys(libc::SYS_pread64, &[file, place, 1, number]),
                INVALID
            );
            assert_eq!(
                guest.sys(libc::SYS_pwrite64, &[file, place, 1, number]),
                INVALID
            );
            assert_eq!(guest.sys(libc::SYS_ftruncate, &[file, number]), INVALID);
            assert_eq!(guest.sys(libc::SYS_lseek, &[file, number, 0]), INVALID);
        }
        let locked = [0x1_0001i64, number, number, 0]
            .map(i64::to_le_bytes)
            .concat();
        let locked = guest.put(DATA, &locked);
        let lock = guest.sys(libc::SYS_fcntl, &[file, libc::F_SETLK.into(), locked]);
        assert!(lock <= 0, "{lock}");
        guest.sys(libc::SYS_lseek, &[file, number, libc::SEEK_CUR.into()]);
        guest.sys(libc::SYS_lseek, &[file, number, libc::SEEK_END.into()]);
        guest.sys(libc::SYS_lseek, &[file, 0, number]);
        guest.sys(libc::SYS_lseek, &[file, 0, 0]);
    }
    // As far as a file reaches, and not past it.
    assert_eq!(guest.sys(libc::SYS_lseek, &[file, i64::MAX, 0]), i64::MAX);
    assert!(guest.write(file, b"x") < 0);
    assert!(guest.sys(libc::SYS_read, &[file, place, 10]) <= 0);
    assert_eq!(
        guest.sys(libc::SYS_lseek, &[file, 1, libc::SEEK_CUR.into()]),
        INVALID
    );
    assert!(guest.sys(libc::SYS_read, &[file, place, -1]) <= 1 << 20);
    assert_eq!(
        std::fs::read(directory.path("granted/text")).unwrap(),
        b"some text"
    );
}

#[test]
fn a_blocked_read_holds_nobody_up() {
    let (send, receive) = mpsc::channel::<u8>();
    let receive = Mutex::new(receive);
    let (reached, at) = mpsc::channel();
    let input = Input::function(move |buffer: &mut [u8]| {
        reached.send(()).unwrap();
        buffer[0] = receive.lock().unwrap().recv().unwrap();
        1
    });
    let guest = Guest::new(Policy::compute().stdin(input).stdout(Sink::Discard));
    let reader = guest.clone();
    let blocked = std::thread::spawn(move || reader.read(0, 10));
    at.recv().unwrap();
    let place = guest.put(PATH, b"x");
    assert_eq!(guest.sys(libc::SYS_write, &[1, place, 1]), 1);
    assert_eq!(guest.close(0), 0);
    assert_eq!(guest.sys(libc::SYS_dup, &[1]), 0);
    send.send(b'!').unwrap();
    assert_eq!(blocked.join().unwrap(), b"!");
}
