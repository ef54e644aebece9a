//! The words in front of the memory, and its file, say anything.

use super::support;
use super::{attach, call, file, image, lock, put, read, try_attach, until, word, write};
use postern::{CommonError, CommonMemory, Domain, InstantiateError, MapError};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Somebody writes whatever over the words in front of the memory, while others attach, call, reset
/// and detach: no thread panics, none waits for good, and afterwards a reset makes it usable.
#[test]
fn whatever_the_words_in_front_say_nobody_is_hurt() {
    let test = "words::whatever_the_words_in_front_say_nobody_is_hurt";
    support::succeeds_in_child(test, scribbled);
}

fn scribbled() {
    static PANICKED: AtomicBool = AtomicBool::new(false);
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |about| {
        PANICKED.store(true, SeqCst);
        shown(about);
    }));
    let memory = CommonMemory::new(&image()).unwrap();
    let domain = attach(&memory);
    let over = AtomicBool::new(false);
    let longest = |what: &str, since: Instant| {
        let taken = since.elapsed();
        assert!(taken < Duration::from_secs(13), "{what}: {taken:?}");
    };
    let client = |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        while !over.load(SeqCst) {
            let since = Instant::now();
            let joined = CommonMemory::join(memory.descriptor().try_clone_to_owned().unwrap());
            let own = match (random.bool(), joined) {
                (true, Ok(joined)) => joined,
                _ => memory.clone(),
            };
            let Ok(other) = try_attach(&own) else {
                longest("attach", since);
                continue;
            };
            for _ in 0..random.u32(1..50) {
                let _ = call(&other, ["get", "serve"][random.usize(..2)]);
                let _ = (other.poison().map(|p| p.to_string()), other.is_poisoned());
            }
            if random.bool() {
                let since = Instant::now();
                let _ = other.reset();
                longest("reset", since);
            }
            let since = Instant::now();
            drop(other);
            longest("detach", since);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| client(1));
        scope.spawn(|| client(2));
        let mut random = fastrand::Rng::with_seed(23);
        let file = file(&memory);
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(1200) {
            for _ in 0..20 {
                let at = match random.u32(..10) {
                    0..4 => random.u64(..16),
                    4..8 => random.u64(word::FIRST_SEAT..word::FIRST_SEAT + 8 * word::SEAT),
                    8 => random.u64(..word::INSIDE),
                    _ => random.u64(..word::ALL),
                };
                let value = match random.u32(..5) {
                    0 => random.u32(..6),
                    1 => random.u32(..),
                    2 => 1 << random.u32(..32),
                    3 => u32::MAX - random.u32(..3),
                    _ => std::process::id(),
                };
                write(&file, at, value);
            }
            let _ = call(&domain, "get");
            std::thread::sleep(Duration::from_micros(random.u64(..200)));
        }
        over.store(true, SeqCst);
    });
    until("a reset", || domain.reset().is_ok());
    put(&domain, 5);
    assert_eq!(call(&attach(&memory), "get").unwrap(), 5);
    assert!(!PANICKED.load(SeqCst), "a thread panicked");
}

/// Who says for good that the domain is being reset keeps its owner neither from leaving it nor
/// from attaching again.
#[test]
fn a_reset_without_end_keeps_nobody_who_leaves() {
    let test = "words::a_reset_without_end_keeps_nobody_who_leaves";
    support::succeeds_in_child(test, || {
        let memory = CommonMemory::new(&image()).unwrap();
        // The watchdog stays.
        assert_eq!(call(&attach(&memory), "get").unwrap(), 0);
        let (descriptors, threads) = (support::descriptors(), support::threads());
        let domain = attach(&memory);
        let file = file(&memory);
        let turn = lock(&file, 64);
        write(&file, word::ATTEMPT, 77);
        write(&file, word::PHASE, 4);
        until("it is closed", || call(&domain, "get").is_err());
        assert!(domain.reset().is_err());
        drop(domain);
        until("threads ended", || support::threads() <= threads);
        drop((turn, file));
        assert!(support::descriptors() <= descriptors);
        drop(attach(&memory));
    });
}

