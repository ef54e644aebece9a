//! Common domains: one memory in several processes.
#![allow(clippy::undocumented_unsafe_blocks)]

mod support;
use postern::{
    CallError, CommonError, CommonMemory, Domain, DomainBuilder, FaultKind, Image,
    InstantiateError, MapError, Offset, Poison,
};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{code, domain, fork};

fn image() -> Image {
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
            ("spin", "v()"),
            ("serve", "i()"),
            ("trap", "v()"),
            ("__postern_init", "v()"),
        ],
        ".data
         n: .long 0
         word: .long 0
         count: .long 7
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
         spin: jmp spin
         trap: ud2
         serve: call s
            ret
         __postern_init: incl %gs:count(,%eiz,1)
            ret",
    )
    .image()
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
    let memory = CommonMemory::new(&image()).unwrap();
    drop(attach(&memory));
    let (descriptors, threads) = (support::descriptors(), support::threads());
    for _ in 0..10 {
        drop((attach(&memory), attach(&memory)));
    }
    until("threads ended", || support::threads() <= threads);
    assert!(support::descriptors() <= descriptors);
}
