//! The intermediate form: blocks of three-address instructions over virtual registers.
//!
//! Not SSA: a C variable that lives in a register is one virtual register with many definitions;
//! everything else is a *temporary* with exactly one definition, which stands before its uses.
//! Invariant: an integer register of a 32-bit operation has undefined upper bits for whoever reads
//! it as 32 bits only, and zero upper bits if a 32-bit operation wrote it, which is how pointers
//! (offsets) are computed.

use alloc::vec::Vec;

use postern_x86::Cond;

use crate::facts::{Fact, Values};

/// A virtual register.
pub(crate) type VReg = u32;
/// No register.
pub(crate) const NONE: VReg = u32::MAX;

/// What an instruction does. `dst = a op b`, where `b` may be the immediate; memory operands are
/// `sym + disp + b + c * scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    Nop,
    /// Copy of an integer or float.
    Mov,
    /// Integer constant.
    Imm,
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Sar,
    Rol,
    Div,
    Mod,
    UDiv,
    UMod,
    Neg,
    Not,
    /// Upper half of an unsigned 64-bit product.
    MulHigh,
    /// Sign or zero extension from `ty` to 64 bits (or 32, which is the lower part of it).
    Extend,
    /// 1 if the comparison `detail` of `a` and `b` (width `ty`) holds, else 0.
    Set,
    /// The same of `a & b` with zero.
    SetTest,
    /// The same for floats.
    FSet,
    Load,
    Store,
    /// Address of the memory operand, 32 bits.
    Lea,
    /// Copies `imm` bytes from the memory operand at register `b` to register `a`.
    Copy,
    /// Writes `imm` zero bytes at register `a`.
    Zero,
    Call,
    FAdd,
    FSub,
    FMul,
    FDiv,
    FNeg,
    /// How many bits are set.
    Popcount,
    /// Number of the lowest bit that is set, and of the highest.
    LowestBit,
    HighestBit,
    SwapBytes,
    /// Address of the arguments in memory, `imm` words up.
    Incoming,
    /// Takes `a` bytes off the stack, below `b`, below the frame, or, if `imm` is 1, below
    /// everything.
    Allocate,
    /// Between the two float types; `ty` is the target.
    FCvt,
    /// Integer (width in `detail`) to float `ty`.
    ToFloat,
    /// Float `ty` to integer, truncating; width in `detail`.
    ToInt,
    /// `dst = detail(a, b) ? c : dst`, where dst was set just before.
    Select,
    SelectTest,
    // Terminators
    Jump,
    Branch,
    BranchTest,
    FBranch,
    Return,
    Trap,
}

/// What an operation or a memory operand works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    I64,
    F32,
    F64,
}

impl Scalar {
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F32 | Scalar::F64)
    }
    pub fn wide(self) -> bool {
        self == Scalar::I64
    }
}

/// What an operation is told beyond its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    Nothing,
    /// Of comparisons, and what depends on them.
    Cond(Cond),
    /// Of a load: it is made even if nobody wants its value.
    Volatile,
    /// Of [`Op::Extend`] from 32 bits.
    ZeroExtend,
    /// Of a call: it has a variable number of arguments.
    Variadic,
    /// Of conversions between integers and floats: how many bits the integer has.
    Integer32,
    Integer64,
}

impl Detail {
    /// For hashing.
    pub fn number(self) -> u8 {
        match self {
            Detail::Nothing => 0,
            Detail::Cond(cond) => cond.code(),
            Detail::Volatile | Detail::ZeroExtend | Detail::Variadic => 1,
            Detail::Integer32 => 4,
            Detail::Integer64 => 8,
        }
    }

    /// The condition; of what has none, any.
    pub fn cond(self) -> Cond {
        match self {
            Detail::Cond(cond) => cond,
            _ => Cond::Overflow,
        }
    }
}

/// What `sym` of a memory operand says.
pub(crate) mod sym {
    pub const NONE: u32 = 0;
    /// The unit's constants.
    pub const RODATA: u32 = 1;
    /// Plus a slot's number: a slot of the frame.
    pub const FRAME: u32 = 1 << 31;
    /// Plus a global's number.
    pub const GLOBAL: u32 = 16;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inst {
    pub op: Op,
    pub ty: Scalar,
    pub detail: Detail,
    pub scale: u8,
    pub dst: VReg,
    pub a: VReg,
    pub b: VReg,
    pub c: VReg,
    pub sym: u32,
    pub disp: i32,
    pub at: u32,
    pub imm: i64,
}

pub(crate) const NOP: Inst = Inst {
    op: Op::Nop,
    ty: Scalar::I32,
    detail: Detail::Nothing,
    scale: 1,
    dst: NONE,
    a: NONE,
    b: NONE,
    c: NONE,
    sym: 0,
    disp: 0,
    at: 0,
    imm: 0,
};

impl Inst {
    /// Whether it may be left out, moved, or done once instead of twice.
    pub fn is_pure(&self) -> bool {
        use Op::*;
        !matches!(
            self.op,
            Nop | Div
                | Mod
                | UDiv
                | UMod
                | Store
                | Copy
                | Zero
                | Call
                | Allocate
                | Load
                | Select
                | SelectTest
        ) && self.op < Jump
    }
    /// Whether it may be left out if nobody wants its result.
    pub fn is_removable(&self) -> bool {
        self.is_pure()
            || matches!(self.op, Op::Select | Op::SelectTest)
            || self.op == Op::Load && self.detail != Detail::Volatile
    }
}

impl PartialOrd for Op {
    fn partial_cmp(&self, other: &Op) -> Option<core::cmp::Ordering> {
        (*self as u8).partial_cmp(&(*other as u8))
    }
}

/// A straight piece of code; `term` says where it goes on: to `t`, or to `f` if the condition does
/// not hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub first: u32,
    pub last: u32,
    pub term: Inst,
    pub t: u32,
    pub f: u32,
    /// Number of loops around it.
    pub depth: u32,
}

