//! Common domains: one memory in several processes.
#![allow(clippy::undocumented_unsafe_blocks)]

mod support;
use postern::{
    Admission, Broker, CallError, CommonError, CommonMemory, Domain, DomainBuilder, FaultKind,
    Image, InstantiateError, MapError, Offset, Poison,
};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::{code, domain, fork};

fn image() -> Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| source().image()).clone()
}

fn source() -> support::Code {
    code(
        &[
            ("s", "i()"),
            ("__postern_wait", "i(pIl)"),
            ("__postern_wake", "i(pI)"),
        ],
        &[
            ("put", "v(i)"),
            ("get", "i()"),
            ("add", "i(i)"),
            ("begun", "i()"),
            ("peek", "i(p)"),
            ("stack", "I()"),
            ("sleep", "i(i)"),
            ("wake", "i(i)"),
            ("hold", "v()"),
            ("serve", "i()"),
            ("trap", "v()"),
            ("both", "v()"),
            ("__postern_init", "v()"),
        ],
        ".data
         n: .long 0
         word: .long 0
         count: .long 7
         one: .long 0
         two: .long 0
         .text
         put: movl %edi,%gs:n(,%eiz,1)
            ret
         get: movl %gs:n(,%eiz,1),%eax
            ret
         add: movl %edi,%eax
            lock xaddl %eax,%gs:n(,%eiz,1)
            ret
         begun: movl %gs:count(,%eiz,1),%eax
            ret
         peek: movl %gs:(%edi),%eax
            ret
         stack: movl %r15d,%eax
            ret
         sleep: movl %edi,%esi
            movl $word,%edi
            movq $-1,%rdx
            call __postern_wait
            ret
         wake: movl %edi,%gs:word(,%eiz,1)
            movl $word,%edi
            movl $1,%esi
            call __postern_wake
            ret
         hold: movl $2,%gs:n(,%eiz,1)
         held: jmp held
         trap: ud2
         both: lock incl %gs:one(,%eiz,1)
            call s
            lock incl %gs:two(,%eiz,1)
            ret
         serve: call s
            ret
         __postern_init: incl %gs:count(,%eiz,1)
            ret",
    )
}