/// What the dead have left before a reset closes nothing after it.
#[test]
fn a_reset_is_the_end_of_what_the_dead_have_left() {
    let memory = CommonMemory::new(&image()).unwrap();
    let domain = attach(&memory);
    let file = file(&memory);
    for round in 0..300 {
        let seat = 1 + round % 63;
        write(&file, word::INSIDE + seat * 4096 + 7, 1);
        until("a reset", || domain.reset().is_ok());
        for _ in 0..round % 4 {
            std::thread::sleep(Duration::from_micros(100));
        }
        let called = call(&domain, "get");
        assert!(called.is_ok(), "{called:?}, {:?}", domain.poison());
    }
}

fn cause<T: std::fmt::Debug>(refused: Result<T, InstantiateError>) -> CommonError {
    match refused {
        Err(InstantiateError::Common(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn descriptors_of_anything_are_refused() {
    let memory = CommonMemory::new(&image()).unwrap();
    let own = file(&memory);
    let path = format!("/proc/self/fd/{}", own.as_raw_fd());
    let open = |path: &str, flags| {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = File::options();
        let file = options.read(true).custom_flags(flags).open(path);
        OwnedFd::from(file.unwrap())
    };
    let pipe = std::io::pipe().unwrap();
    let sockets = std::os::unix::net::UnixStream::pair().unwrap();
    for stranger in [
        open("/dev/zero", 0),
        open("/dev/null", 0),
        open("/", libc::O_DIRECTORY),
        open("/proc/self/maps", 0),
        open(&path, libc::O_PATH),
        pipe.0.into(),
        pipe.1.into(),
        sockets.0.into(),
    ] {
        let error = cause(CommonMemory::join(stranger));
        let refused = matches!(error, CommonError::Map(MapError::Unsealed));
        assert!(refused, "{error}");
    }
    // Its own, but not to be written.
    let error = cause(CommonMemory::join(open(&path, 0)));
    assert!(!error.to_string().is_empty());
    let write_only = File::options().write(true).open(&path).unwrap();
    cause(CommonMemory::join(write_only.into()));
}

/// A mapping of such a file is longer than was asked for, and would lie over what is behind it.
#[test]
fn files_of_large_pages_are_refused() {
    let file = unsafe {
        let flags = libc::MFD_ALLOW_SEALING | libc::MFD_HUGETLB;
        let fd = libc::memfd_create(c"x".as_ptr(), flags);
        if fd < 0 {
            println!("this kernel has none");
            return;
        }
        let file = OwnedFd::from_raw_fd(fd);
        assert_eq!(libc::ftruncate(fd, 64 << 20), 0);
        let size = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        assert_eq!(libc::fcntl(fd, libc::F_ADD_SEALS, size), 0);
        file
    };
    let error = cause(CommonMemory::join(file));
    assert!(
        matches!(error, CommonError::Map(MapError::Unsealed)),
        "{error}"
    );
}

/// Stacks of another size than the image was linked with are possible for some images only.
#[test]
fn forged_sizes_of_stacks_are_refused() {
    let memory = CommonMemory::new(&image()).unwrap();
    let file = file(&memory);
    let linked = read(&file, 20);
    for size in [4096, linked / 2, linked * 2] {
        write(&file, 20, size);
        let joined = CommonMemory::join(memory.descriptor().try_clone_to_owned().unwrap());
        let Ok(joined) = joined else { continue };
        let built = Domain::builder(&image())
            .service("s", |_: &postern::Caller<'_>| 7)
            .grant_to_all("s")
            .common(&joined)
            .build();
        assert!(built.is_err(), "{size:#x}, linked with {linked:#x}");
    }
    write(&file, 20, linked);
    attach(&memory);
}
