//! A parsed file seen as a program: sections, functions, jump targets, jump tables.

use std::collections::{HashMap, HashSet};

use super::instruction_set::{Class, classify};
use crate::assembly::expression::is_symbol_char;
use crate::assembly::{Instruction, Operand, Statement, StatementKind};

/// Number of a section of this file.
pub type SectionId = usize;

/// A section of this file.
#[derive(Debug)]
pub struct Section {
    /// Its name, `.text` for example.
    pub name: String,
    /// The directive that switches to it.
    pub directive: String,
    /// Whether it holds instructions.
    pub executable: bool,
}

/// An entry of an exception table: an exception that leaves a call between two places goes on at
/// the landing pad.
#[derive(Debug)]
pub struct CallSite {
    /// Index of the label where the range begins.
    pub start: usize,
    /// Index of the label where it ends.
    pub end: usize,
    /// Index of the landing pad's label.
    pub pad: usize,
}

/// What the passes need to know about a file.
pub struct Program<'a> {
    /// The statements.
    pub statements: &'a [Statement],
    /// For each statement, the section that it lies in (a section directive: the section it
    /// leaves).
    pub section_of: Vec<SectionId>,
    /// The sections, in order of appearance.
    pub sections: Vec<Section>,
    section_ids: HashMap<String, SectionId>,
    /// Statement index of each label in an executable section.
    pub labels: HashMap<&'a str, usize>,
    /// Labels at which a function begins.
    pub functions: HashSet<&'a str>,
    /// Statement indices of function labels, ascending.
    pub function_starts: Vec<usize>,
    /// Labels that branches name.
    pub branch_targets: HashSet<&'a str>,
    /// Labels of text whose address is taken in data or by an instruction.
    pub address_taken: HashSet<String>,
    /// Tables: data label to the text labels that follow it in `.quad` directives.
    pub tables: HashMap<&'a str, Vec<String>>,
    /// The call sites of the exception tables, by place.
    pub call_sites: Vec<CallSite>,
    /// Indices of landing pads' labels.
    pub pads: HashSet<usize>,
    /// Frames are described for an unwinder, not only for a debugger.
    pub frames: bool,
    /// Symbols that may stay undefined (`.weak`) and are not defined here.
    pub weak: HashSet<&'a str>,
    /// For each statement, the next one in the same section.
    pub next: Vec<Option<usize>>,
}

impl<'a> Program<'a> {
    /// Collects what there is to know about `statements`.
    pub fn new(statements: &'a [Statement]) -> Self {
        let mut program = Self {
            statements,
            section_of: Vec::with_capacity(statements.len()),
            sections: Vec::new(),
            section_ids: HashMap::new(),
            labels: HashMap::new(),
            functions: HashSet::new(),
            function_starts: Vec::new(),
            branch_targets: HashSet::new(),
            address_taken: HashSet::new(),
            tables: HashMap::new(),
            call_sites: Vec::new(),
            pads: HashSet::new(),
            frames: true,
            weak: HashSet::new(),
            next: vec![None; statements.len()],
        };
        program.find_sections();
        program.find_labels();
        program.find_references();
        program.find_call_sites();
        program
    }

    /// Whether the statement lies among instructions.
    pub fn is_text(&self, index: usize) -> bool {
        self.sections[self.section_of[index]].executable
    }

