//! What is known before a test runs: values of variables as expressions, and outcomes that earlier
//! tests decide.
//!
//! Invariant: the program rejects, accepts and reads as before. An evaluation that could reject is
//! dropped only where it has already happened.

use alloc::vec::Vec;

use crate::expression::{Expr, ExprId, Exprs, Op, Rel, apply, holds};
use crate::program::{NodeId, NodeKind, Program, REJECT};
use crate::run::VARIABLES;

/// Assigned instead of a variable that nobody reads: the value is computed because that may reject.
pub(crate) const UNUSED: u8 = u8::MAX;
/// Facts of each kind that are kept.
const KEPT: usize = 32;

/// Makes a program shorter.
pub(crate) fn simplify(program: &mut Program) {
    propagate(program);
    drop_dead(program);
    for _ in 0..2 {
        thread(program);
        program.sort();
    }
}

type Env = [Option<ExprId>; VARIABLES];

/// Puts the values of variables in the place of their names, where one value is known.
fn propagate(program: &mut Program) {
    let zero = program.exprs.number(0);
    let mut envs: Vec<Option<Env>> = alloc::vec![None; program.nodes.len()];
    if let Some(env) = envs.get_mut(program.entry as usize) {
        *env = Some([Some(zero); VARIABLES]);
    }
    for id in 0..program.nodes.len() {
        let Some(mut env) = envs[id] else { continue };
        let node = program.nodes[id];
        let exprs = &mut program.exprs;
        let kind = match node.kind {
            NodeKind::Test(a, rel, b) => {
                NodeKind::Test(put(exprs, &env, a), rel, put(exprs, &env, b))
            }
            NodeKind::Return(value) => NodeKind::Return(put(exprs, &env, value)),
            NodeKind::Assign(var, value) => {
                let value = put(exprs, &env, value);
                env[usize::from(var) % VARIABLES] = (!has_variable(exprs, value)).then_some(value);
                NodeKind::Assign(var, value)
            }
            other => other,
        };
        program.nodes[id].kind = kind;
        let (edges, count) = Program::successors(&program.nodes[id]);
        for to in &edges[..count] {
            if let Some(target) = envs.get_mut(*to as usize) {
                *target = Some(match *target {
                    None => env,
                    Some(mut other) => {
                        for (mine, theirs) in other.iter_mut().zip(&env) {
                            if mine != theirs {
                                *mine = None;
                            }
                        }
                        other
                    }
                });
            }
        }
    }
}

/// The expression with known variables replaced; as it was if that would be too large.
fn put(exprs: &mut Exprs, env: &Env, id: ExprId) -> ExprId {
    fn inner(exprs: &mut Exprs, env: &Env, id: ExprId) -> Option<ExprId> {
        if let Expr::Var(var) = exprs.get(id) {
            return Some(env.get(usize::from(var)).copied().flatten().unwrap_or(id));
        }
        let expr = exprs.get(id).rebuilt(|part| inner(exprs, env, part))?;
        exprs.add(expr).ok()
    }
    inner(exprs, env, id).unwrap_or(id)
}

pub(crate) fn has_variable(exprs: &Exprs, id: ExprId) -> bool {
    match exprs.get(id) {
        Expr::Var(_) => true,
        Expr::Load { base, .. } => base.is_some_and(|base| has_variable(exprs, base)),
        Expr::Bin(_, a, b) => has_variable(exprs, a) || has_variable(exprs, b),
        _ => false,
    }
}

fn reads(exprs: &Exprs, id: ExprId) -> u32 {
    match exprs.get(id) {
        Expr::Var(var) => 1 << (u32::from(var) % 32),
        Expr::Load { base, .. } => base.map_or(0, |base| reads(exprs, base)),
        Expr::Bin(_, a, b) => reads(exprs, a) | reads(exprs, b),
        _ => 0,
    }
}

/// Whether evaluating it may reject the packet.
fn may_reject(exprs: &Exprs, id: ExprId) -> bool {
    match exprs.get(id) {
        Expr::Load { .. } => true,
        Expr::Bin(op, a, b) => {
            let divides =
                matches!(op, Op::Div | Op::Mod) && !matches!(exprs.constant(b), Some(1..));
            divides || may_reject(exprs, a) || may_reject(exprs, b)
        }
        _ => false,
    }
}

