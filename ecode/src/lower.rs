//! The tree of one function to the intermediate form.
//!
//! Invariant: only trees without errors come here, and nothing here reports any but limits.
//! Operands are evaluated from left to right; a variable whose register is an operand is copied
//! first if something evaluated later, but before the operator, assigns to it.

mod address;
mod arith;
mod assign;
mod bitfield;
mod builtin;
mod call;
mod condition;
mod convert;
mod expression;
mod function;
mod initializer;
mod loops;
mod statement;
mod switch;
pub(crate) mod values;

use alloc::vec::Vec;

use crate::building::Building;
use crate::float;
use crate::ir::{Code, Inst, NONE, NOP, Op, Scalar, VReg, sym};
use crate::limits::Limits;
use crate::tree::{Expression, NodeId, Tree};
use crate::types::{FLOAT, Type, Types, VOID};

pub(crate) use address::MemoryOperand;

/// A value: a constant (of 32-bit types sign-extended, whatever their sign) or a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Constant(i64),
    Register(VReg),
}

/// Where `break` and `continue` go.
#[derive(Clone, Copy, Debug)]
struct BreakTargets {
    exit: u32,
    /// The block that `continue` goes to, unless this is a switch.
    again: Option<u32>,
    continued: bool,
}

/// A switch that is being lowered.
#[derive(Clone, Copy, Debug)]
struct Switch {
    default: Option<u32>,
    /// Number of loops around it.
    loops: usize,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    value: i64,
    block: u32,
}

/// What the lowering of a function keeps beside the code; its memory is used again for the next
/// one.
#[derive(Debug, Default)]
pub(crate) struct LoweringBuffers {
    /// Of each local: its register, or its slot of the frame if it lives in memory.
    places: Vec<u32>,
    /// Blocks of the labels.
    labels: Vec<u32>,
    targets: Vec<BreakTargets>,
    /// Indices of the loops around.
    loops: Vec<usize>,
    switch: Option<Switch>,
    /// Cases of the switches around.
    cases: Vec<Case>,
    /// Where the frame was too large.
    pub exceeded: Vec<u32>,
}

impl LoweringBuffers {
    fn reset(&mut self, locals: usize, labels: usize) {
        self.places.clear();
        self.places.resize(locals, NONE);
        self.labels.clear();
        self.labels.resize(labels, NONE);
        self.targets.clear();
        self.loops.clear();
        self.switch = None;
        self.cases.clear();
        self.exceeded.clear();
    }
}

/// Makes the code of one function of its tree.
pub(crate) struct Lowering<'a> {
    tree: &'a Tree,
    types: &'a Types,
    limits: &'a Limits,
    code: &'a mut Code,
    /// For floating constants.
    unit: &'a mut Building,
    scratch: &'a mut LoweringBuffers,
    result: Type,
    /// Where a returned structure goes.
    result_pointer: VReg,
    /// The function calls `alloca`.
    allocates: bool,
}

impl<'a> Lowering<'a> {
    pub fn new(
        (tree, types, unit): (&'a Tree, &'a Types, &'a mut Building),
        limits: &'a Limits,
        code: &'a mut Code,
        scratch: &'a mut LoweringBuffers,
    ) -> Lowering<'a> {
        Lowering {
            tree,
            types,
            limits,
            code,
            unit,
            scratch,
            result: VOID,
            result_pointer: NONE,
            allocates: false,
        }
    }
}

