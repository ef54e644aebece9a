//! The pass that writes the output: one statement after the other, with the bias in hand.

mod branch;
mod causes;
mod frame;
mod plain;

use std::collections::HashMap;
use std::fmt::Write;

use causes::Causes;

use super::directive::{Verdict, judge};
use super::flags::{self, Flags};
use super::flow::Flow;
use super::instruction_set::{Class, classify};
use super::operand::{Address, slot};
use super::program::{Program, SectionId, section_and_flags};
use super::stack::{StackState, step};
use super::{Adjustment, RewriteOptions, examine, kernel, strings};
use crate::assembly::register::R11;
use crate::assembly::{Instruction, Register, StatementKind};
use crate::diagnostic::Diagnostic;
use postern_verifier::window::STACK_MASK_WORD;

/// The landing pad.
const PAD: &str = "\t.byte\t0x0f,0x1f,0x84,0x20,0,0,0,0";

/// How control comes to the next statement of a section.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// A section begins: perhaps by being called.
    Start,
    /// It does not.
    No,
    /// From a call, which may never return.
    AfterCall,
    /// From the statement before.
    Yes,
}

struct Position {
    reach: Reach,
    state: StackState,
    bias: i64,
    /// A `ud2` already stands for the unreachable code here.
    trapped: bool,
    /// Failed guards that still need an `int3`: label and line information.
    traps: Vec<(String, Option<String>)>,
    /// Arguments of the `.loc` in force.
    line: Option<String>,
}

pub(super) struct Emitter<'p, 'a> {
    program: &'p Program<'a>,
    flow: &'p Flow,
    flags: Flags<'p, 'a>,
    options: &'p RewriteOptions,
    out: String,
    causes: Causes,
    positions: HashMap<SectionId, Position>,
    fresh: u32,
    in_debug_section: bool,
    /// Labels of constants that hold the addresses of symbols.
    pointers: Vec<(String, String)>,
    /// An instruction that was written together with an earlier one.
    written: Option<usize>,
}

type Outcome = Result<(), String>;

impl<'p, 'a> Emitter<'p, 'a> {
    pub fn new(program: &'p Program<'a>, flow: &'p Flow, options: &'p RewriteOptions) -> Self {
        Self {
            program,
            flow,
            flags: Flags::new(program, flow),
            options,
            out: String::new(),
            causes: Causes::default(),
            positions: HashMap::new(),
            fresh: 0,
            in_debug_section: false,
            pointers: Vec::new(),
            written: None,
        }
    }

    pub fn run(mut self) -> Result<String, Vec<Diagnostic>> {
        for index in 0..self.program.statements.len() {
            if let Err(message) = self.statement(index) {
                self.causes.add(self.program, index, message);
            }
        }
        let errors = std::mem::take(&mut self.causes).errors();
        if !errors.is_empty() {
            return Err(errors);
        }
        for id in 0..self.program.sections.len() {
            let Some(position) = self.positions.get_mut(&id) else {
                continue;
            };
            let traps = std::mem::take(&mut position.traps);
            if !traps.is_empty() {
                let _ = writeln!(self.out, "{}", self.program.sections[id].directive);
                self.write_traps(traps);
            }
        }
        if !self.pointers.is_empty() {
            self.line("\t.section\t.rodata.postern_weak,\"a\",@progbits\n\t.p2align 3");
        }
        for (label, symbol) in std::mem::take(&mut self.pointers) {
            self.line(format!("{label}:\n\t.quad\t{symbol}"));
        }
        self.out
            .push_str("\t.section\t.note.GNU-stack,\"\",@progbits\n");
        Ok(self.out)
    }

    fn line(&mut self, text: impl AsRef<str>) {
        match self.options.kernel {
            true => self.out.push_str(&kernel::line(text.as_ref())),
            false => self.out.push_str(text.as_ref()),
        }
        self.out.push('\n');
    }

    fn position(&mut self, index: usize) -> &mut Position {
        self.positions
            .entry(self.program.section_of[index])
            .or_insert(Position {
                reach: Reach::Start,
                state: StackState::ENTRY,
                bias: 8,
                trapped: false,
                traps: Vec::new(),
                line: None,
            })
    }