/// Takes away assignments that nobody reads.
fn drop_dead(program: &mut Program) {
    let mut live = alloc::vec![0u32; program.nodes.len()];
    for id in (0..program.nodes.len()).rev() {
        let node = program.nodes[id];
        let after = |to: NodeId| live.get(to as usize).copied().unwrap_or(0);
        let exprs = &program.exprs;
        live[id] = match node.kind {
            NodeKind::Test(a, _, b) => {
                after(node.yes) | after(node.no) | reads(exprs, a) | reads(exprs, b)
            }
            NodeKind::Return(value) => reads(exprs, value),
            NodeKind::Beaten(_) => after(node.yes) | after(node.no),
            NodeKind::Lookup(_) => after(node.yes),
            NodeKind::Best => 0,
            NodeKind::Assign(var, value) => {
                let bit = 1u32 << (u32::from(var) % 32);
                let after = after(node.yes);
                if after & bit == 0 {
                    program.nodes[id].kind = NodeKind::Assign(UNUSED, value);
                }
                (after & !bit) | reads(exprs, value)
            }
        };
    }
    // Edges to those that do nothing at all go to what follows them.
    for id in (0..program.nodes.len()).rev() {
        let past = |to: NodeId| match program.nodes.get(to as usize).map(|n| (n.kind, n.yes)) {
            Some((NodeKind::Assign(UNUSED, value), next)) if !may_reject(&program.exprs, value) => {
                next
            }
            _ => to,
        };
        let (yes, no) = (past(program.nodes[id].yes), past(program.nodes[id].no));
        program.nodes[id].yes = yes;
        program.nodes[id].no = no;
    }
    if let Some(node) = program.nodes.get(program.entry as usize)
        && let NodeKind::Assign(UNUSED, value) = node.kind
        && !may_reject(&program.exprs, value)
    {
        program.entry = node.yes;
    }
    program.sort();
}

/// What holds whenever a node is reached.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// At least so many bytes are captured.
    length: u32,
    /// These tests have these outcomes.
    outcomes: Vec<(ExprId, Rel, ExprId, bool)>,
    /// These were evaluated.
    evaluated: Vec<ExprId>,
    /// A lookup may have found something.
    found: bool,
}

impl Facts {
    fn meet(&mut self, other: &Facts) {
        self.length = self.length.min(other.length);
        self.outcomes.retain(|fact| other.outcomes.contains(fact));
        self.evaluated.retain(|fact| other.evaluated.contains(fact));
        self.found |= other.found;
    }

    fn evaluate(&mut self, exprs: &Exprs, id: ExprId) {
        match exprs.get(id) {
            Expr::Load {
                size,
                base: None,
                off,
            } => {
                self.length = self.length.max(off.saturating_add(size.into()));
                return;
            }
            Expr::Load {
                base: Some(base), ..
            } => self.evaluate(exprs, base),
            Expr::Bin(_, a, b) => {
                self.evaluate(exprs, a);
                self.evaluate(exprs, b);
            }
            _ => return,
        }
        if self.evaluated.len() < KEPT && !self.evaluated.contains(&id) {
            self.evaluated.push(id);
        }
    }

    fn learn(&mut self, fact: (ExprId, Rel, ExprId, bool)) {
        if self.outcomes.len() < KEPT && !self.outcomes.contains(&fact) {
            self.outcomes.push(fact);
        }
    }

    fn forget_variables(&mut self, exprs: &Exprs) {
        self.outcomes
            .retain(|(a, _, b, _)| !has_variable(exprs, *a) && !has_variable(exprs, *b));
        self.evaluated.retain(|id| !has_variable(exprs, *id));
    }

    /// Whether the evaluation cannot reject any more.
    fn safe(&self, exprs: &Exprs, id: ExprId) -> bool {
        match exprs.get(id) {
            Expr::Load {
                size,
                base: None,
                off,
            } => off
                .checked_add(size.into())
                .is_some_and(|end| end <= self.length),
            Expr::Load { .. } => self.evaluated.contains(&id),
            Expr::Bin(op, a, b) => {
                let divides =
                    matches!(op, Op::Div | Op::Mod) && !matches!(exprs.constant(b), Some(1..));
                self.evaluated.contains(&id)
                    || !divides && self.safe(exprs, a) && self.safe(exprs, b)
            }
            _ => true,
        }
    }

    /// The value, if it is known.
    fn value(&self, exprs: &Exprs, id: ExprId) -> Option<u32> {
        if let Some(value) = exprs.constant(id) {
            return Some(value);
        }
        let known = self.outcomes.iter().find(|(a, rel, b, yes)| {
            *a == id && *rel == Rel::Eq && *yes && exprs.constant(*b).is_some()
        });
        if let Some((_, _, b, _)) = known {
            return exprs.constant(*b);
        }
        match exprs.get(id) {
            Expr::Bin(op, a, b) => apply(op, self.value(exprs, a)?, self.value(exprs, b)?),
            _ => None,
        }
    }

