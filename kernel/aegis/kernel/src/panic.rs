//! Last words. A panic of the kernel is a bug of the kernel: nothing that an environment does
//! leads here.

use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use postern_aegis_abi::status;
use spin::Once;

use crate::boot::say;
use crate::hardware::serial::Console;
use crate::hardware::{arena, memory, port, registers};

/// The kernel's names in the boot package: lines of address and name, in order.
pub static NAMES: Once<&'static str> = Once::new();

/// Callers that are told.
const DEPTH: usize = 32;

static PANICKED: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    if arena::runs_here() {
        say(format_args!("aegis: filters were not compiled: {info}"));
        arena::leave();
    }
    if PANICKED.swap(true, Ordering::AcqRel) {
        // The other processor, or the panic itself: one is told.
        loop {
            registers::halt();
        }
    }
    let mut console = Console::seize();
    let _ = writeln!(console, "\naegis: {info}");
    backtrace(&mut console, memory::frame_pointer());
    port::stop(status::PANIC)
}

/// The library that formats text was compiled for programs that unwind. Nothing does here.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    panic!("nothing unwinds")
}

/// Writes who called whom, from a frame on.
pub fn backtrace(console: &mut Console, mut frame: u64) {
    for _ in 0..DEPTH {
        let Some((caller, back)) = memory::frame(frame) else {
            break;
        };
        let _ = write!(console, "  {back:#018x}");
        if let Some((name, offset)) = name(back) {
            let _ = write!(console, "  {name}+{offset:#x}");
        }
        let _ = writeln!(console);
        frame = caller;
    }
}

/// The function that has an address, and how far into it that is.
fn name(address: u64) -> Option<(&'static str, u64)> {
    let mut found = None;
    for line in NAMES.get()?.lines() {
        let (at, name) = line.split_once(' ')?;
        let at = u64::from_str_radix(at, 16).ok()?;
        if at > address {
            break;
        }
        found = Some((name, address - at));
    }
    found
}
