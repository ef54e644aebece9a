//! Whether the arithmetic flags are still wanted at a place, so that an `or` can be put there.
//!
//! The answer errs on one side: flags are dead only where an instruction that writes all of them, a
//! call or a return comes before any that reads one. An indirect jump hands them on if it may go to
//! a landing pad where they are wanted: gcc leaves out a comparison in a `case` if it was the last
//! one before the `switch`. The guarded sequence would lose them, so such a jump keeps them below
//! the data stack, and such a landing pad fetches them. At the entry of a function nothing is in
//! them.

use std::collections::{BTreeMap, HashMap};

use super::flow::Flow;
use super::instruction_set::{Class, classify};
use super::operand::slot;
use super::program::{Program, direct_target};
use crate::assembly::{Instruction, Operand, StatementKind};

/// Statements that are looked at before the answer is yes.
const FAR: usize = 300;

/// Instructions that write every arithmetic flag (or leave it undefined), without their width
/// suffix.
const WRITERS: &[&str] = &[
    "add", "sub", "cmp", "test", "and", "or", "xor", "neg", "mul", "imul", "comiss", "comisd",
    "ucomiss", "ucomisd", "vcomiss", "vcomisd", "vucomiss", "vucomisd", "fcomi", "fcomip",
    "fucomi", "fucomip", "ptest", "vptest", "div", "idiv", "popcnt", "lzcnt", "tzcnt", "bsf",
    "bsr", "andn", "bextr", "blsi", "blsr", "blsmsk", "bzhi", "xadd", "cmpxchg",
];

/// Instructions that write every arithmetic flag unless they shift by 0.
const SHIFTS: &[&str] = &["shl", "sal", "shr", "sar", "shld", "shrd"];

/// Beginnings of the names of instructions that read a flag.
const READERS: &[&str] = &[
    "set", "cmov", "adc", "sbb", "adox", "rcl", "rcr", "lahf", "cmc", "fcmov",
];

/// What is known about the flags of a program.
pub struct Flags<'p, 'a> {
    program: &'p Program<'a>,
    flow: &'p Flow,
    /// The landing pads inside of functions where flags are wanted, by the index of the `endbr64`,
    /// each with its labels.
    landings: BTreeMap<usize, Vec<usize>>,
    /// From such a label to its landing pad.
    pads: HashMap<usize, usize>,
}

impl<'p, 'a> Flags<'p, 'a> {
    /// Finds the landing pads where flags are wanted.
    pub fn new(program: &'p Program<'a>, flow: &'p Flow) -> Self {
        let inner = inner_landings(program, flow);
        let mut flags = Self {
            program,
            flow,
            landings: BTreeMap::new(),
            pads: HashMap::new(),
        };
        // What is wanted at one is wanted at an indirect jump, and so perhaps at another.
        loop {
            let found: Vec<_> = inner
                .iter()
                .filter(|(pad, _)| !flags.landings.contains_key(pad) && flags.live(**pad))
                .map(|(pad, labels)| (*pad, labels.clone()))
                .collect();
            if found.is_empty() {
                return flags;
            }
            for (pad, labels) in found {
                flags.pads.extend(labels.iter().map(|label| (*label, pad)));
                flags.landings.insert(pad, labels);
            }
        }
    }

    /// Whether the indirect jump at `index` may go to a landing pad where flags are wanted.
    pub fn handed_on(&self, index: usize) -> bool {
        if self.landings.is_empty() {
            return false;
        }
        let extent = self.program.extent(index);
        let known = self.flow.indirect.get(&index);
        self.landings.values().flatten().any(|label| {
            extent.contains(label) || known.is_some_and(|labels| labels.contains(label))
        })
    }

    /// The label behind the landing pad whose `endbr64` is at `index`, if flags are fetched there.
    pub fn behind(&self, index: usize) -> Option<String> {
        self.landings
            .contains_key(&index)
            .then(|| format!(".Lpostern_f{index}"))
    }

    /// Where control that comes with its flags to the label at `index` is to go instead.
    pub fn detour(&self, index: usize) -> Option<String> {
        self.behind(*self.pads.get(&index)?)
    }

    /// The same for control that runs into the label, which leaves the way at the first one of a
    /// landing pad.
    pub fn detour_of_first(&self, index: usize) -> Option<String> {
        let pad = self.pads.get(&index)?;
        (self.landings[pad].first() == Some(&index)).then(|| self.behind(*pad))?
    }

