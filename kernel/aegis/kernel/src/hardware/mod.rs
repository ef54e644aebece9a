//! The processor, the memory and the few devices, as the rest of the kernel uses them. All of the
//! kernel's unsafe code is below this folder, and what leaves it cannot be misused: everything
//! above is ordinary Rust.
//!
//! | file | what |
//! |---|---|
//! | `arena.rs` | memory, and a stack, for what is judged and compiled |
//! | `port.rs`, `serial.rs` | input and output ports; the console |
//! | `registers.rs` | control registers, and what the processor can do |
//! | `memory.rs` | the memory map; pages as words; the kernel's own tables |
//! | `local.rs` | what each processor has of its own, and `entry.s` finds by gs |
//! | `descriptors.rs` | segments, task states, the interrupt table, entries for calls |
//! | `interrupts.rs` | the local interrupt controller: clock, requests, ends of interrupts |
//! | `loader.rs` | what the loader says: memory, the boot package, the firmware's tables |
//! | `others.rs` | starting the other processors |
//! | `pci.rs`, `device.rs` | devices on the bus; their registers, queues and interrupts |
//! | `switch.rs` | entering environments |
//! | `handler.rs`, `../handler.s` | entering handlers, and all ways out of them |
//! | `filters.rs` | the code of endpoints' filters in window 0 |
//! | `window.rs` | addresses for code that the verifier has accepted |
//! | `provoke.rs` | what protections forbid, done for tests |
//! | `../start.s`, `../entry.s` | before Rust; into the kernel and out of it |

pub mod arena;
pub mod descriptors;
pub mod device;
pub mod filters;
pub mod handler;
pub mod interrupts;
pub mod loader;
pub mod local;
pub mod memory;
pub mod others;
pub mod pci;
pub mod port;
pub mod provoke;
pub mod registers;
pub mod serial;
pub mod switch;
pub mod window;

use core::arch::global_asm;
use core::mem::offset_of;

use local::Local;
use postern_aegis_abi::context::{Context, Saved};
use postern_aegis_abi::records::{Environment, Processor, Slice, claim, stopping};
use postern_aegis_abi::{Error, call};

global_asm!(include_str!("../start.s"), options(att_syntax, raw));
global_asm!(
    include_str!("../entry.s"),
    STACK = const offset_of!(Local, stack),
    RIP = const offset_of!(Local, rip),
    FLAGS = const offset_of!(Local, flags),
    RSP = const offset_of!(Local, rsp),
    CURRENT = const offset_of!(Local, current),
    CONTEXT = const offset_of!(Local, context),
    SLICE = const offset_of!(Local, slice),
    ENVIRONMENTS = const offset_of!(Local, environments),
    PHYSICAL = const offset_of!(Local, physical),
    SEGMENT = const offset_of!(Local, segment),
    MARK = const offset_of!(Local, mark),
    PROCESSOR = const offset_of!(Local, public),
    FPU = const offset_of!(Local, fpu),
    FPU_OWNER = const offset_of!(Local, fpu_owner),
    CALLER = const offset_of!(Local, caller),
    KEPT = const offset_of!(Local, kept),
    E_NUMBER = const offset_of!(Environment, number),
    E_BIRTH = const offset_of!(Environment, birth),
    E_STOPPING = const offset_of!(Environment, stopping),
    P_CURRENT = const offset_of!(Processor, current),
    P_TOLD = const offset_of!(Processor, told),
    S_RUNS = const offset_of!(Slice, runs),
    E_TABLE = const offset_of!(Environment, root_table),
    E_CONTEXT = const offset_of!(Environment, context),
    C_HANDLERS = const offset_of!(Context, exception),
    C_BEGIN = const offset_of!(Context, begin),
    C_SYNCHRONOUS = const offset_of!(Context, synchronous),
    C_ASYNCHRONOUS = const offset_of!(Context, asynchronous),
    C_FS = const offset_of!(Context, fs),
    C_GS = const offset_of!(Context, gs),
    C_FPU = const offset_of!(Context, fpu),
    X_RAX = const EXCEPTED + offset_of!(Saved, rax),
    X_RCX = const EXCEPTED + offset_of!(Saved, rcx),
    X_R11 = const EXCEPTED + offset_of!(Saved, r11),
    X_RIP = const EXCEPTED + offset_of!(Saved, rip),
    X_FLAGS = const EXCEPTED + offset_of!(Saved, rflags),
    X_ADDRESS = const EXCEPTED + offset_of!(Saved, address),
    X_CODE = const EXCEPTED + offset_of!(Saved, code),
    X_VECTOR = const EXCEPTED + offset_of!(Saved, vector),
    NO_CALL = const -(Error::NoCall as i64),
    NO_ENVIRONMENT = const -(Error::NoEnvironment as i64),
    BUSY = const -(Error::Busy as i64),
    SUBMIT = const stopping::SUBMIT,
    CHANGING = const claim::CHANGING,
    CALLS = const call::TABLE.len(),
    CLOCK = const interrupts::CLOCK,
    REQUEST = const interrupts::REQUEST,
    SPURIOUS = const interrupts::SPURIOUS,
    NETWORK = const interrupts::NETWORK,
    DISK = const interrupts::DISK,
    options(att_syntax)
);

global_asm!(
    include_str!("../handler.s"),
    HANDLER = const offset_of!(Local, handler),
    ENTRY = const offset_of!(Local, entry),
    ENDED = const offset_of!(Local, ended),
    LOOPS = const offset_of!(Local, loops),
    options(att_syntax)
);

const EXCEPTED: usize = offset_of!(Context, excepted);
