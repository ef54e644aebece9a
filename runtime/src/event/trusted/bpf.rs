//! The program by which an event interrupts whoever runs.
//!
//! The kernel runs it at the tracepoint `sched_waking`, with the waking thread as the current one:
//! the one that wrote, or that an interrupt found running. If the thread that is woken is a
//! [waiter](super::super::waiter), and the current one is attached to that waiter's domain,
//! the program sends it the signal for upcalls. So the handler runs before the current thread's
//! next instruction, and nobody was scheduled for it.
//!
//! **Whom it signals.** Only threads in [`Program::attached`], by the numbers that the kernel
//! itself gives threads and processes, not those of a namespace. A process has its number for as
//! long as one of its threads is there, and the program goes with the process's descriptors: so it
//! signals no other process's thread, whatever becomes of ours. A thread of ours that ended
//! attached leaves its number to another thread of ours, for which such a signal is a stray.
//!
//! **How often.** Real-time signals queue, and a thread may block them. So one that was signalled
//! is not again before it has said that it takes that one ([`Signals::taken`]). It is the current
//! thread, and says so before it looks for events: what comes behind its look finds the word taken
//! back.
//!
//! **Which thread is a waiter** is told by the address of its `task_struct`, which a second
//! program tells the thread about itself: no layout of the kernel's is assumed. The waiter
//! takes it back before it ends.
//!
//! Both programs are instructions that are written here. The second is under Apache-2.0 or GPL-2.0,
//! as you choose: the kernel tells a task's address to no others.

use super::assembler::{AT_LEAST, AT_LEAST_OF, Assembler, NOT_EQUAL, OTHER_THAN};
use super::kernel;
pub(crate) use crate::common::relay::CLIENTS;
use crate::fork;
use postern_gates::machine;
use std::ffi::CStr;
use std::io::{Error, Result};
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, Weak};

/// Waiters that can have it at once.
const WAITERS: usize = 256;
/// Threads that can be attached at once.
const THREADS: u32 = 4096;

/// What a waiter and the program tell each other, in a page of both.
#[repr(C)]
struct Words {
    /// The waiter waits for events until this time, by the clock `CLOCK_MONOTONIC`; 0: it does
    /// not wait. Whatever wakes it later is no event.
    until: AtomicU64,
    /// How often somebody was signalled, or was already and has not taken it.
    signalled: AtomicU64,
    /// Who was that last, as in [`Program::attached`] …
    who: AtomicU64,
    /// … and on which processor.
    processor: AtomicU64,
    /// Which thread was current at the last event, attached or not …
    current: AtomicU64,
    /// … and on which processor.
    current_on: AtomicU64,
    /// By client: it was signalled, and has not taken it.
    pending: [AtomicU8; CLIENTS],
}

const PAGE: usize = WAITERS * size_of::<Words>();

/// The program, in force.
pub(crate) struct Program {
    /// Waiters by the address of their task: a number below [`WAITERS`].
    waiters: OwnedFd,
    /// Attached threads by process (upper half) and thread: their [`Member`].
    attached: OwnedFd,
    learned: OwnedFd,
    learns: OwnedFd,
    words: *mut Words,
    used: Mutex<[bool; WAITERS]>,
    _kept: [OwnedFd; 3],
}

// SAFETY: the words are atomics, in memory that stays until the program is dropped; the rest can be
// shared.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

/// Whose thread an attached one is.
#[repr(C)]
struct Member {
    waiter: u32,
    client: u32,
}

/// What the kernel says of the calling thread.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Learned {
    task: u64,
    /// Process in the upper half, thread in the lower.
    numbers: u64,
}

// Of `enum bpf_cmd`, `bpf_map_type`, `bpf_prog_type` and `bpf_func_id`, and their flags
// (include/uapi/linux/bpf.h).
const MAP_CREATE: i64 = 0;
const MAP_LOOKUP: i64 = 1;
const MAP_UPDATE: i64 = 2;
const MAP_DELETE: i64 = 3;
const PROGRAM_LOAD: i64 = 5;
const PROGRAM_RUN: i64 = 10;
const TRACEPOINT_OPEN: i64 = 17;
const HASH: u32 = 1;
const ARRAY: u32 = 2;
const MAPPABLE: u32 = 1 << 10;
const RAW_TRACEPOINT: u32 = 17;
const KTIME: i32 = 5;
const PROCESSOR: i32 = 8;
const CURRENT_NUMBERS: i32 = 14;
const CURRENT_TASK: i32 = 35;
const SIGNAL_THREAD: i32 = 117;

