//! Declaration specifiers: storage classes, basic types, structures, unions, enumerations.

use alloc::format;
use alloc::string::String;

use super::attribute::Attributes;
use super::{Meaning, Parser, Tag};
use crate::diagnostics::Rule;
use crate::names::Name;
use crate::token::TokenKind;
use crate::types::*;

/// What the specifiers of a declaration say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Specifiers {
    pub ty: Type,
    pub typedef: bool,
    pub external: bool,
    pub is_static: bool,
    pub inline: bool,
    pub attributes: Attributes,
}

impl Specifiers {
    /// Those of a function that somebody else defines.
    pub fn external(ty: Type) -> Specifiers {
        Specifiers {
            ty,
            typedef: false,
            external: true,
            is_static: false,
            inline: false,
            attributes: Attributes::default(),
        }
    }
}

impl Parser<'_> {
    /// Whether a declaration begins here.
    pub(crate) fn is_declaration(&self) -> bool {
        match self.peek() {
            TokenKind::Typedef
            | TokenKind::Extern
            | TokenKind::Static
            | TokenKind::Register
            | TokenKind::Auto
            | TokenKind::Inline
            | TokenKind::StaticAssert => true,
            // An attribute of a statement is read as one of nothing.
            TokenKind::Attribute => true,
            TokenKind::Name if self.peek_at(1) == TokenKind::Colon => false,
            _ => self.is_type_at(0),
        }
    }

    pub(crate) fn specifiers(&mut self) -> Specifiers {
        let mut result = Specifiers {
            ty: ERROR,
            typedef: false,
            external: false,
            is_static: false,
            inline: false,
            attributes: Attributes::default(),
        };
        let (mut qualifiers, mut seen) = (0, 0u32);
        let (mut base, mut long, mut short, mut sign) = (None, 0, false, None);
        let at = self.at();
        loop {
            let token = self.token();
            match token.kind {
                TokenKind::Typedef => result.typedef = true,
                TokenKind::Extern => result.external = true,
                TokenKind::Static => result.is_static = true,
                TokenKind::Inline => result.inline = true,
                TokenKind::Register
                | TokenKind::Auto
                | TokenKind::Restrict
                | TokenKind::Extension => {}
                TokenKind::Attribute | TokenKind::Alignas => {
                    self.attributes(&mut result.attributes);
                    continue;
                }
                TokenKind::Typeof if base.is_none() => {
                    base = Some(self.typeof_specifier());
                    seen += 1;
                    continue;
                }
                TokenKind::VaList if base.is_none() => {
                    base = Some(self.va_list());
                    seen += 1;
                }
                TokenKind::Const => qualifiers |= CONST,
                TokenKind::Volatile => qualifiers |= VOLATILE,
                TokenKind::Long => long += 1,
                TokenKind::Short => short = true,
                TokenKind::Signed => sign = Some(true),
                TokenKind::Unsigned => sign = Some(false),
                TokenKind::Void
                | TokenKind::Char
                | TokenKind::Int
                | TokenKind::Float
                | TokenKind::Double
                | TokenKind::Bool => {
                    if base.is_some() && !self.panic {
                        let message =
                            format!("{} does not go with the type before it", self.found());
                        self.fail(
                            Rule::BadType,
                            token.at,
                            self.length(token),
                            message,
                            String::new(),
                        );
                    }
                    if matches!(token.kind, TokenKind::Float | TokenKind::Double) {
                        self.no_float(token.at);
                    }
                    base = Some(match token.kind {
                        TokenKind::Void => VOID,
                        TokenKind::Char => CHAR,
                        TokenKind::Int => INT,
                        TokenKind::Float => FLOAT,
                        TokenKind::Double => DOUBLE,
                        _ => BOOL,
                    });
                }
                TokenKind::Struct | TokenKind::Union | TokenKind::Enum
                    if base.is_none() && seen == 0 =>
                {
                    self.advance();
                    base = Some(match token.kind {
                        TokenKind::Enum => self.enumeration(),
                        kind => self.structure_specifier(if kind == TokenKind::Struct {
                            TypeKind::Struct
                        } else {
                            TypeKind::Union
                        }),
                    });
                    seen += 1;
                    if self.panic {
                        return result;
                    }
                    continue;
                }
                TokenKind::Name if base.is_none() && long == 0 && !short && sign.is_none() => {
                    let name = Name(token.value);
                    match self.lookup(name) {
                        Some(symbol) if symbol.meaning == Meaning::Typedef => {
                            base = Some(symbol.ty);
                            let align = symbol.align;
                            let attributes = &mut result.attributes;
                            attributes.align = attributes.align.max(align);
                            seen += 1;
                        }
                        _ => break,
                    }
                }
                TokenKind::Unsupported => {
                    let message = format!("E-code does not have {}", self.found());
                    self.fail(
                        Rule::Unsupported,
                        token.at,
                        self.length(token),
                        message,
                        String::new(),
                    );
                    return result;
                }
                _ => break,
            }
            self.advance();
        }
        let basic = long > 0 || short || sign.is_some();
        let ty = match (base, long, short, sign) {
            (Some(ty), 0, false, None) => ty,
            (Some(DOUBLE), 1, false, None) => {
                self.fail(
                    Rule::Unsupported,
                    at,
                    1,
                    "E-code does not have long double".into(),
                    "use double".into(),
                );
                return result;
            }
            (Some(CHAR), 0, false, Some(signed)) => {
                if signed {
                    SCHAR
                } else {
                    UCHAR
                }
            }
            (None | Some(INT), 0, true, signed) => {
                if signed == Some(false) {
                    USHORT
                } else {
                    SHORT
                }
            }
            (None | Some(INT), 0, false, Some(signed)) => {
                if signed {
                    INT
                } else {
                    UINT
                }
            }
            (None | Some(INT), 1, false, signed) => {
                if signed == Some(false) {
                    ULONG
                } else {
                    LONG
                }
            }
            (None | Some(INT), 2, false, signed) => {
                if signed == Some(false) {
                    ULLONG
                } else {
                    LLONG
                }
            }
            _ if basic => {
                self.fail(
                    Rule::BadType,
                    at,
                    1,
                    "these specifiers do not make a type together".into(),
                    String::new(),
                );
                return result;
            }
            _ if result.attributes.any && self.peek() == TokenKind::Semi => VOID,
            _ => {
                let known = result.typedef || result.external || result.is_static || result.inline;
                self.missing_type(known || qualifiers != 0 || result.attributes.any);
                return result;
            }
        };
        let ty = self.with_mode(ty, &result.attributes, at);
        result.ty = if ty == ERROR {
            ERROR
        } else {
            ty.with(qualifiers)
        };
        result
    }

    /// There is no type; a declaration begins here all the same if `begun`.
    #[cold]
    fn missing_type(&mut self, begun: bool) {
        let token = self.token();
        if self.panic {
            return;
        }
        let mut help = String::new();
        let next = self.peek_at(1);
        let declares = matches!(
            next,
            TokenKind::LParen
                | TokenKind::Assign
                | TokenKind::Semi
                | TokenKind::Comma
                | TokenKind::LBracket
        );
        if token.kind == TokenKind::Name && declares && (begun || self.depth == 1) {
            let message = "E-code has no implicit int";
            let length = self.length(token);
            self.fail(
                Rule::Unsupported,
                token.at,
                length,
                message.into(),
                "write `int` before it".into(),
            );
            return;
        }
        if token.kind == TokenKind::Name {
            let near = self.nearest(Name(token.value), token.at, |parser, other| {
                other.0 < 35
                    || parser
                        .lookup(other)
                        .is_some_and(|symbol| symbol.meaning == Meaning::Typedef)
            });
            help = near.unwrap_or("every declaration begins with a type".into());
        }
        let message = format!("expected a type, found {}", self.found());
        self.fail(
            Rule::Expected,
            token.at,
            self.length(token).max(1),
            message,
            help,
        );
    }

    /// `typeof (…)`
    fn typeof_specifier(&mut self) -> Type {
        self.advance();
        if !self.expect(TokenKind::LParen, "`(`") || !self.nest() {
            return ERROR;
        }
        let ty = if self.is_type_at(0) {
            self.type_name()
        } else {
            self.unevaluated += 1;
            let n = self.expression();
            self.unevaluated -= 1;
            self.tree.get(n).ty
        };
        self.nested -= 1;
        self.expect(TokenKind::RParen, "`)`");
        ty
    }

    /// The tag of this name, in this scope only if `here`.
    fn tag(&self, name: Name, here: bool) -> Option<Tag> {
        let tag = *self.tags.get(self.names.get(name).tag as usize)?;
        (tag.name == name && name != Name(0) && (!here || tag.depth == self.depth)).then_some(tag)
    }

    fn bind_tag(&mut self, name: Name, ty: Type, enumeration: bool) {
        let previous = self.names.get(name).tag;
        self.tags.push(Tag {
            name,
            ty,
            depth: self.depth,
            previous,
            enumeration,
        });
        self.names.get_mut(name).tag = self.tags.len() as u32 - 1;
    }

    fn structure_specifier(&mut self, kind: TypeKind) -> Type {
        let mut attributes = Attributes::default();
        self.attributes(&mut attributes);
        let at = self.at();
        let name = (self.peek() == TokenKind::Name).then(|| Name(self.advance().value));
        let body = self.peek() == TokenKind::LBrace;
        if name.is_none() && !body {
            self.expect(TokenKind::LBrace, "a tag or `{`");
            return ERROR;
        }
        let known = name.and_then(|name| self.tag(name, body || self.peek() == TokenKind::Semi));
        let ty = match (known, name) {
            (Some(tag), Some(name)) => {
                if tag.enumeration
                    || self.types.kind(tag.ty) != kind
                    || body && self.types.is_complete(tag.ty)
                {
                    let message = format!(
                        "the tag `{}` means something else already",
                        self.spelling(name)
                    );
                    self.error(Rule::Redeclared, at, message, "choose another tag");
                    self.panic |= body;
                    return ERROR;
                }
                tag.ty
            }
            (_, name) => {
                let ty = self.types.structure(kind, name.unwrap_or_default());
                if let Some(name) = name {
                    self.bind_tag(name, ty, false);
                }
                ty
            }
        };
        if body {
            self.members(ty, attributes);
        }
        ty
    }

    fn enumeration(&mut self) -> Type {
        let mut attributes = Attributes::default();
        self.attributes(&mut attributes);
        let at = self.at();
        let name = (self.peek() == TokenKind::Name).then(|| Name(self.advance().value));
        if !self.accept(TokenKind::LBrace) {
            let Some(name) = name else {
                self.expect(TokenKind::LBrace, "a tag or `{`");
                return ERROR;
            };
            return match self.tag(name, false) {
                Some(tag) if tag.enumeration => tag.ty,
                _ => {
                    let message =
                        format!("the enumeration `{}` is not defined", self.spelling(name));
                    self.error(Rule::Incomplete, at, message, "define it before this");
                    ERROR
                }
            };
        }
        if let Some(name) = name
            && self.tag(name, true).is_some()
        {
            let message = format!("the tag `{}` means something already", self.spelling(name));
            self.error(Rule::Redeclared, at, message, "choose another tag");
        }
        let (mut value, mut negative, mut large) = (0i64, false, false);
        loop {
            let token = self.token();
            if !self.expect(TokenKind::Name, "the name of a constant") {
                break;
            }
            self.attributes(&mut Attributes::default());
            if self.accept(TokenKind::Assign)
                && let Some(constant) = self.constant_expression()
            {
                value = constant;
            }
            if i32::try_from(value).is_err() && u32::try_from(value).is_err() {
                self.error(
                    Rule::BadType,
                    token.at,
                    "this value does not fit an int".into(),
                    "",
                );
                value = 0;
            }
            large |= value > i32::MAX.into();
            negative |= value < 0;
            let name = Name(token.value);
            if self
                .lookup(name)
                .is_some_and(|symbol| symbol.depth == self.depth)
            {
                self.redeclared(name, token.at);
            } else {
                let ty = if value > i32::MAX.into() { UINT } else { INT };
                self.bind(name, Meaning::Constant(value), ty, token.at);
            }
            value += 1;
            if !self.accept(TokenKind::Comma) || self.peek() == TokenKind::RBrace {
                break;
            }
        }
        self.expect(TokenKind::RBrace, "`}`");
        self.attributes(&mut attributes);
        if attributes.packed {
            let message = "E-code does not have packed enumerations".into();
            self.error(Rule::Unsupported, at, message, "");
        }
        // As gcc chooses.
        let ty = match (negative, large) {
            (true, true) => LONG,
            (true, false) => INT,
            _ => UINT,
        };
        if let Some(name) = name {
            self.bind_tag(name, ty, true);
        }
        ty
    }
}