    /// The test's outcome, if it is known.
    fn outcome(&self, exprs: &Exprs, a: ExprId, rel: Rel, b: ExprId) -> Option<bool> {
        if !self.safe(exprs, a) || !self.safe(exprs, b) {
            return None;
        }
        if let (Some(a), Some(b)) = (self.value(exprs, a), self.value(exprs, b)) {
            return Some(holds(rel, a, b));
        }
        if let (Expr::Captured, Rel::Ge, Some(bytes)) = (exprs.get(a), rel, exprs.constant(b))
            && bytes <= self.length
        {
            return Some(true);
        }
        self.outcomes
            .iter()
            .find(|(x, r, y, _)| (*x, *r, *y) == (a, rel, b))
            .map(|(.., yes)| *yes)
    }
}

/// Leads every edge past the tests that are already decided on it.
fn thread(program: &mut Program) {
    let mut known: Vec<Option<Facts>> = alloc::vec![None; program.nodes.len()];
    let begin = Facts {
        found: !program.afresh,
        ..Facts::default()
    };
    program.entry = past(program, program.entry, &begin);
    if let Some(facts) = known.get_mut(program.entry as usize) {
        *facts = Some(begin);
    }
    for id in 0..program.nodes.len() {
        let Some(mut facts) = known[id].take() else {
            continue;
        };
        let node = program.nodes[id];
        match node.kind {
            NodeKind::Test(a, rel, b) => {
                facts.evaluate(&program.exprs, a);
                facts.evaluate(&program.exprs, b);
                let mut otherwise = facts.clone();
                if let (Expr::Captured, Rel::Ge, Some(bytes)) =
                    (program.exprs.get(a), rel, program.exprs.constant(b))
                {
                    facts.length = facts.length.max(bytes);
                }
                facts.learn((a, rel, b, true));
                otherwise.learn((a, rel, b, false));
                program.nodes[id].yes = reach(program, &mut known, node.yes, facts);
                program.nodes[id].no = reach(program, &mut known, node.no, otherwise);
            }
            NodeKind::Assign(var, value) => {
                facts.evaluate(&program.exprs, value);
                if var != UNUSED {
                    facts.forget_variables(&program.exprs);
                }
                program.nodes[id].yes = reach(program, &mut known, node.yes, facts);
            }
            NodeKind::Beaten(_) => {
                program.nodes[id].yes = reach(program, &mut known, node.yes, facts.clone());
                program.nodes[id].no = reach(program, &mut known, node.no, facts);
            }
            NodeKind::Lookup(_) => {
                facts.found = true;
                program.nodes[id].yes = reach(program, &mut known, node.yes, facts);
            }
            NodeKind::Return(_) | NodeKind::Best => {}
        }
    }
}

fn reach(program: &Program, known: &mut [Option<Facts>], to: NodeId, facts: Facts) -> NodeId {
    let to = past(program, to, &facts);
    if let Some(there) = known.get_mut(to as usize) {
        match there {
            Some(there) => there.meet(&facts),
            None => *there = Some(facts),
        }
    }
    to
}

fn past(program: &Program, mut to: NodeId, facts: &Facts) -> NodeId {
    while let Some(node) = program.nodes.get(to as usize) {
        to = match node.kind {
            NodeKind::Test(a, rel, b) => match facts.outcome(&program.exprs, a, rel, b) {
                Some(true) => node.yes,
                Some(false) => node.no,
                None => return to,
            },
            NodeKind::Assign(UNUSED, value) if facts.safe(&program.exprs, value) => node.yes,
            NodeKind::Beaten(_) if !facts.found => node.no,
            _ => return to,
        };
    }
    to
}

/// For each node, how many bytes must be captured for the packet to be accepted from there;
/// `u32::MAX` if it never is.
pub(crate) fn needs(program: &Program) -> Vec<u32> {
    let mut needs = alloc::vec![0; program.nodes.len()];
    for id in (0..program.nodes.len()).rev() {
        let node = program.nodes[id];
        let after = |to: NodeId| match needs.get(to as usize) {
            Some(need) => *need,
            None if to == REJECT => u32::MAX,
            None => 0,
        };
        let mut facts = Facts::default();
        let mut own = |id: ExprId| {
            facts.evaluate(&program.exprs, id);
            facts.length
        };
        needs[id] = match node.kind {
            NodeKind::Test(a, _, b) => own(a).max(own(b)).max(after(node.yes).min(after(node.no))),
            NodeKind::Assign(_, value) => own(value).max(after(node.yes)),
            NodeKind::Return(value) if program.exprs.constant(value) == Some(0) => u32::MAX,
            NodeKind::Return(value) => own(value),
            NodeKind::Beaten(_) => after(node.yes).min(after(node.no)),
            NodeKind::Lookup(_) => after(node.yes),
            NodeKind::Best => 0,
        };
    }
    needs
}