/// The system call, with an attribute whose layout is the kernel's for this command.
///
/// # Safety
/// Pointers in it are to what the kernel reads and writes there.
unsafe fn bpf<T>(command: i64, attribute: &mut T) -> Result<i32> {
    // SAFETY: the kernel reads and writes as many bytes of the attribute as this says, and what it
    // points to by the caller's promise.
    let done = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attribute),
            size_of::<T>(),
        )
    };
    match done {
        ..0 => Err(Error::last_os_error()),
        done => Ok(done as i32),
    }
}

fn owned(number: i32) -> OwnedFd {
    // SAFETY: a descriptor that bpf(2) has just made, closed by an exec, and nobody else's.
    unsafe { OwnedFd::from_raw_fd(number) }
}

fn map(kind: u32, key: u32, value: u32, entries: u32, flags: u32) -> Result<OwnedFd> {
    let mut attribute = [kind, key, value, entries, flags];
    // SAFETY: no pointers.
    Ok(owned(unsafe { bpf(MAP_CREATE, &mut attribute)? }))
}

/// Descriptor, address of the key, address of the value, flags.
type Element = [u64; 4];

fn element<K, V>(map: &OwnedFd, key: &K, value: *const V) -> Element {
    let key = std::ptr::from_ref(key) as u64;
    [map.as_raw_fd() as u64, key, value as u64, 0]
}

/// `V` is as large as the map's values.
fn update<V>(map: &OwnedFd, key: u64, value: &V) -> Result<()> {
    // SAFETY: both are as large as the map's, by the callers.
    unsafe { bpf(MAP_UPDATE, &mut element(map, &key, &raw const *value)).map(drop) }
}

fn delete(map: &OwnedFd, key: u64) {
    // SAFETY: the key is as large as the map's.
    let _ = unsafe {
        bpf(
            MAP_DELETE,
            &mut element::<_, u32>(map, &key, std::ptr::null()),
        )
    };
}

/// What is run at `sched_waking`, whose first argument is the task that is woken.
fn wakes(waiters: &OwnedFd, attached: &OwnedFd, words: &OwnedFd, signal: i32) -> Vec<u64> {
    const UNTIL: i16 = offset_of!(Words, until) as i16;
    const SIGNALLED: i16 = offset_of!(Words, signalled) as i16;
    const WHO: i16 = offset_of!(Words, who) as i16;
    const ON: i16 = offset_of!(Words, processor) as i16;
    const CURRENT: i16 = offset_of!(Words, current) as i16;
    const CURRENT_ON: i16 = offset_of!(Words, current_on) as i16;
    const PENDING: i16 = offset_of!(Words, pending) as i16;
    let mut a = Assembler::default();
    a.load(6, 1, 0);
    a.store(10, -8, 6);
    a.look_up(waiters, -8);
    // r7: which waiter.
    a.load_half(7, 0, 0);
    a.leave_if(AT_LEAST, 7, 0, WAITERS as i32);
    a.store_half(10, -12, 7);
    a.look_up(words, -12);
    // r8: its words. Does it wait for events?
    a.copy(8, 0);
    a.call(KTIME);
    a.load(1, 8, UNTIL);
    a.leave_if(AT_LEAST_OF, 0, 1, 0);
    // Is the current thread one of its domain's? If not, it may be another process's.
    a.call(PROCESSOR);
    a.store(8, CURRENT_ON, 0);
    a.call(CURRENT_NUMBERS);
    a.store(8, CURRENT, 0);
    a.store(10, -8, 0);
    a.look_up(attached, -8);
    a.load_half(1, 0, offset_of!(Member, waiter) as i16);
    a.leave_if(OTHER_THAN, 1, 7, 0);
    // r9: where its byte is.
    a.load_half(9, 0, offset_of!(Member, client) as i16);
    a.leave_if(AT_LEAST, 9, 0, CLIENTS as i32);
    a.add_register(9, 8);
    a.load_byte(1, 9, PENDING);
    a.skip_if(NOT_EQUAL, 1, 0, |a| {
        a.set(1, signal);
        a.call(SIGNAL_THREAD);
        a.leave_if(NOT_EQUAL, 0, 0, 0);
        a.set(1, 1);
        a.store_byte(9, PENDING, 1);
    });
    // Whoever has not taken it yet will look, too.
    a.load(1, 10, -8);
    a.store(8, WHO, 1);
    a.call(PROCESSOR);
    a.store(8, ON, 0);
    a.load(1, 8, SIGNALLED);
    a.add(1, 1);
    a.store(8, SIGNALLED, 1);
    a.finish()
}

