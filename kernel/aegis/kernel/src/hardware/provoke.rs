//! What the kernel does to itself if its command line says `provoke=NAME`, once it has an
//! environment: each is something that a protection forbids, so the machine ends by the panic that
//! says so. This is how tests know that the protections are on.

use core::arch::asm;

use postern_aegis_abi::address::ROOT_PROGRAM;
use postern_aegis_abi::records::Environment;

use super::{local, memory};

/// Does what a name says. `root` is the environment whose space is used.
///
/// # Panics
/// If all is well, always: by the exception that the name stands for, or because there was none.
pub fn provoke(name: &str, root: &Environment) -> ! {
    let table = root.root_table.load(core::sync::atomic::Ordering::Relaxed);
    // SAFETY: a root table of the books has the kernel's upper half.
    unsafe { memory::use_table(table) };
    let [text, constant, data] = memory::samples();
    match name {
        "panic" => panic!("provoked"),
        "execute-user" => execute(ROOT_PROGRAM),
        "read-user" => read(ROOT_PROGRAM),
        "write-text" => write(text),
        "write-constant" => write(constant),
        "execute-data" => execute(data),
        "write-text-elsewhere" => write(memory::elsewhere(text)),
        "execute-text-elsewhere" => execute(memory::elsewhere(text)),
        "overflow" => overflow(local::this().processor() as u64),
        _ => panic!("nobody can provoke `{name}`"),
    }
    panic!("{name} was possible")
}

fn read(address: u64) {
    // SAFETY: it faults; if not, the value is not used.
    unsafe { asm!("mov {0}, [{0}]", inout(reg) address => _) }
}

fn write(address: u64) {
    // SAFETY: it faults; if not, the value that was there is written.
    unsafe { asm!("lock or qword ptr [{}], 0", in(reg) address) }
}

fn execute(address: u64) {
    // SAFETY: it faults at the first byte; if not, the machine does what it finds there, which is
    // what a test looks for.
    unsafe { asm!("call {}", in(reg) address, clobber_abi("C")) }
}

/// Calls itself until the stack is full.
#[allow(unconditional_recursion)]
#[inline(never)]
fn overflow(number: u64) {
    let room = core::hint::black_box([number; 64]);
    overflow(number + 1);
    core::hint::black_box(room);
}
