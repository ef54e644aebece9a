//! A program to machine code: `u32 filter(packet, wire length, captured length)`, its branches all
//! forward.
//!
//! Registers: `edi` is the packet's offset in the window, `esi` its length on the wire, `edx` the
//! captured bytes; the kernel's hooks have the last two the other way about. `eax`, `ecx` and `r11`
//! are scratch; `r8` to `r10` keep values that are needed again. Variables, and values that wait
//! for others, lie on the data stack.
//!
//! A node first makes sure that enough bytes are captured for the packet to be accepted at all from
//! there on: a packet that is too short for that would be rejected on every way, so one comparison
//! stands for many.

mod chain;
mod jump;
mod lookup;
mod value;

use alloc::vec::Vec;

use postern_x86::{Alu, Assembler, Cond, Gpr, Mem, Rm, Width};

use crate::expression::{Expr, ExprId, Op, Rel};
use crate::flow::{UNUSED, needs};
use crate::lookup::{Lookup, Source};
use crate::program::{ACCEPT, NodeId, NodeKind, Program};
use crate::run::VARIABLES;
pub(crate) use chain::chain;
#[cfg(feature = "domain")]
pub(crate) use chain::{BATCH, ENTRY, batch};
use jump::Jumps;

/// The arguments in a process.
const PACKET: Gpr = Gpr::Rdi;
const WIRE: Gpr = Gpr::Rsi;
const CAPTURED: Gpr = Gpr::Rdx;
/// The data stack.
const STACK: Gpr = Gpr::R15;
/// Registers that keep values.
const KEEP: [Gpr; 3] = [Gpr::R8, Gpr::R9, Gpr::R10];

/// For whom code is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Site {
    /// A process, whose windows are behind gs.
    #[default]
    Process,
    /// The kernel: behind fs, and called as its hooks call.
    Kernel,
}

impl Site {
    /// Memory as a window's code sees it: relative to a segment's base, with 32-bit addresses.
    fn confined(self, mem: Mem) -> Mem {
        match self {
            Site::Process => mem.gs().addr32(),
            Site::Kernel => mem.fs().addr32(),
        }
    }

    /// A place in the window.
    fn absolute(self, at: u32) -> Mem {
        self.confined(Mem::absolute(at as i32))
    }

    /// Memory of the stack, so many bytes above its lowest.
    fn on_stack(self, at: u32) -> Mem {
        self.confined(Mem::base(STACK).disp(at as i32))
    }
}

/// What is known where a node begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    /// Captured bytes, at least.
    length: u32,
    /// And so many behind the place that this expression's value is.
    reach: Option<(ExprId, u32)>,
    /// Values in the registers of [`KEEP`].
    kept: [Option<ExprId>; 3],
}

struct Encoder<'a> {
    program: &'a Program,
    site: Site,
    asm: Assembler,
    jumps: Jumps,
    known: Known,
    entering: Vec<Option<Known>>,
    /// How often a value is needed, over all nodes.
    uses: Vec<u32>,
    /// The next register of [`KEEP`] to give up, and those that an instruction in the making needs.
    turn: usize,
    pinned: u8,
    /// Slots of the data stack that are taken now, and that ever were.
    slots: u32,
    most_slots: u32,
    frame: u32,
}

/// The machine code of a program for a site, ending with an instruction that does not fall through.
pub(crate) fn encode(site: Site, program: &Program) -> Vec<u8> {
    let needs = needs(program);
    // First with every jump long and no frame, to learn how far jumps go and how many slots there
    // are; each further time brings everything nearer, so what was short stays so.
    let mut encoder = Encoder::new(program, site, Jumps::default(), 0);
    encoder.run(&needs);
    let frame = (encoder.most_slots * 8).next_multiple_of(16);
    for _ in 0..3 {
        encoder = Encoder::new(program, site, encoder.jumps.shorter(&encoder.asm), frame);
        encoder.run(&needs);
    }
    encoder.jumps.finish(encoder.asm)
}

