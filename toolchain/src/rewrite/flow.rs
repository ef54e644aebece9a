//! How deep the compiler's stack is at each label.
//!
//! The compiler pushes return addresses on the stack that it uses for data; an extension does not.
//! To put every operand where the callee-side adjustment wants it, the rewriter must know at each
//! join of control how far the compiler's stack pointer is from its value at entry, and how far
//! %rbp is when it holds the frame. This pass walks the control flow of each function and finds
//! both. Where the depth is not one number (alloca, realigned frames) the answer is "dynamic":
//! there %r15 mirrors the compiler's stack pointer exactly, which needs no knowledge.

use std::collections::{HashMap, HashSet};

use super::Adjustment;
use super::instruction_set::{Class, classify};
use super::program::{Program, direct_target};
use super::stack::{StackState, step};
use crate::assembly::{Instruction, Operand, Register, StatementKind};

/// What holds at a label that control can reach by a branch or that begins a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Join {
    /// The compiler's stack there.
    pub state: StackState,
    /// r15 minus the compiler's stack pointer that the code after the label expects.
    pub bias: i64,
}

/// The result of the pass.
pub struct Flow {
    /// By statement index of the label.
    pub joins: HashMap<usize, Join>,
    /// For each indirect jump (by statement index) that stays in its function: the labels that it
    /// may go to.
    pub indirect: HashMap<usize, Vec<usize>>,
    /// Labels at which functions begin, with those of hand-written code that nothing declares.
    pub entries: HashSet<usize>,
}

/// Walks every function of `program`.
pub fn analyse(program: &Program, adjustment: Adjustment) -> Flow {
    let mut walk = Walk {
        program,
        adjustment,
        states: HashMap::new(),
        owner: HashMap::new(),
        calls: HashSet::new(),
        shared: HashSet::new(),
        weak: Vec::new(),
        indirect: HashMap::new(),
        guessed: HashMap::new(),
        visited: HashSet::new(),
        entries: HashSet::new(),
    };
    for start in program.function_starts.clone() {
        walk.function(start);
    }
    // Assembly inside of a function may call a label of its own that nothing else reaches.
    for index in called_labels(program) {
        if !walk.visited.contains(&index) {
            walk.function(index);
        }
    }
    // Whatever label is left without a state is an entry of hand-written code.
    let mut rest: Vec<(usize, &str)> = program
        .labels
        .iter()
        .map(|(name, index)| (*index, *name))
        .collect();
    rest.sort_unstable();
    for (index, name) in rest {
        if !name.starts_with(".L") && !walk.visited.contains(&index) && !name.contains(".cold") {
            walk.function(index);
        }
    }
    // So is the beginning of a section that has no label.
    for first in unlabelled_starts(program) {
        if !walk.visited.contains(&first) {
            walk.function(first);
        }
    }
    walk.finish()
}

/// The labels that are called and are no functions.
fn called_labels(program: &Program) -> Vec<usize> {
    (0..program.statements.len())
        .filter_map(|index| program.instruction(index))
        .filter(|i| classify(&i.mnemonic, i.operands.len()) == Some(Class::Call))
        .filter_map(direct_target)
        .filter(|target| !program.functions.contains(target))
        .filter_map(|target| program.labels.get(target).copied())
        .collect()
}

/// The first instruction of each section, except where a cold part begins.
fn unlabelled_starts(program: &Program) -> Vec<usize> {
    let mut seen = vec![false; program.sections.len()];
    let mut starts = Vec::new();
    for (index, section) in program.section_of.iter().enumerate() {
        if seen[*section] {
            continue;
        }
        match &program.statements[index].kind {
            StatementKind::Label(name) => seen[*section] = name.contains(".cold"),
            StatementKind::Instruction(_) => {
                seen[*section] = true;
                starts.push(index);
            }
            StatementKind::Directive { .. } => {}
        }
    }
    starts
}

struct Walk<'p, 'a> {
    program: &'p Program<'a>,
    adjustment: Adjustment,
    states: HashMap<usize, StackState>,
    owner: HashMap<usize, usize>,
    /// Functions (by start) that call.
    calls: HashSet<usize>,
    /// Labels that several functions reach.
    shared: HashSet<usize>,
    /// Falls into a label right after a call, which may not return.
    weak: Vec<(usize, StackState)>,
    indirect: HashMap<usize, Vec<usize>>,
    /// Indirect jumps whose table is not known, and the state there.
    guessed: HashMap<usize, StackState>,
    visited: HashSet<usize>,
    entries: HashSet<usize>,
}

impl Walk<'_, '_> {
    fn function(&mut self, start: usize) {
        self.entries.insert(start);
        let mut work = vec![(start, StackState::ENTRY)];
        loop {
            while let Some((index, state)) = work.pop() {
                self.run(start, index, state, &mut work);
            }
            // Second choice: the labels whose address is taken in this function and that nothing
            // else reached.
            for (jump, state) in std::mem::take(&mut self.guessed) {
                let candidates = self.candidates(jump);
                for label in &candidates {
                    if !self.visited.contains(label) {
                        work.push((*label, state));
                    }
                }
                self.indirect.insert(jump, candidates);
            }
            if work.is_empty() {
                for (label, state) in std::mem::take(&mut self.weak) {
                    if !self.visited.contains(&label) {
                        work.push((label, state));
                    }
                }
            }
            if work.is_empty() {
                return;
            }
        }
    }

