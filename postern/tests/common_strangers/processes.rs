//! Processes of other namespaces, with no descriptor more, and forks.

use super::support::{Directory, fork, succeeds_in_child};
use super::{attach, call, file, image, put, read, try_attach, until, word, write};
use postern::{Admission, Broker, CommonMemory, Domain, Poison};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// The number of a process is nobody's here, or another's, where it runs in another namespace.
#[test]
fn the_numbers_of_processes_are_another_namespaces() {
    let memory = CommonMemory::new(&image()).unwrap();
    let (one, other) = (attach(&memory), attach(&memory));
    let file = file(&memory);
    let seat = (0..64).map(|seat| word::FIRST_SEAT + seat * word::SEAT);
    let seats: Vec<u64> = seat.filter(|&at| read(&file, at) != 0).collect();
    assert_eq!(seats.len(), 2);
    // Of whom that is, only the lock says whether it has ended.
    write(&file, seats[1] + 2, 1);
    write(&file, seats[1], i32::MAX as u32 - 1);
    std::thread::scope(|scope| {
        let hold = scope.spawn(|| other.func::<fn()>("hold").unwrap().call());
        until("it is inside", || call(&one, "get").is_ok_and(|n| n == 2));
        std::thread::sleep(Duration::from_millis(1150));
        assert_eq!(one.poison(), None);
        other.interrupt();
        assert!(hold.join().unwrap().is_err());
    });
    assert_eq!((one.poison(), call(&one, "get").unwrap()), (None, 2));
}

/// The same of processes that run in one, where the kernel lets the test make one.
#[test]
fn a_process_of_another_namespace() {
    succeeds_in_child("processes::a_process_of_another_namespace", || {
        let directory = Directory::new();
        let path = directory.path("state");
        let memory = CommonMemory::new(&image()).unwrap();
        let domain = attach(&memory);
        assert_eq!(call(&domain, "get").unwrap(), 0);
        let (_stop, stopped) = std::os::unix::net::UnixStream::pair().unwrap();
        let body = || {
            let broker = Broker::begin(&path, &memory, Admission::default()).unwrap();
            let visit = broker.serve_one(stopped.as_fd()).unwrap().unwrap();
            // Who runs outside has no number there.
            assert!(visit.admitted && visit.pid == 0);
            let own = attach(&memory);
            own.func::<fn()>("hold").unwrap().call().unwrap();
        };
        // Only of the thread's children.
        let child = std::thread::scope(|scope| {
            let forks = scope.spawn(|| unsafe {
                if libc::unshare(libc::CLONE_NEWPID) != 0 {
                    return None;
                }
                let child = libc::fork();
                if child == 0 {
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
                    libc::_exit(9);
                }
                Some(child)
            });
            forks.join().unwrap()
        });
        let Some(child) = child else {
            println!("there can be none");
            return;
        };
        until("the broker", || CommonMemory::from_broker(&path).is_ok());
        until("it is inside", || {
            call(&domain, "get").is_ok_and(|n| n == 2)
        });
        std::thread::sleep(Duration::from_millis(1150));
        assert_eq!(domain.poison(), None);
        unsafe {
            assert_eq!(libc::kill(child, libc::SIGKILL), 0);
            assert_eq!(libc::waitpid(child, std::ptr::null_mut(), 0), child);
        }
        until("the poison", || domain.is_poisoned());
        let poison = domain.poison();
        assert!(matches!(poison, Some(Poison::Killed { pid: 1, .. })));
        until("a reset", || domain.reset().is_ok());
    });
}

/// Who cannot watch another process, for it may have no descriptor more, does not say that the
/// other has ended.
#[test]
fn who_cannot_be_watched_has_not_ended() {
    succeeds_in_child("processes::who_cannot_be_watched_has_not_ended", || {
        let memory = CommonMemory::new(&image()).unwrap();
        let one = attach(&memory);
        let other = attach(&memory);
        let file = file(&memory);
        let second = word::FIRST_SEAT + word::SEAT;
        let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
        limit.rlim_max = 4096;
        let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        assert_eq!(set, 0);
        // So it has to be watched anew.
        write(&file, second, unsafe { libc::getppid() } as u32);
        std::thread::scope(|scope| {
            let hold = scope.spawn(|| other.func::<fn()>("hold").unwrap().call());
            until("it is inside", || call(&one, "get").is_ok_and(|n| n == 2));
            std::thread::sleep(Duration::from_millis(1150));
            assert_eq!(one.poison(), None);
            other.interrupt();
            assert!(hold.join().unwrap().is_err());
        });
    });
}

#[test]
fn it_is_left_while_another_thread_is_inside() {
    let memory = CommonMemory::new(&image()).unwrap();
    let one = attach(&memory);
    for _ in 0..5 {
        let other = attach(&memory);
        let hold = other.func::<fn()>("hold").unwrap();
        put(&one, 0);
        let inside = std::thread::spawn(move || hold.call());
        until("it is inside", || call(&one, "get").is_ok_and(|n| n == 2));
        other.close();
        drop(other);
        assert!(inside.join().unwrap().is_err());
        assert_eq!((one.poison(), call(&one, "get").unwrap()), (None, 2));
        until("a reset", || one.reset().is_ok());
    }
    // Nobody of those has a seat any more.
    until("all seats", || {
        let all: Vec<_> = (0..63).map_while(|_| try_attach(&memory).ok()).collect();
        all.len() == 63
    });
}

/// Children of forks in the middle of it keep neither seats nor the turn, though they live on.
#[test]
fn forks_while_a_process_attaches() {
    succeeds_in_child("processes::forks_while_a_process_attaches", || {
        let memory = CommonMemory::new(&image()).unwrap();
        let over = AtomicBool::new(false);
        let mut children = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    put(&attach(&memory), 3);
                }
            });
            for _ in 0..40 {
                let child = unsafe { libc::fork() };
                if child == 0 {
                    loop {
                        unsafe { libc::pause() };
                    }
                }
                children.push(child);
                std::thread::sleep(Duration::from_micros(700));
            }
            over.store(true, SeqCst);
        });
        let all: Vec<_> = (0..64).map_while(|_| try_attach(&memory).ok()).collect();
        let attached = all.len();
        for child in children {
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        }
        assert_eq!(attached, 64);
    });
}

#[test]
fn a_child_that_was_inside_has_another_domain() {
    let memory = CommonMemory::new(&image()).unwrap();
    let again = memory.clone();
    let forks = move |caller: &postern::Caller<'_>| -> i32 {
        let outer = caller.domain();
        fork(|| {
            assert!(call(&outer, "get").is_err() && outer.reset().is_err());
            let own = attach(&again);
            put(&own, 8);
            drop(outer.clone());
            call(&own, "serve").unwrap() == 7
        })
    };
    let builder = Domain::builder(&image()).common(&memory).grant_to_all("s");
    let builder = builder.deadline(None);
    let domain = builder.service("s", forks).build().unwrap();
    assert_eq!(call(&domain, "serve").unwrap(), 0);
    assert_eq!((domain.poison(), call(&domain, "get").unwrap()), (None, 8));
    domain.reset().unwrap();
}
