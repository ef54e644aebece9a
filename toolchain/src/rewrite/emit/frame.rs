//! Instructions that move the stack: push, pop, leave, and setting the stack pointer.

use super::{Emitter, Outcome, Position};
use crate::assembly::register::Width;
use crate::assembly::{Instruction, Operand, Register};
use crate::rewrite::Adjustment;
use crate::rewrite::operand::{accessed, check_register, is_stack_pointer, slot};
use crate::rewrite::stack::{StackState, target_depth};

impl Emitter<'_, '_> {
    pub(super) fn push(&mut self, index: usize, instruction: &Instruction) -> Outcome {
        let [source] = instruction.operands.as_slice() else {
            return Err(format!("`{instruction:#}` is not understood"));
        };
        let bias = self.position(index).bias;
        let to = slot(-bias - 8);
        match source {
            Operand::Memory(memory) => {
                let translated = accessed(memory, bias)?;
                self.address(index, translated.address.as_ref());
                self.line(format!("\tmovq\t{}, %r11", translated.memory));
                self.line(format!("\tmovq\t%r11, {to}"));
            }
            Operand::Register(_) if is_stack_pointer(source) => {
                self.line(format!("\tleaq\t{}(%r15), %r11", -bias));
                self.line(format!("\tmovq\t%r11, {to}"));
            }
            Operand::Register(register @ Register::General(_, Width::Quad)) => {
                check_register(*register)?;
                self.line(format!("\tmovq\t{source}, {to}"));
            }
            Operand::Immediate(_) => self.line(format!("\tmovq\t{source}, {to}")),
            Operand::Register(register) => {
                check_register(*register)?;
                return Err(format!(
                    "`{instruction:#}`: only 64-bit registers can be pushed"
                ));
            }
        }
        self.position(index).bias += 8;
        Ok(())
    }

    pub(super) fn pop(&mut self, index: usize, instruction: &Instruction) -> Outcome {
        let [target] = instruction.operands.as_slice() else {
            return Err(format!("`{instruction:#}` is not understood"));
        };
        let bias = self.position(index).bias;
        let from = slot(-bias);
        match target {
            Operand::Register(_) if is_stack_pointer(target) => {
                self.line(format!("\tmovq\t{from}, %r15"));
                self.position(index).bias = 0;
                return Ok(());
            }
            Operand::Register(register @ Register::General(_, Width::Quad)) => {
                check_register(*register)?;
                self.line(format!("\tmovq\t{from}, {target}"));
            }
            Operand::Memory(memory) => {
                let translated = accessed(memory, bias - 8)?;
                if translated.address.is_some() {
                    return Err(format!(
                        "`{instruction:#}`: this address cannot be popped to"
                    ));
                }
                self.line(format!("\tmovq\t{from}, %r11"));
                self.line(format!("\tmovq\t%r11, {}", translated.memory));
            }
            _ => {
                return Err(format!(
                    "`{instruction:#}`: only 64-bit registers can be popped"
                ));
            }
        }
        self.position(index).bias -= 8;
        Ok(())
    }

    pub(super) fn leave(&mut self, index: usize, after: StackState) {
        let Position { state, bias, .. } = *self.position(index);
        let fixed = self.options.adjustment == Adjustment::Fixed;
        let bias = match (state.depth, after.depth) {
            (Some(before), Some(now)) if !fixed => bias + now - before,
            (None, Some(now)) if !fixed => {
                self.line(format!("\tleaq\t{}(%rbp), %r15", 16 + now));
                now + 8
            }
            _ => {
                self.line("\tleaq\t8(%rbp), %r15");
                0
            }
        };
        self.position(index).bias = bias;
        self.line("\tmovq\t%gs:(%ebp), %rbp");
    }

    /// An instruction that sets the stack pointer to a register plus a number.
    pub(super) fn set_stack(&mut self, index: usize, from: u8, offset: i64) -> Outcome {
        let Position { state, bias, .. } = *self.position(index);
        check_register(Register::quad(from))?;
        let fixed = self.options.adjustment == Adjustment::Fixed;
        let (lead, bias) = match (state.depth, target_depth(state, from, offset)) {
            (Some(before), Some(now)) if !fixed => {
                self.position(index).bias = bias + now - before;
                return Ok(());
            }
            // Straight to the value at entry, where a return wants it.
            (None, Some(now)) if !fixed => (offset + 8 + now, 8 + now),
            _ => (offset, 0),
        };
        self.position(index).bias = bias;
        let from = Register::quad(from);
        self.line(if lead == 0 {
            format!("\tmovq\t{from}, %r15")
        } else {
            format!("\tleaq\t{lead}({from}), %r15")
        });
        Ok(())
    }
}
