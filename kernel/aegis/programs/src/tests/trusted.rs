//! Instructions that raise exceptions, and calls with arguments that no program would give.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::entry::{self, Frame, Interrupted};
use postern_aegis::{Error, calls, context};

global_asm!(include_str!("tests.s"), options(att_syntax));
global_asm!(include_str!("attacks.s"), options(att_syntax));

macro_rules! probes {
    ($($name:ident $symbol:ident)+) => {
        unsafe extern "C" {
            $(safe fn $symbol(argument: u64) -> u64;)+
            static test_recover: u8;
            safe fn test_registers_call(number: u64) -> u64;
            safe fn test_registers_exception() -> u64;
            safe fn test_spin() -> u64;
            static test_spins: u8;
        }

        /// An instruction, by itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "instructions")]
        pub enum Probe { $($name),+ }

        impl Probe {
            fn run(self, argument: u64) -> u64 {
                match self { $(Probe::$name => $symbol(argument)),+ }
            }
        }
    };
}

probes! {
    Read test_read
    Write test_write
    Jump test_jump
    Divide test_divide
    Breakpoint test_breakpoint
    Overflow test_overflow
    Undefined test_undefined
    Unaligned test_unaligned
    Vector test_vector
    X87 test_x87
    Sgdt test_sgdt
    Sidt test_sidt
    Sldt test_sldt
    Str test_str
    Smsw test_smsw
    Cli test_cli
    Sti test_sti
    Hlt test_hlt
    In test_in
    Out test_out
    Rdmsr test_rdmsr
    Wrmsr test_wrmsr
    ReadCr3 test_read_cr3
    WriteCr3 test_write_cr3
    Invlpg test_invlpg
    Clts test_clts
    Swapgs test_swapgs
    Stac test_stac
    Lgdt test_lgdt
    Iopl test_iopl
    Rdfs test_rdfs
    Rdgs test_rdgs
    Far attack_far
}

unsafe extern "C" {
    safe fn attack_gs(base: u64) -> u64;
    safe fn attack_fs(base: u64) -> u64;
    safe fn attack_flags(flags: u64) -> u64;
    safe fn attack_steps(nothing: u64) -> u64;
    safe fn attack_segment(nothing: u64) -> u64;
    safe fn attack_segments(nothing: u64) -> u64;
    safe fn attack_stack(pointer: u64) -> u64;
}

/// What is done at the kernel's entries, by `attacks.s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in the assembly")]
pub enum Attack {
    Gs,
    Fs,
    Flags,
    Steps,
    Segment,
    Segments,
    Stack,
}

static STEPS: AtomicU64 = AtomicU64::new(0);

/// Goes on without another step.
fn step(frame: &mut Frame) {
    STEPS.fetch_add(1, Relaxed);
    frame.rflags &= !0x100;
}

/// Steps and breakpoints that were taken in attacks so far.
pub fn steps() -> u64 {
    STEPS.load(Relaxed)
}

/// Does it, with handlers of breakpoints and steps that go on: 0 if nothing came of it. A slice that
/// ends meanwhile sets bases anew, so it is done some times.
pub fn attack(which: Attack, argument: u64) -> u64 {
    let run = match which {
        Attack::Gs => attack_gs,
        Attack::Fs => attack_fs,
        Attack::Flags => attack_flags,
        Attack::Steps => attack_steps,
        Attack::Segment => attack_segment,
        Attack::Segments => attack_segments,
        Attack::Stack => attack_stack,
    };
    entry::on_exception(1, Some(step));
    entry::on_exception(3, Some(step));
    let result = (0..5).map(|_| run(argument)).min();
    entry::on_exception(1, None);
    entry::on_exception(3, None);
    result.unwrap_or(1)
}

/// Whether an exception of a vector (6, 13 or 14) comes to a handler whose address has more bits.
pub fn handler_elsewhere(vector: usize, bits: u64) -> bool {
    VECTOR.store(NONE, Relaxed);
    entry::on_exception(vector, Some(recover));
    let first: *const AtomicU64 = (&raw const *context::context()).cast();
    // SAFETY: a page of words; handlers stand first. The kernel takes these bits away, so it is the
    // same entry.
    unsafe {
        let word = (*first.add(vector)).load(Relaxed);
        context::store_word(vector, word | bits);
    }
    match vector {
        6 => Probe::Undefined.run(0),
        13 => Probe::Read.run(1 << 62),
        _ => Probe::Read.run(8),
    };
    entry::on_exception(vector, None);
    VECTOR.load(Relaxed) == vector as u64
}

