//! What an instruction does to the compiler's stack pointer and frame pointer.

use super::instruction_set::{Class, classify};
use crate::assembly::register::{RBP, RSP, Width};
use crate::assembly::{Expression, Instruction, Memory, Operand, Register};

/// What is known about the compiler's stack at a point of the program. All numbers are bytes below
/// the value of the stack pointer at the function's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackState {
    /// How far down the stack pointer is; none where it is not one number.
    pub depth: Option<i64>,
    /// How far down %rbp points, if it holds the frame.
    pub frame: Option<i64>,
    /// The register that was given the address of the stack arguments before the frame was
    /// realigned.
    pub arguments: Option<u8>,
}

impl StackState {
    /// At a function's first instruction.
    pub const ENTRY: Self = Self {
        depth: Some(0),
        frame: None,
        arguments: None,
    };

    /// What holds where both `self` and `other` may hold.
    pub fn merge(self, other: Self) -> Self {
        let same = |a: Option<i64>, b: Option<i64>| if a == b { a } else { None };
        Self {
            depth: same(self.depth, other.depth),
            frame: same(self.frame, other.frame),
            arguments: if self.arguments == other.arguments {
                self.arguments
            } else {
                None
            },
        }
    }
}

/// An instruction's effect on the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Leaves it.
    None,
    /// Moves it down by so many bytes.
    Down(i64),
    /// Sets it to a register plus a number.
    Set(u8, i64),
    /// `leave`
    Leave,
    /// Changes it by an amount that is not known.
    Unknown,
}

fn is(operand: &Operand, number: u8) -> bool {
    matches!(operand, Operand::Register(r) if r.is_general(number))
}

/// The value, if an instruction can hold it: so that no sum of such values overflows.
fn small(expression: &Expression) -> Option<i64> {
    expression
        .value()
        .filter(|value| i32::try_from(*value).is_ok())
}

fn based(memory: &Memory) -> Option<(u8, i64)> {
    match (memory.base, memory.index, small(&memory.displacement)) {
        (Some(Register::General(base, Width::Quad)), None, Some(offset)) => Some((base, offset)),
        _ => None,
    }
}

/// The effect of `instruction` on the stack pointer.
pub fn effect(instruction: &Instruction) -> Effect {
    let class = classify(&instruction.mnemonic, instruction.operands.len());
    match class {
        Some(Class::Push) => return Effect::Down(8),
        Some(Class::Pop) if instruction.operands.iter().any(|operand| is(operand, RSP)) => {
            return Effect::Unknown;
        }
        Some(Class::Pop) => return Effect::Down(-8),
        Some(Class::Leave) => return Effect::Leave,
        Some(Class::Compare) => return Effect::None,
        _ => {}
    }
    let exchanges =
        instruction.mnemonic.starts_with("xchg") || instruction.mnemonic.starts_with("xadd");
    if exchanges && instruction.operands.iter().any(|operand| is(operand, RSP)) {
        return Effect::Unknown;
    }
    match (
        instruction.mnemonic.as_str(),
        instruction.operands.as_slice(),
    ) {
        (_, [.., last]) if !is(last, RSP) => Effect::None,
        ("sub" | "subq", [Operand::Immediate(value), _]) => {
            small(value).map_or(Effect::Unknown, Effect::Down)
        }
        ("add" | "addq", [Operand::Immediate(value), _]) => {
            small(value).map_or(Effect::Unknown, |v| Effect::Down(-v))
        }
        ("mov" | "movq", [Operand::Register(Register::General(from, Width::Quad)), _]) => {
            Effect::Set(*from, 0)
        }
        ("lea" | "leaq", [Operand::Memory(memory), _]) => match based(memory) {
            Some((RSP, offset)) => Effect::Down(-offset),
            Some((base, offset)) => Effect::Set(base, offset),
            None => Effect::Unknown,
        },
        (_, []) => Effect::None,
        _ => Effect::Unknown,
    }
}

/// The state after `instruction`.
pub fn step(state: StackState, instruction: &Instruction) -> StackState {
    let mut after = state;
    match effect(instruction) {
        Effect::None => {}
        Effect::Down(bytes) => after.depth = state.depth.map(|depth| depth + bytes),
        Effect::Set(from, offset) => after.depth = target_depth(state, from, offset),
        Effect::Leave => {
            after.depth = state.frame.map(|frame| frame - 8);
            after.frame = None;
        }
        Effect::Unknown => after.depth = None,
    }
    // %rbp and the register of the arguments.
    match (
        instruction.mnemonic.as_str(),
        instruction.operands.as_slice(),
    ) {
        ("mov" | "movq", [from, to]) if is(from, RSP) && is(to, RBP) => after.frame = state.depth,
        (
            "lea" | "leaq",
            [
                Operand::Memory(memory),
                Operand::Register(Register::General(to, _)),
            ],
        ) => {
            if let (Some((RSP, offset)), Some(depth)) = (based(memory), state.depth) {
                if *to == RBP {
                    after.frame = Some(depth - offset);
                } else if depth == 0 && offset == 8 {
                    after.arguments = Some(*to);
                }
            } else if *to == RBP {
                after.frame = None;
            }
        }
        _ => {
            let class = classify(&instruction.mnemonic, instruction.operands.len());
            let written = match instruction.operands.as_slice() {
                _ if matches!(
                    class,
                    Some(Class::Compare | Class::Push | Class::Call | Class::Jump)
                ) =>
                {
                    false
                }
                all if instruction.mnemonic.starts_with('x') => {
                    all.iter().any(|operand| is(operand, RBP))
                }
                [.., last] => is(last, RBP),
                [] => false,
            };
            if written {
                after.frame = None;
            }
        }
    }
    after
}

/// The depth when the stack pointer is set to register `from` plus `offset`.
pub fn target_depth(state: StackState, from: u8, offset: i64) -> Option<i64> {
    match from {
        RBP => state.frame.map(|frame| frame - offset),
        // The epilogue of a realigned frame: back to the value at entry.
        _ if state.arguments == Some(from) && offset == -8 => Some(0),
        _ => None,
    }
}
