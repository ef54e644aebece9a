//! Declarators: pointers, arrays, functions around a name, and type names.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::attribute::Attributes;
use super::{Meaning, Parser};
use crate::diagnostics::Rule;
use crate::names::Name;
use crate::token::TokenKind;
use crate::tree::LocalId;
use crate::types::*;

/// Most types that one type is made of: pointers, arrays, functions, their parameters.
const LEVELS: u16 = 400;

/// Parameters of a function, and arguments of a call: as many as C promises.
pub(super) const MOST_ARGUMENTS: usize = 127;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Declarator {
    pub name: Option<Name>,
    pub at: u32,
    pub ty: Type,
    pub attributes: Attributes,
    /// What it is called outside of the source, if that is something else.
    pub label: Option<Name>,
}

/// Arrays of variable length in types.
pub(crate) const NO_VARIABLE: &str =
    "E-code has arrays of variable length as variables of one dimension only";
pub(crate) const VARIABLE_HELP: &str = "compute the index of an array of one dimension";

impl Parser<'_> {
    /// The type in a cast or `sizeof`.
    pub(crate) fn type_name(&mut self) -> Type {
        let (ty, _) = self.aligned_type_name();
        if self.variable.take().is_some() {
            self.error(
                Rule::Unsupported,
                self.at(),
                NO_VARIABLE.into(),
                VARIABLE_HELP,
            );
            return ERROR;
        }
        ty
    }

    /// The same, and the alignment that its name asks for.
    pub(crate) fn aligned_type_name(&mut self) -> (Type, u32) {
        let specifiers = self.specifiers();
        if self.panic {
            return (ERROR, 0);
        }
        let declarator = self.declarator(specifiers.ty, false);
        if let Some(name) = declarator.name {
            let message = format!(
                "expected a type without a name, found `{}`",
                self.spelling(name)
            );
            self.error(Rule::Expected, declarator.at, message, "");
        }
        (declarator.ty, specifiers.attributes.align)
    }

    /// A declarator on a base type. Where a name is `wanted`, its absence is an error.
    pub(crate) fn declarator(&mut self, base: Type, wanted: bool) -> Declarator {
        let mut attributes = Attributes::default();
        self.attributes(&mut attributes);
        self.variable = None;
        let mut declarator = self.any_declarator(base);
        if self.peek() == TokenKind::Asm && wanted {
            declarator.label = self.asm_name();
        }
        self.attributes(&mut attributes);
        declarator.ty = self.with_mode(declarator.ty, &attributes, declarator.at);
        declarator.attributes = attributes;
        if self.types.weight(declarator.ty) > LEVELS {
            self.limit(declarator.at, "types that a type is made of", "");
        }
        if wanted && declarator.name.is_none() && !self.panic {
            self.expect(TokenKind::Name, "a name");
        }
        declarator
    }

    fn any_declarator(&mut self, base: Type) -> Declarator {
        let mut ty = base;
        if !self.nest() {
            self.nested -= 1;
            return Declarator {
                name: None,
                at: 0,
                ty: ERROR,
                ..Declarator::default()
            };
        }
        let mut levels = 0;
        while self.accept(TokenKind::Star) {
            let at = self.at();
            ty = self.types.pointer(ty);
            levels += 1;
            if levels > 64 {
                self.limit(at, "pointers to pointers", "");
            }
            loop {
                match self.peek() {
                    TokenKind::Const => ty = ty.with(CONST),
                    TokenKind::Volatile => ty = ty.with(VOLATILE),
                    TokenKind::Restrict => {}
                    TokenKind::Attribute => {
                        self.attributes(&mut Attributes::default());
                        continue;
                    }
                    _ => break,
                }
                self.advance();
            }
        }
        let inner = self.peek() == TokenKind::LParen
            && (matches!(
                self.peek_at(1),
                TokenKind::Star | TokenKind::LParen | TokenKind::LBracket
            ) || self.peek_at(1) == TokenKind::Name && !self.is_type_at(1));
        let result = if inner {
            self.inner_declarator(ty)
        } else {
            let at = self.at();
            let name = (self.peek() == TokenKind::Name).then(|| Name(self.advance().value));
            let ty = self.suffixes(ty);
            Declarator {
                name,
                at,
                ty,
                ..Declarator::default()
            }
        };
        self.nested -= 1;
        result
    }

    /// `( declarator ) suffixes`: what follows the parentheses belongs to the base of what is
    /// inside.
    fn inner_declarator(&mut self, base: Type) -> Declarator {
        let open = self.advance();
        let start = self.pos;
        let mut parentheses = 1;
        while parentheses > 0 {
            match self.peek() {
                TokenKind::LParen => parentheses += 1,
                TokenKind::RParen => parentheses -= 1,
                TokenKind::End | TokenKind::Semi | TokenKind::LBrace | TokenKind::RBrace => {
                    self.fail(
                        Rule::Expected,
                        open.at,
                        1,
                        "this parenthesis is not closed".into(),
                        String::new(),
                    );
                    return Declarator {
                        name: None,
                        at: open.at,
                        ty: ERROR,
                        ..Declarator::default()
                    };
                }
                _ => {}
            }
            self.advance();
        }
        let ty = self.suffixes(base);
        let end = self.pos;
        let outer = core::mem::take(&mut self.params);
        self.pos = start;
        let declarator = self.any_declarator(ty);
        self.expect(TokenKind::RParen, "`)`");
        if !self.panic {
            self.pos = end;
        }
        // The parameters of the function that is declared, not of what it returns.
        if declarator.ty == ty {
            self.params = outer;
        }
        declarator
    }

    fn suffixes(&mut self, base: Type) -> Type {
        match self.peek() {
            TokenKind::LBracket => {
                let at = self.advance().at;
                while matches!(
                    self.peek(),
                    TokenKind::Static
                        | TokenKind::Const
                        | TokenKind::Restrict
                        | TokenKind::Volatile
                ) {
                    self.advance();
                }
                if self.peek() == TokenKind::Star && self.peek_at(1) == TokenKind::RBracket {
                    self.advance();
                }
                let count = if self.peek() == TokenKind::RBracket {
                    Some(UNKNOWN)
                } else {
                    self.array_length()
                };
                self.expect(TokenKind::RBracket, "`]`");
                if !self.nest() {
                    self.nested -= 1;
                    return ERROR;
                }
                let outer = self.variable.take();
                let of = self.suffixes(base);
                self.nested -= 1;
                if of == ERROR || self.panic {
                    return ERROR;
                }
                if self.variable.is_some() {
                    self.error(Rule::Unsupported, at, NO_VARIABLE.into(), VARIABLE_HELP);
                    return ERROR;
                }
                self.variable = outer;
                if !self.types.is_complete(of) {
                    let message = format!(
                        "an array cannot have elements of the type `{}`",
                        self.spell(of)
                    );
                    self.error(Rule::Incomplete, at, message, "");
                    return ERROR;
                }
                let ty = count.and_then(|count| self.types.array(of, count));
                ty.unwrap_or_else(|| {
                    self.error(Rule::BadType, at, "this array is too large".into(), "");
                    ERROR
                })
            }
            TokenKind::LParen => {
                let at = self.advance().at;
                let (types, names, open) = self.parameters();
                if !self.nest() {
                    self.nested -= 1;
                    return ERROR;
                }
                let of = self.suffixes(base);
                self.nested -= 1;
                self.params = names;
                if of == ERROR || self.panic {
                    return ERROR;
                }
                if matches!(self.types.kind(of), TypeKind::Array | TypeKind::Function) {
                    self.error(
                        Rule::BadType,
                        at,
                        "a function cannot return an array or a function".into(),
                        "return a pointer",
                    );
                    return ERROR;
                }
                self.types.function(of, &types, open)
            }
            _ => base,
        }
    }

    /// The length of an array; of one whose length is known only when it is declared, [`UNKNOWN`],
    /// and the expression is kept in [`Parser::variable`].
    fn array_length(&mut self) -> Option<u32> {
        let at = self.at();
        let n = self.assignment_expression();
        let n = self.decay(n);
        let node = *self.tree.get(n);
        let Some(value) = self
            .constant_of(n)
            .filter(|_| self.types.is_integer(node.ty))
        else {
            if node.ty == ERROR {
                return None;
            }
            let inside = self.prototypes > 0 || self.functions > 0 && self.depth > 1;
            if inside && self.types.is_integer(node.ty) {
                self.variable = Some(n);
                return Some(UNKNOWN);
            }
            self.not_constant(node.at);
            return None;
        };
        let value = value as i64;
        if !(0..1 << 30).contains(&value) {
            let message = if value < 0 {
                "the length of an array is not negative"
            } else {
                "this array is too large"
            };
            self.error(Rule::BadType, at, message.into(), "");
            return Some(1);
        }
        Some(value as u32)
    }

    /// The parameters behind `(`: types, names, and whether there may be more.
    fn parameters(&mut self) -> (Vec<Type>, Vec<(Name, u32)>, bool) {
        let (mut types, mut names) = (Vec::new(), Vec::new());
        if self.accept(TokenKind::RParen) {
            return (types, names, true);
        }
        if self.peek() == TokenKind::Void && self.peek_at(1) == TokenKind::RParen {
            self.pos += 2;
            return (types, names, false);
        }
        let mut open = false;
        // Their names mean something until the parenthesis is closed.
        let symbols = self.symbols.len();
        self.prototypes += 1;
        loop {
            if self.accept(TokenKind::Ellipsis) {
                open = true;
                break;
            }
            let at = self.at();
            if self.peek() == TokenKind::Name
                && !self.is_type_at(0)
                && matches!(self.peek_at(1), TokenKind::Comma | TokenKind::RParen)
            {
                self.old_parameters();
                break;
            }
            let specifiers = self.specifiers();
            if self.panic {
                break;
            }
            let declarator = self.declarator(specifiers.ty, false);
            // The length of a parameter that is an array says nothing, but is computed.
            if let Some(length) = self.variable.take()
                && self.tree.get(length).effects
            {
                let message = "E-code computes no length of a parameter that has effects".into();
                self.error(Rule::Unsupported, at, message, "compute it in the function");
            }
            let info = *self.types.get(declarator.ty);
            let ty = match info.kind {
                TypeKind::Array => self.types.pointer(info.of),
                TypeKind::Function => self.types.pointer(declarator.ty.plain()),
                TypeKind::Void => {
                    self.error(Rule::BadType, at, "a parameter cannot be void".into(), "");
                    ERROR
                }
                _ => declarator.ty,
            };
            types.push(ty.plain().with(ty.qualifiers()));
            names.push((declarator.name.unwrap_or_default(), declarator.at));
            if let Some(name) = declarator.name {
                let at = declarator.at;
                self.bind(name, Meaning::Register(LocalId::MAX), ty, at);
            }
            if types.len() > MOST_ARGUMENTS {
                let message = format!("a function has at most {MOST_ARGUMENTS} parameters");
                let help = "pass a pointer to a structure";
                self.error(Rule::Unsupported, at, message, help);
                self.panic = true;
            }
            if !self.accept(TokenKind::Comma) || self.panic {
                break;
            }
        }
        self.prototypes -= 1;
        while self.symbols.len() > symbols {
            if let Some(symbol) = self.symbols.pop() {
                self.names.get_mut(symbol.name).symbol = symbol.previous;
            }
        }
        self.expect(TokenKind::RParen, "`)`");
        (types, names, open)
    }
}
