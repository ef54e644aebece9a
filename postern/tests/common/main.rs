//! Common domains: one memory in several processes.
#![allow(clippy::undocumented_unsafe_blocks)]

#[path = "../support/mod.rs"]
mod support;

mod brokers;
mod ends;
mod sharing;
mod upcalls;

use postern::{
    Admission, Broker, CallError, CommonError, CommonMemory, Domain, DomainBuilder, EndInside,
    FaultKind, Image, InstantiateError, MapError, Offset, Poison,
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
        .grant_to_all("s")
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
        Self::begin_in(test, &[], memory, body)
    }

    fn begin_in(
        test: &str,
        environment: &[(&str, String)],
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
            .envs(environment.iter().map(|(name, value)| (name, value)))
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
