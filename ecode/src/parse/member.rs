//! Members of structures and unions, bit-fields among them.

use alloc::format;
use alloc::vec::Vec;

use super::Parser;
use super::attribute::Attributes;
use super::declarator::Declarator;
use super::specifier::Specifiers;
use crate::diagnostics::Rule;
use crate::names::Name;
use crate::token::TokenKind;
use crate::types::*;

/// A member of a type, before it has a place.
fn member(specifiers: &Specifiers, name: Name, ty: Type) -> Member {
    Member {
        name,
        ty,
        offset: 0,
        bits: Bits::NONE,
        align: specifiers.attributes.align,
        packed: specifiers.attributes.packed,
        anonymous: false,
    }
}

/// Most members of one structure.
const MEMBERS: usize = 4096;

impl Parser<'_> {
    /// `{ … }` of a structure.
    pub(super) fn members(&mut self, ty: Type, mut attributes: Attributes) {
        let start = self.advance().at;
        if !self.nest() {
            self.nested -= 1;
            return;
        }
        let mut members: Vec<Member> = Vec::new();
        while self.peek() != TokenKind::RBrace && self.peek() != TokenKind::End && !self.panic {
            if self.peek() == TokenKind::StaticAssert {
                self.static_assert();
                continue;
            }
            if self.accept(TokenKind::Semi) {
                continue;
            }
            let specifiers = self.specifiers();
            if self.peek() == TokenKind::Semi && self.types.is_struct(specifiers.ty) {
                // One that has a tag, or was defined elsewhere, declares nothing here.
                let here = self.types.get(specifiers.ty).tag == Name(0)
                    && self.types.is_complete(specifiers.ty);
                let here = here && self.ends_structure();
                if !here {
                    self.advance();
                    continue;
                }
                members.push(Member {
                    anonymous: true,
                    ..member(&specifiers, Name(0), specifiers.ty)
                });
            } else {
                loop {
                    self.member(&specifiers, &mut members);
                    if self.panic || !self.accept(TokenKind::Comma) {
                        break;
                    }
                }
            }
            self.expect(TokenKind::Semi, "`;`");
        }
        let most = self.pack();
        self.expect(TokenKind::RBrace, "`}`");
        self.nested -= 1;
        self.attributes(&mut attributes);
        let layout = Layout {
            packed: attributes.packed,
            align: attributes.align,
            most,
        };
        if !self.types.complete(ty, &mut members, layout) {
            self.error(
                Rule::BadType,
                start,
                "this structure is too large".into(),
                "",
            );
        }
    }

    /// Whether the token before is the end of a structure's members, or of its attributes.
    fn ends_structure(&self) -> bool {
        let mut at = self.pos;
        while at > 0 {
            at -= 1;
            match self.tokens.list[at].kind {
                TokenKind::RBrace => return true,
                TokenKind::RParen => {
                    // Back to `__attribute__`.
                    while at > 0 && self.tokens.list[at].kind != TokenKind::Attribute {
                        if matches!(
                            self.tokens.list[at].kind,
                            TokenKind::RBrace | TokenKind::Semi
                        ) {
                            return false;
                        }
                        at -= 1;
                    }
                }
                TokenKind::Const | TokenKind::Volatile => {}
                _ => return false,
            }
        }
        false
    }

    /// One declarator of a member.
    fn member(&mut self, specifiers: &Specifiers, members: &mut Vec<Member>) {
        let bit_field = self.peek() == TokenKind::Colon;
        let mut declarator = Declarator {
            at: self.at(),
            ty: specifiers.ty,
            ..Declarator::default()
        };
        if !bit_field {
            declarator = self.declarator(specifiers.ty, true);
        }
        let info = *self.types.get(declarator.ty);
        if info.kind == TypeKind::Array && info.count == UNKNOWN && self.variable.is_none() {
            // As many as there is room for behind the structure.
            declarator.ty = self.types.array(info.of, 0).unwrap_or(ERROR);
        }
        let bits = if self.peek() == TokenKind::Colon {
            let Some(bits) = self.bit_field(&mut declarator) else {
                return;
            };
            bits
        } else {
            Bits::NONE
        };
        let Some(name) = declarator.name.or(bits.any().then_some(Name(0))) else {
            return;
        };
        if name != Name(0) && members.iter().any(|member| member.name == name) {
            let message = format!("the member `{}` is there twice", self.spelling(name));
            self.error(Rule::Redeclared, declarator.at, message, "");
        }
        if self.variable.take().is_some()
            || !self.types.is_complete(declarator.ty) && declarator.ty != ERROR
        {
            let ty = self.spell(declarator.ty.plain());
            let message = format!("a member cannot have the type `{ty}`");
            self.error(
                Rule::Incomplete,
                declarator.at,
                message,
                "use a pointer to it",
            );
            return;
        }
        let from = member(specifiers, name, declarator.ty);
        members.push(Member {
            bits,
            align: from.align.max(declarator.attributes.align),
            packed: from.packed || declarator.attributes.packed,
            ..from
        });
        if members.len() > MEMBERS {
            self.limit(declarator.at, "members of a structure", "");
        }
    }

    /// `: width`
    fn bit_field(&mut self, declarator: &mut Declarator) -> Option<Bits> {
        let at = self.advance().at;
        let width = self.constant_expression()?;
        self.attributes(&mut declarator.attributes);
        let ty = declarator.ty;
        let most = match self.types.kind(ty) {
            TypeKind::Bool => 1,
            TypeKind::Error => return None,
            _ if self.types.is_integer(ty) => i64::from(self.types.size(ty)) * 8,
            _ => 0,
        };
        if !(0..=most).contains(&width) || most == 0 || width == 0 && declarator.name.is_some() {
            let message = "this bit-field does not fit its type".into();
            self.error(Rule::BadType, at, message, "");
            return None;
        }
        Some(Bits {
            first: 0,
            width: width as u8,
            whole: false,
            is_field: true,
        })
    }
}
