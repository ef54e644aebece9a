//! Built-in functions with types among their arguments, and those that only an argument's type or
//! form matters to.

use alloc::format;

use super::Parser;
use crate::diagnostics::Rule;
use crate::names::Name;
use crate::token::TokenKind;
use crate::tree::{Expression, NodeId};
use crate::types::*;

impl Parser<'_> {
    /// Those with types among their arguments.
    pub(super) fn builtin_of_types(&mut self, name: &str, at: u32) -> Option<NodeId> {
        if !matches!(
            name,
            "offsetof"
                | "types_compatible_p"
                | "va_arg"
                | "choose_expr"
                | "constant_p"
                | "classify_type"
        ) {
            return None;
        }
        self.advance();
        let n = match name {
            "offsetof" => {
                let ty = self.type_name();
                self.expect(TokenKind::Comma, "`,`");
                self.member_offset(ty, at)
            }
            "types_compatible_p" => {
                let a = self.type_name();
                self.expect(TokenKind::Comma, "`,`");
                let b = self.type_name();
                let same = self.types.same(a, b);
                self.integer(INT, same.into(), at)
            }
            "constant_p" => {
                let n = self.unevaluated_operand();
                use Expression::{Address, Float, Integer, Text};
                let known = match self.tree.get(n).expression {
                    Integer(_) | Float(_) => true,
                    Address(of) => matches!(self.tree.get(of).expression, Text(_)),
                    _ => false,
                };
                self.integer(INT, known.into(), at)
            }
            "classify_type" => {
                let n = self.unevaluated_operand();
                // gcc's numbers of classes; what is smaller than an int is promoted to one.
                let class = match self.types.kind(self.tree.get(n).ty) {
                    TypeKind::Pointer | TypeKind::Function => 5,
                    TypeKind::Float => 8,
                    TypeKind::Struct => 12,
                    TypeKind::Union => 13,
                    _ => 1,
                };
                self.integer(INT, class, at)
            }
            "choose_expr" => {
                let condition = self.constant_expression();
                self.expect(TokenKind::Comma, "`,`");
                let yes = self.assignment_expression();
                self.expect(TokenKind::Comma, "`,`");
                let no = self.assignment_expression();
                if condition == Some(0) { no } else { yes }
            }
            _ => {
                let list = self.assignment_expression();
                let list = self.decay(list);
                self.expect(TokenKind::Comma, "`,`");
                let ty = self.type_name();
                self.next_argument(list, ty, at)
            }
        };
        self.expect(TokenKind::RParen, "`)`");
        Some(n)
    }

    /// An argument that only its type or form matters of.
    fn unevaluated_operand(&mut self) -> NodeId {
        self.unevaluated += 1;
        let n = self.assignment_expression();
        self.unevaluated -= 1;
        self.decay(n)
    }

    /// What is behind the comma of `offsetof`.
    fn member_offset(&mut self, mut ty: Type, at: u32) -> NodeId {
        let mut offset = 0u64;
        let mut dot = true;
        while !self.panic && ty != ERROR {
            if dot {
                let token = self.token();
                if !self.expect(TokenKind::Name, "the name of a member") {
                    break;
                }
                let member = match self.types.is_struct(ty) {
                    true => self.types.member(ty, Name(token.value)),
                    false => None,
                };
                let Some(member) = member.filter(|member| !member.bits.any()) else {
                    let (ty, name) = (self.spell(ty.plain()), self.spelling(Name(token.value)));
                    let message = format!("`{ty}` has no member `{name}`");
                    self.error(Rule::UnknownMember, token.at, message, "");
                    return self.error_node(at);
                };
                offset += u64::from(member.offset);
                ty = member.ty;
            } else {
                let index = self.constant_expression().unwrap_or(0) as u64;
                self.expect(TokenKind::RBracket, "`]`");
                if self.types.kind(ty) != TypeKind::Array {
                    return self.bad_operands(ty, INT, at);
                }
                ty = self.types.get(ty).of;
                offset = offset.wrapping_add(index.wrapping_mul(self.types.size(ty).into()));
            }
            match self.peek() {
                TokenKind::Dot => dot = true,
                TokenKind::LBracket => dot = false,
                _ => break,
            }
            self.advance();
        }
        self.integer(ULONG, offset, at)
    }
}
