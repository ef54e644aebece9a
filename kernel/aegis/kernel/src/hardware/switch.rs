//! Entering environments, and what their exceptions and interrupts leave.

use core::sync::atomic::Ordering::{Relaxed, Release};

use postern_aegis_abi::records::Environment;

use super::memory::Words;
use super::{local, memory, registers};

/// The registers that an interrupt found, as `entry.s` pushes them.
#[repr(C)]
#[allow(missing_docs)]
pub struct Frame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rdx: u64,
    pub rcx: u64,
    pub rax: u64,
    pub vector: u64,
    pub code: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}

impl Frame {
    /// Whether an environment was interrupted.
    pub fn is_users(&self) -> bool {
        self.cs & 3 == 3
    }
}

unsafe extern "C" {
    fn enter(rip: u64, rax: u64, fs: u64, gs: u64) -> !;
    fn schedule() -> !;
    fn clean_fpu();
}

/// The environment that runs on this processor.
pub fn current() -> Option<&'static Environment> {
    let record = local::this().current.load(Relaxed);
    // SAFETY: 0, or the address of a record, as `run` and the transfers store it; records are
    // atomics in memory that stays.
    (record != 0).then(|| unsafe { &*(record as *const Environment) })
}

/// The context of the environment that runs on this processor.
pub fn context(environment: &Environment) -> &'static Words {
    memory::words((environment.context.load(Relaxed) >> 12) as u32)
}

/// Leaves the environment that runs here: the kernel's tables are used. Its claim is whoever
/// calls's to set.
pub fn leave() {
    // SAFETY: the kernel's own tables.
    unsafe { memory::use_table(memory::root_table()) };
    local::this().current.store(0, Release);
}

/// Lets an environment begin at an address with a value in rax and all other registers clear. It is
/// claimed by this processor. Addresses and bases lose the bits of the upper half.
pub fn begin(
    environment: &'static Environment,
    at: u64,
    rax: u64,
    fs: u64,
    gs: u64,
    fpu: bool,
) -> ! {
    const USER: u64 = (1 << 47) - 1;
    let local = local::this();
    let birth = environment.birth.load(Relaxed);
    registers::set_fpu(fpu);
    local.fpu.store(u32::from(fpu), Relaxed);
    if fpu && local.fpu_owner.swap(birth, Relaxed) != birth {
        // SAFETY: the coprocessor is on, and nobody's state is in it that is still wanted.
        unsafe { clean_fpu() };
    }
    let context = memory::PHYSICAL + environment.context.load(Relaxed);
    local.context.store(context, Relaxed);
    local
        .current
        .store(environment as *const Environment as u64, Relaxed);
    // SAFETY: a root table of the books has the kernel's upper half, and the claim keeps it. All
    // three addresses are the user's.
    unsafe {
        memory::use_table(environment.root_table.load(Relaxed));
        enter(at & USER, rax, fs & USER, gs & USER)
    }
}

/// Forgets what is on this processor's stack and asks who runs next.
pub fn next() -> ! {
    // SAFETY: nothing on the stack is needed; interrupts are off.
    unsafe { schedule() }
}
