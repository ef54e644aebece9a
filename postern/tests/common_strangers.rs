//! Common domains whose memory, descriptors and sockets strangers have.
#![allow(clippy::undocumented_unsafe_blocks)]

mod support;
use postern::{
    Admission, Broker, CallError, CommonError, CommonMemory, Domain, Image, InstantiateError,
    MapError, Poison,
};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use support::{code, fork};

fn image() -> Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    let source = ".data
         n: .long 0
         .text
         put: movl %edi,%gs:n(,%eiz,1)
            ret
         get: movl %gs:n(,%eiz,1),%eax
            ret
         hold: movl $2,%gs:n(,%eiz,1)
         held: jmp held
         serve: call s
            ret";
    let exports = [
        ("put", "v(i)"),
        ("get", "i()"),
        ("hold", "v()"),
        ("serve", "i()"),
    ];
    let make = || code(&[("s", "i()")], &exports, source).image();
    IMAGE.get_or_init(make).clone()
}

fn try_attach(memory: &CommonMemory) -> Result<Domain, InstantiateError> {
    let builder = Domain::builder(&image()).common(memory).grant_to_all("s");
    let builder = builder.deadline(None);
    builder.service("s", |_: &postern::Caller<'_>| 7).build()
}

fn attach(memory: &CommonMemory) -> Domain {
    try_attach(memory).unwrap()
}

fn call(domain: &Domain, name: &str) -> Result<i32, CallError> {
    domain.func::<fn() -> i32>(name).unwrap().call()
}

fn put(domain: &Domain, value: i32) {
    let put = domain.func::<fn(i32)>("put").unwrap();
    put.call(value).unwrap();
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The memory's file, as any process has it that was given the descriptor.
fn file(memory: &CommonMemory) -> File {
    File::from(memory.descriptor().try_clone_to_owned().unwrap())
}

/// Words in front of the memory.
mod word {
    pub const PHASE: u64 = 1;
    pub const ATTEMPT: u64 = 5;
    pub const FIRST_SEAT: u64 = 64;
    pub const SEAT: u64 = 4;
    pub const INSIDE: u64 = 1024;
    pub const ALL: u64 = 1024 + 64 * 4096 + 3072;
}

fn write(file: &File, word: u64, value: u32) {
    file.write_all_at(&value.to_le_bytes(), 4 * word).unwrap();
}

fn read(file: &File, word: u64) -> u32 {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, 4 * word).unwrap();
    u32::from_le_bytes(bytes)
}

/// Locks a byte of the file by a description of its own, as a seat or the turn is taken.
fn lock(file: &File, byte: i64) -> File {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let own = File::options().read(true).write(true).open(path).unwrap();
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    (range.l_type, range.l_start, range.l_len) = (libc::F_WRLCK as i16, byte, 1);
    let done = unsafe { libc::fcntl(own.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
    assert_eq!(done, 0);
    own
}

/// Somebody writes whatever over the words in front of the memory, while others attach, call, reset
/// and detach: no thread panics, none waits for good, and afterwards a reset makes it usable.
#[test]
fn whatever_the_words_in_front_say_nobody_is_hurt() {
    let test = "whatever_the_words_in_front_say_nobody_is_hurt";
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
    let test = "a_reset_without_end_keeps_nobody_who_leaves";
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
    support::succeeds_in_child("a_process_of_another_namespace", || {
        let directory = support::Directory::new();
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
    support::succeeds_in_child("who_cannot_be_watched_has_not_ended", || {
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
    support::succeeds_in_child("forks_while_a_process_attaches", || {
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

fn begin(path: &Path) -> Result<Broker, CommonError> {
    let memory = CommonMemory::new(&image()).unwrap();
    Broker::begin(path, &memory, Admission::default())
}

/// A broker takes the place of a socket that another has left, and of nothing else.
#[test]
fn a_broker_removes_no_file_of_anybody() {
    let directory = support::Directory::new();
    let (path, target) = (directory.path("state"), directory.path("target"));
    std::fs::write(&path, "precious").unwrap();
    let error = begin(&path).unwrap_err();
    assert!(error.to_string().contains("no socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(begin(&path).is_err());
    assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(begin(&path).is_err());
    std::fs::remove_dir(&path).unwrap();
    // Nor does it follow a link, or wait for who reads a pipe, where its lock is to lie.
    let lock = directory.path("state.lock");
    std::fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(&target, &lock).unwrap();
    assert!(begin(&path).is_err() && !target.exists());
    std::fs::remove_file(&lock).unwrap();
    let name = std::ffi::CString::new(lock.as_os_str().as_encoded_bytes()).unwrap();
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert!(begin(&path).is_err());
    std::fs::remove_file(&lock).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(begin(&path).unwrap());
}

/// Clients that say something, pass descriptors, say nothing, or come in numbers: each is answered,
/// and the next, too; and who comes to a broker that has stopped does not wait for good.
#[test]
fn clients_of_all_kinds_and_a_broker_that_has_stopped() {
    let test = "clients_of_all_kinds_and_a_broker_that_has_stopped";
    support::succeeds_in_child(test, clients);
}

/// A socket that is connected there, or not where that would have to wait.
fn connect(path: &Path) -> Option<OwnedFd> {
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let socket = OwnedFd::from_raw_fd(libc::socket(libc::AF_UNIX, kind, 0));
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as u16;
        let name = path.as_os_str().as_encoded_bytes();
        for (to, &from) in address.sun_path.iter_mut().zip(name) {
            *to = from as libc::c_char;
        }
        let size = size_of::<libc::sockaddr_un>() as u32;
        let done = libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size);
        (done == 0).then_some(socket)
    }
}

fn clients() {
    let directory = support::Directory::new();
    let path = directory.path("state");
    let broker = begin(&path).unwrap();
    let (stop, stopped) = std::os::unix::net::UnixStream::pair().unwrap();
    let descriptors = support::descriptors();
    std::thread::scope(|scope| {
        let serve = scope.spawn(|| {
            let mut visits = 0;
            while broker.serve_one(stopped.as_fd()).unwrap().is_some() {
                visits += 1;
            }
            visits
        });
        let mut idle = Vec::new();
        for round in 0..300 {
            let Some(client) = connect(&path) else {
                std::thread::sleep(Duration::from_micros(100));
                continue;
            };
            if round % 3 == 0 {
                let rights = [0i32; 1];
                unsafe {
                    let mut control = [0u64; 8];
                    let mut part: libc::iovec = std::mem::zeroed();
                    let garbage = [round as u8; 100];
                    part.iov_base = garbage.as_ptr().cast_mut().cast();
                    part.iov_len = garbage.len();
                    let mut message: libc::msghdr = std::mem::zeroed();
                    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
                    message.msg_control = control.as_mut_ptr().cast();
                    message.msg_controllen = libc::CMSG_SPACE(4) as usize;
                    let head = libc::CMSG_FIRSTHDR(&message);
                    (*head).cmsg_level = libc::SOL_SOCKET;
                    (*head).cmsg_type = libc::SCM_RIGHTS;
                    (*head).cmsg_len = libc::CMSG_LEN(4) as usize;
                    libc::CMSG_DATA(head).copy_from_nonoverlapping(rights.as_ptr().cast(), 4);
                    libc::sendmsg(client.as_raw_fd(), &message, libc::MSG_NOSIGNAL);
                }
            }
            if round % 3 == 1 {
                idle.push(client);
            }
        }
        assert!(CommonMemory::from_broker(&path).is_ok());
        drop(idle);
        drop(stop);
        assert!(serve.join().unwrap() > 100);
    });
    assert!(support::descriptors() < descriptors);
    // It does not serve any more, and as many wait as can.
    let waiting: Vec<_> = (0..1000).map_while(|_| connect(&path)).collect();
    assert!(waiting.len() < 1000);
    let came = std::thread::spawn(move || CommonMemory::from_broker(&path).map(drop));
    until("who came late is told", || came.is_finished());
    let error = came.join().unwrap().unwrap_err();
    assert!(matches!(error, CommonError::NoBroker(_)), "{error}");
}
