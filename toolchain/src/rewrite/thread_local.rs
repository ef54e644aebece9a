//! Operands relative to the thread pointer (`%fs`), which an extension finds from its data stack
//! pointer.
//!
//! The thread pointer lies 256 bytes below the end of the data stack, whose size and alignment are
//! 2^n: (r15 | 2^n - 1) - 255. The `or` is done in %r11, and the 255 go into the displacement. A
//! variable's offset is a signed relocation, which an operand with a 32-bit address cannot have, so
//! `lea` adds it.

use super::operand::{GS, address_register, through_r11};
use crate::assembly::expression::Form;
use crate::assembly::register::{R11, RSP};
use crate::assembly::{Expression, Memory, Operand, Register};

/// From the last byte of a data stack down to its thread pointer.
pub const BACK: i64 = 255;

const OTHER_MODEL: &str = "thread-local variables of another model than local-exec need a loader that places them; compile with \
                           -ftls-model=local-exec, and write `%fs:x@tpoff` in assembly";

/// Refuses the relocations of thread-local variables that a fixed image cannot have. `relocation`
/// is what follows the `@`.
pub fn check_relocation(relocation: &str) -> Result<bool, String> {
    match relocation.to_ascii_lowercase().as_str() {
        "tpoff" => Ok(true),
        "ntpoff" | "gottpoff" | "indntpoff" | "gotntpoff" | "tlsgd" | "tlsld" | "tlsldm"
        | "dtpoff" | "tlsdesc" | "tlscall" => Err(OTHER_MODEL.to_owned()),
        _ => Ok(false),
    }
}

/// Whether the operand is the word that holds the thread pointer, `%fs:0`.
pub fn is_thread_pointer(operand: &Operand) -> bool {
    matches!(operand, Operand::Memory(memory)
        if is_thread_relative(memory) && memory.base.is_none() && memory.index.is_none()
            && memory.displacement.value() == Some(0))
}

/// Whether the operand has the segment override `%fs`.
pub fn is_thread_relative(memory: &Memory) -> bool {
    memory.segment == Some(Register::Segment(4))
}

/// A thread-relative operand: what is to be added to the last byte of the data stack in %r11, one
/// `lea` after the other, and the operand then.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadRelative {
    /// Addresses with %r11 as their base.
    pub add: Vec<Memory>,
    /// What the instruction accesses.
    pub memory: Memory,
}

/// Translates an operand with `%fs`.
pub fn translate(memory: &Memory) -> Result<ThreadRelative, String> {
    let named = match memory.displacement.form() {
        Form::Empty | Form::Constant(_) => false,
        Form::Symbol(name, _) if name.to_ascii_lowercase().ends_with("@tpoff") => true,
        Form::Symbol(name, _) if name.contains('@') => return Err(OTHER_MODEL.to_owned()),
        _ => {
            return Err(
                "%fs is the thread pointer here: a thread-local variable is written `%fs:x@tpoff`"
                    .to_owned(),
            );
        }
    };
    if is_thread_pointer(&Operand::Memory(memory.clone())) {
        return Err(
            "`%fs:0`, the thread pointer, can be moved, added, subtracted or compared only"
                .to_owned(),
        );
    }
    let register = |register: Option<Register>| match register {
        None | Some(Register::NoIndex(_)) => Ok(None),
        Some(Register::General(RSP, _)) => {
            Err("the stack pointer cannot be part of a thread-local address".to_owned())
        }
        Some(other) => address_register(other).map(Some),
    };
    let end = |displacement, index, scale| Memory {
        segment: None,
        displacement,
        base: Some(Register::quad(R11)),
        index,
        scale,
    };
    let displacement = memory.displacement.plus(-BACK);
    let mut add = Vec::new();
    let (index, scale) = match (register(memory.base)?, register(memory.index)?) {
        (Some(base), Some(index)) => {
            add.push(end(Expression::default(), Some(base), 0));
            (Some(index), memory.scale)
        }
        (None, Some(index)) => (Some(index), memory.scale),
        (base, None) => (base, 0),
    };
    if named {
        add.push(end(displacement, index, scale));
        return Ok(ThreadRelative {
            add,
            memory: through_r11(),
        });
    }
    let long = |register| match register {
        Register::General(number, _) => Register::long(number),
        other => other,
    };
    let memory = Memory {
        segment: Some(GS),
        displacement,
        base: Some(Register::long(R11)),
        index: index.map(long),
        scale,
    };
    Ok(ThreadRelative { add, memory })
}