impl Lowering<'_> {
    /// How values of a scalar type are kept in memory.
    pub(crate) fn memory_type(&self, ty: Type) -> Scalar {
        use crate::types::TypeKind::*;
        let info = self.types.get(ty);
        match (info.kind, info.size) {
            (Float, 4) => Scalar::F32,
            (Float, _) => Scalar::F64,
            (Int, 1) => Scalar::I8,
            (Bool | Unsigned, 1) => Scalar::U8,
            (Int, 2) => Scalar::I16,
            (Unsigned, 2) => Scalar::U16,
            (Int | Unsigned, 4) => Scalar::I32,
            _ => Scalar::I64,
        }
    }

    /// How values of a scalar type are kept in registers.
    pub(crate) fn register_type(&self, ty: Type) -> Scalar {
        match self.memory_type(ty) {
            Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 => Scalar::I32,
            other => other,
        }
    }

    /// The width in which integers or pointers of the type are compared and tested: pointers by
    /// their low 32 bits.
    pub(crate) fn compare_type(&self, ty: Type) -> Scalar {
        if self.types.is_pointer(ty) {
            Scalar::I32
        } else {
            self.register_type(ty)
        }
    }

    /// The register of a value, which may have to be made.
    pub(crate) fn register(&mut self, value: Value) -> VReg {
        match value {
            Value::Register(v) => v,
            Value::Constant(imm) => self.code.pure(Inst {
                op: Op::Imm,
                ty: Scalar::I64,
                imm,
                ..NOP
            }),
        }
    }

    /// Keeps `value` as it is now while `later` is evaluated.
    pub(crate) fn protect(&mut self, value: Value, ty: Scalar, later: NodeId) -> Value {
        match value {
            Value::Register(v)
                if self.tree.get(later).effects
                    && !self.code.vregs[v as usize].temp
                    && self.modifies(later, v) =>
            {
                Value::Register(self.copy(v, ty))
            }
            other => other,
        }
    }

    /// A temporary with the present value of `v`.
    pub(crate) fn copy(&mut self, v: VReg, ty: Scalar) -> VReg {
        let dst = self.code.temp(ty.is_float());
        self.code.push(Inst {
            op: Op::Mov,
            ty,
            dst,
            a: v,
            ..NOP
        });
        dst
    }

    /// Whether evaluating the tree may assign to the register.
    fn modifies(&self, n: NodeId, v: VReg) -> bool {
        use Expression::*;
        let node = self.tree.get(n);
        if !node.effects {
            return false;
        }
        if node.weight > 64 {
            return true;
        }
        let of = |n: NodeId| self.modifies(n, v);
        let writes = |n: NodeId| match self.tree.get(n).expression {
            Register(local) => self.place(local) == v,
            _ => false,
        };
        match node.expression {
            Assign { to, value } | Compound { to, value, .. } => writes(to) || of(to) || of(value),
            CompoundPointer { to, index, .. } => writes(to) || of(to) || of(index),
            Step { to, .. } => writes(to) || of(to),
            Call {
                callee,
                first,
                count,
            } => of(callee) || self.tree.args(first, count).iter().any(|n| of(*n)),
            Conditional { condition, yes, no } => of(condition) || of(yes) || of(no),
            Literal { .. } | Statements { .. } => true,
            Builtin { first, count, .. } => self.tree.args(first, count).iter().any(|n| of(*n)),
            Negate(a) | Invert(a) | Not(a) | Deref(a) | Address(a) | Cast(a) => of(a),
            Member { of: a, .. } => of(a),
            Arithmetic(_, a, b)
            | Compare(_, a, b)
            | LogicalAnd(a, b)
            | LogicalOr(a, b)
            | Comma(a, b)
            | PointerAdd {
                pointer: a,
                index: b,
                ..
            }
            | PointerDifference {
                left: a, right: b, ..
            } => of(a) || of(b),
            Integer(_) | Float(_) | Text(_) | Register(_) | Memory(_) | Global(_) | Error => false,
        }
    }

    /// A register with a floating constant, from the unit's constants.
    pub(crate) fn float_constant(&mut self, ty: Type, bits: u64) -> VReg {
        let (ty, bits, size) = if ty.plain() == FLOAT {
            (Scalar::F32, u64::from(float::single(bits)), 4)
        } else {
            (Scalar::F64, bits, 8)
        };
        let disp = self.unit.constant(bits, size) as i32;
        self.code.pure(Inst {
            op: Op::Load,
            ty,
            sym: sym::RODATA,
            disp,
            ..NOP
        })
    }

    /// Writes a value to a variable's register.
    pub(crate) fn store_register(&mut self, variable: VReg, value: Value, ty: Scalar) {
        match value {
            Value::Register(a) if a == variable => {}
            Value::Register(a) => self.code.push(Inst {
                op: Op::Mov,
                ty,
                dst: variable,
                a,
                ..NOP
            }),
            Value::Constant(imm) => {
                self.code.push(Inst {
                    op: Op::Imm,
                    ty,
                    dst: variable,
                    imm,
                    ..NOP
                });
                self.code.set_constant(variable, imm);
            }
        }
    }
}