impl<'a> Encoder<'a> {
    fn new(program: &'a Program, site: Site, jumps: Jumps, frame: u32) -> Encoder<'a> {
        let mut uses = alloc::vec![0; program.exprs.len()];
        let mut count = |id| value::count(program, &mut uses, id);
        let mut variables = 0;
        for node in &program.nodes {
            match node.kind {
                NodeKind::Test(a, _, b) => {
                    count(a);
                    count(b);
                }
                NodeKind::Assign(var, value) => {
                    count(value);
                    if usize::from(var) < VARIABLES {
                        variables = variables.max(u32::from(var) + 1);
                    }
                }
                NodeKind::Return(value) => count(value),
                NodeKind::Lookup(number) => {
                    // Bases of loads are worth a register even if they are used once.
                    let lookup = program.lookups.get(number as usize);
                    lookup.into_iter().for_each(|lookup| match lookup {
                        Lookup::Hash { layout, .. } => {
                            layout.chunks.iter().for_each(|c| match c.source {
                                Source::Value(id) => count(id),
                                Source::Bytes { base, .. } => base.into_iter().for_each(&mut count),
                            });
                        }
                        Lookup::Direct { field, .. } => count(*field),
                        Lookup::Rank { .. } => {}
                    });
                }
                NodeKind::Beaten(_) | NodeKind::Best => {}
            }
        }
        Encoder {
            program,
            site,
            asm: Assembler::new(),
            jumps,
            known: Known::default(),
            entering: alloc::vec![None; program.nodes.len()],
            uses,
            turn: 0,
            pinned: 0,
            slots: variables,
            most_slots: variables,
            frame,
        }
    }

    fn run(&mut self, needs: &[u32]) {
        self.jumps.begin(self.program.nodes.len());
        if self.frame > 0 {
            self.move_stack(-(self.frame as i32));
        }
        self.zero_variables();
        if !self.program.lookups.is_empty() {
            self.reserve_best();
        }
        if let Some(first) = self.entering.get_mut(self.program.entry as usize) {
            *first = Some(Known::default());
        }
        if self.program.nodes.is_empty() {
            self.goto(self.program.entry, 0);
        }
        for (id, need) in needs.iter().enumerate() {
            let Some(known) = self.entering[id] else {
                continue;
            };
            self.known = known;
            self.jumps.node(&mut self.asm, id as NodeId);
            if *need == u32::MAX {
                // Nothing is accepted from here.
                self.goto(crate::program::REJECT, u32::MAX);
                continue;
            }
            self.at_least(*need);
            self.node(id as NodeId);
        }
        self.jumps.accepting(&mut self.asm);
        self.constant(Gpr::Rax, self.program.accept);
        self.leave();
        self.jumps.rejecting(&mut self.asm);
        self.constant(Gpr::Rax, 0);
        self.leave();
    }

    /// Variables begin as zero, if a program reads one before it was set.
    fn zero_variables(&mut self) {
        for slot in 0..self.slots {
            self.asm.mov_mi(Width::Qword, self.slot(slot), 0);
        }
    }

    fn move_stack(&mut self, by: i32) {
        self.asm.lea(Width::Qword, STACK, Mem::base(STACK).disp(by));
    }

    fn leave(&mut self) {
        if self.frame > 0 {
            self.move_stack(self.frame as i32);
        }
        self.asm.ret();
    }

    fn slot(&self, slot: u32) -> Mem {
        self.site.on_stack(8 * slot)
    }

    /// Memory as the window's code sees it.
    fn confined(&self, mem: Mem) -> Mem {
        self.site.confined(mem)
    }

    /// The packet's bytes from there.
    fn field(&self, off: u32) -> Mem {
        self.confined(Mem::base(PACKET).disp(off as i32))
    }

    /// Its length on the wire.
    fn wire(&self) -> Gpr {
        match self.site {
            Site::Process => WIRE,
            Site::Kernel => CAPTURED,
        }
    }

    /// Its captured bytes.
    fn captured(&self) -> Gpr {
        match self.site {
            Site::Process => CAPTURED,
            Site::Kernel => WIRE,
        }
    }

    fn node(&mut self, id: NodeId) {
        let node = self.program.nodes[id as usize];
        match node.kind {
            NodeKind::Test(a, rel, b) => {
                let mut after = self.known;
                if let (Expr::Captured, Rel::Ge) = (self.program.exprs.get(a), rel) {
                    match self.program.exprs.constant(b) {
                        Some(bytes) if bytes <= self.known.length => {
                            return self.goto(node.yes, id + 1);
                        }
                        Some(bytes) => after.length = bytes,
                        None => after.reach = self.end(b),
                    }
                }
                // A field that is compared again where this fails is worth a register.
                let again = match self.program.nodes.get(node.no as usize).map(|n| n.kind) {
                    Some(NodeKind::Test(other, ..)) => other == a,
                    _ => false,
                };
                let condition = match self.program.exprs.constant(b) {
                    Some(value) if rel == Rel::Eq && !again && self.compare_moving(a, value) => {
                        Cond::Equal
                    }
                    _ => self.compare(a, rel, b),
                };
                after.kept = self.known.kept;
                self.branch(id, condition, after);
            }
            NodeKind::Beaten(at) => {
                let condition = self.beaten(at);
                self.branch(id, condition, self.known);
            }
            NodeKind::Lookup(number) => {
                self.lookup(number, node.yes);
                self.goto(node.yes, id + 1);
            }
            NodeKind::Best => self.best(),
            NodeKind::Assign(var, value) => {
                let register = self.value(value);
                if var != UNUSED {
                    let slot = self.slot(var.into());
                    self.asm.mov_mr(Width::Qword, slot, register);
                    self.forget_variables();
                }
                self.goto(node.yes, id + 1);
            }
            NodeKind::Return(value) => {
                self.into(value, Gpr::Rax);
                self.leave();
            }
        }
    }

    /// Goes to the node's `yes` on this condition, where `after` is known; else to its `no`.
    fn branch(&mut self, id: NodeId, condition: Cond, after: Known) {
        let node = self.program.nodes[id as usize];
        let (before, next) = (self.known, id + 1);
        // Jump where the next node is not.
        if node.yes == next {
            self.jump_if(condition.negated(), node.no);
            self.known = after;
            self.goto(node.yes, next);
        } else {
            self.known = after;
            self.jump_if(condition, node.yes);
            self.known = before;
            self.goto(node.no, next);
        }
    }

    /// A sum with a constant: the place and the bytes behind it.
    fn end(&self, id: ExprId) -> Option<(ExprId, u32)> {
        match self.program.exprs.get(id) {
            Expr::Bin(Op::Add, base, bytes) => Some((base, self.program.exprs.constant(bytes)?)),
            _ => None,
        }
    }

    /// Notes that the target can be reached with what is known now.
    fn arrive(&mut self, to: NodeId) {
        let known = self.known;
        if let Some(there) = self.entering.get_mut(to as usize) {
            *there = Some(match *there {
                None => known,
                Some(mut other) => {
                    other.length = other.length.min(known.length);
                    other.reach = match (other.reach, known.reach) {
                        (Some((base, end)), Some((same, less))) if base == same => {
                            Some((base, end.min(less)))
                        }
                        _ => None,
                    };
                    for (mine, theirs) in other.kept.iter_mut().zip(known.kept) {
                        if *mine != theirs {
                            *mine = None;
                        }
                    }
                    other
                }
            });
        }
    }

    fn goto(&mut self, to: NodeId, next: NodeId) {
        self.arrive(to);
        // Accepting stands right behind the last node.
        let count = self.program.nodes.len();
        let falls = match is_accept(to) {
            true => next as usize == count,
            false => to == next && (to as usize) < count,
        };
        if !falls {
            self.jumps.add(&mut self.asm, None, to);
        }
    }

    fn jump_if(&mut self, condition: Cond, to: NodeId) {
        self.arrive(to);
        self.jumps.add(&mut self.asm, Some(condition), to);
    }

    fn reject_if(&mut self, condition: Cond) {
        let to = crate::program::REJECT;
        self.jumps.add(&mut self.asm, Some(condition), to);
    }

    /// Rejects the packet if fewer bytes are captured.
    fn at_least(&mut self, bytes: u32) {
        if bytes > self.known.length {
            self.immediate(Alu::Cmp, self.captured(), bytes);
            self.reject_if(Cond::Below);
            self.known.length = bytes;
        }
    }

    /// An operation on 32 bits with a constant.
    fn immediate(&mut self, op: Alu, operand: impl Into<Rm<Gpr>>, value: u32) {
        self.asm.alu_mi(op, Width::Dword, operand, value as i32);
    }

    fn constant(&mut self, register: Gpr, value: u32) {
        if value == 0 {
            self.asm.xor(Width::Dword, register, register);
        } else {
            self.asm.mov_imm32(register, value);
        }
    }

    /// Compares. Returns the condition that holds when the test does.
    fn compare(&mut self, a: ExprId, rel: Rel, b: ExprId) -> Cond {
        if let Some(value) = self.program.exprs.constant(b) {
            return self.compare_constant(a, rel, value);
        }
        let (a, b, slots) = self.pair(a, b);
        match rel {
            Rel::Set => self.asm.test(Width::Dword, b, a),
            _ => self.asm.cmp(Width::Dword, a, b),
        }
        self.slots = slots;
        condition(rel)
    }

    fn compare_constant(&mut self, a: ExprId, rel: Rel, value: u32) -> Cond {
        match rel {
            Rel::Eq if !self.is_kept(a) && self.compare_in_place(a, value) => {}
            Rel::Set if self.test_in_place(a, value) => {}
            Rel::Set => {
                let a = self.value(a);
                self.asm.test_mi(Width::Dword, a, value as i32);
            }
            _ => {
                let a = self.value(a);
                self.immediate(Alu::Cmp, a, value);
            }
        }
        condition(rel)
    }

    /// A field of the packet with a fixed place, or that masked: its place, size and mask.
    fn direct(&self, id: ExprId) -> Option<(u32, u8, u32)> {
        let exprs = &self.program.exprs;
        let whole = |size: u8| u32::MAX >> (32 - 8 * u32::from(size));
        match exprs.get(id) {
            Expr::Load {
                size,
                base: None,
                off,
            } => Some((off, size, whole(size))),
            Expr::Bin(Op::And, load, mask) => match (exprs.get(load), exprs.constant(mask)) {
                (
                    Expr::Load {
                        size,
                        base: None,
                        off,
                    },
                    Some(mask),
                ) => Some((off, size, mask & whole(size))),
                _ => None,
            },
            _ => None,
        }
    }

    /// `cmp` of a field with a constant, in the packet's byte order.
    fn compare_in_place(&mut self, a: ExprId, value: u32) -> bool {
        let Some((off, size, mask)) = self.direct(a) else {
            return false;
        };
        let bits = 8 * u32::from(size);
        let whole = u32::MAX >> (32 - bits);
        if value & !mask != 0 {
            // Never equal; the general way says so.
            return false;
        }
        self.at_least(off.saturating_add(size.into()));
        let swap = |value: u32| value.swap_bytes() >> (32 - bits);
        match size {
            1 if mask == whole => self.asm.cmp_mi(Width::Byte, self.field(off), value as i32),
            4 if mask == whole => self.immediate(Alu::Cmp, self.field(off), swap(value)),
            _ => {
                self.fetch(Gpr::Rax, off, size);
                if mask != whole {
                    self.immediate(Alu::And, Gpr::Rax, swap(mask));
                }
                if mask == whole || value != 0 {
                    self.immediate(Alu::Cmp, Gpr::Rax, swap(value));
                }
            }
        }
        true
    }

    /// `cmp` of a field whose place depends on the packet with a constant, in the packet's byte
    /// order.
    fn compare_moving(&mut self, a: ExprId, value: u32) -> bool {
        let Expr::Load {
            size,
            base: Some(base),
            off,
        } = self.program.exprs.get(a)
        else {
            return false;
        };
        let bits = 8 * u32::from(size);
        if self.is_kept(a) || value > u32::MAX >> (32 - bits) {
            return false;
        }
        self.moving(Gpr::Rax, size, base, off);
        let value = value.swap_bytes() >> (32 - bits);
        self.immediate(Alu::Cmp, Gpr::Rax, value);
        true
    }

    /// `test` of a field with a constant.
    fn test_in_place(&mut self, a: ExprId, value: u32) -> bool {
        let Some((off, size, mask)) = self.direct(a) else {
            return false;
        };
        self.at_least(off.saturating_add(size.into()));
        let swapped = (value & mask).swap_bytes() >> (32 - 8 * u32::from(size));
        let swapped = swapped as i32;
        match size {
            1 => self.asm.test_mi(Width::Byte, self.field(off), swapped),
            4 => self.asm.test_mi(Width::Dword, self.field(off), swapped),
            _ => {
                self.fetch(Gpr::Rax, off, size);
                self.asm.test_mi(Width::Dword, Gpr::Rax, swapped);
            }
        }
        true
    }

    /// Loads a field with a fixed place as the machine orders bytes.
    fn fetch(&mut self, register: Gpr, off: u32, size: u8) {
        self.load_bytes(register, self.field(off), size);
    }

    /// Loads 1, 2 or 4 bytes.
    fn load_bytes(&mut self, register: Gpr, mem: Mem, size: u8) {
        match size {
            1 => self.asm.movzx8(Width::Dword, register, mem),
            2 => self.asm.movzx16(Width::Dword, register, mem),
            _ => self.asm.mov(Width::Dword, register, mem),
        }
    }
}

/// When a relation holds, after `cmp`, or after `test` if it is [`Rel::Set`].
fn condition(rel: Rel) -> Cond {
    match rel {
        Rel::Gt => Cond::Above,
        Rel::Ge => Cond::AboveOrEqual,
        Rel::Eq => Cond::Equal,
        Rel::Set => Cond::NotEqual,
    }
}

/// Where jumps to this end go.
fn is_accept(to: NodeId) -> bool {
    to == ACCEPT
}