fn builder(memory: &CommonMemory) -> DomainBuilder {
    Domain::builder(&image())
        .service("s", |_: &postern::Caller<'_>| 7)
        .deadline(None)
        .common(memory)
}

fn attach(memory: &CommonMemory) -> Domain {
    builder(memory).build().unwrap()
}

fn call(domain: &Domain, name: &str) -> Result<i32, CallError> {
    domain.func::<fn() -> i32>(name).unwrap().call()
}

fn get(domain: &Domain) -> i32 {
    call(domain, "get").unwrap()
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

/// A broker for new memory, which serves until it is dropped.
struct Serving {
    path: PathBuf,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Broker>>,
    _directory: support::Directory,
}

impl Serving {
    fn begin() -> Serving {
        let directory = support::Directory::new();
        let path = directory.path("state");
        let memory = CommonMemory::new(&image()).unwrap();
        let broker = Broker::begin(&path, &memory, Admission::default()).unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let serve = move || {
            while let Some(visit) = broker.serve_one(stopped.as_fd()).unwrap() {
                assert!(visit.admitted);
            }
            broker
        };
        Serving {
            path,
            stop: Some(stop),
            thread: Some(std::thread::spawn(serve)),
            _directory: directory,
        }
    }

    fn end(&mut self) -> Broker {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap()
    }
}

fn shared(path: &Path) -> Result<Domain, InstantiateError> {
    let builder = Domain::shared_at(path, &image())?;
    let builder = builder.service("s", |_: &postern::Caller<'_>| 7);
    builder.deadline(None).build()
}

fn refused(path: &Path) -> CommonError {
    match shared(path) {
        Err(InstantiateError::Common(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_broker_hands_it_out_and_who_has_it_goes_on_without() {
    const PATH: &str = "POSTERN_TEST_SOCKET";
    let test = "a_broker_hands_it_out_and_who_has_it_goes_on_without";
    if let Some(path) = std::env::var_os(PATH) {
        let domain = shared(path.as_ref()).unwrap();
        put(&domain, 2);
        until("the last value", || get(&domain) == 3);
        put(&domain, 4);
        std::process::exit(0);
    }
    let mut serving = Serving::begin();
    let domain = shared(&serving.path).unwrap();
    put(&domain, 1);
    assert_eq!(get(&shared(&serving.path).unwrap()), 1);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(PATH, &serving.path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the other's value", || get(&domain) == 2);
    // Of one path there is one.
    let memory = CommonMemory::new(&image()).unwrap();
    let again = Broker::begin(&serving.path, &memory, Admission::default());
    assert!(matches!(again, Err(CommonError::Shared(_))), "{again:?}");
    let broker = serving.end();
    assert!(broker.path().exists());
    drop(broker);
    assert!(!serving.path.exists());
    let error = refused(&serving.path);
    assert!(matches!(error, CommonError::NoBroker(_)), "{error}");
    put(&domain, 3);
    until("it goes on", || get(&domain) == 4);
    assert!(child.wait().unwrap().success());
    // What a broker leaves that was killed is no hindrance.
    drop(std::os::unix::net::UnixListener::bind(&serving.path).unwrap());
    let error = refused(&serving.path);
    assert!(
        matches!(error, CommonError::NoBroker(_) | CommonError::System { .. }),
        "{error}"
    );
    drop(Broker::begin(&serving.path, &memory, Admission::default()).unwrap());
}

#[test]
fn who_is_admitted() {
    let own = unsafe { libc::geteuid() };
    let narrow = Admission::default();
    assert!(narrow.admits(own, 77) && narrow.admits(0, 77) && !narrow.admits(own + 1, 77));
    let wide = Admission {
        users: vec![own + 1],
        groups: vec![5],
        ..Admission::default()
    };
    assert!(wide.admits(own + 1, 77) && wide.admits(own + 2, 5) && !wide.admits(own + 2, 77));
    let all = Admission {
        all: true,
        ..Admission::default()
    };
    assert!(all.admits(own + 2, 77));
}

#[test]
fn names_of_shared_domains() {
    for name in ["counter", "a-b_c.1", &"x".repeat(64)] {
        assert!(
            postern::socket_of(name)
                .unwrap()
                .ends_with(format!("postern/{name}"))
        );
    }
    for name in [
        "",
        ".",
        "..",
        ".x",
        "a/b",
        "../x",
        "a b",
        "a\0",
        "ä",
        &"x".repeat(65),
    ] {
        assert!(
            matches!(postern::socket_of(name), Err(CommonError::Name(_))),
            "{name}"
        );
    }
}

/// Whatever a stranger sends, it is an error, and nothing of it stays.
#[test]
fn what_is_no_broker_is_told_so() {
    support::succeeds_in_child("what_is_no_broker_is_told_so", strangers);
}

fn strangers() {
    use std::mem::{size_of, zeroed};
    let directory = support::Directory::new();
    let path = directory.path("stranger");
    let memory = CommonMemory::new(&image()).unwrap();
    let good = memory.descriptor().as_raw_fd();
    let other = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let other = other.as_raw_fd();
    let given: &[u8] = b"postern-common-1";
    let cases: [(&[u8], &[i32]); 9] = [
        (b"", &[]),
        (b"postern-common-0", &[]),
        (b"postern-common-0", &[good]),
        (given, &[]),
        (given, &[other]),
        (given, &[good, good]),
        (given, &[good; 9]),
        (b"postern-common-2", &[good]),
        (&[b'x'; 500], &[]),
    ];
    let descriptors = support::descriptors();
    for (text, rights) in cases {
        let stranger = unsafe {
            let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
            let mut address: libc::sockaddr_un = zeroed();
            address.sun_family = libc::AF_UNIX as u16;
            let name = path.as_os_str().as_encoded_bytes();
            for (to, &from) in address.sun_path.iter_mut().zip(name) {
                *to = from as libc::c_char;
            }
            let size = size_of::<libc::sockaddr_un>() as u32;
            let _ = std::fs::remove_file(&path);
            assert_eq!(libc::bind(fd, (&raw const address).cast(), size), 0);
            assert_eq!(libc::listen(fd, 1), 0);
            OwnedFd::from_raw_fd(fd)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| unsafe {
                let client = libc::accept4(
                    stranger.as_raw_fd(),
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    libc::SOCK_CLOEXEC,
                );
                let client = OwnedFd::from_raw_fd(client);
                let mut control = [0u64; 32];
                let mut part = libc::iovec {
                    iov_base: text.as_ptr().cast_mut().cast(),
                    iov_len: text.len(),
                };
                let mut message: libc::msghdr = zeroed();
                message.msg_iov = &raw mut part;
                message.msg_iovlen = 1;
                if !rights.is_empty() {
                    let bytes = size_of_val(rights) as u32;
                    message.msg_control = control.as_mut_ptr().cast();
                    message.msg_controllen = libc::CMSG_SPACE(bytes) as usize;
                    let head = libc::CMSG_FIRSTHDR(&message);
                    (*head).cmsg_level = libc::SOL_SOCKET;
                    (*head).cmsg_type = libc::SCM_RIGHTS;
                    (*head).cmsg_len = libc::CMSG_LEN(bytes) as usize;
                    libc::CMSG_DATA(head)
                        .copy_from_nonoverlapping(rights.as_ptr().cast(), size_of_val(rights));
                }
                if !text.is_empty() {
                    assert!(libc::sendmsg(client.as_raw_fd(), &message, 0) > 0);
                }
            });
            let error = refused(&path);
            let shown = format!(
                "{} bytes, {} descriptors: {error}",
                text.len(),
                rights.len()
            );
            println!("{shown}");
        });
    }
    assert_eq!(support::descriptors(), descriptors);
}

const CHILD: &str = "POSTERN_TEST_ATTACHED";

/// A process that runs `body`, attached to the memory. It ends when the test does.
struct Attached(Child);

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Attached {
    /// `test` is the full name of the calling test. In the process itself, does not return.
    fn begin(test: &str, memory: impl FnOnce() -> CommonMemory, body: impl FnOnce(Domain)) -> Self {
        Self::begin_with(test, memory, |memory| body(attach(memory)))
    }

    fn begin_with(
        test: &str,
        memory: impl FnOnce() -> CommonMemory,
        body: impl FnOnce(&CommonMemory),
    ) -> Self {
        if std::env::var(CHILD).as_deref() == Ok(test) {
            let file = unsafe { OwnedFd::from_raw_fd(libc::dup(0)) };
            body(&CommonMemory::join(file).unwrap());
            std::process::exit(0);
        }
        let memory = memory();
        let descriptor = memory.descriptor().try_clone_to_owned().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(CHILD, test)
            .stdin(Stdio::from(descriptor))
            .stdout(Stdio::null())
            .spawn();
        Attached(child.unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn succeeds(mut self) {
        assert!(self.0.wait().unwrap().success());
    }
}

fn is_child() -> bool {
    std::env::var(CHILD).is_ok()
}

/// Memory, and a domain that has it; in the child, none of it is looked at.
fn pair() -> (Option<CommonMemory>, Option<Domain>) {
    if is_child() {
        return (None, None);
    }
    let memory = CommonMemory::new(&image()).unwrap();
    let domain = attach(&memory);
    (Some(memory), Some(domain))
}

#[test]
fn two_domains_of_a_process_have_one_state() {
    let memory = CommonMemory::new(&image()).unwrap();
    let (one, other) = (attach(&memory), attach(&memory));
    put(&one, 3);
    assert_eq!(get(&other), 3);
    // The constructors ran once; text and heap are at the same offsets.
    assert_eq!(call(&one, "begun").unwrap(), 8);
    assert_eq!(call(&other, "begun").unwrap(), 8);
    let heap = one.image().tables().layout.heap_start;
    one.write(Offset(heap), &9u32.to_le_bytes()).unwrap();
    let peek = other.func::<fn(Offset) -> i32>("peek").unwrap();
    assert_eq!(peek.call(Offset(heap)).unwrap(), 9);
    // Stacks are at offsets that the other does not have.
    let stack = |domain: &Domain| domain.func::<fn() -> u32>("stack").unwrap().call().unwrap();
    let (its, others) = (stack(&one), stack(&other));
    assert_ne!(its, others);
    let fault = peek.call(Offset(its - 64)).unwrap_err();
    assert_eq!(fault.fault().unwrap().kind, FaultKind::Read);
}

#[test]
fn memory_of_one_client_is_no_others() {
    let memory = CommonMemory::new(&image()).unwrap();
    let (one, other) = (attach(&memory), attach(&memory));
    let private = one.own_memory(5000).unwrap();
    let others = other.own_memory(5000).unwrap();
    assert_ne!(private, others);
    one.write(private, &7u32.to_le_bytes()).unwrap();
    one.write(Offset(private.0 + 4096), &8u32.to_le_bytes())
        .unwrap();
    let peek = |domain: &Domain, at: u32| {
        let peek = domain.func::<fn(Offset) -> i32>("peek").unwrap();
        peek.call(Offset(at))
    };
    assert_eq!(peek(&one, private.0).unwrap(), 7);
    assert_eq!(peek(&other, others.0).unwrap(), 0);
    assert!(other.read_vec(private, 4).is_err());
    // Nothing lies beside it.
    for at in [private.0 - 4, private.0 + 8192] {
        assert!(one.read_vec(Offset(at), 4).is_err());
    }
    let fault = peek(&other, private.0).unwrap_err();
    assert_eq!(fault.fault().unwrap().kind, FaultKind::Read);
    until("the reset", || one.reset().is_ok());
    assert_eq!(peek(&one, private.0).unwrap(), 0);
    for bytes in [0, 1 << 31, 1 << 40] {
        assert!(one.own_memory(bytes).is_err());
    }
    let plain = Domain::builder(&image()).service("s", |_: &postern::Caller<'_>| 7);
    assert!(plain.build().unwrap().own_memory(1).is_err());
    // It goes on until the seat's share is used up, and the data stacks have none left.
    while one.own_memory(1 << 20).is_ok() {}
    assert_eq!(get(&one), 0);
    let thread = std::thread::scope(|scope| scope.spawn(|| call(&one, "get")).join().unwrap());
    println!("{thread:?}");
}

#[test]
fn two_processes_have_one_state() {
    let (memory, domain) = pair();
    let attached = Attached::begin(
        "two_processes_have_one_state",
        || memory.unwrap(),
        |domain| {
            until("the first value", || get(&domain) == 5);
            assert_eq!(call(&domain, "begun").unwrap(), 8);
            put(&domain, 6);
            until("the last value", || get(&domain) == 7);
        },
    );
    let domain = domain.unwrap();
    put(&domain, 5);
    until("the other's value", || get(&domain) == 6);
    put(&domain, 7);
    attached.succeeds();
}

#[test]
fn who_comes_late_finds_what_is_there() {
    let (memory, domain) = pair();
    if let Some(domain) = &domain {
        put(domain, 1234);
    }
    drop(domain);
    Attached::begin(
        "who_comes_late_finds_what_is_there",
        || memory.unwrap(),
        |domain| {
            assert_eq!(get(&domain), 1234);
            assert_eq!(call(&domain, "begun").unwrap(), 8);
        },
    )
    .succeeds();
}

#[test]
fn one_process_wakes_another() {
    let (memory, domain) = pair();
    let attached = Attached::begin(
        "one_process_wakes_another",
        || memory.unwrap(),
        |domain| {
            let sleep = domain.func::<fn(i32) -> i32>("sleep").unwrap();
            put(&domain, 1);
            // While the word is 0.
            assert_eq!(sleep.call(0).unwrap(), 0);
            put(&domain, 2);
        },
    );
    let domain = domain.unwrap();
    until("the sleeper", || get(&domain) == 1);
    let wake = domain.func::<fn(i32) -> i32>("wake").unwrap();
    until("somebody was woken", || wake.call(0).unwrap() == 1);
    until("it went on", || get(&domain) == 2);
    attached.succeeds();
}

#[test]
fn files_that_are_none_are_refused() {
    fn cause(refused: Result<CommonMemory, InstantiateError>) -> CommonError {
        match refused {
            Err(InstantiateError::Common(error)) => error,
            other => panic!("{other:?}"),
        }
    }
    fn file(bytes: u64, seals: i32) -> OwnedFd {
        unsafe {
            let fd = libc::memfd_create(c"x".as_ptr(), libc::MFD_ALLOW_SEALING);
            assert!(fd >= 0 && libc::ftruncate(fd, bytes as i64) == 0);
            assert!(seals == 0 || libc::fcntl(fd, libc::F_ADD_SEALS, seals) == 0);
            OwnedFd::from_raw_fd(fd)
        }
    }
    let memory = CommonMemory::new(&image()).unwrap();
    let length = std::fs::File::from(memory.descriptor().try_clone_to_owned().unwrap());
    let length = length.metadata().unwrap().len();
    let size = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    for (bytes, seals) in [
        (length, 0),
        (length, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW),
        (length, libc::F_SEAL_GROW | libc::F_SEAL_SEAL),
        (length, size | libc::F_SEAL_WRITE),
        (4096, size),
        (0, size),
    ] {
        let error = cause(CommonMemory::join(file(bytes, seals)));
        assert!(
            matches!(error, CommonError::Map(MapError::Unsealed)),
            "{error}"
        );
    }
    let error = cause(CommonMemory::join(file(length, size)));
    assert!(matches!(error, CommonError::Foreign(_)), "{error}");
    let other = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let error = cause(CommonMemory::join(other.into()));
    assert!(
        matches!(error, CommonError::Map(MapError::Unsealed)),
        "{error}"
    );
}

#[test]
fn layouts_that_are_none_are_refused() {
    let memory = CommonMemory::new(&image()).unwrap();
    let header = std::fs::File::from(memory.descriptor().try_clone_to_owned().unwrap());
    let mut page = vec![0u8; 4096];
    std::os::unix::fs::FileExt::read_exact_at(&header, &mut page, 0).unwrap();
    let join = |page: &[u8]| {
        std::os::unix::fs::FileExt::write_all_at(&header, page, 0).unwrap();
        CommonMemory::join(memory.descriptor().try_clone_to_owned().unwrap())
    };
    assert!(join(&page).is_ok());
    let mut random = fastrand::Rng::with_seed(23);
    for word in 16..23 {
        for _ in 0..50 {
            let mut forged = page.clone();
            let value = match random.u32(0..3) {
                0 => random.u32(..),
                1 => 1 << random.u32(0..32),
                _ => random.u32(0..1 << 20) << 12,
            };
            let own = &mut forged[4 * word..4 * word + 4];
            if own == value.to_le_bytes() {
                continue;
            }
            own.copy_from_slice(&value.to_le_bytes());
            // What is possible, but not this image's, is found when it is attached.
            if let Ok(joined) = join(&forged) {
                let built = builder(&joined).build();
                assert!(built.is_err() || word > 19, "word {word}, {value:#x}");
            }
        }
    }
    assert!(join(&page).is_ok());
    assert_eq!(get(&attach(&memory)), 0);
}

#[test]
fn the_state_of_another_image_is_refused() {
    let other = domain(&[("one", "i()")], "one: movl $1,%eax\n ret").image();
    let memory = CommonMemory::new(&image()).unwrap();
    let error = Domain::builder(&other).common(&memory).build().unwrap_err();
    let is = matches!(
        error.cause(),
        InstantiateError::Common(CommonError::Image { .. })
    );
    assert!(is, "{error}");
}

#[test]
fn a_seat_is_free_again_and_there_are_so_many() {
    let memory = CommonMemory::new(&image()).unwrap();
    for _ in 0..3 {
        let all: Vec<_> = (0..64).map(|_| attach(&memory)).collect();
        put(&all[63], 4);
        assert_eq!(get(&all[0]), 4);
        let error = builder(&memory).build().unwrap_err();
        let full = matches!(
            error.cause(),
            InstantiateError::Common(CommonError::Full(64))
        );
        assert!(full, "{error}");
    }
}

#[test]
fn a_fault_closes_it_for_all_until_it_is_reset() {
    let (memory, domain) = pair();
    let attached = Attached::begin(
        "a_fault_closes_it_for_all_until_it_is_reset",
        || memory.unwrap(),
        |domain| {
            put(&domain, 1);
            until("go", || get(&domain) == 2);
            let trap = domain.func::<fn()>("trap").unwrap();
            assert!(trap.call().unwrap_err().fault().is_some());
            until("the reset", || call(&domain, "get").is_ok_and(|n| n == 3));
            assert_eq!(call(&domain, "begun").unwrap(), 8);
            put(&domain, 4);
        },
    );
    let domain = domain.unwrap();
    until("it is there", || get(&domain) == 1);
    put(&domain, 2);
    until("the poison", || domain.is_poisoned());
    assert!(matches!(call(&domain, "get"), Err(CallError::Poisoned)));
    let (pid, kind) = (attached.pid(), Some(FaultKind::Trap));
    assert_eq!(domain.poison(), Some(Poison::Fault { pid, kind }));
    domain.reset().unwrap();
    assert_eq!(domain.poison(), None);
    assert_eq!((get(&domain), call(&domain, "begun").unwrap()), (0, 8));
    put(&domain, 3);
    until("the other goes on", || get(&domain) == 4);
    attached.succeeds();
}

#[test]
fn no_reset_while_another_process_is_inside() {
    let (memory, domain) = pair();
    let attached = Attached::begin(
        "no_reset_while_another_process_is_inside",
        || memory.unwrap(),
        |domain| {
            put(&domain, 1);
            let sleep = domain.func::<fn(i32) -> i32>("sleep").unwrap();
            assert_eq!(sleep.call(0).unwrap(), 0);
            put(&domain, 3);
            until("the reset", || call(&domain, "get").is_ok_and(|n| n == 0));
            put(&domain, 4);
        },
    );
    let domain = domain.unwrap();
    until("it is there", || get(&domain) == 1);
    // It is about to sleep, or sleeps.
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..3 {
        assert!(domain.reset().is_err());
        assert_eq!(get(&domain), 1);
    }
    let wake = domain.func::<fn(i32) -> i32>("wake").unwrap();
    until("it was woken", || wake.call(1).unwrap() == 1);
    until("it is outside", || get(&domain) == 3);
    until("the reset", || domain.reset().is_ok());
    until("the other goes on", || get(&domain) == 4);
    attached.succeeds();
}

#[test]
fn who_is_killed_inside_poisons_it() {
    let (memory, domain) = pair();
    let attached = Attached::begin(
        "who_is_killed_inside_poisons_it",
        || memory.unwrap(),
        |domain| {
            let hold = domain.func::<fn()>("hold").unwrap();
            hold.call().unwrap();
        },
    );
    let domain = domain.unwrap();
    let pid = attached.pid();
    until("it is inside", || get(&domain) == 2);
    let since = Instant::now();
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    while !domain.is_poisoned() {
        std::hint::spin_loop();
        assert!(since.elapsed() < Duration::from_secs(20));
    }
    println!("poisoned {:?} after the kill", since.elapsed());
    let Some(Poison::Killed {
        pid: its, function, ..
    }) = domain.poison()
    else {
        panic!("{:?}", domain.poison());
    };
    assert_eq!((its, function.as_deref()), (pid, Some("hold")));
    let words = domain.poison().unwrap().to_string();
    assert_eq!(
        words,
        format!("process {pid} ended while it was inside `hold`")
    );
    assert!(matches!(call(&domain, "get"), Err(CallError::Poisoned)));
    domain.reset().unwrap();
    assert_eq!(get(&domain), 0);
}

#[test]
fn who_is_killed_in_a_service_or_a_nested_call_was_inside() {
    let (memory, domain) = pair();
    let attached = Attached::begin_with(
        "who_is_killed_in_a_service_or_a_nested_call_was_inside",
        || memory.unwrap(),
        |memory| {
            let own = domain_that_adds();
            let served = Domain::builder(&image()).common(memory).deadline(None);
            let served = served.service("s", move |caller: &postern::Caller<'_>| -> i32 {
                // A call of the same domain, and one of another, have come and gone.
                put(&caller.domain(), 1);
                assert_eq!(call(&own, "one").unwrap(), 1);
                put(&caller.domain(), 2);
                loop {
                    std::thread::park();
                }
            });
            let domain = served.build().unwrap();
            call(&domain, "serve").unwrap();
        },
    );
    let domain = domain.unwrap();
    until("it is inside", || get(&domain) == 2);
    let pid = attached.pid();
    drop(attached);
    until("the poison", || domain.is_poisoned());
    let killed = matches!(domain.poison(), Some(Poison::Killed { pid: its, .. }) if its == pid);
    assert!(killed, "{:?}", domain.poison());
    domain.reset().unwrap();
}

fn domain_that_adds() -> Domain {
    domain(&[("one", "i()")], "one: movl $1,%eax\n ret")
}

#[test]
fn who_is_killed_outside_leaves_it_usable() {
    for round in 0..3 {
        let (memory, domain) = pair();
        let attached = Attached::begin(
            "who_is_killed_outside_leaves_it_usable",
            || memory.unwrap(),
            |domain| {
                // Calls that return, in all ways.
                let trap = domain.func::<fn()>("trap").unwrap();
                assert!(trap.call().is_err());
                domain.reset().unwrap();
                assert_eq!(call(&domain, "serve").unwrap(), 7);
                domain
                    .read_vec(Offset(domain.image().tables().layout.data), 4)
                    .unwrap();
                put(&domain, 2);
                loop {
                    std::thread::park();
                }
            },
        );
        let domain = domain.unwrap();
        until("it was inside", || {
            call(&domain, "get").is_ok_and(|n| n == 2)
        });
        std::thread::sleep(Duration::from_millis(20 * round));
        drop(attached);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!((domain.poison(), get(&domain)), (None, 2));
        domain.reset().unwrap();
    }
}

#[test]
fn the_dead_are_found_by_who_comes_when_nobody_was_there() {
    if is_child() {
        let child = |domain: Domain| domain.func::<fn()>("hold").unwrap().call().unwrap();
        let test = "the_dead_are_found_by_who_comes_when_nobody_was_there";
        Attached::begin(test, || unreachable!(), child);
    }
    let memory = CommonMemory::new(&image()).unwrap();
    let test = "the_dead_are_found_by_who_comes_when_nobody_was_there";
    let attached = Attached::begin(test, || memory.clone(), |_| {});
    let layout = image().tables().layout;
    let file = std::fs::File::from(memory.descriptor().try_clone_to_owned().unwrap());
    let n = || {
        let mut word = [0; 4];
        let length = file.metadata().unwrap().len();
        let at = length - u64::from(layout.heap_start + (64 << 20) - layout.data);
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut word, at).unwrap();
        u32::from_le_bytes(word)
    };
    until("it is inside", || n() == 2);
    drop(attached);
    let domain = attach(&memory);
    assert!(domain.is_poisoned());
    assert!(matches!(domain.poison(), Some(Poison::Killed { .. })));
    domain.reset().unwrap();
    assert_eq!(get(&domain), 0);
}

/// Two counters that a call makes equal: killed at any instruction, it leaves them so, or the
/// domain says that it was inside.
#[test]
fn who_is_killed_at_any_instruction_leaves_it_usable_or_poisoned() {
    let source = source();
    let image = source.image();
    let memory = CommonMemory::new(&image).unwrap();
    let attach = || {
        let builder = Domain::builder(&image).common(&memory).deadline(None);
        let builder = builder.service("s", |_: &postern::Caller<'_>| 7);
        builder.build().unwrap()
    };
    let domain = attach();
    let counters = || {
        [source.at("one"), source.at("two")].map(|at| {
            let mut word = [0; 4];
            domain.read(Offset(at), &mut word).unwrap();
            u32::from_le_bytes(word)
        })
    };
    let mut found = String::new();
    for steps in 0.. {
        assert!(steps < 20_000, "it does not return");
        let before = counters();
        assert_eq!(before[0], before[1]);
        let (complete, pid) = unsafe {
            match libc::fork() {
                0 => {
                    let called = std::panic::catch_unwind(|| {
                        let domain = attach();
                        let both = domain.func::<fn()>("both").unwrap();
                        // The first call is another way in.
                        both.call().unwrap();
                        libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                        libc::raise(libc::SIGSTOP);
                        both.call().unwrap();
                        libc::raise(libc::SIGSTOP);
                    });
                    libc::_exit(if called.is_ok() { 0 } else { 9 })
                }
                child => {
                    assert!(child > 0);
                    let mut status = 0;
                    let mut stop = || {
                        assert_eq!(libc::waitpid(child, &mut status, 0), child);
                        assert!(libc::WIFSTOPPED(status), "{status:#x}");
                        libc::WSTOPSIG(status)
                    };
                    assert_eq!(stop(), libc::SIGSTOP);
                    let step = || libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) == 0;
                    let mut complete = false;
                    for _ in 0..steps {
                        assert!(step());
                        complete |= stop() == libc::SIGSTOP;
                        if complete {
                            break;
                        }
                    }
                    assert_eq!(libc::kill(child, libc::SIGKILL), 0);
                    assert_eq!(libc::waitpid(child, &mut status, libc::__WALL), child);
                    (complete, child as u32)
                }
            }
        };
        // Whoever attaches looks what the dead have left.
        drop(attach());
        let after = counters();
        match domain.poison() {
            None => {
                assert_eq!(after[0], after[1], "after {steps} steps");
                found.push('.');
            }
            Some(Poison::Killed {
                pid: its, function, ..
            }) => {
                assert_eq!((its, function.as_deref()), (pid, Some("both")));
                until("the poison", || domain.is_poisoned());
                until("the reset", || domain.reset().is_ok());
                found.push('x');
            }
            other => panic!("{other:?}"),
        }
        if complete {
            break;
        }
    }
    // Outside, inside, outside. Some calls take the slow path, which is longer: the watchdog had
    // gone to rest.
    let inside = found.matches('x').count();
    assert!(inside > 20, "{found}");
    assert!(found.starts_with('.') && found.ends_with('.'), "{found}");
}

/// Processes come, call, reset and are killed. Whenever the domain is open and nobody is there any
/// more, its counters are equal; and nothing of anybody stays.
#[test]
fn whatever_processes_do_it_is_usable_or_poisoned() {
    let test = "whatever_processes_do_it_is_usable_or_poisoned";
    support::succeeds_in_child(test, chaos);
}

fn chaos() {
    let source = source();
    let image = source.image();
    let memory = CommonMemory::new(&image).unwrap();
    let attach = || {
        let builder = Domain::builder(&image).common(&memory).deadline(None);
        builder.service("s", |_: &postern::Caller<'_>| 7).build()
    };
    let client = |seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        loop {
            // While somebody resets it for long, there is no way in.
            let Ok(domain) = attach() else { continue };
            for _ in 0..random.u32(1..200) {
                let _ = domain.func::<fn()>("both").unwrap().call();
            }
            match random.u32(0..4) {
                0 => drop(domain.reset()),
                1 if domain.poison().is_some() => drop(domain.reset()),
                _ => {}
            }
        }
    };
    let mut random = fastrand::Rng::with_seed(23);
    let mut alive = Vec::new();
    let (mut usable, mut poisoned) = (0, 0);
    for round in 0..120 {
        while alive.len() < 3 {
            let seed = random.u64(..);
            match unsafe { libc::fork() } {
                0 => {
                    let _ = std::panic::catch_unwind(|| client(seed));
                    unsafe { libc::_exit(9) }
                }
                child => alive.push(child),
            }
        }
        std::thread::sleep(Duration::from_millis(random.u64(0..12)));
        let all = round % 8 == 7;
        while !alive.is_empty() {
            let child = alive.swap_remove(random.usize(..alive.len()));
            let mut status = 0;
            unsafe {
                assert_eq!(libc::kill(child, libc::SIGKILL), 0);
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
            }
            assert!(libc::WIFSIGNALED(status), "{status:#x}");
            if !all {
                break;
            }
        }
        if !all {
            continue;
        }
        let domain = attach().unwrap();
        let counters = [source.at("one"), source.at("two")].map(|at| {
            let mut word = [0; 4];
            domain.read(Offset(at), &mut word).unwrap();
            u32::from_le_bytes(word)
        });
        match domain.poison() {
            None => {
                assert_eq!(counters[0], counters[1]);
                usable += 1;
            }
            Some(_) => {
                domain.reset().unwrap();
                poisoned += 1;
            }
        }
        assert_eq!(get(&domain), 0);
        assert_eq!(call(&domain, "begun").unwrap(), 8);
    }
    println!("{usable} times usable, {poisoned} times poisoned");
    let (descriptors, threads) = (support::descriptors(), support::threads());
    drop(attach().unwrap());
    until("threads ended", || support::threads() <= threads);
    assert!(support::descriptors() <= descriptors);
}

/// What calls cost beside those of a domain of its own: `--ignored --nocapture` shows it.
#[test]
#[ignore = "shows a figure"]
fn what_a_call_costs() {
    let memory = CommonMemory::new(&image()).unwrap();
    let plain = Domain::builder(&image()).service("s", |_: &postern::Caller<'_>| 7);
    let plain = plain.placement(postern::Placement::Cold).deadline(None);
    let domains = [plain.build().unwrap(), attach(&memory)];
    let calls = domains
        .each_ref()
        .map(|d| d.func::<fn() -> i32>("get").unwrap());
    let mut best = [u64::MAX; 2];
    for _ in 0..200 {
        for (best, call) in best.iter_mut().zip(&calls) {
            let begin = unsafe { std::arch::x86_64::_rdtsc() };
            for _ in 0..1000 {
                call.call().unwrap();
            }
            let taken = unsafe { std::arch::x86_64::_rdtsc() } - begin;
            *best = taken.min(*best);
        }
    }
    println!(
        "cycles of 1000 calls: private {}, common {}: {:.2}",
        best[0],
        best[1],
        best[1] as f64 / best[0] as f64
    );
}

#[test]
fn resets_of_several_processes_are_one_after_the_other() {
    let (memory, domain) = pair();
    let work = |domain: &Domain| {
        let (mut done, since) = (0, Instant::now());
        while done < 20 {
            assert!(since.elapsed() < Duration::from_secs(60), "{done} resets");
            done += i32::from(domain.reset().is_ok());
            // A reset of the other's may be under way; after it the constructors have run once.
            if let Ok(begun) = call(domain, "begun") {
                assert_eq!(begun, 8);
            }
        }
    };
    let attached = Attached::begin(
        "resets_of_several_processes_are_one_after_the_other",
        || memory.unwrap(),
        |domain| {
            put(&domain, 1);
            work(&domain);
        },
    );
    work(&domain.unwrap());
    attached.succeeds();
}

#[test]
fn a_child_has_it_no_more_and_the_parent_goes_on() {
    let memory = CommonMemory::new(&image()).unwrap();
    let domain = attach(&memory);
    put(&domain, 5);
    let status = fork(|| {
        assert!(matches!(call(&domain, "get"), Err(CallError::Closed)));
        // But it may attach, as anybody who has the descriptor.
        let again = attach(&memory);
        put(&again, 6);
        drop(again);
        drop(domain.clone());
        true
    });
    assert_eq!(status, 0);
    assert_eq!(get(&domain), 6);
    domain.reset().unwrap();
    assert_eq!(get(&domain), 0);
}

#[test]
fn nothing_stays_behind() {
    support::succeeds_in_child("nothing_stays_behind", attach_and_drop);
}

fn attach_and_drop() {
    let memory = CommonMemory::new(&image()).unwrap();
    drop(attach(&memory));
    let (descriptors, threads) = (support::descriptors(), support::threads());
    for _ in 0..10 {
        drop((attach(&memory), attach(&memory)));
    }
    until("threads ended", || support::threads() <= threads);
    assert!(support::descriptors() <= descriptors);
}