    fn statement(&mut self, index: usize) -> Outcome {
        let program = self.program;
        match &program.statements[index].kind {
            StatementKind::Label(name) => {
                if program.is_text(index) {
                    self.label(index, name);
                } else if !self.in_debug_section {
                    self.line(format!("{name}:"));
                }
                Ok(())
            }
            StatementKind::Directive { name, arguments } => self.directive(index, name, arguments),
            StatementKind::Instruction(instruction) => {
                if !program.is_text(index) {
                    let section = &program.sections[program.section_of[index]].name;
                    return Err(format!(
                        "an instruction in the section `{section}`, which is not executable"
                    ));
                }
                self.instruction(index, instruction)
            }
        }
    }

    /// The bias of a stack pointer below which nothing is the compiler's.
    fn free(&mut self, index: usize) -> i64 {
        self.position(index).bias + self.options.compiler.red_zone()
    }

    /// Moves %r15 so that the bias becomes `bias`.
    fn adjust(&mut self, index: usize, bias: i64) {
        let position = self.position(index);
        let delta = bias - position.bias;
        position.bias = bias;
        if delta != 0 {
            self.line(format!("\tleaq\t{delta}(%r15), %r15"));
        }
    }

    fn label(&mut self, index: usize, name: &str) {
        if let Some(join) = self.flow.joins.get(&index).copied() {
            let position = self.position(index);
            let falls = match position.reach {
                Reach::No | Reach::Start => false,
                Reach::Yes => true,
                Reach::AfterCall => {
                    position.state.depth == join.state.depth && !self.is_entry(index)
                }
            };
            if falls {
                self.adjust(index, join.bias);
                if let Some(behind) = self.flags.detour_of_first(index) {
                    self.line(format!("\tjmp\t{behind}"));
                }
            }
            let position = self.position(index);
            position.reach = Reach::Yes;
            position.state = join.state;
            position.bias = join.bias;
        }
        self.line(format!("{name}:"));
    }

    fn is_entry(&self, index: usize) -> bool {
        self.flow.entries.contains(&index)
    }

    fn directive(&mut self, index: usize, name: &str, arguments: &str) -> Outcome {
        let text = self.program.is_text(index);
        match name {
            ".section" | ".pushsection" => {
                let section = section_and_flags(arguments).0;
                self.in_debug_section = section.starts_with(".debug") && !self.options.debug;
            }
            ".text" | ".data" | ".bss" | ".previous" | ".popsection" => {
                self.in_debug_section = false
            }
            _ => {}
        }
        let verdict = judge(name, arguments)?;
        if self.in_debug_section {
            return Ok(());
        }
        if let Some(mnemonic) = spelled_as_bytes(name, arguments).filter(|_| text) {
            return self.instruction(index, &Instruction::bare(mnemonic));
        }
        match verdict {
            Verdict::Frame => {
                if self.program.frames {
                    self.line(format!("\t{name} {arguments}").trim_end());
                }
            }
            Verdict::Line => {
                if self.options.debug {
                    self.position(index).line = Some(arguments.to_owned());
                    self.line(format!("\t{name} {arguments}"));
                }
            }
            Verdict::Align(alignment) if text => {
                let lines = match self.position(index).reach {
                    Reach::No | Reach::Start => alignment.unreached(),
                    _ if alignment.filled => {
                        return Err(
                            "padding that control runs through must be left to the assembler"
                                .to_owned(),
                        );
                    }
                    _ => alignment.reached(),
                };
                for line in lines {
                    self.line(line);
                }
            }
            // One output section holds all text, whatever the input calls it.
            Verdict::Pass if is_odd_text(name, arguments) => {
                let rest = arguments.split_once(',').map_or("", |(_, rest)| rest);
                let section = section_and_flags(arguments).0;
                self.line(format!(
                    "\t{name}\t.text.{},{rest}",
                    section.trim_start_matches('.')
                ));
            }
            Verdict::Pass | Verdict::Align(_) => {
                if name == ".file" && !self.options.debug && !arguments.starts_with('"') {
                    return Ok(());
                }
                self.line(format!("\t{name}\t{arguments}").trim_end());
            }
        }
        Ok(())
    }