/// An exception that a probe raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which.
    pub vector: u64,
    /// The address of a page fault.
    pub address: u64,
    /// The processor's error code.
    pub code: u64,
}

static VECTOR: AtomicU64 = AtomicU64::new(NONE);
static ADDRESS: AtomicU64 = AtomicU64::new(0);
static CODE: AtomicU64 = AtomicU64::new(0);
const NONE: u64 = u64::MAX;

fn recover(frame: &mut Frame) {
    VECTOR.store(frame.vector, Relaxed);
    ADDRESS.store(frame.address, Relaxed);
    CODE.store(frame.code, Relaxed);
    frame.rip = (&raw const test_recover) as u64;
}

/// Has an instruction done: what it returns, or what it raised.
pub fn probe(instruction: Probe, argument: u64) -> Result<u64, Fault> {
    VECTOR.store(NONE, Relaxed);
    for vector in 0..32 {
        entry::on_exception(vector, Some(recover));
    }
    let result = instruction.run(argument);
    for vector in 0..32 {
        entry::on_exception(vector, None);
    }
    match VECTOR.load(Relaxed) {
        NONE => Ok(result),
        vector => Err(Fault {
            vector,
            address: ADDRESS.load(Relaxed),
            code: CODE.load(Relaxed),
        }),
    }
}

/// Reads a word at an address while the handler of page faults stands at another one, where nothing
/// is: what reaches the handler of emergencies.
pub fn probe_without_handler(missing: u64, at: u64) -> Result<u64, Fault> {
    VECTOR.store(NONE, Relaxed);
    entry::on_exception(14, Some(recover));
    // SAFETY: nothing is mapped there, so nothing is run; the library's entry for emergencies
    // calls `recover` as its entry for exceptions would.
    unsafe { context::store_word(14, missing) };
    let result = Probe::Read.run(at);
    entry::on_exception(14, None);
    match VECTOR.load(Relaxed) {
        NONE => Ok(result),
        vector => Err(Fault {
            vector,
            address: ADDRESS.load(Relaxed),
            code: CODE.load(Relaxed),
        }),
    }
}

/// Whether reading a word at an address raises a page fault.
pub fn read_faults(at: u64) -> bool {
    probe(Probe::Read, at).is_err_and(|fault| fault.vector == 14 && fault.address == at)
}

/// Whether writing a word does. The address must not be the program's own.
pub fn write_faults(at: u64) -> bool {
    assert!(!postern_aegis::image::own(at));
    probe(Probe::Write, at).is_err_and(|fault| fault.vector == 14 && fault.address == at)
}

/// Whether a vector register raises exception 7.
pub fn vector_faults() -> bool {
    probe(Probe::Vector, 0).is_err_and(|fault| fault.vector == 7)
}

/// Whether a call keeps all registers but rax, rcx and r11. Not for the one that ends a slice, whose
/// registers are the program's to save, and not for those that a wrong argument does not stop.
pub fn keeps_registers(call: u64) -> bool {
    matches!(call, 4 | 33) || test_registers_call(call) == 1
}

/// Whether registers and flags are back after an exception and its handler.
pub fn exception_keeps_registers() -> bool {
    entry::on_exception(3, Some(|_| {}));
    let kept = test_registers_exception() == 1;
    entry::on_exception(3, None);
    kept
}

/// A breakpoint whose handler is set; whether the program goes on behind it.
pub fn breakpoint_only() -> bool {
    Probe::Breakpoint.run(0) == 0
}

/// Any call with any arguments.
pub fn any_call(number: u64, arguments: [u64; 6]) -> Result<u64, Error> {
    // SAFETY: tests name no address of this program as one to be mapped over; that such calls are
    // refused where they are not allowed is what is tested.
    unsafe { calls::raw(number, arguments) }
}

/// What a loop without end goes on with that a function for ends of slices changes: the number of
/// times that it was told of the loop.
pub fn ends_at_a_slice() -> u64 {
    static TOLD: AtomicU64 = AtomicU64::new(0);
    fn told(interrupted: &mut Interrupted) {
        let loops = &raw const test_spins as u64;
        if (loops..loops + 5).contains(&interrupted.rip) && TOLD.fetch_add(1, Relaxed) == 2 {
            interrupted.rax = 3;
        }
    }
    TOLD.store(0, Relaxed);
    entry::coprocessor(true);
    entry::on_slice_end(Some(told));
    let changed = test_spin();
    entry::on_slice_end(None);
    entry::coprocessor(false);
    changed
}
