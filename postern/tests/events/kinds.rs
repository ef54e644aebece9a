//! What can be waited for besides timers and doorbells.

use super::support::{fork, succeeds_in_child};
use super::{builder, domains, handled, number, until};
use postern::{Event, EventError};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

const IN: u64 = 1;
const OUT: u64 = 4;
const HANG_UP: u64 = 0x10;

#[test]
fn descriptors() {
    for (_, domain) in domains() {
        let _attached = domain.attach().unwrap();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let readable = domain.on(Event::readable(&near), "on").unwrap();
        assert_eq!(number(&domain, "calls_of"), 0);
        for n in 1..=20 {
            far.write_all(&[n]).unwrap();
            until("it is readable", || handled(&readable) == u64::from(n));
            assert_eq!(number(&domain, "last_of") & IN, IN);
            if n % 3 == 0 {
                near.read_exact(&mut [0; 3]).unwrap();
            }
        }
        // What the host closes is open here; what the other side does is told.
        drop(near);
        drop(far);
        until("the end", || handled(&readable) == 21);
        assert_eq!(number(&domain, "last_of") & HANG_UP, HANG_UP);

        let (near, mut far) = UnixStream::pair().unwrap();
        let writable = domain.on(Event::writable(&near), "on").unwrap();
        until("room", || handled(&writable) == 1);
        assert_eq!(number(&domain, "last_of"), OUT);
        near.set_nonblocking(true).unwrap();
        while (&near).write(&[0; 4096]).is_ok() {}
        far.set_nonblocking(true).unwrap();
        while far.read(&mut [0; 4096]).is_ok_and(|n| n != 0) {}
        until("room again", || handled(&writable) >= 2);
    }
}

#[test]
fn ends_of_children() {
    for (_, domain) in domains() {
        let _attached = domain.attach().unwrap();
        let waits = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::piped());
            command.spawn().unwrap()
        };
        let mut child = waits("read x; exit 42");
        let end = domain.on(Event::end_of(child.id()), "on").unwrap();
        assert_eq!(handled(&end), 0);
        drop(child.stdin.take());
        until("an end", || handled(&end) == 1);
        assert_eq!(number(&domain, "last_of"), 1 << 32 | 42);
        // It is still there for who waits for it.
        assert_eq!(child.wait().unwrap().code(), Some(42));
        // That it is gone is nothing new.
        let bell = domain.on(Event::doorbell(), "other").unwrap();
        bell.doorbell().unwrap().ring(1).unwrap();
        until("the bell", || handled(&bell) == 1);
        assert_eq!(handled(&end), 1);
        let mut child = waits("read x");
        let end = domain.on(Event::end_of(child.id()), "on").unwrap();
        child.kill().unwrap();
        until("an end", || handled(&end) == 1);
        assert_eq!(number(&domain, "last_of"), 2 << 32 | 9);
        child.wait().unwrap();
        let error = domain.on(Event::end_of(u32::MAX), "on").unwrap_err();
        assert!(matches!(error, EventError::System { .. }), "{error}");
    }
}

/// In a process that has no other threads than this one and the runtime's: all must block the
/// signal.
#[test]
fn signals() {
    succeeds_in_child("kinds::signals", || {
        let signal = libc::SIGRTMIN() + 3;
        let domain = builder().build().unwrap();
        let error = domain.on(Event::signal(signal), "on").unwrap_err();
        assert!(matches!(error, EventError::NotBlocked(n) if n == signal));
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&mut set, signal);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        }
        let status = fork(|| {
            for (_, domain) in domains() {
                let _attached = domain.attach().unwrap();
                let event = domain.on(Event::signal(signal), "on").unwrap();
                for n in 1..=10usize {
                    let value = libc::sigval {
                        sival_ptr: n as *mut _,
                    };
                    assert_eq!(unsafe { libc::sigqueue(libc::getpid(), signal, value) }, 0);
                }
                until("signals", || handled(&event) == 10);
                let sum = (1 + 10) * 10 / 2;
                let all = (sum << 32) + 10 * signal as u64;
                assert_eq!(number(&domain, "total_of"), all);
            }
            true
        });
        assert_eq!(status, 0);
    });
}

/// A doorbell is a descriptor, which another process has by inheritance here.
#[test]
fn doorbells_of_other_processes() {
    for (_, domain) in domains() {
        let bell = domain.on(Event::doorbell(), "on").unwrap();
        let doorbell = bell.doorbell().unwrap();
        let _attached = domain.attach().unwrap();
        let file = std::fs::File::from(doorbell.as_fd().try_clone_to_owned().unwrap());
        let child = Command::new("sh")
            .args(["-c", "printf '\\5\\0\\0\\0\\0\\0\\0\\0'"])
            .stdout(file)
            .status();
        assert!(child.unwrap().success());
        until("the ring", || number(&domain, "total_of") == 5);
        // It may make reads wait; ours do not.
        let raw = doorbell.as_fd().as_raw_fd();
        let flags = unsafe { libc::fcntl(raw, libc::F_GETFL) };
        assert_eq!(
            unsafe { libc::fcntl(raw, libc::F_SETFL, flags & !libc::O_NONBLOCK) },
            0
        );
        for n in 1..=50 {
            doorbell.ring(1).unwrap();
            until("the rings", || number(&domain, "total_of") == 5 + n);
        }
        let tick = domain.on(Event::posted(), "on").unwrap();
        assert!(matches!(tick.doorbell(), Err(EventError::NoDoorbell)));
    }
}
