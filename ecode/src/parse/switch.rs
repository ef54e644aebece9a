//! `switch`: the cases are sorted and found by comparing, in about as many steps as their number has bits.

use alloc::format;

use super::{Around, Case, Parser, Switch};
use crate::diagnostics::Rule;
use crate::ir::{Ins, NONE, NOP, Op, T, V, cc};
use crate::lex::Tok;
use crate::lower::Val;
use crate::types::*;

impl Parser<'_> {
    pub(crate) fn switch_statement(&mut self) {
        let at = self.advance().at;
        self.expect(Tok::LParen, "`(`");
        let n = self.expression();
        let n = self.decay(n);
        self.expect(Tok::RParen, "`)`");
        let ty = self.tree.get(n).ty.plain();
        if !self.types.is_integer(ty) && ty != ERROR {
            let message = format!("a switch wants an integer, not `{}`", self.spell(ty));
            self.error(Rule::Operands, at, message, "");
        }
        let ty = self.types.promoted(ty);
        let n = self.convert_node(n, ty);
        let register = self.register_type(ty);
        let mut value = Val::I(0);
        if !self.report.any() {
            value = self.lower(n);
            if let Val::V(v) = value {
                value = Val::V(self.copy(v, register));
            }
        }
        let (dispatch, exit) = (self.code.block(), self.code.block());
        self.code.jump(dispatch);
        let first_case = self.cases.len();
        let loops = self.loops.len();
        self.switches.push(Switch {
            default: None,
            ty,
            loops,
        });
        self.around.push(Around {
            exit,
            again: None,
            continued: false,
        });
        self.dead();
        self.labelled();
        self.code.jump(exit);
        self.around.pop();
        let default = self
            .switches
            .pop()
            .and_then(|switch| switch.default)
            .unwrap_or(exit);
        self.code.values.forget();
        self.code.begin(dispatch);
        self.dispatch(value, register, first_case, default);
        self.cases.truncate(first_case);
        self.code.values.forget();
        self.code.begin(exit);
    }

    fn dispatch(&mut self, value: Val, ty: T, first_case: usize, default: u32) {
        self.cases[first_case..].sort_unstable_by_key(|case| case.value);
        for pair in first_case + 1..self.cases.len() {
            if self.cases[pair - 1].value == self.cases[pair].value {
                let at = self.code.at;
                let message = format!("the case {} is there twice", self.cases[pair].value);
                self.error(Rule::Misplaced, at, message, "");
            }
        }
        match value {
            Val::I(constant) => {
                let case = self.cases[first_case..]
                    .iter()
                    .find(|case| case.value == constant);
                let to = case.map_or(default, |case| case.block);
                self.code.jump(to);
            }
            Val::V(v) => self.search(v, ty, first_case, self.cases.len(), default),
        }
    }

    /// Finds the case among `cases[low..high]` by halving; few are tried one after the other.
    fn search(&mut self, v: V, ty: T, low: usize, high: usize, default: u32) {
        if high - low <= 3 {
            for index in low..high {
                let case = self.cases[index];
                let next = self.code.block();
                self.compare_case(v, ty, cc::E, case.value, case.block, next);
                self.code.begin(next);
            }
            self.code.jump(default);
            return;
        }
        let middle = low + (high - low) / 2;
        let (less, more) = (self.code.block(), self.code.block());
        self.compare_case(v, ty, cc::L, self.cases[middle].value, less, more);
        self.code.begin(less);
        self.search(v, ty, low, middle, default);
        self.code.begin(more);
        self.search(v, ty, middle, high, default);
    }

    fn compare_case(&mut self, a: V, ty: T, cc: u8, value: i64, t: u32, f: u32) {
        let branch = Ins {
            op: Op::Branch,
            ty,
            cc,
            a,
            ..NOP
        };
        if i32::try_from(value).is_ok() {
            self.code.end(
                Ins {
                    b: NONE,
                    imm: value,
                    ..branch
                },
                t,
                f,
            );
        } else {
            let b = self.code.temp(false);
            self.code.push(Ins {
                op: Op::Imm,
                ty: T::I64,
                dst: b,
                imm: value,
                ..NOP
            });
            self.code.end(Ins { b, ..branch }, t, f);
        }
    }

    pub(crate) fn case_label(&mut self) {
        let token = self.advance();
        let mut value = None;
        if token.kind == Tok::Case {
            value = self.constant_expression();
        }
        self.expect(Tok::Colon, "`:`");
        let Some(switch) = self.switches.last().copied() else {
            self.error(
                Rule::Misplaced,
                token.at,
                "this stands in no switch".into(),
                "",
            );
            return;
        };
        let block = self.code.block();
        self.code.jump(block);
        // A loop around this label, but inside the switch, is entered in the middle.
        for index in switch.loops..self.loops.len() {
            let number = self.loops[index];
            self.code.loops[number].natural = false;
        }
        self.code.values.forget();
        self.code.begin(block);
        match value {
            Some(value) => {
                let value = self.wrapped(switch.ty, value as u64) as i64;
                let value = if self.types.size(switch.ty) == 4 {
                    value as i32 as i64
                } else {
                    value
                };
                self.cases.push(Case { value, block });
            }
            None if token.kind == Tok::Default => {
                if switch.default.is_some() {
                    self.error(
                        Rule::Misplaced,
                        token.at,
                        "there are two defaults in this switch".into(),
                        "",
                    );
                }
                if let Some(switch) = self.switches.last_mut() {
                    switch.default = Some(block);
                }
            }
            None => {}
        }
        self.labelled();
    }
}
