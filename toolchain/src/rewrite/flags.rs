//! Whether the arithmetic flags are still wanted at a place, so that an `or` can be put there.
//!
//! The answer errs on one side: flags are dead only where an instruction that writes all of them, a call or a return comes
//! before any that reads one. Indirect branches count as returns, because their guarded sequence compares.

use super::instruction_set::{Class, classify};
use super::program::{Program, direct_target};
use crate::assembly::Instruction;

/// Statements that are looked at before the answer is yes.
const FAR: usize = 300;

/// Instructions that write every arithmetic flag (or leave it undefined), without their width suffix.
const WRITERS: &[&str] = &[
    "add", "sub", "cmp", "test", "and", "or", "xor", "neg", "mul", "imul", "comiss", "comisd",
    "ucomiss", "ucomisd", "vcomiss", "vcomisd", "vucomiss", "vucomisd", "fcomi", "fcomip",
    "fucomi", "fucomip",
];

/// Beginnings of the names of instructions that read a flag.
const READERS: &[&str] = &[
    "set", "cmov", "adc", "sbb", "adox", "rcl", "rcr", "lahf", "cmc", "fcmov",
];

/// Whether a flag may be read, before all are written, by the instruction at `index` or by what follows it.
pub fn live(program: &Program, index: usize) -> bool {
    let mut at = index;
    for _ in 0..FAR {
        if let Some(instruction) = program.instruction(at) {
            match classify(&instruction.mnemonic, instruction.operands.len()) {
                Some(Class::Conditional) => return true,
                Some(Class::Call | Class::Return | Class::Trap) => return false,
                Some(Class::Jump) => {
                    let target = direct_target(instruction);
                    match target.and_then(|target| program.labels.get(target)) {
                        Some(label) => at = *label,
                        // Another function, or an indirect branch.
                        None => return false,
                    }
                    continue;
                }
                _ if READERS
                    .iter()
                    .any(|start| instruction.mnemonic.starts_with(start)) =>
                {
                    return true;
                }
                _ if writes_all(instruction) => return false,
                _ => {}
            }
        }
        match program.next[at] {
            Some(next) => at = next,
            None => return false,
        }
    }
    true
}

fn writes_all(instruction: &Instruction) -> bool {
    let name = instruction.mnemonic.as_str();
    WRITERS.iter().any(|stem| {
        name.strip_prefix(stem)
            .is_some_and(|suffix| matches!(suffix, "" | "b" | "w" | "l" | "q"))
    })
}
