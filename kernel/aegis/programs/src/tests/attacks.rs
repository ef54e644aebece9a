//! The kernel's entries, by somebody who wants its privilege: bases, flags, segments and stacks that
//! no program has, handlers at addresses that are none, the last instruction below the tables.
//!
//! That the kernel goes on is what is tested: a way in would be a panic at best.

use postern_aegis::{Mapping, PAGE, address, memory, pages};

use crate::scenario::{Named, Outcome, Why, check, same};
use crate::trusted::{Attack, Probe, attack, handler_elsewhere, probe, steps};

crate::scenarios! {
    "attacks.bases" bases;
    "attacks.flags" flags;
    "attacks.steps" stepped;
    "attacks.stacks" stacks;
    "attacks.segments" segments;
    "attacks.last-address" last_address;
    "attacks.handlers" handlers;
}

/// The kernel's half, and the ends of both.
const WORDS: [u64; 6] = [
    0,
    1,
    0x7fff_ffff_ffff,
    0xffff_8000_0000_0000,
    0xffff_ffff_8010_0000,
    0xffff_ffff_ffff_ffff,
];

fn nothing(what: &'static str, which: Attack, argument: u64) -> Outcome {
    same(what, attack(which, argument), 0)
}

fn bases() -> Outcome {
    for base in WORDS {
        nothing("gs is another", Attack::Gs, base)?;
        nothing("fs is another", Attack::Fs, base)?;
    }
    Ok(())
}

/// Direction, nesting, alignment checks: a program's own, and nobody's in the kernel.
fn flags() -> Outcome {
    for flags in [0x202, 0x602, 0x4202, 0x4_0202, 0x4_4602] {
        nothing("a flag is another", Attack::Flags, flags)?;
    }
    Ok(())
}

fn stepped() -> Outcome {
    let before = steps();
    nothing("after steps", Attack::Steps, 0)?;
    check(steps() - before >= 20, "calls are not stepped over")?;
    nothing("after a segment", Attack::Segment, 0)
}

fn stacks() -> Outcome {
    for stack in WORDS {
        nothing("the stack pointer is another", Attack::Stack, stack)?;
    }
    nothing("a hole", Attack::Stack, 1 << 60)
}

fn segments() -> Outcome {
    nothing("data segments", Attack::Segments, 0)?;
    for selector in [0, 8, 0x10, 0x18, 0x1b, 0x30, 0x33, 0x38, 0xfff8] {
        let fault = probe(Probe::Far, selector);
        // Some emulators read the stack as the kernel would, so it faults first.
        let refused = fault.is_err_and(|fault| matches!(fault.vector, 13 | 14));
        check(refused, "a far return")?;
    }
    Ok(())
}

/// A call whose next instruction is in the kernel's slots: going back there must not fail in the
/// kernel.
fn last_address() -> Outcome {
    let at = address::END - PAGE as u64;
    let page = memory::map_fresh(at, Mapping::WRITE).named("mapping")?;
    // Each is the instruction `syscall`; rax is 0 when it is jumped to.
    for offset in (0..PAGE as u64).step_by(8) {
        memory::write(at + offset, 0x050f_050f_050f_050f);
    }
    postern_aegis::calls::protect(at, Mapping::EXECUTE).named("protecting")?;
    match probe(Probe::Jump, address::END - 2) {
        Err(fault) => {
            same("the vector", fault.vector, 14)?;
            same("where it faults", fault.address, address::END)?;
        }
        Ok(_) => return Err(Why::Not("tables are executed")),
    }
    pages::free(page).named("freeing")
}

/// Bits of the upper half that a handler's address has are lost, so it is the handler.
fn handlers() -> Outcome {
    for bits in [1 << 63, 0xffff_8000_0000_0000, 0x8000_0000_0000] {
        check(handler_elsewhere(6, bits), "it does not come")?;
        check(handler_elsewhere(13, bits), "it does not come")?;
        check(handler_elsewhere(14, bits), "it does not come")?;
    }
    Ok(())
}
