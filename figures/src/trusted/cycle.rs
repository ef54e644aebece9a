//! Bare instructions, to count others in: a cycle is one step of a chain of dependent additions.

use postern::{Domain, DomainBuilder, Signature, SymbolError, Type};
use std::arch::asm;

/// Additions in one turn of the chain's loop.
const UNROLLED: u64 = 20;

/// Runs `steps` (a multiple of 20) register additions of which each needs the result of the one
/// before.
pub fn chain(steps: u64) {
    let turns = steps / UNROLLED;
    if turns == 0 {
        return;
    }
    // SAFETY: additions to a register and a counted loop.
    unsafe {
        asm!(
            "2:",
            ".rept 20",
            "add {x}, {x}",
            ".endr",
            "dec {n}",
            "jnz 2b",
            x = inout(reg) 1u64 => _,
            n = inout(reg) turns => _,
            options(nomem, nostack),
        );
    }
}

/// Writes the gs base `count` times (an even number), with two values in turn as a thread between
/// two domains does, does `between` after each, and leaves the value that it had.
pub fn write_gs_base(count: u64, mut between: impl FnMut()) {
    // SAFETY: FSGSBASE is there, for Postern runs here; both values are canonical; no code of a
    // Rust process uses gs, and the last value is the first.
    unsafe {
        let base: u64;
        asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags));
        let other = base ^ 1 << 32;
        for _ in 0..count / 2 {
            asm!("wrgsbase {}", in(reg) other, options(nomem, nostack, preserves_flags));
            between();
            asm!("wrgsbase {}", in(reg) base, options(nomem, nostack, preserves_flags));
            between();
        }
    }
}

/// Reads the gs base `count` times.
pub fn read_gs_base(count: u64) {
    for _ in 0..count {
        // SAFETY: FSGSBASE is there, for Postern runs here.
        unsafe {
            asm!("rdgsbase {}", out(reg) _, options(nomem, nostack, preserves_flags));
        }
    }
}

/// A null function, called through a pointer that the compiler does not see through.
pub extern "C" fn add_one(x: i32) -> i32 {
    x.wrapping_add(1)
}

/// The null service as `DomainBuilder::service_c` takes it.
pub fn with_c_service(builder: DomainBuilder, name: &str) -> DomainBuilder {
    let signature = Signature::new(Some(Type::I32), &[Type::I32]).expect("one parameter is few");
    // SAFETY: `add_one` is of this type, takes any value, and does nothing but add.
    unsafe { builder.service_c(name, add_one as *const (), signature, 4096) }
}

/// Export `name` of a domain as a C host sees it.
pub fn c_function(domain: &Domain, name: &str) -> Result<extern "C" fn(i32) -> i32, SymbolError> {
    let signature = Signature::new(Some(Type::I32), &[Type::I32]).expect("one parameter is few");
    let pointer = domain.function_pointer(name, &signature)?;
    // SAFETY: a stub of that signature; it keeps the C calling convention.
    Ok(unsafe { std::mem::transmute::<*const (), extern "C" fn(i32) -> i32>(pointer) })
}