/// A virtual register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VRegInfo {
    pub float: bool,
    /// It has one definition.
    pub temp: bool,
    /// Counts definitions while code is made, so that facts about old values are told from present
    /// ones.
    pub version: u32,
    /// Constant value, good while `fact` holds.
    pub constant: i64,
    pub fact: Fact,
}

/// An argument of a call: a register, or a constant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arg {
    pub v: VReg,
    pub imm: i64,
    pub ty: Scalar,
}

/// A loop: the block before it, and the range of block numbers that it consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    pub before: u32,
    pub first: u32,
    pub last: u32,
    /// Every path into it goes through `before`.
    pub natural: bool,
}

/// A piece of the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameSlot {
    pub size: u32,
    pub align: u32,
    pub offset: u32,
}

/// A function in the intermediate form.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub ins: Vec<Inst>,
    pub blocks: Vec<Block>,
    /// Blocks in the order of the machine code.
    pub order: Vec<u32>,
    pub vregs: Vec<VRegInfo>,
    pub args: Vec<Arg>,
    pub slots: Vec<FrameSlot>,
    /// Bytes of all slots together.
    pub frame: u64,
    pub loops: Vec<Loop>,
    /// Parameters in order: register and type, or none with a slot.
    pub params: Vec<(VReg, Scalar)>,
    /// Where the registers are saved that may hold arguments without names.
    pub variadic: Option<u32>,
    /// The stack may get longer while the function runs.
    pub dynamic: bool,
    pub current: u32,
    pub depth: u32,
    pub at: u32,
    /// Where the function stands in the source.
    pub from: u32,
    pub values: Values,
    /// Number of instructions allowed.
    pub most: u32,
    pub overflow: bool,
    /// Instructions and blocks that were made, moved and encoded, in all functions so far.
    pub steps: u64,
    /// [`crate::Options::kernel`].
    pub kernel: bool,
}

impl Code {
    pub fn reset(&mut self, most: u32, at: u32) {
        (self.at, self.from) = (at, at);
        self.ins.clear();
        self.blocks.clear();
        self.order.clear();
        self.vregs.clear();
        self.args.clear();
        self.slots.clear();
        self.frame = 0;
        self.loops.clear();
        self.params.clear();
        self.variadic = None;
        self.dynamic = false;
        self.depth = 0;
        self.most = most;
        self.overflow = false;
        self.values.reset();
        let entry = self.block();
        self.begin(entry);
    }

    /// A new block, nowhere yet.
    pub fn block(&mut self) -> u32 {
        let term = Inst {
            op: Op::Trap,
            ..NOP
        };
        self.overflow |= self.blocks.len() >= self.most as usize;
        self.blocks.push(Block {
            first: 0,
            last: 0,
            term,
            t: 0,
            f: 0,
            depth: self.depth,
        });
        self.blocks.len() as u32 - 1
    }

    /// Places a block here and goes on in it. The one before must be ended.
    pub fn begin(&mut self, block: u32) {
        let here = self.ins.len() as u32;
        let depth = self.depth;
        let b = &mut self.blocks[block as usize];
        b.first = here;
        b.last = here;
        b.depth = depth;
        self.order.push(block);
        self.current = block;
    }

    /// Ends the present block.
    pub fn end(&mut self, term: Inst, t: u32, f: u32) {
        let last = self.ins.len() as u32;
        let at = self.at;
        let b = &mut self.blocks[self.current as usize];
        b.last = last;
        b.term = Inst { at, ..term };
        b.t = t;
        b.f = f;
    }

    pub fn jump(&mut self, to: u32) {
        self.end(
            Inst {
                op: Op::Jump,
                ..NOP
            },
            to,
            to,
        );
    }

    fn vreg(&mut self, float: bool, temp: bool) -> VReg {
        let fact = Fact::default();
        self.vregs.push(VRegInfo {
            float,
            temp,
            version: 0,
            constant: 0,
            fact,
        });
        self.vregs.len() as u32 - 1
    }
    pub fn temp(&mut self, float: bool) -> VReg {
        self.vreg(float, true)
    }
    /// A register with many definitions.
    pub fn variable(&mut self, float: bool) -> VReg {
        self.vreg(float, false)
    }

    /// A slot of the frame without a size so far.
    pub fn slot(&mut self) -> u32 {
        self.slots.push(FrameSlot {
            size: 0,
            align: 1,
            offset: 0,
        });
        self.slots.len() as u32 - 1
    }

    /// Appends an instruction as it is.
    #[inline]
    pub fn push(&mut self, ins: Inst) {
        if self.ins.len() >= self.most as usize {
            self.overflow = true;
            return;
        }
        if ins.dst != NONE {
            self.vregs[ins.dst as usize].version += 1;
        }
        self.ins.push(Inst { at: self.at, ..ins });
    }
}
