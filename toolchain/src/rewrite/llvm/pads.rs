//! Where indirect branches may go. gcc marks those places by `endbr64`, switch labels included;
//! LLVM has no option for the latter, and bitcode that was made without the former asks for none.
//!
//! A place gets one if its label's address is taken in this file, if it is a function that other
//! files may refer to, or if exceptions land there.

use std::collections::HashSet;

use super::instruction_at;
use crate::assembly::expression::is_symbol_char;
use crate::assembly::{Statement, StatementKind};
use crate::rewrite::program::Program;

/// Puts them there.
pub fn place(statements: &mut Vec<Statement>) {
    let program = Program::new(statements);
    let mut taken: HashSet<&str> = program.address_taken.iter().map(String::as_str).collect();
    for statement in statements.iter() {
        if let StatementKind::Directive { name, arguments } = &statement.kind {
            match name.as_str() {
                ".globl" | ".global" | ".weak" => {
                    taken.extend(arguments.split(',').map(str::trim));
                }
                // Whoever takes the address of another name of it.
                ".set" | ".equ" | ".symver" => {
                    taken.extend(arguments.split(|c| !is_symbol_char(c)));
                }
                _ => {}
            }
        }
    }
    let mut marked: HashSet<usize> = program.pads.clone();
    marked.extend(
        program
            .labels
            .iter()
            .filter(|(name, _)| taken.contains(*name))
            .map(|(_, index)| *index),
    );
    // A label is followed by directives and other labels; the mark stands before the instruction.
    let mut before: HashSet<usize> = HashSet::new();
    for label in marked {
        let mut next = program.next[label];
        while let Some(index) = next {
            if let Some(instruction) = program.instruction(index) {
                if instruction.mnemonic != "endbr64" {
                    before.insert(index);
                }
                break;
            }
            next = program.next[index];
        }
    }
    let mut out = Vec::with_capacity(statements.len() + before.len());
    for (index, statement) in std::mem::take(statements).into_iter().enumerate() {
        if before.contains(&index) {
            out.push(instruction_at(&statement, "endbr64", Vec::new()));
        }
        out.push(statement);
    }
    *statements = out;
}
