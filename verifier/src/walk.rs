//! One instruction at a time, for tools that list, count or compare instructions.

use crate::decode::{chunk_at, decode, displacement, opcode, x87_allowed};
use crate::explain::explain;
use crate::layout::Segment;
use crate::row::InstructionKind;
use crate::rule::Rule;
use crate::table::*;

/// An instruction of the allow list, as [`next`] found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instruction {
    /// Length in bytes, 1 to 15.
    pub length: usize,
    /// What it is to the verifier.
    pub kind: InstructionKind,
    /// Direct branches: displacement from the end of the instruction.
    pub displacement: Option<i32>,
    /// It accesses memory through ModRM or an absolute address.
    pub memory: bool,
    /// It touches vector registers.
    pub xmm: bool,
    /// It depends on MXCSR, or raises flags of it.
    pub float: bool,
    /// It touches bits 128 to 255 of vector registers.
    pub ymm: bool,
    /// It touches the x87 unit.
    pub x87: bool,
}

/// The instruction at position `at` of `text`, judged alone: whether a branch goes to a good place,
/// and whether an indirect one is guarded, only [`crate::verify`] can tell.
pub fn next(text: &[u8], at: usize, segment: Segment) -> Result<Instruction, Rule> {
    if at >= text.len() {
        return Err(Rule::Truncated);
    }
    let chunk = chunk_at(text, at);
    let segment = segment.prefix();
    let decoded = decode(&chunk, segment).ok_or_else(|| explain(&chunk, segment))?;
    if decoded.length > text.len() - at {
        return Err(Rule::Truncated);
    }
    let kind = match decoded.entry >> CLASS & 7 {
        CLASS_CONDITIONAL => InstructionKind::Conditional,
        CLASS_JUMP => InstructionKind::Jump,
        CLASS_CALL => InstructionKind::Call,
        CLASS_RETURN => InstructionKind::Return,
        CLASS_TRAP => InstructionKind::Trap,
        CLASS_X87 if !x87_allowed(opcode(text, at)) => return Err(Rule::NotAllowed),
        CLASS_GROUP5 if opcode(text, at).1 >> 3 & 7 == 2 => InstructionKind::IndirectCall,
        CLASS_GROUP5 if opcode(text, at).1 >> 3 & 7 == 4 => InstructionKind::IndirectJump,
        _ if decoded.entry & LEA != 0 => InstructionKind::Address,
        _ if decoded.entry & NO_ACCESS != 0 => InstructionKind::Nop,
        _ => InstructionKind::Plain,
    };
    let branch = matches!(
        kind,
        InstructionKind::Conditional | InstructionKind::Jump | InstructionKind::Call
    );
    Ok(Instruction {
        length: decoded.length,
        kind,
        displacement: branch.then(|| displacement(text, at, &decoded)),
        memory: chunk.first() == Some(&segment),
        xmm: decoded.entry & XMM != 0,
        float: decoded.entry & FLOAT != 0,
        ymm: decoded.entry & YMM != 0,
        x87: decoded.entry & X87 != 0,
    })
}
