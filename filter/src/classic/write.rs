//! Programs of the intermediate form as classic ones: for people, for other programs, and for the
//! kernel, which leaves packets out before it copies them.
//!
//! Invariant: the classic program accepts every packet that the program accepts. What the classic
//! machine cannot say, it accepts (`exact` is false then). A load beyond the packet ends the
//! classic machine, so where another filter may still accept the packet, every load stands behind a
//! test of the length.

use alloc::vec::Vec;

use super::layout::{Item, Target};
use super::{WORDS, op};
use crate::expression::{Expr, ExprId, Op, Rel};
use crate::flow::{UNUSED, has_variable};
use crate::program::{ACCEPT, NodeId, NodeKind, Program, REJECT};

/// The kernel takes offsets from here on for something else than the packet's bytes.
const FURTHEST: u32 = 0x0fff_ffff;
/// Where a tag stands in a frame that has it, and where it ends.
const TAG: u32 = 12;
const BEHIND_TAG: u32 = 16;

/// The kernel's values beside the packet.
const ANCILLARY: u32 = 0xffff_f000;
pub(super) const HARDWARE: u32 = ANCILLARY + 28;
const TAG_NUMBER: u32 = ANCILLARY + 44;
pub(super) const TAGGED: u32 = ANCILLARY + 48;
const TAG_KIND: u32 = ANCILLARY + 60;

/// What the classic machine cannot say.
struct Unsayable;

/// How a program is written.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    /// Where it goes on when the program rejects the packet.
    pub fail: Target,
    /// The packet has a tag that the kernel has taken out of its bytes: expressions count as if it
    /// were there.
    pub tagged: bool,
    /// What a program computes to return is returned; else anything but 0 accepts.
    pub returns: bool,
    /// Nodes from this one on are not written: they accept.
    pub limit: usize,
}

/// What is known where a node begins; places are those of the bytes that the kernel has.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Expressions that the accumulator and the index register hold.
    a: Option<ExprId>,
    x: Option<ExprId>,
    /// The packet has so many bytes, and so many behind the place that an expression's value is.
    length: u32,
    reach: Option<(ExprId, u32)>,
}

impl State {
    fn meet(&mut self, other: State) {
        let same = |a: Option<ExprId>, b| a.filter(|_| a == b);
        self.a = same(self.a, other.a);
        self.x = same(self.x, other.x);
        self.length = self.length.min(other.length);
        self.reach = match (self.reach, other.reach) {
            (Some((base, end)), Some((also, less))) if base == also => Some((base, end.min(less))),
            _ => None,
        };
    }

    fn forget_variables(&mut self, program: &Program) {
        let moves = |id: &ExprId| has_variable(&program.exprs, *id);
        self.a = self.a.filter(|id| !moves(id));
        self.x = self.x.filter(|id| !moves(id));
        self.reach = self.reach.filter(|(id, _)| !moves(id));
    }
}

/// Several programs, one behind the other.
#[derive(Default)]
pub(super) struct Listing {
    pub items: Vec<Item>,
    pub labels: u32,
    /// Something was not said exactly.
    pub coarse: bool,
}

impl Listing {
    pub fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels - 1
    }

    /// Appends a program.
    pub fn program(&mut self, program: &Program, manner: Manner) {
        let base = self.labels;
        self.labels += program.nodes.len() as u32;
        let variables = variables(program);
        let mut writer = Writer {
            items: &mut self.items,
            program,
            manner,
            base,
            state: State::default(),
            entering: alloc::vec![None; program.nodes.len()],
            spare: 32 - variables.leading_zeros(),
            coarse: false,
        };
        for var in (0..WORDS).filter(|var| variables & 1 << var != 0) {
            writer.plain(op::LOAD_NUMBER, 0);
            writer.plain(op::STORE, var);
        }
        let entry = writer.target(program.entry);
        writer.items.push(Item::Goto(entry));
        writer.arrive(program.entry, State::default());
        for id in 0..program.nodes.len() {
            let Some(state) = writer.entering[id] else {
                continue;
            };
            writer.items.push(Item::Label(base + id as u32));
            writer.state = state;
            let before = writer.items.len();
            let written = match id < manner.limit {
                true => writer.node(id),
                false => Err(Unsayable),
            };
            if written.is_err() {
                writer.items.truncate(before);
                writer.items.push(Item::Goto(Target::Accept));
                writer.coarse = true;
            }
        }
        self.coarse |= writer.coarse;
    }
}

