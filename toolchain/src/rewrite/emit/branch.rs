//! Branches: direct ones with the bias that their target expects, indirect ones through the guarded
//! sequence of the extension ABI, section 5.

use super::{Emitter, Outcome};
use crate::assembly::register::Width;
use crate::assembly::{Expression, Instruction, Memory, Operand, Register, StatementKind};
use crate::rewrite::flags;
use crate::rewrite::operand::{accessed, check_register, is_stack_pointer};
use crate::rewrite::program::direct_target;

impl Emitter<'_, '_> {
    pub(super) fn call(&mut self, index: usize, instruction: &Instruction) -> Outcome {
        self.adjust(index, 0);
        if let Some(target) = direct_target(instruction) {
            if self.program.weak.contains(target) {
                self.guard_weak(index, target)?;
                self.line("\tcall\t*%r11");
            } else {
                self.line(format!("\tcall\t{target}"));
            }
            return Ok(());
        }
        self.guard(index, instruction)?;
        self.line("\tcall\t*%r11");
        Ok(())
    }

    pub(super) fn jump(&mut self, index: usize, instruction: &Instruction) -> Outcome {
        if let Some(target) = direct_target(instruction) {
            let bias = self.target_bias(target);
            self.adjust(index, bias);
            if self.program.weak.contains(target) {
                self.guard_weak(index, target)?;
                self.line("\tjmp\t*%r11");
            } else {
                let target = self.with_flags(target);
                self.line(format!("\tjmp\t{target}"));
            }
            return Ok(());
        }
        if self.jumps_out(index) {
            return Err("__builtin_longjmp and jumps out of nested functions cannot be confined: they set the stack pointer without the gate's \
                        knowledge; use setjmp and longjmp of <setjmp.h>".to_owned());
        }
        let inside = self
            .flow
            .indirect
            .get(&index)
            .and_then(|labels| labels.first());
        let state = self.position(index).state;
        let bias = match inside.and_then(|label| self.flow.joins.get(label)) {
            Some(join) if join.state.depth == state.depth => join.bias,
            Some(_) if state.depth != Some(0) => 0,
            _ => 8,
        };
        self.adjust(index, bias);
        if self.flags.handed_on(index) {
            for line in flags::keep(self.free(index)) {
                self.line(line);
            }
        }
        self.guard(index, instruction)?;
        self.line("\tjmp\t*%r11");
        Ok(())
    }

    /// Whether the stack pointer is loaded from memory right before the indirect jump at `index`.
    fn jumps_out(&self, index: usize) -> bool {
        let before = (index.saturating_sub(8)..index).rev();
        before
            .take_while(|k| !matches!(self.program.statements[*k].kind, StatementKind::Label(_)))
            .filter_map(|k| self.program.instruction(k))
            .take(4)
            .any(|i| {
                matches!(i.operands.as_slice(), [Operand::Memory(_), to] if is_stack_pointer(to))
                    && i.mnemonic.starts_with("mov")
            })
    }

    pub(super) fn conditional(&mut self, index: usize, instruction: &Instruction) -> Outcome {
        let Some(target) = direct_target(instruction) else {
            return Err(format!("`{}` needs a label to go to", instruction.mnemonic));
        };
        let bias = self.target_bias(target);
        match self.fused_compare() {
            Some(compare) => {
                let compare = self.out.split_off(compare);
                self.adjust(index, bias);
                self.out.push_str(&compare);
            }
            None => self.adjust(index, bias),
        }
        let target = self.with_flags(target);
        self.line(format!("\t{}\t{target}", instruction.mnemonic));
        Ok(())
    }

    /// Where the comparison begins that was written last, if the adjustment may go before it:
    /// processors run a comparison and the jump right behind it as one. It must not look at the
    /// data stack, which the adjustment moves.
    fn fused_compare(&self) -> Option<usize> {
        let mut end = self.out.len();
        loop {
            let start = self.out[..end.checked_sub(1)?].rfind('\n')? + 1;
            let line = &self.out[start..end];
            if line.starts_with("\t.loc") {
                end = start;
                continue;
            }
            let compares = line.starts_with("\tcmp") || line.starts_with("\ttest");
            return (compares && !line.contains("%r15")).then_some(start);
        }
    }

    /// The label to name in a direct branch to `target`: it goes past a landing pad that fetches
    /// flags.
    fn with_flags(&self, target: &str) -> String {
        let label = self.program.labels.get(target);
        label
            .and_then(|label| self.flags.detour(*label))
            .unwrap_or_else(|| target.to_owned())
    }

    /// The bias that code at `target` expects.
    pub(super) fn target_bias(&self, target: &str) -> i64 {
        let label = self.program.labels.get(target);
        let join = label.and_then(|label| self.flow.joins.get(label));
        join.map_or(8, |join| join.bias)
    }

    /// The guarded sequence up to its last instruction; the target's offset with the window's base
    /// is in %r11.
    pub(super) fn guard(&mut self, index: usize, instruction: &Instruction) -> Outcome {
        let [target] = instruction.operands.as_slice() else {
            return Err(format!("`{instruction:#}` is not understood"));
        };
        if !instruction.indirect {
            return Err(format!(
                "`{instruction:#}`: a branch goes to a label or, with `*`, through an operand"
            ));
        }
        let bias = self.position(index).bias;
        let source = match target {
            Operand::Register(Register::General(number, Width::Quad | Width::Long))
                if !is_stack_pointer(target) =>
            {
                check_register(Register::quad(*number))?;
                Register::long(*number).to_string()
            }
            Operand::Memory(memory) => {
                let translated = accessed(memory, bias)?;
                self.address(index, translated.address.as_ref());
                translated.memory.to_string()
            }
            _ => return Err(format!("`{instruction:#}` is not understood")),
        };
        self.fresh += 1;
        let trap = format!(".Lpostern_t{}", self.fresh);
        self.line(format!("\tmovl\t{source}, %r11d"));
        self.line("\tcmpq\t$0x20841f0f, %gs:(%r11d)");
        self.line(format!("\tjne\t{trap}"));
        self.line("\torq\t%gs:0x10000(,%eiz), %r11");
        let position = self.position(index);
        let line = position.line.clone();
        position.traps.push((trap, line));
        Ok(())
    }

    /// The guarded sequence for a function that may be undefined. Its address is then 0, which a
    /// direct branch could not go to; so the address is taken from memory.
    pub(super) fn guard_weak(&mut self, index: usize, target: &str) -> Outcome {
        if self.options.kernel {
            let function = self.program.function_at(index);
            return Err(format!(
                "`{function}` branches to `{target}`, which may be undefined, and a kernel image has branches to what is there only: define \
                 it, or drop `weak`"
            ));
        }
        self.fresh += 1;
        let pointer = format!(".Lpostern_w{}", self.fresh);
        self.pointers.push((pointer.clone(), target.to_owned()));
        let memory = Memory {
            displacement: Expression::symbol(&pointer),
            ..Memory::default()
        };
        let through = Instruction {
            prefixes: Vec::new(),
            mnemonic: "jmp".to_owned(),
            operands: vec![Operand::Memory(memory)],
            indirect: true,
        };
        self.guard(index, &through)
    }
}