    fn instruction(&mut self, index: usize, instruction: &Instruction) -> Outcome {
        let class =
            classify(&instruction.mnemonic, instruction.operands.len()).ok_or_else(|| {
                format!(
                    "unknown instruction `{}`: only instructions of the allow list can be confined",
                    instruction.mnemonic
                )
            })?;
        if let Class::Refused(reason) = class {
            return Err(format!(
                "`{}` cannot be confined: {reason}",
                instruction.mnemonic
            ));
        }
        let position = self.position(index);
        if position.reach == Reach::No {
            if !position.trapped {
                position.trapped = true;
                self.line("\tud2");
            }
            return Ok(());
        }
        position.trapped = false;
        position.reach = Reach::Yes;
        let prefixes = prefixes(instruction, class)?;
        let before = self.position(index).state;
        let after = step(before, instruction);
        if self.options.kernel {
            let function = self.program.function_at(index);
            kernel::check(function, instruction, class, before, after)?;
        }
        match class {
            Class::Landing => self.landing(index),
            Class::Nothing => {}
            Class::Call => self.call(index, instruction)?,
            Class::Jump => self.jump(index, instruction)?,
            Class::Conditional => self.conditional(index, instruction)?,
            Class::Return => {
                if !instruction.operands.is_empty() {
                    return Err(
                        "`ret` with a number cannot be confined: it moves the control stack"
                            .to_owned(),
                    );
                }
                self.adjust(index, 8);
                self.line("\tret");
            }
            Class::Trap => self.line(format!("\t{}", instruction.mnemonic)),
            Class::Push => self.push(index, instruction)?,
            Class::Pop => self.pop(index, instruction)?,
            Class::Leave => self.leave(index, after),
            Class::String(stem, width) => {
                self.fresh += 1;
                let label = format!(".Lpostern_s{}", self.fresh);
                let repeat = instruction.prefixes.first().map(String::as_str);
                let mut lines = strings::expand(stem, width, repeat, &label)?;
                let after = self.program.next[index];
                if strings::loses_flags(stem, repeat)
                    && after.is_some_and(|after| self.flags.live(after))
                {
                    let free = self.free(index);
                    lines.splice(0..0, flags::keep(free));
                    lines.extend(flags::fetch(free));
                }
                for line in lines {
                    self.line(line);
                }
            }
            Class::Plain if self.written == Some(index) => {}
            Class::Plain if instruction.mnemonic == "fxam" => self.examine(index)?,
            Class::Plain | Class::Compare | Class::Address => {
                self.plain(index, instruction, class, &prefixes, after)?
            }
            Class::Routine(name) => self.routine(index, name),
            Class::Refused(_) => {}
        }
        let fixed = self.options.adjustment == Adjustment::Fixed;
        let position = self.position(index);
        position.state = after;
        position.reach = match class {
            Class::Call => Reach::AfterCall,
            Class::Jump | Class::Return | Class::Trap => Reach::No,
            _ => Reach::Yes,
        };
        if position.reach == Reach::No {
            let traps = std::mem::take(&mut position.traps);
            self.write_traps(traps);
        } else if fixed && class != Class::Landing {
            self.adjust(index, 0);
        }
        Ok(())
    }

    /// An instruction for which a routine of the library stands. It leaves the data stack alone, so
    /// that it can be called at any bias.
    fn routine(&mut self, index: usize, name: &str) {
        let after = self.program.next[index];
        let flags = after.is_some_and(|after| self.flags.live(after));
        let free = self.free(index);
        if flags {
            flags::keep(free).iter().for_each(|line| self.line(line));
        }
        self.line(format!("\tcall\t{name}"));
        if flags {
            flags::fetch(free).iter().for_each(|line| self.line(line));
        }
    }

    fn write_traps(&mut self, traps: Vec<(String, Option<String>)>) {
        for (label, line) in traps {
            if let Some(line) = line {
                self.line(format!("\t.loc {line}"));
            }
            self.line(format!("{label}:"));
            self.line("\tint3");
        }
    }

    /// The landing pad, behind which the flags are fetched that the indirect jump to here has kept.
    fn landing(&mut self, index: usize) {
        self.line(PAD);
        let Some(behind) = self.flags.behind(index) else {
            return;
        };
        for line in flags::fetch(self.free(index)) {
            self.line(line);
        }
        self.line(format!("{behind}:"));
    }