/// The variables that a program reads, as bits.
fn variables(program: &Program) -> u32 {
    let mut all = 0;
    let mut stack = Vec::new();
    for node in &program.nodes {
        match node.kind {
            NodeKind::Test(a, _, b) => stack.extend([a, b]),
            NodeKind::Assign(_, value) | NodeKind::Return(value) => stack.push(value),
            _ => {}
        }
        while let Some(id) = stack.pop() {
            match program.exprs.get(id) {
                Expr::Var(var) => all |= 1u32.checked_shl(var.into()).unwrap_or(0),
                Expr::Load { base, .. } => stack.extend(base),
                Expr::Bin(_, a, b) => stack.extend([a, b]),
                _ => {}
            }
        }
    }
    all
}

struct Writer<'a> {
    items: &'a mut Vec<Item>,
    program: &'a Program,
    manner: Manner,
    /// The label of the first node.
    base: u32,
    state: State,
    entering: Vec<Option<State>>,
    /// The first word of memory that is no variable and holds nothing that waits.
    spare: u32,
    coarse: bool,
}

type Said = Result<(), Unsayable>;

impl Writer<'_> {
    fn plain(&mut self, code: u16, k: u32) {
        self.items.push(Item::Plain(code, k));
    }

    fn target(&self, to: NodeId) -> Target {
        match to {
            ACCEPT if self.manner.returns || self.program.accept != 0 => Target::Accept,
            ACCEPT | REJECT => self.manner.fail,
            node => Target::Label(self.base + node),
        }
    }

    fn arrive(&mut self, to: NodeId, state: State) {
        if let Some(there) = self.entering.get_mut(to as usize) {
            match there {
                Some(there) => there.meet(state),
                None => *there = Some(state),
            }
        }
    }

    fn node(&mut self, id: usize) -> Said {
        let node = self.program.nodes[id];
        match node.kind {
            NodeKind::Test(a, rel, b) => {
                let code = match rel {
                    Rel::Eq => op::IF_EQUAL,
                    Rel::Gt => op::IF_GREATER,
                    Rel::Ge => op::IF_AT_LEAST,
                    Rel::Set => op::IF_SET,
                };
                let (yes, no) = (self.target(node.yes), self.target(node.no));
                match self.program.exprs.constant(b) {
                    Some(k) => {
                        self.value(a)?;
                        self.items.push(Item::Branch(code, k, yes, no));
                    }
                    None => {
                        self.pair(a, b)?;
                        self.items
                            .push(Item::Branch(code | op::WITH_INDEX, 0, yes, no));
                    }
                }
                let state = self.state;
                self.arrive(node.no, state);
                let known = self.learned(a, rel, b);
                self.arrive(node.yes, known);
            }
            NodeKind::Assign(var, value) => {
                self.value(value)?;
                if var != UNUSED {
                    if u32::from(var) >= WORDS {
                        return Err(Unsayable);
                    }
                    self.plain(op::STORE, var.into());
                    self.state.forget_variables(self.program);
                }
                let next = self.target(node.yes);
                self.items.push(Item::Goto(next));
                let state = self.state;
                self.arrive(node.yes, state);
            }
            NodeKind::Return(value) => self.returned(value)?,
            NodeKind::Beaten(_) | NodeKind::Lookup(_) | NodeKind::Best => return Err(Unsayable),
        }
        Ok(())
    }

    fn returned(&mut self, value: ExprId) -> Said {
        match self.program.exprs.constant(value) {
            Some(0) => self.items.push(Item::Goto(self.manner.fail)),
            Some(k) if self.manner.returns => self.plain(op::RETURN, k),
            Some(_) => self.items.push(Item::Goto(Target::Accept)),
            None => {
                self.value(value)?;
                match self.manner.returns {
                    true => self.plain(op::RETURN_ACCUMULATOR, 0),
                    false => {
                        let fail = self.manner.fail;
                        let item = Item::Branch(op::IF_EQUAL, 0, fail, Target::Accept);
                        self.items.push(item);
                    }
                }
            }
        }
        Ok(())
    }

    /// What is known where a test holds: how long the packet is.
    fn learned(&self, a: ExprId, rel: Rel, b: ExprId) -> State {
        let exprs = &self.program.exprs;
        let mut state = self.state;
        if let (Expr::Captured, Rel::Ge) = (exprs.get(a), rel) {
            let there = |end: u32| end.saturating_sub(if self.manner.tagged { 4 } else { 0 });
            match exprs.get(b) {
                Expr::Const(bytes) => state.length = state.length.max(there(bytes)),
                Expr::Bin(Op::Add, base, end) => {
                    state.reach = exprs.constant(end).map(|end| (base, there(end)));
                }
                _ => {}
            }
        }
        state
    }

    /// Where it goes on if the packet cannot be read; nothing if the machine's own end will do.
    fn unreadable(&self) -> Option<Target> {
        Some(self.manner.fail).filter(|fail| *fail != Target::Reject)
    }

    /// `b` to the index register, then `a` to the accumulator.
    fn pair(&mut self, a: ExprId, b: ExprId) -> Said {
        self.value(b)?;
        if self.spare >= WORDS {
            return Err(Unsayable);
        }
        let place = self.spare;
        self.plain(op::STORE, place);
        self.spare += 1;
        let first = self.value(a);
        self.spare -= 1;
        first?;
        self.plain(op::LOAD_INDEX_MEMORY, place);
        self.state.x = Some(b);
        Ok(())
    }

    /// The value to the accumulator.
    fn value(&mut self, id: ExprId) -> Said {
        if self.state.a == Some(id) {
            return Ok(());
        }
        match self.program.exprs.get(id) {
            Expr::Const(k) => self.plain(op::LOAD_NUMBER, k),
            Expr::Len | Expr::Captured => {
                self.plain(op::LOAD_LENGTH, 0);
                if self.manner.tagged {
                    self.plain(op::ADD, 4);
                }
            }
            Expr::Var(var) if u32::from(var) < WORDS => self.plain(op::LOAD_MEMORY, var.into()),
            Expr::Var(_) => return Err(Unsayable),
            Expr::Load {
                size,
                base: None,
                off,
            } => self.fixed(size, off)?,
            Expr::Load {
                size,
                base: Some(base),
                off,
            } => self.moving(size, base, off)?,
            Expr::Bin(op, a, b) => self.operation(op, a, b)?,
        }
        self.state.a = Some(id);
        Ok(())
    }

    fn operation(&mut self, operation: Op, a: ExprId, b: ExprId) -> Said {
        let code = match operation {
            Op::Add => op::ADD,
            Op::Sub => op::SUBTRACT,
            Op::Mul => op::MULTIPLY,
            Op::Div => op::DIVIDE,
            Op::Mod => op::MODULO,
            Op::And => op::AND,
            Op::Or => op::OR,
            Op::Xor => op::XOR,
            Op::Shl => op::SHIFT_LEFT,
            Op::Shr => op::SHIFT_RIGHT,
        };
        let divides = matches!(operation, Op::Div | Op::Mod);
        let shifts = matches!(operation, Op::Shl | Op::Shr);
        match self.program.exprs.constant(b) {
            Some(k) => {
                self.value(a)?;
                match k {
                    0 if divides => self.items.push(Item::Goto(self.manner.fail)),
                    32.. if shifts => self.plain(op::LOAD_NUMBER, 0),
                    k => self.plain(code, k),
                }
            }
            // The machine says nothing of shifts by 32 and more, and ends at a division by zero.
            None if shifts || divides && self.unreadable().is_some() => return Err(Unsayable),
            None => {
                self.pair(a, b)?;
                self.plain(code | op::WITH_INDEX, 0);
            }
        }
        Ok(())
    }

    /// Goes on only if the packet has so many bytes.
    fn long_enough(&mut self, end: u32) {
        if let (Some(fail), true) = (self.unreadable(), end > self.state.length) {
            self.plain(op::LOAD_LENGTH, 0);
            let item = Item::Branch(op::IF_AT_LEAST, end, Target::Next, fail);
            self.items.push(item);
            self.state.a = None;
        }
        self.state.length = self.state.length.max(end);
    }

    /// Loads `size` bytes of the kernel's.
    fn bytes(&mut self, size: u8, off: u32) {
        self.long_enough(off.saturating_add(size.into()));
        self.plain(op::LOAD_PACKET | op::size(size), off);
    }

    /// A field with a fixed place.
    fn fixed(&mut self, size: u8, off: u32) -> Said {
        if off > FURTHEST {
            self.items.push(Item::Goto(self.manner.fail));
            return Ok(());
        }
        let end = off + u32::from(size);
        if !self.manner.tagged || end <= TAG {
            self.bytes(size, off);
        } else if off >= BEHIND_TAG {
            self.bytes(size, off - 4);
        } else {
            self.tag(size, off)?;
        }
        Ok(())
    }

    /// A field of the tag that the kernel keeps beside the packet.
    fn tag(&mut self, size: u8, off: u32) -> Said {
        let (word, shift) = match (off, size) {
            (12, 2) => (TAG_KIND, 0),
            (12, 1) => (TAG_KIND, 8),
            (13, 1) => (TAG_KIND, 0),
            (14, 2) => (TAG_NUMBER, 0),
            (14, 1) => (TAG_NUMBER, 8),
            (15, 1) => (TAG_NUMBER, 0),
            (12, 4) => {
                self.plain(op::LOAD_PACKET | op::size(4), TAG_KIND);
                self.plain(op::SHIFT_LEFT, 16);
                self.plain(op::TO_INDEX, 0);
                self.plain(op::LOAD_PACKET | op::size(4), TAG_NUMBER);
                self.plain(op::OR | op::WITH_INDEX, 0);
                self.state.x = None;
                return Ok(());
            }
            _ => return Err(Unsayable),
        };
        self.plain(op::LOAD_PACKET | op::size(4), word);
        if shift > 0 {
            self.plain(op::SHIFT_RIGHT, shift);
        } else if size == 1 {
            self.plain(op::AND, 0xff);
        }
        Ok(())
    }

    /// A field whose place depends on the packet.
    fn moving(&mut self, size: u8, base: ExprId, off: u32) -> Said {
        let there = match self.manner.tagged {
            false => off,
            // Everything from here on is behind the tag, wherever it is.
            true if off >= BEHIND_TAG => off - 4,
            true => return Err(Unsayable),
        };
        if off > FURTHEST {
            self.items.push(Item::Goto(self.manner.fail));
            return Ok(());
        }
        self.index(base)?;
        let end = there + u32::from(size);
        let known = self
            .state
            .reach
            .is_some_and(|(id, far)| id == base && far >= end);
        if let (Some(fail), false) = (self.unreadable(), known) {
            self.plain(op::LOAD_LENGTH, 0);
            let at_least = |code, k| Item::Branch(code, k, Target::Next, fail);
            self.items.push(at_least(op::IF_AT_LEAST, end));
            self.plain(op::SUBTRACT, end);
            self.items
                .push(at_least(op::IF_AT_LEAST | op::WITH_INDEX, 0));
            self.state.reach = Some((base, end));
        }
        self.plain(op::LOAD_BEHIND_INDEX | op::size(size), there);
        Ok(())
    }

    /// The value to the index register.
    fn index(&mut self, id: ExprId) -> Said {
        if self.state.x == Some(id) {
            return Ok(());
        }
        match self.header_length(id) {
            Some(at) => {
                self.long_enough(at.saturating_add(1));
                self.plain(op::LOAD_INDEX_HEADER, at);
            }
            None => {
                self.value(id)?;
                if self.most(id) > FURTHEST {
                    // The machine's sums wrap around; here it is a place beyond every packet.
                    let fail = self.manner.fail;
                    let near = Item::Branch(op::IF_GREATER, FURTHEST, fail, Target::Next);
                    self.items.push(near);
                }
                self.plain(op::TO_INDEX, 0);
            }
        }
        self.state.x = Some(id);
        Ok(())
    }

    /// No value of the expression is higher.
    fn most(&self, id: ExprId) -> u32 {
        let exprs = &self.program.exprs;
        match exprs.get(id) {
            Expr::Const(value) => value,
            Expr::Load { size, .. } => u32::MAX >> (32 - 8 * u32::from(size)),
            Expr::Bin(Op::And, a, b) => self.most(a).min(self.most(b)),
            Expr::Bin(Op::Add, a, b) => self.most(a).saturating_add(self.most(b)),
            Expr::Bin(Op::Mul, a, b) => self.most(a).saturating_mul(self.most(b)),
            Expr::Bin(Op::Shl, a, b) => match exprs.constant(b) {
                Some(by @ 0..32) => self.most(a).saturating_mul(1 << by),
                _ => u32::MAX,
            },
            _ => u32::MAX,
        }
    }

    /// Where the byte is whose lower half is the length in words, which the machine has an
    /// instruction for.
    fn header_length(&self, id: ExprId) -> Option<u32> {
        let exprs = &self.program.exprs;
        let part = |id: ExprId, wanted: Op, k: u32| match exprs.get(id) {
            Expr::Bin(op, a, b) if op == wanted && exprs.constant(b) == Some(k) => Some(a),
            _ => None,
        };
        let byte = part(part(id, Op::Shl, 2)?, Op::And, 0xf)?;
        match exprs.get(byte) {
            Expr::Load {
                size: 1,
                base: None,
                off,
            } if off <= FURTHEST => match self.manner.tagged {
                false => Some(off),
                true => off.checked_sub(4).filter(|at| *at >= TAG),
            },
            _ => None,
        }
    }
}