/// What tells the current thread about itself.
fn learns(learned: &OwnedFd) -> Vec<u64> {
    let mut a = Assembler::default();
    a.set(1, 0);
    a.store_half(10, -4, 1);
    a.look_up(learned, -4);
    a.copy(6, 0);
    a.call(CURRENT_TASK);
    a.store(6, 0, 0);
    a.call(CURRENT_NUMBERS);
    a.store(6, 8, 0);
    a.finish()
}

/// Has the kernel judge a program.
fn load(code: &[u64], licence: &CStr) -> Result<OwnedFd> {
    #[repr(C)]
    #[derive(Default)]
    struct Attribute {
        kind: u32,
        count: u32,
        code: u64,
        licence: u64,
        log_level: u32,
        log_size: u32,
        log: u64,
        version: u32,
        flags: u32,
        name: [u8; 16],
    }
    let mut attribute = Attribute {
        kind: RAW_TRACEPOINT,
        count: code.len() as u32,
        code: code.as_ptr() as u64,
        licence: licence.as_ptr() as u64,
        name: *b"postern_upcalls\0",
        ..Attribute::default()
    };
    // SAFETY: the kernel reads so many instructions, and the licence up to its 0.
    Ok(owned(unsafe { bpf(PROGRAM_LOAD, &mut attribute)? }))
}

impl Program {
    /// Puts it in force, with the signal for upcalls.
    fn new(signal: i32) -> Result<Program> {
        let waiters = map(HASH, 8, 4, WAITERS as u32, 0)?;
        let attached = map(HASH, 8, size_of::<Member>() as u32, THREADS, 0)?;
        let shared = map(
            ARRAY,
            4,
            size_of::<Words>() as u32,
            WAITERS as u32,
            MAPPABLE,
        )?;
        let learned = map(ARRAY, 4, size_of::<Learned>() as u32, 1, 0)?;
        let learns = load(&learns(&learned), c"GPL")?;
        let code = wakes(&waiters, &attached, &shared, signal);
        let program = load(&code, c"Apache-2.0")?;
        let mut attribute = [c"sched_waking".as_ptr() as u64, program.as_raw_fd() as u64];
        // SAFETY: the kernel reads the name up to its 0.
        let link = owned(unsafe { bpf(TRACEPOINT_OPEN, &mut attribute)? });
        // SAFETY: a new mapping of the map's own memory, as long as that.
        let words = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let file = shared.as_raw_fd();
            let none = std::ptr::null_mut();
            libc::mmap(none, PAGE, access, libc::MAP_SHARED, file, 0)
        };
        if words == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        Ok(Program {
            waiters,
            attached,
            learned,
            learns,
            words: words.cast(),
            used: Mutex::new([false; WAITERS]),
            _kept: [shared, program, link],
        })
    }

    /// The one of this process, which is made if there is none.
    pub(crate) fn of_process(signal: i32) -> Result<Arc<Program>> {
        static PRESENT: Mutex<(u64, Weak<Program>)> = Mutex::new((0, Weak::new()));
        let mut present = fork::lock(&PRESENT);
        // That of the parent is the parent's.
        if present.0 == fork::process()
            && let Some(program) = present.1.upgrade()
        {
            return Ok(program);
        }
        let program = Arc::new(Program::new(signal)?);
        *present = (fork::process(), Arc::downgrade(&program));
        Ok(program)
    }

    /// What the kernel says of the calling thread.
    fn learn(&self) -> Result<Learned> {
        // One thread at a time has the map.
        let _used = fork::lock(&self.used);
        let mut attribute = [0u32; 18];
        attribute[0] = self.learns.as_raw_fd() as u32;
        let mut learned = Learned::default();
        // SAFETY: no pointers in the first; in the second key and value are as large as the map's.
        unsafe {
            bpf(PROGRAM_RUN, &mut attribute)?;
            let value = &raw mut learned;
            bpf(MAP_LOOKUP, &mut element(&self.learned, &0u32, value))?;
        }
        Ok(learned)
    }

    fn words(&self, number: usize) -> &Words {
        // SAFETY: the number is below WAITERS, by `Waiting::new`, and the mapping stays with
        // this.
        unsafe { &*self.words.add(number) }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nobody has a reference into it any more.
        unsafe { libc::munmap(self.words.cast(), PAGE) };
    }
}

/// A waiter, from before its thread waits until behind.
pub(crate) struct Waiting {
    program: Arc<Program>,
    number: usize,
    process: u64,
    /// Attached threads: the kernel's own numbers, and the one that this process knows.
    threads: Mutex<Vec<(u64, u32)>>,
}

