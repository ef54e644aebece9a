//! Common domains whose memory, descriptors and sockets strangers have.
#![allow(clippy::undocumented_unsafe_blocks)]
mod brokers;
mod processes;
#[path = "../support/mod.rs"]
mod support;
mod words;

use postern::{CallError, CommonMemory, Domain, Image, InstantiateError};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use support::code;

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
