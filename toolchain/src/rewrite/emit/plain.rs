//! Everything else: the operands are translated, the instruction stays.

use super::{Emitter, Outcome};
use crate::assembly::register::{R11, R15, RBP, RSP, Width};
use crate::assembly::{Instruction, Memory, Operand, Register};
use crate::rewrite::instruction_set::Class;
use crate::rewrite::operand::{self, accessed, check_register, is_stack_pointer, unaccessed};
use crate::rewrite::stack::{Effect, StackState, effect};
use crate::rewrite::thread_local::{BACK, is_thread_pointer};

impl Emitter<'_, '_> {
    pub(super) fn plain(
        &mut self,
        index: usize,
        instruction: &Instruction,
        class: Class,
        prefixes: &str,
        after: StackState,
    ) -> Outcome {
        match effect(instruction) {
            Effect::Down(bytes) => {
                self.position(index).bias += bytes;
                // Where the depth is not known any more, the stack may be as large as it likes
                // below.
                return Ok(());
            }
            Effect::Set(from, offset) => return self.set_stack(index, from, offset),
            Effect::Unknown => self.adjust(index, 0),
            Effect::None | Effect::Leave => {}
        }
        debug_assert!(after.depth.is_none() || effect(instruction) == Effect::None);
        let mut mnemonic = instruction.mnemonic.as_str();
        if let [Operand::Register(from), Operand::Register(to)] = instruction.operands.as_slice()
            && is_stack_pointer(&instruction.operands[0])
            && !is_stack_pointer(&instruction.operands[1])
            && matches!(mnemonic, "mov" | "movq")
            && matches!(from, Register::General(_, Width::Quad))
        {
            check_register(*to)?;
            let bias = self.position(index).bias;
            self.line(match bias {
                0 => format!("\tmovq\t%r15, {to}"),
                _ => format!("\tleaq\t{}(%r15), {to}", -bias),
            });
            return Ok(());
        }
        if let ("mov" | "movq", [Operand::Memory(memory), Operand::Register(to)]) =
            (mnemonic, instruction.operands.as_slice())
            && is_return_address(self.position(index).state, memory)
            && let Register::General(number, Width::Quad) = *to
        {
            check_register(*to)?;
            self.line(format!("\tmovl\t$0, {}", Register::long(number)));
            return Ok(());
        }
        if instruction.operands.iter().any(is_stack_pointer) {
            self.adjust(index, 0);
        }
        if let Some(place) = instruction.operands.iter().position(is_thread_pointer) {
            return self.thread_pointer(index, instruction, place);
        }
        let bias = self.position(index).bias;
        let mut operands = Vec::with_capacity(instruction.operands.len());
        let mut address = None;
        for operand in &instruction.operands {
            operands.push(match operand {
                Operand::Register(register) => Operand::Register(operand::register(*register)?),
                Operand::Immediate(_) => operand.clone(),
                Operand::Memory(memory) if class == Class::Address => {
                    let mut memory = memory.clone();
                    if mnemonic.starts_with("nop") {
                        memory.segment = None;
                    }
                    Operand::Memory(unaccessed(&memory, bias)?)
                }
                Operand::Memory(memory) => {
                    let translated = accessed(memory, bias)?;
                    address = translated.address;
                    Operand::Memory(translated.memory)
                }
            });
        }
        if mnemonic.starts_with("movabs")
            && operands.iter().any(|o| matches!(o, Operand::Memory(_)))
        {
            return Err(
                "`movabs` with a memory operand cannot be confined: its address has 64 bits"
                    .to_owned(),
            );
        }
        if class == Class::Address && instruction.operands.iter().any(addresses_in_32_bits) {
            mnemonic = lea_of_32_bits(mnemonic, &mut operands);
        }
        let bit_scan;
        if instruction
            .prefixes
            .iter()
            .any(|prefix| prefix.starts_with("rep"))
        {
            bit_scan = match mnemonic
                .strip_prefix("bsf")
                .map(|s| ("tzcnt", s))
                .or(mnemonic.strip_prefix("bsr").map(|s| ("lzcnt", s)))
            {
                Some((stem, suffix)) => format!("{stem}{suffix}"),
                None => {
                    return Err(format!(
                        "the prefix of `{instruction:#}` does not fit the instruction"
                    ));
                }
            };
            mnemonic = &bit_scan;
        }
        self.address(index, address.as_ref());
        let translated = Instruction {
            prefixes: Vec::new(),
            mnemonic: mnemonic.to_owned(),
            operands,
            indirect: false,
        };
        self.write(prefixes, translated);
        Ok(())
    }

