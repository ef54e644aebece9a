//! Operands: from the compiler's addresses to offsets in the window.

use super::thread_local::{self, ThreadRelative};
use crate::assembly::expression::Form;
use crate::assembly::register::{R11, R15, RSP, Width};
use crate::assembly::{Expression, Memory, Operand, Register};

/// Offsets below the first byte that is ever mapped: a symbol less more than this would be
/// negative, which a 32-bit relocation cannot say.
const LOWEST_SYMBOL: i64 = 0x1_0000;
/// `%gs`
pub const GS: Register = Register::Segment(5);

/// A memory operand after translation.
#[derive(Debug, PartialEq)]
pub struct Translated {
    /// What the instruction accesses.
    pub memory: Memory,
    /// What must be computed into %r11 first (without a segment), because the operand cannot say
    /// it.
    pub address: Option<Address>,
}

/// What must be in %r11 for an operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Address {
    /// This address.
    Of(Memory),
    /// The last byte of the data stack, then each of these, which have %r11 as their base.
    StackEnd(Vec<Memory>),
}

/// Refuses registers that an extension's code cannot name.
pub fn check_register(register: Register) -> Result<(), String> {
    match register {
        Register::General(R15, _) => {
            Err("%r15 is reserved: it is the data stack pointer".to_owned())
        }
        Register::General(R11, _) => {
            Err("%r11 is reserved for guarded branches and gates".to_owned())
        }
        Register::Segment(_) => {
            Err("segment registers cannot be confined: they are the confinement".to_owned())
        }
        Register::Refused(why) => Err(why.to_owned()),
        _ => Ok(()),
    }
}

/// Translates an accessed memory operand; `bias` is r15 minus the compiler's stack pointer.
pub fn accessed(memory: &Memory, bias: i64) -> Result<Translated, String> {
    if thread_local::is_thread_relative(memory) {
        let ThreadRelative { add, memory } = thread_local::translate(memory)?;
        return Ok(Translated {
            memory,
            address: Some(Address::StackEnd(add)),
        });
    }
    let mut out = unaccessed(memory, bias)?;
    if out.is_bare() && is_thread_offset(&out) {
        return Err(
            "the offset of a thread-local variable is no address: write `%fs:x@tpoff`".to_owned(),
        );
    }
    let far =
        matches!(out.displacement.form(), Form::Symbol(_, offset) if *offset < -LOWEST_SYMBOL);
    if far || is_thread_offset(&out) {
        let memory = through_r11();
        return Ok(Translated {
            memory,
            address: Some(Address::Of(out)),
        });
    }
    let narrow = |register: Option<Register>| match register {
        Some(Register::General(number, _)) => Some(Register::long(number)),
        other => other,
    };
    out.base = narrow(out.base);
    out.index = narrow(out.index);
    if out.base.is_none() && out.index.is_none() {
        out.index = Some(Register::NoIndex(Width::Long));
        if out.displacement.is_empty() {
            out.displacement = Expression::constant(0);
        }
    }
    out.segment = Some(GS);
    Ok(Translated {
        memory: out,
        address: None,
    })
}

/// Whether the displacement is a thread-local variable's offset from the thread pointer.
fn is_thread_offset(memory: &Memory) -> bool {
    matches!(memory.displacement.form(), Form::Symbol(name, _) if name.to_ascii_lowercase().ends_with("@tpoff"))
}

/// `%gs:(%r11d)`
pub fn through_r11() -> Memory {
    Memory {
        segment: Some(GS),
        base: Some(Register::long(R11)),
        ..Memory::default()
    }
}

/// The data stack's slot at `offset` from %r15.
pub fn slot(offset: i64) -> Memory {
    Memory {
        segment: Some(GS),
        base: Some(Register::long(R15)),
        displacement: Expression::default().plus(offset),
        ..Memory::default()
    }
}

/// Translates an address that is computed and not accessed (`lea`): no segment, registers in 64
/// bits.
pub fn unaccessed(memory: &Memory, bias: i64) -> Result<Memory, String> {
    match memory.segment {
        None => {}
        Some(Register::Segment(4)) => {
            return Err("an address is computed without a segment: read the thread pointer from `%fs:0` and add `x@tpoff`".to_owned());
        }
        Some(Register::Segment(5)) => {
            return Err("%gs cannot be named: it is the window's own segment".to_owned());
        }
        Some(segment) => return Err(format!("the segment override {segment} cannot be confined")),
    }
    if let Form::Symbol(name, _) = memory.displacement.form()
        && let Some((_, relocation)) = name.split_once('@')
    {
        let thread_local = thread_local::check_relocation(relocation)?;
        if !thread_local {
            return Err(format!(
                "the relocation @{relocation} belongs to position-independent code; extensions are linked at fixed offsets"
            ));
        }
    }
    let mut out = memory.clone();
    if let Some(base) = memory.base {
        out.base = match base {
            Register::Rip
                if memory.index.is_none()
                    && matches!(memory.displacement.form(), Form::Symbol(..) | Form::Other) =>
            {
                None
            }
            Register::Rip | Register::Eip => {
                return Err("an operand relative to the instruction pointer without a symbol cannot be confined".to_owned());
            }
            Register::General(RSP, Width::Quad) => {
                out.displacement = memory.displacement.plus(-bias);
                Some(Register::quad(R15))
            }
            Register::General(RSP, _) => {
                return Err("a part of the stack pointer cannot be an address".to_owned());
            }
            other => Some(address_register(other)?),
        };
    }
    out.index = match memory.index {
        None | Some(Register::NoIndex(_)) => None,
        Some(Register::General(RSP, _)) => {
            return Err("the stack pointer cannot be an index".to_owned());
        }
        Some(other) => Some(address_register(other)?),
    };
    if out.index.is_none() {
        out.scale = 0;
    }
    Ok(out)
}

pub fn address_register(register: Register) -> Result<Register, String> {
    check_register(register)?;
    match register {
        Register::General(number, Width::Quad | Width::Long) => Ok(Register::quad(number)),
        Register::Xmm(_) | Register::Ymm(_) => Err(
            "gathers are not in the allow list; compile with -mtune-ctrl=^use_gather".to_owned(),
        ),
        other => Err(format!("{other} cannot be part of an address")),
    }
}

/// Translates a register operand; only for instructions before which the bias was made 0.
pub fn register(register: Register) -> Result<Register, String> {
    check_register(register)?;
    Ok(match register {
        Register::General(RSP, width) => Register::General(R15, width),
        other => other,
    })
}

/// Whether `operand` names the stack pointer itself, in any width.
pub fn is_stack_pointer(operand: &Operand) -> bool {
    matches!(operand, Operand::Register(register) if register.is_general(RSP))
}
