//! Postfix operators: indices, members, calls, increments.

use alloc::format;

use super::Parser;
use super::declarator::MOST_ARGUMENTS;
use crate::diagnostics::Rule;
use crate::names::Name;
use crate::token::TokenKind;
use crate::tree::{Expression, Node, NodeId};
use crate::types::*;

impl Parser<'_> {
    pub(crate) fn postfix(&mut self, mut n: NodeId) -> NodeId {
        loop {
            if self.panic {
                return n;
            }
            let token = self.token();
            match token.kind {
                TokenKind::LBracket => {
                    self.advance();
                    let index = self.expression();
                    self.expect(TokenKind::RBracket, "`]`");
                    let (a, b) = (self.decay(n), self.decay(index));
                    let (x, y) = (self.tree.get(a).ty, self.tree.get(b).ty);
                    let (pointer, index) = if self.types.is_pointer(y) {
                        (b, a)
                    } else {
                        (a, b)
                    };
                    let (x, y) = if self.types.is_pointer(y) {
                        (y, x)
                    } else {
                        (x, y)
                    };
                    n = if x == ERROR || y == ERROR {
                        self.error_node(token.at)
                    } else if !self.types.is_pointer(x) || !self.types.is_integer(y) {
                        self.bad_operands(x, y, token.at)
                    } else {
                        let sum = self.offset(pointer, index, false, token.at);
                        if self.constant_of(index) == Some(0) {
                            self.deref_node(pointer, token.at)
                        } else {
                            self.deref_node(sum, token.at)
                        }
                    };
                }
                TokenKind::Dot | TokenKind::Arrow => {
                    self.advance();
                    n = self.member_node(n, token.kind == TokenKind::Arrow, token.at);
                }
                TokenKind::LParen => {
                    self.advance();
                    n = self.call_node(n, token.at);
                }
                TokenKind::PlusPlus | TokenKind::MinusMinus => {
                    self.advance();
                    n = self.step(true, n, token.kind == TokenKind::PlusPlus, token.at);
                }
                _ => return n,
            }
            if self.too_deep(n, token.at) {
                return n;
            }
        }
    }

    fn member_node(&mut self, n: NodeId, arrow: bool, at: u32) -> NodeId {
        let n = if arrow {
            let n = self.decay(n);
            let ty = self.tree.get(n).ty;
            if ty != ERROR && !self.types.is_pointer(ty) {
                let help = if self.types.is_struct(ty) {
                    "write `.` for a member of a structure"
                } else {
                    ""
                };
                let message = format!(
                    "`->` wants a pointer to a structure, not `{}`",
                    self.spell(ty.plain())
                );
                self.error(Rule::Operands, at, message, help);
                self.error_node(at)
            } else {
                self.deref_node(n, at)
            }
        } else {
            n
        };
        let token = self.token();
        if !self.expect(TokenKind::Name, "the name of a member") {
            return self.error_node(at);
        }
        let node = *self.tree.get(n);
        if node.ty == ERROR {
            return self.error_node(at);
        }
        if !self.types.is_struct(node.ty) {
            let help = if self.types.is_pointer(node.ty) {
                "write `->` for a member through a pointer"
            } else {
                ""
            };
            let message = format!(
                "`.` wants a structure, not `{}`",
                self.spell(node.ty.plain())
            );
            self.error(Rule::Operands, at, message, help);
            return self.error_node(at);
        }
        let name = Name(token.value);
        let Some(found) = self.types.member(node.ty, name) else {
            let near = self.nearest(name, token.at, |parser, other| {
                parser.types.member(node.ty, other).is_some()
            });
            let help = near.unwrap_or_default();
            let message = format!(
                "`{}` has no member `{}`",
                self.spell(node.ty.plain()),
                self.spelling(name)
            );
            self.error(Rule::UnknownMember, token.at, message, &help);
            return self.error_node(at);
        };
        let member = Expression::Member {
            of: n,
            offset: found.offset,
            bits: found.bits,
        };
        self.unary(member, found.ty.with(node.ty.qualifiers()), n, at)
    }

    fn call_node(&mut self, n: NodeId, at: u32) -> NodeId {
        let n = self.decay(n);
        let ty = self.tree.get(n).ty;
        let mut args = alloc::vec::Vec::new();
        if !self.accept(TokenKind::RParen) {
            loop {
                let arg = self.assignment_expression();
                args.push(self.decay(arg));
                if self.panic || !self.accept(TokenKind::Comma) {
                    break;
                }
            }
            self.expect(TokenKind::RParen, "`)`");
        }
        if ty == ERROR || self.panic {
            return self.error_node(at);
        }
        let function = if self.types.is_pointer(ty) {
            self.types.get(ty).of
        } else {
            VOID
        };
        if self.types.kind(function) != TypeKind::Function {
            let message = format!(
                "only functions can be called, this is `{}`",
                self.spell(ty.plain())
            );
            self.error(Rule::Call, at, message, "");
            return self.error_node(at);
        }
        let info = *self.types.get(function);
        let (given, wanted) = (args.len() as u32, info.count);
        let too_few = given < wanted;
        if too_few || given > wanted && !info.open {
            let message = format!(
                "this call has {given} argument{}, the function {wanted} parameter{}",
                plural(given),
                plural(wanted)
            );
            let help = format!("its type is `{}`", self.spell(function));
            self.error(Rule::Call, at, message, &help);
            return self.error_node(at);
        }
        if args.len() > MOST_ARGUMENTS {
            let message = format!("a call has at most {MOST_ARGUMENTS} arguments");
            let help = "pass a pointer to a structure";
            self.error(Rule::Unsupported, at, message, help);
            return self.error_node(at);
        }
        for (index, arg) in args.iter_mut().enumerate() {
            let ty = self.tree.get(*arg).ty;
            *arg = if index < wanted as usize {
                let param = self.types.params(function)[index];
                self.assigned(*arg, param, "this parameter")
            } else {
                let promoted = if ty.plain() == FLOAT {
                    DOUBLE
                } else {
                    self.types.promoted(ty)
                };
                if !self.types.is_scalar(ty) && !self.types.is_struct(ty) && ty != ERROR {
                    let at = self.tree.get(*arg).at;
                    self.error(
                        Rule::Unsupported,
                        at,
                        "only values go where a prototype names no parameter".into(),
                        "",
                    );
                }
                if self.types.is_struct(ty) {
                    continue;
                }
                self.convert_node(*arg, promoted)
            };
        }
        let result = info.of.plain();
        if self.types.kind(result) != TypeKind::Void && !self.types.is_complete(result) {
            self.error(
                Rule::Incomplete,
                at,
                "the result's type is not complete".into(),
                "define the structure before this",
            );
        }
        let first = self.tree.args.len() as u32;
        let mut weight = 2 + self.tree.get(n).weight;
        let mut depth = self.tree.get(n).depth;
        for arg in &args {
            weight = weight.saturating_add(self.tree.get(*arg).weight);
            depth = depth.max(self.tree.get(*arg).depth);
        }
        self.tree.args.extend_from_slice(&args);
        let call = Expression::Call {
            callee: n,
            first,
            count: args.len() as u32,
        };
        self.tree.push(Node {
            expression: call,
            ty: result,
            at,
            weight,
            depth: depth.saturating_add(1),
            effects: true,
        })
    }
}

fn plural(n: u32) -> &'static str {
    if n == 1 { "" } else { "s" }
}