    /// An instruction whose operand number `place` is `%fs:0`.
    fn thread_pointer(&mut self, index: usize, instruction: &Instruction, place: usize) -> Outcome {
        let mnemonic = instruction.mnemonic.as_str();
        let known = ["mov", "add", "sub", "cmp"];
        let (Some(Operand::Register(to @ Register::General(number, Width::Quad))), 0, true) = (
            instruction.operands.get(1),
            place,
            known.contains(&mnemonic.strip_suffix('q').unwrap_or(mnemonic)),
        ) else {
            return Err(format!(
                "`{instruction:#}`: the thread pointer can be moved to, added to, subtracted from or compared with a 64-bit register only"
            ));
        };
        check_register(*to)?;
        if *number == RSP {
            return Err("the thread pointer cannot become the stack pointer".to_owned());
        }
        if mnemonic.starts_with("mov") {
            self.stack_end(index, *to);
            self.line(format!("\tleaq\t{}({to}), {to}", -BACK));
        } else {
            self.stack_end(index, Register::quad(R11));
            self.line(format!("\tleaq\t{}(%r11), %r11", -BACK));
            self.line(format!("\t{mnemonic}\t%r11, {to}"));
        }
        Ok(())
    }

    /// Writes an instruction; `%ah` and its like cannot be encoded beside %r8 to %r15, so that they
    /// trade places with `%al` for the time.
    pub(super) fn write(&mut self, prefixes: &str, mut instruction: Instruction) {
        let high = instruction
            .operands
            .iter()
            .find_map(|operand| match operand {
                Operand::Register(Register::High(number)) => Some(*number),
                _ => None,
            });
        let memory = instruction
            .operands
            .iter()
            .position(|operand| matches!(operand, Operand::Memory(_)));
        if let (Some(number), Some(memory)) = (high, memory)
            && let Operand::Memory(address) = instruction.operands[memory].clone()
            && [address.base, address.index]
                .into_iter()
                .flatten()
                .any(|r| matches!(r, Register::General(8.., _)))
        {
            let (high, low) = (
                Register::High(number),
                Register::General(number, Width::Byte),
            );
            let uses = |r: Option<Register>| r.is_some_and(|r| r.is_general(number));
            if uses(address.base) || uses(address.index) {
                let mut plain = address.clone();
                plain.segment = None;
                let widen = |r: Option<Register>| match r {
                    Some(Register::General(n, _)) => Some(Register::quad(n)),
                    other => other,
                };
                (plain.base, plain.index) = (widen(plain.base), widen(plain.index));
                self.line(format!("\tleaq\t{plain}, %r11"));
                instruction.operands[memory] = Operand::Memory(operand::through_r11());
            }
            for operand in &mut instruction.operands {
                if *operand == Operand::Register(high) {
                    *operand = Operand::Register(low);
                }
            }
            self.line(format!("\txchgb\t{high}, {low}"));
            self.line(format!("\t{prefixes}{instruction}"));
            self.line(format!("\txchgb\t{high}, {low}"));
            return;
        }
        self.line(format!("\t{prefixes}{instruction}"));
    }
}

/// Whether an operand is where the compiler believes the return address to be. It is on the control
/// stack, out of reach; what `__builtin_return_address` reads is 0.
fn is_return_address(state: StackState, memory: &Memory) -> bool {
    let depth = match memory.base {
        Some(base) if base == Register::quad(RSP) => state.depth,
        Some(base) if base == Register::quad(RBP) => state.frame,
        _ => None,
    };
    memory.segment.is_none()
        && memory.index.is_none()
        && depth.is_some()
        && memory.displacement.value() == depth
}

fn addresses_in_32_bits(operand: &Operand) -> bool {
    let long =
        |register: Option<Register>| matches!(register, Some(Register::General(_, Width::Long)));
    matches!(operand, Operand::Memory(memory) if long(memory.base) || long(memory.index))
}

/// `leaq (%edi), %rax` is `leal (%rdi), %eax`: the low half of the sum, zero-extended.
fn lea_of_32_bits<'m>(mnemonic: &'m str, operands: &mut [Operand]) -> &'m str {
    match (mnemonic, operands.last_mut()) {
        ("lea" | "leaq", Some(Operand::Register(register @ Register::General(_, Width::Quad)))) => {
            if let Register::General(number, _) = *register {
                *register = if number == R15 {
                    *register
                } else {
                    Register::long(number)
                };
            }
            "leal"
        }
        _ => mnemonic,
    }
}