impl Waiting {
    /// One more; `None` if there are too many.
    pub(crate) fn new(program: &Arc<Program>) -> Option<Waiting> {
        let mut used = fork::lock(&program.used);
        let number = used.iter().position(|used| !used)?;
        used[number] = true;
        Some(Waiting {
            program: program.clone(),
            number,
            process: fork::process(),
            threads: Mutex::default(),
        })
    }

    /// The calling thread is this waiter's, until the result is dropped.
    pub(crate) fn begin(&self) -> Result<OfThread<'_>> {
        let task = self.program.learn()?.task;
        self.wait_until(0);
        update(&self.program.waiters, task, &(self.number as u32))?;
        Ok(OfThread(&self.program.waiters, task))
    }

    /// Whoever is current when the waiter is woken before this time, by `CLOCK_MONOTONIC`, is
    /// signalled if it is attached.
    pub(crate) fn wait_until(&self, nanoseconds: u64) {
        let words = self.program.words(self.number);
        words.until.store(nanoseconds, SeqCst);
    }

    /// How often somebody was signalled, or was already.
    pub(crate) fn signalled(&self) -> u64 {
        self.program.words(self.number).signalled.load(SeqCst)
    }

    /// The thread that was current when the waiter was woken last for an event, by the kernel's own
    /// numbers of process and thread, and whether that was on the calling thread's processor.
    pub(crate) fn current(&self) -> (u64, bool) {
        let words = self.program.words(self.number);
        let here = words.current_on.load(SeqCst) == kernel::processor();
        (words.current.load(SeqCst), here)
    }

    /// The thread that was signalled last, if it is still attached and nobody is just being, and if
    /// that was on the calling thread's processor.
    pub(crate) fn last_here(&self) -> Option<u32> {
        let words = self.program.words(self.number);
        if words.processor.load(SeqCst) != kernel::processor() {
            return None;
        }
        let who = words.who.load(SeqCst);
        let threads = self.threads.try_lock().ok()?;
        let found = threads.iter().find(|(numbers, _)| *numbers == who);
        found.map(|&(_, thread)| thread)
    }

    /// The calling thread is attached as the client with this number, until the result is dropped.
    pub(crate) fn attach(self: &Arc<Self>, client: usize) -> Result<AttachedThread> {
        let numbers = self.program.learn()?.numbers;
        // What was signalled to a former one is not this one's.
        self.signals(client).taken();
        let member = Member {
            waiter: self.number as u32,
            client: client as u32,
        };
        update(&self.program.attached, numbers, &member)?;
        fork::lock(&self.threads).push((numbers, machine::thread_id()));
        Ok(AttachedThread(self.clone(), numbers))
    }

    /// The signals of the client with this number, below [`CLIENTS`].
    pub(crate) fn signals(self: &Arc<Self>, client: usize) -> Signals {
        Signals(self.clone(), client)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.process == fork::process() {
            fork::lock(&self.program.used)[self.number] = false;
        }
    }
}

/// What the program sends one client.
pub(crate) struct Signals(Arc<Waiting>, usize);

impl Signals {
    /// Whether the client was signalled since this was asked last: from here on it is again. Signal
    /// handlers may call this.
    pub(crate) fn taken(&self) -> bool {
        let words = self.0.program.words(self.0.number);
        words.pending[self.1].swap(0, SeqCst) != 0
    }
}

/// A thread is known as a waiter's. It stays on that thread.
pub(crate) struct OfThread<'a>(&'a OwnedFd, u64);

impl Drop for OfThread<'_> {
    fn drop(&mut self) {
        delete(self.0, self.1);
    }
}

/// A thread is known as one that may be interrupted.
pub(crate) struct AttachedThread(Arc<Waiting>, u64);

impl AttachedThread {
    /// The kernel's own numbers of process and thread.
    pub(crate) fn numbers(&self) -> u64 {
        self.1
    }
}

impl Drop for AttachedThread {
    fn drop(&mut self) {
        fork::lock(&self.0.threads).retain(|(numbers, _)| *numbers != self.1);
        // The map of a forked child is its parent's.
        if self.0.process == fork::process() {
            delete(&self.0.program.attached, self.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel refuses what is no program, so its word is the test; where it refuses all, there
    /// is nothing to test.
    #[test]
    fn the_kernel_takes_the_program() {
        match Program::new(libc::SIGRTMAX() - 4) {
            Ok(program) => {
                let learned = program.learn().unwrap();
                assert!(learned.numbers as u32 != 0);
                assert!(learned.task as i64 <= 0, "{:#x}", learned.task);
            }
            Err(error) => println!("skipped: bpf(2) says {error}"),
        }
    }
}
