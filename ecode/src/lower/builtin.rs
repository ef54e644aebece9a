//! What gcc has functions for: bits of integers, overflows, arguments behind `...`, memory of the
//! frame.

use super::condition::Test;
use super::{Lowering, MemoryOperand, Value};
use crate::ir::{Detail, Inst, NONE, NOP, Op, Scalar, VReg, sym};
use crate::tree::{Arithmetic, Builtin, LocalId, Node, NodeId};
use crate::types::{LONG, TypeKind};
use postern_x86::Cond;

/// Bytes of one array of variable length at most; more are a fault.
const DYNAMIC: i64 = 1 << 24;
/// Where a list of arguments has what: offsets of the next integer and float among the registers
/// that were saved, the next argument in memory, and the saved registers.
const FLOATS: i64 = 4;
const MEMORY: i64 = 8;
const SAVED: i64 = 16;

impl Lowering<'_> {
    /// The value of a builtin; any, if it has none.
    pub(crate) fn builtin(&mut self, node: &Node, builtin: Builtin, arguments: &[NodeId]) -> Value {
        use Builtin::*;
        match (builtin, arguments) {
            (Trap, _) => {
                self.trap();
                self.dead();
                Value::Constant(0)
            }
            (Allocate, &[size]) => {
                let size = self.lower(size);
                self.reserve(size, NONE, NONE)
            }
            (StartArguments, &[list]) => {
                self.start_arguments(list);
                Value::Constant(0)
            }
            (NextInteger, &[list]) => self.next_argument(list, false),
            (NextFloat, &[list]) => self.next_argument(list, true),
            (Overflow(kind), &[a, b, to]) => self.overflow(kind, (a, b, to), true),
            (TestOverflow(kind), &[a, b, to]) => self.overflow(kind, (a, b, to), false),
            (_, &[n]) => {
                let ty = self.register_type(self.tree.get(n).ty);
                let value = self.lower(n);
                let size = self.types.size(node.ty);
                self.bits(builtin, ty, value, size)
            }
            _ => Value::Constant(0), // the parser has counted them
        }
    }

    /// One instruction on an integer.
    fn on_bits(&mut self, op: Op, ty: Scalar, value: Value) -> Value {
        let a = self.register(value);
        Value::Register(self.code.pure(Inst { op, ty, a, ..NOP }))
    }

    fn bits(&mut self, builtin: Builtin, ty: Scalar, value: Value, size: u32) -> Value {
        let top = if ty.wide() { 63 } else { 31 };
        let constant = Value::Constant;
        match builtin {
            Builtin::Popcount => self.on_bits(Op::Popcount, ty, value),
            Builtin::Parity => {
                let count = self.on_bits(Op::Popcount, ty, value);
                self.arith(Op::And, Scalar::I32, count, constant(1))
            }
            Builtin::TrailingZeros => self.on_bits(Op::LowestBit, ty, value),
            Builtin::LeadingZeros => {
                let highest = self.on_bits(Op::HighestBit, ty, value);
                self.arith(Op::Xor, Scalar::I32, highest, constant(top))
            }
            Builtin::SignBits => {
                let sign = self.arith(Op::Sar, ty, value, constant(top));
                let same = self.arith(Op::Xor, ty, value, sign);
                let twice = self.arith(Op::Shl, ty, same, constant(1));
                let odd = self.arith(Op::Or, ty, twice, constant(1));
                let highest = self.on_bits(Op::HighestBit, ty, odd);
                self.arith(Op::Xor, Scalar::I32, highest, constant(top))
            }
            Builtin::Absolute => {
                let sign = self.arith(Op::Sar, ty, value, constant(top));
                let flipped = self.arith(Op::Xor, ty, value, sign);
                self.arith(Op::Sub, ty, flipped, sign)
            }
            Builtin::FirstSet => {
                let lowest = self.on_bits(Op::LowestBit, ty, value);
                let number = self.arith(Op::Add, Scalar::I32, lowest, constant(1));
                let (a, c) = (self.register(value), self.register(number));
                let result = self.code.variable(false);
                self.store_register(result, constant(0), Scalar::I32);
                let test = Test {
                    bits: false,
                    cond: Cond::NotEqual,
                    ty,
                    a,
                    b: NONE,
                    imm: 0,
                };
                self.code.push(Inst {
                    c,
                    dst: result,
                    ..test.instruction(Op::Select)
                });
                Value::Register(result)
            }
            _ => {
                let swapped = self.on_bits(Op::SwapBytes, ty, value);
                match size {
                    2 => self.arith(Op::Shr, ty, swapped, constant(16)),
                    _ => swapped,
                }
            }
        }
    }

    /// The sum, difference or product as if there were bits enough: its lower 64 bits, and those
    /// above where they can matter.
    fn overflow(
        &mut self,
        kind: Arithmetic,
        (x, y, to): (NodeId, NodeId, NodeId),
        writes: bool,
    ) -> Value {
        let (of_x, of_y, of_to) = (
            self.tree.get(x).ty,
            self.tree.get(y).ty,
            self.tree.get(to).ty,
        );
        let result = if writes {
            self.types.get(of_to).of
        } else {
            of_to
        };
        let a = self.lower(x);
        let a = self.protect(a, self.register_type(of_x), y);
        let a = self.protect(a, self.register_type(of_x), to);
        let b = self.lower(y);
        let b = self.protect(b, self.register_type(of_y), to);
        let addr = writes.then(|| self.pointer_address(to));
        if !writes {
            self.discard(to);
        }
        let (a, b) = (self.convert(a, of_x, LONG), self.convert(b, of_y, LONG));
        let op = match kind {
            Arithmetic::Add => Op::Add,
            Arithmetic::Sub => Op::Sub,
            _ => Op::Mul,
        };
        let wide = Scalar::I64;
        let low = self.arith(op, wide, a, b);
        let cut = self.convert(low, LONG, result);
        let back = self.convert(cut, result, LONG);
        let mut wrong = self.arith(Op::Xor, wide, back, low);
        let small = |ty| self.types.size(ty) <= 4;
        if !(small(of_x) && small(of_y) && small(result)) {
            let (x_signed, y_signed) =
                (!self.types.is_unsigned(of_x), !self.types.is_unsigned(of_y));
            let high = self.upper_half(kind, (a, x_signed), (b, y_signed), low);
            let expected = match self.types.is_unsigned(result) {
                true => Value::Constant(0),
                false => self.arith(Op::Sar, wide, back, Value::Constant(63)),
            };
            let other = self.arith(Op::Xor, wide, high, expected);
            wrong = self.arith(Op::Or, wide, wrong, other);
        }
        if let Some(addr) = addr {
            self.store(addr, result, cut);
        }
        let a = match wrong {
            Value::Constant(constant) => return Value::Constant((constant != 0).into()),
            Value::Register(a) => a,
        };
        Value::Register(self.code.pure(Inst {
            op: Op::Set,
            ty: wide,
            detail: Detail::Cond(Cond::NotEqual),
            a,
            ..NOP
        }))
    }

    /// The bits from 64 on of a result.
    fn upper_half(
        &mut self,
        kind: Arithmetic,
        (a, x): (Value, bool),
        (b, y): (Value, bool),
        low: Value,
    ) -> Value {
        let wide = Scalar::I64;
        let sign = |lower: &mut Self, value, signed| match signed {
            true => lower.arith(Op::Sar, wide, value, Value::Constant(63)),
            false => Value::Constant(0),
        };
        let (above_a, above_b) = (sign(self, a, x), sign(self, b, y));
        match kind {
            Arithmetic::Add => {
                let carry = self.below(low, a);
                let sum = self.arith(Op::Add, wide, above_a, above_b);
                self.arith(Op::Add, wide, sum, carry)
            }
            Arithmetic::Sub => {
                let borrow = self.below(a, b);
                let difference = self.arith(Op::Sub, wide, above_a, above_b);
                self.arith(Op::Sub, wide, difference, borrow)
            }
            _ => {
                let (left, right) = (self.register(a), self.register(b));
                let high = Value::Register(self.code.pure(Inst {
                    op: Op::MulHigh,
                    ty: wide,
                    a: left,
                    b: right,
                    ..NOP
                }));
                let first = self.arith(Op::And, wide, above_a, b);
                let second = self.arith(Op::And, wide, above_b, a);
                let high = self.arith(Op::Sub, wide, high, first);
                self.arith(Op::Sub, wide, high, second)
            }
        }
    }

    /// Whether `a` is less than `b`, both without signs, as 0 or 1 of 64 bits.
    fn below(&mut self, a: Value, b: Value) -> Value {
        let (a, b) = (self.register(a), self.register(b));
        let set = Value::Register(self.code.pure(Inst {
            op: Op::Set,
            ty: Scalar::I64,
            detail: Detail::Cond(Cond::Below),
            a,
            b,
            ..NOP
        }));
        self.extend(set, Scalar::I32, true)
    }

    /// Memory of the frame below that of `before`, or, if there is none, of everything so far; its
    /// address, in `to` if that is given.
    fn reserve(&mut self, size: Value, before: VReg, to: VReg) -> Value {
        let a = self.register(size);
        let (good, trap) = (self.code.block(), self.code.block());
        let branch = Inst {
            op: Op::Branch,
            ty: Scalar::I64,
            detail: Detail::Cond(Cond::BelowOrEqual),
            a,
            imm: DYNAMIC,
            ..NOP
        };
        self.code.end(branch, good, trap);
        self.code.begin(trap);
        self.trap();
        self.code.begin(good);
        self.code.values.clobber();
        let dst = if to == NONE {
            self.code.temp(false)
        } else {
            to
        };
        let everything = self.allocates || to == NONE;
        self.code.push(Inst {
            op: Op::Allocate,
            ty: Scalar::I64,
            dst,
            a,
            b: if everything { NONE } else { before },
            imm: everything.into(),
            ..NOP
        });
        Value::Register(dst)
    }

    /// An array of variable length gets its place.
    pub(crate) fn variable_array(
        &mut self,
        pointer: LocalId,
        size: LocalId,
        before: Option<LocalId>,
    ) {
        let (to, size) = (self.place(pointer), self.place(size));
        let size = match self.code.constant(size) {
            Some(constant) => Value::Constant(constant),
            None => Value::Register(size),
        };
        let before = before.map_or(NONE, |local| self.place(local));
        self.reserve(size, before, to);
    }

    /// `va_start`: behind the parameters that have names.
    fn start_arguments(&mut self, list: NodeId) {
        let Some(slot) = self.code.variadic else {
            return;
        };
        let (mut general, mut vector) = (0i64, 0i64);
        for (_, ty) in &self.code.params {
            *if ty.is_float() {
                &mut vector
            } else {
                &mut general
            } += 1;
        }
        let stack = (general - 6).max(0) + (vector - 8).max(0);
        let list = self.pointer_address(list);
        let saved = self.pointer(MemoryOperand::symbol(sym::FRAME + slot));
        let memory = Value::Register(self.code.pure(Inst {
            op: Op::Incoming,
            ty: Scalar::I32,
            imm: stack,
            ..NOP
        }));
        let int = crate::types::INT;
        self.store(list, int, Value::Constant(8 * general.min(6)));
        self.store(
            list.plus(FLOATS),
            int,
            Value::Constant(48 + 16 * vector.min(8)),
        );
        self.store(list.plus(MEMORY), LONG, memory);
        self.store(list.plus(SAVED), LONG, saved);
    }

    /// The address of the next argument.
    fn next_argument(&mut self, list: NodeId, float: bool) -> Value {
        let list = self.pointer_address(list);
        let list = self.pointer(list);
        let list = MemoryOperand::at(self.register(list));
        let (field, end, step) = if float { (FLOATS, 176, 16) } else { (0, 48, 8) };
        let int = crate::types::INT;
        let offset = self.load(list.plus(field), int);
        let a = self.register(offset);
        let result = self.code.variable(false);
        let (registers, memory, after) = (self.code.block(), self.code.block(), self.code.block());
        let branch = Inst {
            op: Op::Branch,
            ty: Scalar::I32,
            detail: Detail::Cond(Cond::Below),
            a,
            imm: end,
            ..NOP
        };
        self.code.end(branch, registers, memory);
        self.arm(registers, after, |lower| {
            let saved = lower.load(list.plus(SAVED), LONG);
            let address = lower.arith(Op::Add, Scalar::I32, saved, offset);
            let next = lower.arith(Op::Add, Scalar::I32, offset, Value::Constant(step));
            lower.store(list.plus(field), int, next);
            lower.store_register(result, address, Scalar::I64);
        });
        self.arm(memory, after, |lower| {
            let address = lower.load(list.plus(MEMORY), LONG);
            let next = lower.arith(Op::Add, Scalar::I32, address, Value::Constant(8));
            lower.store(list.plus(MEMORY), LONG, next);
            lower.store_register(result, address, Scalar::I64);
        });
        self.code.begin(after);
        Value::Register(result)
    }

    /// `goto *`
    pub(crate) fn goto_address(&mut self, n: NodeId) {
        let value = self.lower(n);
        let first = self.scratch.cases.len();
        for label in &self.tree.taken {
            let block = self.label(*label);
            let value = i64::from(*label) + 1;
            self.scratch.cases.push(super::Case { value, block });
        }
        let nowhere = self.code.block();
        self.dispatch(value, Scalar::I32, first, nowhere);
        self.scratch.cases.truncate(first);
        self.code.begin(nowhere);
        self.trap();
        self.dead();
    }

    /// Ends the block: whoever comes here is ended.
    fn trap(&mut self) {
        let trap = Inst {
            op: Op::Trap,
            ..NOP
        };
        self.code.end(trap, 0, 0);
    }

    /// Whether an integer type has no sign, also if it is small.
    pub(crate) fn has_sign(&self, ty: crate::types::Type) -> bool {
        self.types.kind(ty) == TypeKind::Int
    }
}
