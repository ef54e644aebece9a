//! Probes of the stack. A large frame is taken page by page, by a loop over %r11, so that it meets a
//! guard page. The data stack has its bounds checked by the window itself: one subtraction does.
//!
//! ```text
//!     movq  %rsp, %r11            (or leaq -98304(%rsp), %r11)
//!     subq  $98304, %r11
//! .L: subq  $4096, %rsp
//!     movq  $0, (%rsp)
//!     cmpq  %r11, %rsp
//!     jne   .L
//! ```
//!
//! Any other use of %r11 is refused where registers are checked.

use super::instruction_at;
use crate::assembly::register::{R11, RSP};
use crate::assembly::{
    Expression, Instruction, Memory, Operand, Register, Statement, StatementKind,
};
use crate::rewrite::program::direct_target;

/// Statements that such a sequence has at most, line information included.
const LONGEST: usize = 24;
/// What one turn takes.
const PAGE: i64 = 4096;

/// Replaces each probe loop.
pub fn subtract(statements: &mut Vec<Statement>) {
    let mut k = 0;
    while k < statements.len() {
        if let Some(probe) = probe(&statements[k..]) {
            let amount = Operand::Immediate(Expression::constant(probe.bytes));
            let subtraction = instruction_at(
                &statements[k],
                "subq",
                vec![amount, Operand::Register(Register::quad(RSP))],
            );
            // Labels and lines of debug information are others' to refer to.
            let mut instead: Vec<Statement> = probe
                .kept
                .iter()
                .map(|at| statements[k + at].clone())
                .collect();
            instead.push(subtraction);
            statements.splice(k..k + probe.length, instead);
        }
        k += 1;
    }
}

/// A loop that was found.
struct Probe {
    /// How much it takes.
    bytes: i64,
    /// How many statements it has.
    length: usize,
    /// Statements of it, by place, that are no part of it.
    kept: Vec<usize>,
}

/// The loop that begins here.
fn probe(statements: &[Statement]) -> Option<Probe> {
    let mut bytes = from_stack_pointer(instruction(&statements[0])?)?;
    let mut labels: Vec<(usize, &str)> = Vec::new();
    let mut kept = Vec::new();
    let mut step = 0;
    for (k, statement) in statements.iter().enumerate().take(LONGEST).skip(1) {
        let now = match &statement.kind {
            // Between here and the end of the loop nothing is called: no unwinder looks.
            StatementKind::Directive { name, .. } if name.starts_with(".cfi") => continue,
            StatementKind::Directive { name, .. } if name == ".loc" => {
                kept.push(k);
                continue;
            }
            StatementKind::Directive { name, .. } if name == ".p2align" => continue,
            StatementKind::Directive { .. } => return None,
            StatementKind::Label(name) => {
                labels.push((k, name));
                continue;
            }
            StatementKind::Instruction(now) => now,
        };
        match step {
            0 if subtracted(now, R11).is_some() => {
                bytes += subtracted(now, R11)?;
                continue;
            }
            0 if !labels.is_empty() && subtracted(now, RSP) == Some(PAGE) => {}
            1 if touches(now) => {}
            2 if compares(now) => {}
            3 if now.mnemonic == "jne" => {
                let target = direct_target(now)?;
                let (own, others): (Vec<_>, Vec<_>) =
                    labels.into_iter().partition(|(_, name)| *name == target);
                kept.extend(others.iter().map(|(at, _)| *at));
                kept.sort_unstable();
                let whole = own.len() == 1 && bytes > 0 && bytes % PAGE == 0;
                return whole.then_some(Probe {
                    bytes,
                    length: k + 1,
                    kept,
                });
            }
            _ => return None,
        }
        step += 1;
    }
    None
}

fn instruction(statement: &Statement) -> Option<&Instruction> {
    match &statement.kind {
        StatementKind::Instruction(instruction) => Some(instruction),
        _ => None,
    }
}

fn quad(operand: &Operand, number: u8) -> bool {
    *operand == Operand::Register(Register::quad(number))
}

/// How far below %rsp the instruction sets %r11.
fn from_stack_pointer(instruction: &Instruction) -> Option<i64> {
    match (
        instruction.mnemonic.as_str(),
        instruction.operands.as_slice(),
    ) {
        ("movq", [from, to]) if quad(from, RSP) && quad(to, R11) => Some(0),
        ("leaq", [Operand::Memory(memory), to]) if quad(to, R11) => on_stack(memory)
            .filter(|offset| *offset <= 0)
            .map(|offset| -offset),
        _ => None,
    }
}

/// The offset of an operand that is %rsp and a number that an instruction can hold.
fn on_stack(memory: &Memory) -> Option<i64> {
    let offset = memory.displacement.value()?;
    let plain = memory.base == Some(Register::quad(RSP))
        && memory.index.is_none()
        && memory.segment.is_none();
    (plain && i32::try_from(offset).is_ok()).then_some(offset)
}

/// What the instruction subtracts from a register.
fn subtracted(instruction: &Instruction, number: u8) -> Option<i64> {
    match (
        instruction.mnemonic.as_str(),
        instruction.operands.as_slice(),
    ) {
        ("subq", [Operand::Immediate(value), to]) if quad(to, number) => {
            value.value().filter(|value| i32::try_from(*value).is_ok())
        }
        _ => None,
    }
}

fn touches(instruction: &Instruction) -> bool {
    matches!(
        (instruction.mnemonic.as_str(), instruction.operands.as_slice()),
        ("movq", [Operand::Immediate(value), Operand::Memory(memory)])
            if value.value() == Some(0) && on_stack(memory) == Some(0)
    )
}

fn compares(instruction: &Instruction) -> bool {
    instruction.mnemonic == "cmpq"
        && matches!(instruction.operands.as_slice(), [limit, at] if quad(limit, R11) && quad(at, RSP))
}