    /// `fxam` with its `fnstsw`: through memory below the compiler's stack pointer, where nothing
    /// is.
    fn examine(&mut self, index: usize) -> Outcome {
        let (partner, flags) = examine::partner(self.program, &self.flags, index)?;
        self.written = Some(partner);
        let below = -self.free(index) - 16;
        self.fresh += 1;
        let label = format!(".Lpostern_x{}", self.fresh);
        let (scratch, upper) = (slot(below).to_string(), slot(below + 8).to_string());
        let mut lines = examine::expand(&scratch, &upper, &label);
        if flags {
            let (flags, status) = (slot(below - 8), slot(below - 16));
            lines = examine::keeping_flags(lines, &flags.to_string(), &status.to_string());
        }
        for line in lines {
            self.line(line);
        }
        Ok(())
    }

    /// Computes into %r11 what an operand of the statement at `index` needs there.
    fn address(&mut self, index: usize, address: Option<&Address>) {
        match address {
            None => {}
            Some(Address::Of(memory)) => self.line(format!("\tleaq\t{memory}, %r11")),
            Some(Address::StackEnd(add)) => {
                self.stack_end(index, Register::quad(R11));
                for memory in add {
                    self.line(format!("\tleaq\t{memory}, %r11"));
                }
            }
        }
    }

    /// Puts the offset of the data stack's last byte into a register. Where flags are wanted
    /// afterwards, the `or` is done in a vector register, which is kept meanwhile below the stack
    /// pointer, where nobody has anything.
    fn stack_end(&mut self, index: usize, register: Register) {
        let long = match register {
            Register::General(number, _) => Register::long(number),
            other => other,
        };
        if !self.flags.live(index) {
            self.line(format!("\tmovl\t%r15d, {long}"));
            self.line(format!("\torl\t%gs:{STACK_MASK_WORD}(,%eiz), {long}"));
            return;
        }
        let below = slot(-self.free(index) - 16);
        self.line(format!("\tmovups\t%xmm15, {below}"));
        self.line("\tmovd\t%r15d, %xmm15");
        self.line(format!("\tpor\t%gs:{STACK_MASK_WORD}(,%eiz), %xmm15"));
        self.line(format!("\tmovd\t%xmm15, {long}"));
        self.line(format!("\tmovups\t{below}, %xmm15"));
    }
}

/// A directive that switches to an executable section with a name of its own.
fn is_odd_text(name: &str, arguments: &str) -> bool {
    let (section, flags) = section_and_flags(arguments);
    matches!(name, ".section" | ".pushsection")
        && flags.is_some_and(|flags| flags.contains('x'))
        && section != ".text"
        && !section.starts_with(".text.")
}

/// The instruction that a directive's bytes are, of those that older assemblers do not know by
/// name.
fn spelled_as_bytes(name: &str, arguments: &str) -> Option<&'static str> {
    let bytes = arguments.split(',').map(|byte| {
        let byte = byte.trim();
        let digits = byte.strip_prefix("0x").or(byte.strip_prefix("0X"));
        digits.map_or(byte.parse().ok(), |digits| {
            u8::from_str_radix(digits, 16).ok()
        })
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    match bytes.filter(|_| name == ".byte")?.as_slice() {
        [0x0f, 0x01, 0xd0] => Some("xgetbv"),
        [0x0f, 0xa2] => Some("cpuid"),
        _ => None,
    }
}

/// The prefixes to write before the instruction.
fn prefixes(instruction: &Instruction, class: Class) -> Result<String, String> {
    let mut out = String::new();
    for prefix in &instruction.prefixes {
        match (prefix.as_str(), class) {
            ("lock", Class::Plain) => out.push_str("lock "),
            ("notrack" | "bnd", Class::Jump | Class::Call | Class::Conditional | Class::Return) => {
            }
            ("rep" | "repe" | "repz" | "repne" | "repnz", Class::String(..)) => {}
            ("rep" | "repe" | "repz", Class::Return | Class::Plain) => {}
            _ => {
                return Err(format!(
                    "the prefix `{prefix}` of `{instruction:#}` cannot be confined"
                ));
            }
        }
    }
    Ok(out)
}