    /// The statement's instruction, if it is one.
    pub fn instruction(&self, index: usize) -> Option<&'a Instruction> {
        match &self.statements[index].kind {
            StatementKind::Instruction(instruction) => Some(instruction),
            _ => None,
        }
    }

    /// Whether the statement is the label of a function.
    pub fn is_function_label(&self, index: usize) -> bool {
        matches!(&self.statements[index].kind, StatementKind::Label(name) if self.functions.contains(name.as_str()))
    }

    /// The statements from the function label before `index` to the next one: a function with its
    /// tables and cold parts.
    pub fn extent(&self, index: usize) -> std::ops::Range<usize> {
        let after = self
            .function_starts
            .partition_point(|start| *start <= index);
        let start = after.checked_sub(1).map_or(0, |k| self.function_starts[k]);
        let end = self
            .function_starts
            .get(after)
            .copied()
            .unwrap_or(self.statements.len());
        start..end
    }

    /// The name of the function that the statement belongs to.
    pub fn function_at(&self, index: usize) -> &'a str {
        match &self.statements[self.extent(index).start].kind {
            StatementKind::Label(name) => name,
            _ => "the code before the first function",
        }
    }

    fn section(&mut self, name: &str, directive: String, executable: bool) -> SectionId {
        if let Some(id) = self.section_ids.get(name) {
            return *id;
        }
        let id = self.sections.len();
        self.section_ids.insert(name.to_owned(), id);
        self.sections.push(Section {
            name: name.to_owned(),
            directive,
            executable,
        });
        id
    }

    fn find_sections(&mut self) {
        let mut current = self.section(".text", "\t.text".to_owned(), true);
        let (mut previous, mut stack) = (current, Vec::new());
        let mut last_in: HashMap<SectionId, usize> = HashMap::new();
        for (index, statement) in self.statements.iter().enumerate() {
            self.section_of.push(current);
            if let Some(before) = last_in.insert(current, index) {
                self.next[before] = Some(index);
            }
            let StatementKind::Directive { name, arguments } = &statement.kind else {
                continue;
            };
            let to = match name.as_str() {
                ".text" | ".data" | ".bss" => {
                    Some(self.section(name, format!("\t{name}"), name == ".text"))
                }
                ".section" | ".pushsection" => {
                    let (section, flags) = section_and_flags(arguments);
                    let executable =
                        flags.map_or(is_text_name(section), |flags| flags.contains('x'));
                    Some(self.section(section, format!("\t.section\t{arguments}"), executable))
                }
                ".popsection" => stack.pop(),
                ".previous" => Some(previous),
                _ => None,
            };
            if let Some(to) = to {
                if name == ".pushsection" {
                    stack.push(current);
                }
                previous = current;
                current = to;
            }
        }
    }

    fn find_labels(&mut self) {
        let mut typed: HashSet<&str> = HashSet::new();
        for (index, statement) in self.statements.iter().enumerate() {
            match &statement.kind {
                StatementKind::Label(name) if self.is_text(index) => {
                    self.labels.insert(name, index);
                }
                StatementKind::Directive { name, arguments } if name == ".type" => {
                    if let Some((symbol, kind)) = arguments.split_once(',')
                        && kind.contains("function")
                        && !symbol.contains(".cold")
                    {
                        typed.insert(symbol.trim());
                    }
                }
                StatementKind::Directive { name, arguments }
                    if name == ".globl" || name == ".global" =>
                {
                    typed.extend(arguments.split(',').map(str::trim));
                }
                StatementKind::Directive { name, arguments } if name == ".weak" => {
                    self.weak.extend(arguments.split(',').map(str::trim));
                }
                StatementKind::Instruction(instruction) => {
                    let class = classify(&instruction.mnemonic, instruction.operands.len());
                    if class == Some(Class::Call)
                        && let Some(target) = direct_target(instruction)
                        && !target.starts_with(".L")
                    {
                        typed.insert(target);
                    }
                }
                _ => {}
            }
        }
        let labels = &self.labels;
        self.weak.retain(|name| !labels.contains_key(name));
        for name in typed {
            if let Some((name, index)) = self.labels.get_key_value(name) {
                self.functions.insert(name);
                self.function_starts.push(*index);
            }
        }
        self.function_starts.sort_unstable();
    }

    /// A table's entry is four numbers: where the range begins, its length, where its landing pad
    /// is, an action. The first three are written as differences of labels, and the second one
    /// subtracts the label of the first.
    fn find_call_sites(&mut self) {
        let mut last: [Option<(&'a str, &'a str)>; 2] = [None, None];
        for (index, statement) in self.statements.iter().enumerate() {
            let StatementKind::Directive { name, arguments } = &statement.kind else {
                continue;
            };
            if name == ".cfi_sections" {
                self.frames = arguments.contains(".eh_frame");
            }
            let section = &self.sections[self.section_of[index]].name;
            if name != ".uleb128" || !section.starts_with(".gcc_except_table") {
                continue;
            }
            let difference = arguments.split_once('-');
            if let (Some((start, _)), Some((end, from)), Some((pad, _))) =
                (last[0], last[1], difference)
                && start == from
                && let Some(&start) = self.labels.get(start)
                && let Some(&end) = self.labels.get(end)
                && let Some(&pad) = self.labels.get(pad)
            {
                self.call_sites.push(CallSite { start, end, pad });
                self.pads.insert(pad);
            }
            last = [last[1], difference];
        }
        self.call_sites.sort_unstable_by_key(|site| site.start);
    }

    /// The landing pad of the call at `index`.
    pub fn pad_of(&self, index: usize) -> Option<usize> {
        let after = self.call_sites.partition_point(|site| site.start <= index);
        let site = &self.call_sites[after.checked_sub(1)?];
        (index < site.end).then_some(site.pad)
    }

    fn find_references(&mut self) {
        let mut table: Option<&'a str> = None;
        for (index, statement) in self.statements.iter().enumerate() {
            match &statement.kind {
                StatementKind::Label(name) => {
                    table = (!self.is_text(index)).then_some(name.as_str())
                }
                StatementKind::Directive { name, arguments } => {
                    let section = &self.sections[self.section_of[index]].name;
                    if !matches!(
                        name.as_str(),
                        ".quad" | ".long" | ".8byte" | ".4byte" | ".int"
                    ) || section.starts_with(".debug")
                    {
                        continue;
                    }
                    for word in arguments.split(|c| !is_symbol_char(c)) {
                        if self.labels.contains_key(word) {
                            self.address_taken.insert(word.to_owned());
                            if let Some(table) = table {
                                self.tables.entry(table).or_default().push(word.to_owned());
                            }
                        }
                    }
                }
                StatementKind::Instruction(instruction) => {
                    let class = classify(&instruction.mnemonic, instruction.operands.len());
                    if matches!(class, Some(Class::Jump | Class::Conditional | Class::Call))
                        && let Some(target) = direct_target(instruction)
                    {
                        self.branch_targets.insert(target);
                        continue;
                    }
                    for operand in &instruction.operands {
                        let expression = match operand {
                            Operand::Immediate(value) => value,
                            Operand::Memory(memory) => &memory.displacement,
                            Operand::Register(_) => continue,
                        };
                        if let crate::assembly::expression::Form::Symbol(name, _) =
                            expression.form()
                            && self.labels.contains_key(name.as_str())
                        {
                            self.address_taken.insert(name.clone());
                        }
                    }
                }
            }
        }
    }
}

/// The symbol that a direct branch names, without a relocation suffix like `@PLT`.
pub fn direct_target(instruction: &Instruction) -> Option<&str> {
    if instruction.indirect {
        return None;
    }
    match instruction.operands.as_slice() {
        [Operand::Memory(memory)] if memory.is_bare() => {
            let name = memory.displacement.as_symbol()?;
            Some(name.split('@').next().unwrap_or(name))
        }
        _ => None,
    }
}

/// Name and flags of a `.section` directive's arguments.
pub fn section_and_flags(arguments: &str) -> (&str, Option<&str>) {
    let parts = crate::assembly::scan::split_commas(arguments);
    let name = parts.first().copied().unwrap_or("").trim_matches('"');
    let flags = parts
        .get(1)
        .and_then(|part| part.strip_prefix('"')?.strip_suffix('"'));
    (name, flags)
}

fn is_text_name(name: &str) -> bool {
    name == ".text" || name.starts_with(".text.")
}
