//! `switch`: the cases are sorted and found by comparing, in about as many steps as their number
//! has bits.

use super::{BreakTargets, Case, Lowering, Switch, Value};
use crate::ir::{Detail, Inst, NONE, NOP, Op, Scalar, VReg};
use crate::tree::{Body, NodeId};
use postern_x86::Cond;

impl Lowering<'_> {
    pub(crate) fn switch_statement(&mut self, n: NodeId, inner: Body) {
        let register = self.register_type(self.tree.get(n).ty);
        let mut value = self.lower(n);
        if let Value::Register(v) = value {
            value = Value::Register(self.copy(v, register));
        }
        let (dispatch, exit) = (self.code.block(), self.code.block());
        self.code.jump(dispatch);
        let first_case = self.scratch.cases.len();
        let loops = self.scratch.loops.len();
        let around = self.scratch.switch.replace(Switch {
            default: None,
            loops,
        });
        self.scratch.targets.push(BreakTargets {
            exit,
            again: None,
            continued: false,
        });
        self.dead();
        self.body(inner);
        self.code.jump(exit);
        self.scratch.targets.pop();
        let switch = core::mem::replace(&mut self.scratch.switch, around);
        let default = switch.and_then(|switch| switch.default).unwrap_or(exit);
        self.code.values.forget();
        self.code.begin(dispatch);
        self.dispatch(value, register, first_case, default);
        self.scratch.cases.truncate(first_case);
        self.code.values.forget();
        self.code.begin(exit);
    }

    /// `case` with a value, `default` without.
    pub(crate) fn case_label(&mut self, value: Option<i64>) {
        let block = self.code.block();
        self.code.jump(block);
        // A loop around this label, but inside the switch, is entered in the middle.
        let outside = self.scratch.switch.map_or(0, |switch| switch.loops);
        self.enter_from_anywhere(outside);
        self.code.begin(block);
        match (value, &mut self.scratch.switch) {
            (Some(value), _) => self.scratch.cases.push(Case { value, block }),
            (None, Some(switch)) => switch.default = Some(block),
            (None, None) => {} // the parser has refused it
        }
    }

    pub(crate) fn dispatch(&mut self, value: Value, ty: Scalar, first_case: usize, default: u32) {
        let cases = &mut self.scratch.cases[first_case..];
        cases.sort_unstable_by_key(|case| case.value);
        match value {
            Value::Constant(constant) => {
                let case = cases.iter().find(|case| case.value == constant);
                let to = case.map_or(default, |case| case.block);
                self.code.jump(to);
            }
            Value::Register(v) => self.search(v, ty, first_case, self.scratch.cases.len(), default),
        }
    }

    /// Finds the case among `cases[low..high]` by halving; few are tried one after the other.
    fn search(&mut self, v: VReg, ty: Scalar, low: usize, high: usize, default: u32) {
        if high - low <= 3 {
            for index in low..high {
                let case = self.scratch.cases[index];
                let next = self.code.block();
                self.compare_case(v, ty, Cond::Equal, case.value, case.block, next);
                self.code.begin(next);
            }
            self.code.jump(default);
            return;
        }
        let middle = low + (high - low) / 2;
        let (less, more) = (self.code.block(), self.code.block());
        self.compare_case(
            v,
            ty,
            Cond::Less,
            self.scratch.cases[middle].value,
            less,
            more,
        );
        self.code.begin(less);
        self.search(v, ty, low, middle, default);
        self.code.begin(more);
        self.search(v, ty, middle, high, default);
    }

    fn compare_case(&mut self, a: VReg, ty: Scalar, cond: Cond, value: i64, t: u32, f: u32) {
        let branch = Inst {
            op: Op::Branch,
            ty,
            detail: Detail::Cond(cond),
            a,
            ..NOP
        };
        if i32::try_from(value).is_ok() {
            let branch = Inst {
                b: NONE,
                imm: value,
                ..branch
            };
            self.code.end(branch, t, f);
        } else {
            let b = self.code.temp(false);
            self.code.push(Inst {
                op: Op::Imm,
                ty: Scalar::I64,
                dst: b,
                imm: value,
                ..NOP
            });
            self.code.end(Inst { b, ..branch }, t, f);
        }
    }
}
