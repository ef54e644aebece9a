//! What LLVM writes and gcc does not, put into the terms that the passes know.
//!
//! LLVM is told to leave %r15 and %r11 alone; the rest of what gcc is told by options has no option
//! in LLVM. So, before anything else is done with its assembly: addresses in the global offset
//! table become constants ([`got`]), probes of the stack one subtraction ([`probes`]), and an
//! `endbr64` is put wherever an indirect branch may go ([`pads`]). What is overlooked here is
//! refused further down or faults when it is reached, since nothing here is trusted.

mod got;
mod pads;
mod probes;

use std::collections::HashSet;

use super::instruction_set::{Class, classify};
use super::program::direct_target;
use crate::assembly::{
    Expression, Instruction, Memory, Operand, Register, Statement, StatementKind,
};

/// Bytes below the stack pointer that a function without calls may use. gcc is told to use none;
/// LLVM only by an attribute of each function, which the bitcode of libraries lacks.
pub const RED_ZONE: i64 = 128;

/// Directives for linkers of LLVM's own.
const DROPPED: &[&str] = &[".addrsig", ".addrsig_sym", ".cg_profile"];

/// Rewrites `statements` in the terms of gcc.
pub fn normalise(statements: &mut Vec<Statement>) {
    statements.retain(|statement| {
        !matches!(&statement.kind, StatementKind::Directive { name, .. } if DROPPED.contains(&name.as_str()))
    });
    for statement in statements.iter_mut() {
        match &mut statement.kind {
            StatementKind::Directive { name, arguments } => alignment(name, arguments),
            StatementKind::Instruction(instruction) => spelling(instruction),
            StatementKind::Label(_) => {}
        }
    }
    got::resolve(statements);
    probes::subtract(statements);
    conditional_calls(statements);
    pads::place(statements);
}

/// `.prefalign 4, .Lfunc_end0, nop` is a wish, which `.p2align 4` grants; and the bytes to fill
/// with are the rewriter's to choose.
fn alignment(name: &mut String, arguments: &mut String) {
    let first = arguments.split(',').next().unwrap_or("").trim().to_owned();
    match name.as_str() {
        ".prefalign" => {
            ".p2align".clone_into(name);
            *arguments = first;
        }
        ".p2align" => {
            let parts: Vec<&str> = arguments.split(',').map(str::trim).collect();
            if parts.get(1).copied() == Some("0x90") {
                *arguments = match parts.get(2) {
                    Some(most) => format!("{first},,{most}"),
                    None => first,
                };
            }
        }
        _ => {}
    }
}

/// Other names for the same instructions, and operands that an instruction has in any case.
fn spelling(instruction: &mut Instruction) {
    let usual = match instruction.mnemonic.as_str() {
        "fucompi" => "fucomip",
        "fcompi" => "fcomip",
        _ => "",
    };
    if !usual.is_empty() {
        usual.clone_into(&mut instruction.mnemonic);
    }
    let class = classify(&instruction.mnemonic, 0);
    let implied = |operand: &Operand| match operand {
        Operand::Memory(memory) => {
            matches!(memory.segment, None | Some(Register::Segment(0)))
                && memory.index.is_none()
                && memory.displacement.is_empty()
                && memory
                    .base
                    .is_some_and(|base| base.is_general(6) || base.is_general(7))
        }
        Operand::Register(register) => register.is_general(0),
        Operand::Immediate(_) => false,
    };
    // `movsd %xmm0, (%rdi)` names another instruction: it has a vector register.
    if matches!(class, Some(Class::String(..)))
        && !instruction.operands.is_empty()
        && instruction.operands.iter().all(implied)
        && string_operands(&instruction.operands)
    {
        instruction.operands.clear();
    }
}

/// Whether the memory operands are those of a string instruction, and not of a `mov` that has its
/// name (`movsb (%rsi), %eax` extends a sign).
fn string_operands(operands: &[Operand]) -> bool {
    operands.iter().any(|operand| {
        matches!(operand, Operand::Memory(memory)
            if memory.segment == Some(Register::Segment(0)))
    }) || matches!(operands, [Operand::Memory(from), Operand::Register(_)]
        if from.base.is_some_and(|base| base.is_general(6)) && from.segment.is_none())
}

/// A conditional jump to a function of another file, which may be the host's or not be there: the
/// passes know only jumps and calls to those.
fn conditional_calls(statements: &mut Vec<Statement>) {
    let labels: HashSet<String> = statements
        .iter()
        .filter_map(|statement| match &statement.kind {
            StatementKind::Label(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    let mut out = Vec::with_capacity(statements.len());
    for statement in std::mem::take(statements) {
        if let StatementKind::Instruction(instruction) = &statement.kind
            && classify(&instruction.mnemonic, instruction.operands.len())
                == Some(Class::Conditional)
            && let Some(target) = direct_target(instruction)
            && !labels.contains(target)
            && let Some(other) = inverse(&instruction.mnemonic)
        {
            let behind = format!(".Lpostern_behind{}", out.len());
            let jump = |mnemonic: &str, target: &str| {
                instruction_at(&statement, mnemonic, vec![bare(target)])
            };
            out.push(jump(other, &behind));
            out.push(jump("jmp", target));
            out.push(Statement {
                place: statement.place.clone(),
                kind: StatementKind::Label(behind),
            });
            continue;
        }
        out.push(statement);
    }
    *statements = out;
}

/// The jump that is taken where this one is not.
fn inverse(mnemonic: &str) -> Option<&'static str> {
    const PAIRS: [(&str, &str); 8] = [
        ("jo", "jno"),
        ("jb", "jae"),
        ("je", "jne"),
        ("jbe", "ja"),
        ("js", "jns"),
        ("jp", "jnp"),
        ("jl", "jge"),
        ("jle", "jg"),
    ];
    PAIRS.iter().find_map(|(one, other)| match mnemonic {
        m if m == *one => Some(*other),
        m if m == *other => Some(*one),
        _ => None,
    })
}

/// The operand that names `symbol`.
fn bare(symbol: &str) -> Operand {
    Operand::Memory(Memory {
        displacement: Expression::symbol(symbol),
        ..Memory::default()
    })
}

/// An instruction in the place of `statement`.
fn instruction_at(statement: &Statement, mnemonic: &str, operands: Vec<Operand>) -> Statement {
    let mut instruction = Instruction::bare(mnemonic);
    instruction.operands = operands;
    Statement {
        place: statement.place.clone(),
        kind: StatementKind::Instruction(instruction),
    }
}