    fn is_join(&self, index: usize) -> bool {
        match &self.program.statements[index].kind {
            StatementKind::Label(name) => {
                self.program.branch_targets.contains(name.as_str())
                    || self.program.address_taken.contains(name)
                    || self.program.functions.contains(name.as_str())
                    || self.program.pads.contains(&index)
            }
            _ => false,
        }
    }

    fn run(
        &mut self,
        function: usize,
        from: usize,
        state: StackState,
        work: &mut Vec<(usize, StackState)>,
    ) {
        let (mut index, mut state, mut after_call) = (from, state, false);
        loop {
            if index != from && self.program.is_function_label(index) && index != function {
                return;
            }
            if index == from || self.is_join(index) {
                if after_call {
                    self.weak.push((index, state));
                    return;
                }
                if *self.owner.entry(index).or_insert(function) != function {
                    self.shared.insert(index);
                }
                if let Some(old) = self.states.get(&index) {
                    let merged = old.merge(state);
                    if merged == *old {
                        return;
                    }
                    state = merged;
                }
                self.states.insert(index, state);
            }
            self.visited.insert(index);
            if let Some(instruction) = self.program.instruction(index) {
                let class = classify(&instruction.mnemonic, instruction.operands.len());
                match class {
                    Some(Class::Return | Class::Trap) => return,
                    Some(Class::Jump | Class::Conditional) => {
                        self.branch(index, instruction, state, work);
                        if class == Some(Class::Jump) {
                            return;
                        }
                    }
                    Some(Class::Call) => {
                        self.calls.insert(function);
                        if let Some(pad) = self.program.pad_of(index) {
                            work.push((pad, state));
                        }
                    }
                    _ => {}
                }
                after_call = class == Some(Class::Call);
                state = step(state, instruction);
            }
            match self.program.next[index] {
                Some(next) => index = next,
                None => return,
            }
        }
    }

    fn branch(
        &mut self,
        index: usize,
        instruction: &Instruction,
        state: StackState,
        work: &mut Vec<(usize, StackState)>,
    ) {
        if let Some(target) = direct_target(instruction) {
            if let Some(label) = self.program.labels.get(target)
                && !self.program.functions.contains(target)
            {
                work.push((*label, state));
            }
            return;
        }
        if !instruction.indirect {
            return;
        }
        match self.table(index, instruction) {
            Some(labels) => {
                work.extend(labels.iter().map(|label| (*label, state)));
                self.indirect.insert(index, labels);
            }
            None => {
                if !self.indirect.contains_key(&index) {
                    self.guessed.insert(index, state);
                }
            }
        }
    }

    /// The labels of the table that the indirect jump reads, if the jump or the load of its
    /// register names one.
    fn table(&self, index: usize, jump: &Instruction) -> Option<Vec<usize>> {
        let table_of = |operand: &Operand| match operand {
            Operand::Memory(memory) => memory.displacement.as_symbol().map(str::to_owned),
            _ => None,
        };
        let name = match jump.operands.first()? {
            operand @ Operand::Memory(_) => table_of(operand)?,
            Operand::Register(Register::General(number, _)) => {
                let load = (index.saturating_sub(12)..index)
                    .rev()
                    .take_while(|k| !self.is_join(*k))
                    .filter_map(|k| self.program.instruction(k))
                    .find(|i| matches!(i.operands.last(), Some(Operand::Register(r)) if r.is_general(*number)))?;
                if !load.mnemonic.starts_with("mov") {
                    return None;
                }
                table_of(load.operands.first()?)?
            }
            _ => return None,
        };
        let labels = self.program.tables.get(name.as_str())?;
        let mut indices: Vec<usize> = labels
            .iter()
            .filter(|label| !self.program.functions.contains(label.as_str()))
            .filter_map(|label| self.program.labels.get(label.as_str()).copied())
            .collect();
        indices.sort_unstable();
        indices.dedup();
        (!indices.is_empty()).then_some(indices)
    }

    fn candidates(&self, jump: usize) -> Vec<usize> {
        let extent = self.program.extent(jump);
        let mut labels: Vec<usize> = self
            .program
            .address_taken
            .iter()
            .filter(|name| !self.program.functions.contains(name.as_str()))
            .filter_map(|name| self.program.labels.get(name.as_str()).copied())
            .filter(|index| extent.contains(index))
            .collect();
        labels.sort_unstable();
        labels
    }

    fn finish(self) -> Flow {
        let mut joins = HashMap::new();
        for (index, state) in &self.states {
            let function = self.owner[index];
            let leaf = self.adjustment == Adjustment::Callee
                && !self.calls.contains(&function)
                && !self.shared.contains(index);
            let bias = if self.entries.contains(index) {
                8
            } else {
                match state.depth {
                    // An unwinder arrives with the stack as it was at the call.
                    _ if self.program.pads.contains(index) => 0,
                    // An indirect jump may be one to another function: both want the stack as a
                    // return finds it.
                    Some(0) => 8,
                    Some(depth) if leaf => 8 + depth,
                    _ => 0,
                }
            };
            joins.insert(
                *index,
                Join {
                    state: *state,
                    bias,
                },
            );
        }
        Flow {
            joins,
            indirect: self.indirect,
            entries: self.entries,
        }
    }
}
