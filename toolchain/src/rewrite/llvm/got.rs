//! Addresses that LLVM reads from the global offset table, for symbols of other files. An extension
//! is linked at fixed offsets: each is a constant.

use std::collections::BTreeSet;

use super::bare;
use crate::assembly::expression::Form;
use crate::assembly::{
    Expression, Instruction, Memory, Operand, Register, Statement, StatementKind,
};

/// Instructions whose first operand may be a constant instead, without their width.
const WITH_CONSTANT: &[&str] = &[
    "mov", "add", "sub", "adc", "sbb", "and", "or", "xor", "cmp", "test", "push",
];

/// Relocations whose entry holds an address, and what such an entry is as a constant.
const ENTRIES: &[(&str, &str)] = &[
    ("GOTPCREL", ""),
    ("GOTPCREL_NORELAX", ""),
    ("GOTTPOFF", "@tpoff"),
];

/// Replaces every entry of the table by its value, or by a word of ours that holds it.
pub fn resolve(statements: &mut Vec<Statement>) {
    let mut words = BTreeSet::new();
    for statement in statements.iter_mut() {
        if let StatementKind::Instruction(instruction) = &mut statement.kind {
            replace(instruction, &mut words);
        }
    }
    let Some(last) = statements.last().map(|last| last.place.clone()) else {
        return;
    };
    for value in words {
        let directive = |name: &str, arguments: &str| StatementKind::Directive {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        let label = word(&value);
        let kinds = [
            directive(".section", ".rodata.postern_got,\"a\",@progbits"),
            directive(".p2align", "3"),
            StatementKind::Label(label),
            directive(".quad", &value),
        ];
        statements.extend(kinds.map(|kind| Statement {
            place: last.clone(),
            kind,
        }));
    }
}

/// The label of the word that holds `value`.
fn word(value: &str) -> String {
    format!(".Lpostern_got_{}", value.replace('@', "_at_"))
}

/// What the entry holds that an operand reads.
fn entry(operand: &Operand) -> Option<String> {
    let Operand::Memory(memory) = operand else {
        return None;
    };
    let (Some(Register::Rip), Form::Symbol(name, 0)) = (memory.base, memory.displacement.form())
    else {
        return None;
    };
    let (symbol, relocation) = name.rsplit_once('@')?;
    let (_, suffix) = ENTRIES.iter().find(|(name, _)| *name == relocation)?;
    Some(format!("{symbol}{suffix}"))
}

fn replace(instruction: &mut Instruction, words: &mut BTreeSet<String>) {
    let found = instruction
        .operands
        .iter()
        .enumerate()
        .find_map(|(place, operand)| Some((place, entry(operand)?)));
    let Some((place, value)) = found else {
        return;
    };
    if instruction.indirect {
        instruction.indirect = false;
        instruction.operands[place] = bare(&value);
        return;
    }
    let mnemonic = instruction.mnemonic.as_str();
    let stem = mnemonic.strip_suffix('q').unwrap_or(mnemonic);
    let general = |operand: &Operand| matches!(operand, Operand::Register(Register::General(..)));
    let constant = Operand::Immediate(Expression::symbol(&value));
    match instruction.operands.as_slice() {
        // `test` has its constant first, in whichever order the two were.
        [other, _] if place == 1 && stem == "test" && general(other) => {
            instruction.operands = vec![constant, other.clone()];
        }
        [_] | [_, _]
            if place == 0
                && WITH_CONSTANT.contains(&stem)
                && instruction.operands.iter().skip(1).all(general) =>
        {
            instruction.operands[0] = constant;
        }
        _ => {
            instruction.operands[place] = Operand::Memory(Memory {
                displacement: Expression::symbol(&word(&value)),
                ..Memory::default()
            });
            words.insert(value);
        }
    }
}
