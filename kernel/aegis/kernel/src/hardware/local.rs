//! What each processor has of its own. `entry.s` finds it by gs; the offsets are handed to it.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use postern_aegis_abi::records::{Environment, Machine, Processor, Slice};
use postern_aegis_abi::{PROCESSORS, address};
use postern_aegis_books::{Interval, Minted};

use super::{handler, memory, registers};

/// Bytes of a processor's stack in the kernel, and of the one for what must not share it.
pub const STACK: usize = 32 << 10;

/// A processor's own area. All words are atomics, for other processors read some of them.
#[repr(C, align(64))]
pub struct Local {
    /// Top of the stack.
    pub stack: AtomicU64,
    /// Of the call that is being done: where it goes on, with which flags and stack.
    pub rip: AtomicU64,
    pub flags: AtomicU64,
    pub rsp: AtomicU64,
    /// The environment that runs here: its record; 0 if none does.
    pub current: AtomicU64,
    /// Its context, where the kernel sees it. With no environment: that of the last one.
    pub context: AtomicU64,
    /// The record of the slice that runs.
    pub slice: AtomicU64,
    /// What everybody can read of this processor: its record.
    pub public: AtomicU64,
    /// The first of all environments' records.
    pub environments: AtomicU64,
    /// Where the kernel sees physical memory.
    pub physical: AtomicU64,
    /// Where the second segment begins.
    pub segment: AtomicU64,
    /// What a claim by this processor is: its number plus 1.
    pub mark: AtomicU32,
    /// Whether the coprocessor is on, and the birth of the environment whose state it has.
    pub fpu: AtomicU32,
    pub fpu_owner: AtomicU32,
    /// For transfers: who calls.
    pub caller: AtomicU32,
    /// A register that comes back at once.
    pub kept: AtomicU64,
    /// Requests of other processors to forget translations, and how many of them are done.
    pub asked: AtomicU64,
    pub done: AtomicU64,
    /// The number of this processor's interrupt controller.
    pub controller: AtomicU32,
    /// A last-level table, for the books.
    pub last_table: AtomicU32,
    /// Capabilities, for the books, which are told to nobody.
    pub minted: Minted,
    /// Whether those requests are about the kernel's own translations, too.
    pub everything: AtomicU32,
    /// Of the handler that runs: the stack's pointer outside of it; 0 if none runs. Where it is
    /// entered, and where its slots lead.
    pub handler: AtomicU64,
    pub entry: AtomicU64,
    pub gate: AtomicU64,
    /// How it ended, if not by returning, and at which place of its window.
    pub ended: AtomicU32,
    pub ended_at: AtomicU64,
    /// Whether interrupts are on while it runs.
    pub loops: AtomicU32,
    /// What the clock's next tick is.
    pub interval: Interval,
}

impl Local {
    const fn new() -> Local {
        Local {
            stack: AtomicU64::new(0),
            rip: AtomicU64::new(0),
            flags: AtomicU64::new(0),
            rsp: AtomicU64::new(0),
            current: AtomicU64::new(0),
            context: AtomicU64::new(0),
            slice: AtomicU64::new(0),
            public: AtomicU64::new(0),
            environments: AtomicU64::new(0),
            physical: AtomicU64::new(memory::PHYSICAL),
            segment: AtomicU64::new(address::GUARANTEED),
            mark: AtomicU32::new(0),
            fpu: AtomicU32::new(0),
            fpu_owner: AtomicU32::new(0),
            caller: AtomicU32::new(0),
            kept: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            done: AtomicU64::new(0),
            controller: AtomicU32::new(0),
            last_table: AtomicU32::new(0),
            minted: Minted::new(),
            everything: AtomicU32::new(0),
            handler: AtomicU64::new(0),
            entry: AtomicU64::new(0),
            gate: AtomicU64::new(0),
            ended: AtomicU32::new(0),
            ended_at: AtomicU64::new(0),
            loops: AtomicU32::new(0),
            interval: Interval::new(),
        }
    }

    /// This processor's number.
    pub fn processor(&self) -> usize {
        self.mark.load(Ordering::Relaxed).wrapping_sub(1) as usize
    }
}

static LOCALS: [Local; PROCESSORS] = [const { Local::new() }; PROCESSORS];

#[repr(C, align(4096))]
struct Stack(UnsafeCell<[u8; STACK]>);
// SAFETY: nothing but a processor's own pushes and calls touches its stack.
unsafe impl Sync for Stack {}
static STACKS: [Stack; PROCESSORS] = [const { Stack(UnsafeCell::new([0; STACK])) }; PROCESSORS];
static LAST_RESORTS: [Stack; PROCESSORS] =
    [const { Stack(UnsafeCell::new([0; STACK])) }; PROCESSORS];

/// Whether an address is in the lowest page of a stack: nothing is mapped there, so that a stack
/// that overflows is a double fault, with a stack of its own.
pub fn is_guard(at: u64) -> bool {
    [&STACKS, &LAST_RESORTS]
        .into_iter()
        .flatten()
        .any(|stack| at & !0xfff == stack.0.get() as u64)
}

/// The top of a processor's stack.
pub fn stack(processor: usize) -> u64 {
    STACKS[processor].0.get() as u64 + STACK as u64
}

/// The tops of stacks (0 to 2) for exceptions that may find no other: steps, NMI, and double faults
/// with machine checks.
pub fn last_resort(processor: usize, stack: usize) -> u64 {
    LAST_RESORTS[processor].0.get() as u64 + (STACK - stack * (STACK / 4)) as u64
}

/// A processor's area.
pub fn of(processor: usize) -> &'static Local {
    &LOCALS[processor]
}

/// This processor's area.
pub fn this() -> &'static Local {
    let base: u64;
    // SAFETY: in the kernel gs is the base of this processor's area (`start` and the entries see
    // to it), which is a static.
    unsafe {
        asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags));
        &*(base as *const Local)
    }
}

/// Makes an area this processor's.
pub fn start(processor: usize, machine: &'static Machine) {
    let local = &LOCALS[processor];
    local.stack.store(stack(processor), Ordering::Relaxed);
    local.mark.store(processor as u32 + 1, Ordering::Relaxed);
    handler::start(local);
    let environments: &[Environment] = &machine.environments;
    local
        .environments
        .store(environments.as_ptr() as u64, Ordering::Relaxed);
    let public: *const Processor = &machine.processor[processor];
    local.public.store(public as u64, Ordering::Relaxed);
    let slices: &[Slice] = &machine.slices[processor];
    local.slice.store(slices.as_ptr() as u64, Ordering::Relaxed);
    // SAFETY: the address of a static, as `this` and the entries expect it; the environment's own
    // base is 0 until one is entered.
    unsafe {
        asm!("wrgsbase {}", in(reg) local as *const Local as u64);
        registers::write_model(0xc000_0102, 0);
    }
}