    /// Whether a flag may be read, before all are written, by the instruction at `index` or by what
    /// follows it.
    pub fn live(&self, index: usize) -> bool {
        let program = self.program;
        let mut at = index;
        for _ in 0..FAR {
            if let Some(instruction) = program.instruction(at) {
                match classify(&instruction.mnemonic, instruction.operands.len()) {
                    Some(Class::Conditional) => return true,
                    Some(Class::Call | Class::Return | Class::Trap) => return false,
                    Some(Class::Jump) => {
                        let target = direct_target(instruction);
                        match target.and_then(|target| program.labels.get(target)) {
                            Some(label) => at = *label,
                            // Another function, or an indirect jump.
                            None => return instruction.indirect && self.handed_on(at),
                        }
                        continue;
                    }
                    _ if READERS
                        .iter()
                        .any(|start| instruction.mnemonic.starts_with(start)) =>
                    {
                        return true;
                    }
                    _ if writes_all(instruction) => return false,
                    _ => {}
                }
            }
            match program.next[at] {
                Some(next) => at = next,
                None => return false,
            }
        }
        true
    }
}

/// The landing pads that are not at the entry of a function, each with the labels right before it
/// that control can reach.
fn inner_landings(program: &Program, flow: &Flow) -> BTreeMap<usize, Vec<usize>> {
    let mut landings = BTreeMap::new();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); program.sections.len()];
    for (index, statement) in program.statements.iter().enumerate() {
        let labels = &mut before[program.section_of[index]];
        match &statement.kind {
            StatementKind::Label(_) => labels.push(index),
            StatementKind::Instruction(instruction) => {
                let labels = std::mem::take(labels);
                let class = classify(&instruction.mnemonic, instruction.operands.len());
                let taken = |index: &usize| match &program.statements[*index].kind {
                    StatementKind::Label(name) => program.address_taken.contains(name),
                    _ => false,
                };
                if class == Some(Class::Landing)
                    && labels.iter().any(taken)
                    && !labels.iter().any(|label| program.is_function_label(*label))
                {
                    let reached = labels
                        .into_iter()
                        .filter(|label| flow.joins.contains_key(label));
                    landings.insert(index, reached.collect());
                }
            }
            // Line information makes no bytes.
            StatementKind::Directive { name, .. } if name == ".loc" || name.starts_with(".cfi") => {
            }
            // Nor does a change of sections, which is counted to the one that it leaves.
            StatementKind::Directive { name, .. } if name.ends_with("section") => {}
            StatementKind::Directive { .. } => labels.clear(),
        }
    }
    landings
}

/// The lines that keep the flags below the data stack, `bias` under %r15. They change %r11 only.
pub fn keep(bias: i64) -> [String; 5] {
    [
        "\tmovq\t%rax, %r11".to_owned(),
        "\tlahf".to_owned(),
        "\tseto\t%al".to_owned(),
        format!("\tmovw\t%ax, {}", kept(bias)),
        "\tmovq\t%r11, %rax".to_owned(),
    ]
}

/// The lines that fetch what `keep` kept. They change %r11 only.
pub fn fetch(bias: i64) -> [String; 5] {
    [
        "\tmovq\t%rax, %r11".to_owned(),
        format!("\tmovzwl\t{}, %eax", kept(bias)),
        // 1 + 127 overflows.
        "\taddb\t$127, %al".to_owned(),
        "\tsahf".to_owned(),
        "\tmovq\t%r11, %rax".to_owned(),
    ]
}

/// Below the 16 bytes that an operand of the jump may need for itself.
fn kept(bias: i64) -> crate::assembly::Memory {
    slot(-bias - 24)
}

fn writes_all(instruction: &Instruction) -> bool {
    let name = instruction.mnemonic.as_str();
    let is = |stem: &&str| {
        name.strip_prefix(*stem)
            .is_some_and(|suffix| matches!(suffix, "" | "b" | "w" | "l" | "q"))
    };
    if SHIFTS.iter().any(is) {
        return match instruction.operands.as_slice() {
            [_] => true,
            [Operand::Immediate(by), _] => by.value().is_some_and(|by| by & 31 != 0),
            _ => false,
        };
    }
    WRITERS.iter().any(is)
}
