//! Attributes, and what else a declaration asks for beyond its type. Each is honoured, or cannot
//! change what a program computes, or is refused by its name.

use alloc::format;

use super::Parser;
use crate::diagnostics::Rule;
use crate::token::TokenKind;
use crate::types::*;

/// What attributes ask for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    pub packed: bool,
    /// Alignment at least, or 0.
    pub align: u32,
    /// Another size of a number: bytes, and whether it is a floating one.
    mode: Option<(u32, bool)>,
    /// There was one.
    pub any: bool,
}

/// Attributes that say what a compiler may assume or should try, and warnings.
const IGNORED: &[&[u8]] = &[
    b"noinline",
    b"noclone",
    b"noipa",
    b"unused",
    b"used",
    b"const",
    b"pure",
    b"noreturn",
    b"always_inline",
    b"optimize",
    b"cold",
    b"hot",
    b"nonnull",
    b"returns_nonnull",
    b"malloc",
    b"warn_unused_result",
    b"format",
    b"format_arg",
    b"deprecated",
    b"unavailable",
    b"artificial",
    b"gnu_inline",
    b"flatten",
    b"leaf",
    b"nothrow",
    b"no_instrument_function",
    b"no_reorder",
    b"noplt",
    b"fallthrough",
    b"sentinel",
    b"alloc_size",
    b"alloc_align",
    b"assume_aligned",
    b"may_alias",
    b"externally_visible",
    b"no_icf",
    b"no_sanitize",
    b"no_stack_protector",
    b"stack_protect",
    b"nocommon",
    b"common",
    b"error",
    b"warning",
    b"access",
    b"no_split_stack",
    b"nonstring",
    b"designated_init",
    b"sysv_abi",
    b"fentry",
    b"no_profile_instrument_function",
    b"no_sanitize_address",
    b"no_sanitize_undefined",
    b"patchable_function_entry",
    b"zero_call_used_regs",
    b"simd",
    b"nocf_check",
    b"dllexport",
    b"maybe_unused",
    b"nodiscard",
    b"counted_by",
    b"regparm",
    b"stdcall",
    b"fastcall",
    b"cdecl",
    b"visibility",
    b"copy",
    b"tls_model",
    b"warn_if_not_aligned",
];

/// The largest alignment that sections keep.
const MOST: i64 = 64;
/// What `aligned` without a number asks for.
const USUAL: i64 = 16;

impl Parser<'_> {
    /// Reads attributes as long as there are any.
    pub(crate) fn attributes(&mut self, to: &mut Attributes) {
        loop {
            match self.peek() {
                TokenKind::Attribute => self.attribute_list(to),
                TokenKind::Alignas => {
                    self.advance();
                    to.any = true;
                    self.expect(TokenKind::LParen, "`(`");
                    let at = self.at();
                    let align = if self.is_type_at(0) {
                        let ty = self.type_name();
                        Some(self.types.get(ty).align.into())
                    } else {
                        self.constant_expression()
                    };
                    self.alignment(to, align, at);
                    self.expect(TokenKind::RParen, "`)`");
                }
                _ => return,
            }
            if self.panic {
                return;
            }
        }
    }

    /// `__attribute__((…))`
    fn attribute_list(&mut self, to: &mut Attributes) {
        to.any = true;
        self.advance();
        self.expect(TokenKind::LParen, "`(`");
        self.expect(TokenKind::LParen, "`(`");
        while self.peek() != TokenKind::RParen && !self.panic {
            if !self.accept(TokenKind::Comma) {
                self.attribute(to);
            }
        }
        self.expect(TokenKind::RParen, "`)`");
        self.expect(TokenKind::RParen, "`)`");
    }

    fn attribute(&mut self, to: &mut Attributes) {
        let token = self.advance();
        let text = &self.source[token.at as usize..];
        let text = &text[..self.length(token) as usize];
        let name = match text
            .strip_prefix(b"__")
            .and_then(|text| text.strip_suffix(b"__"))
        {
            Some(inside) => inside,
            None => text,
        };
        match name {
            b"packed" => to.packed = true,
            b"aligned" => {
                let mut align = Some(USUAL);
                let at = self.at();
                if self.accept(TokenKind::LParen) {
                    align = self.constant_expression();
                    self.expect(TokenKind::RParen, "`)`");
                }
                return self.alignment(to, align, at);
            }
            b"mode" if self.peek() == TokenKind::LParen => {
                self.advance();
                let mode = self.advance();
                let text = &self.source[mode.at as usize..][..self.length(mode) as usize];
                let text = text.strip_prefix(b"__").unwrap_or(text);
                to.mode = match text.strip_suffix(b"__").unwrap_or(text) {
                    b"QI" | b"byte" => Some((1, false)),
                    b"HI" => Some((2, false)),
                    b"SI" => Some((4, false)),
                    b"DI" | b"word" | b"pointer" | b"unwind_word" => Some((8, false)),
                    b"SF" => Some((4, true)),
                    b"DF" => Some((8, true)),
                    _ => return self.no_attribute(mode.at),
                };
                self.expect(TokenKind::RParen, "`)`");
                return;
            }
            _ if IGNORED.contains(&name) => {}
            _ => return self.no_attribute(token.at),
        }
        if self.peek() == TokenKind::LParen {
            self.skip_parentheses();
        }
    }

    fn no_attribute(&mut self, at: u32) {
        let rest = &self.source[at as usize..];
        let length = rest
            .iter()
            .take_while(|byte| crate::names::is_name(**byte))
            .count();
        let name = alloc::string::String::from_utf8_lossy(&rest[..length.min(60)]);
        let message = format!("E-code does not have the attribute `{name}`");
        self.fail(
            Rule::Unsupported,
            at,
            length.max(1) as u32,
            message,
            "".into(),
        );
    }

    /// What is in parentheses is not looked at.
    fn skip_parentheses(&mut self) {
        let mut open = 0;
        loop {
            match self.peek() {
                TokenKind::LParen => open += 1,
                TokenKind::RParen => open -= 1,
                TokenKind::End => return,
                _ => {}
            }
            self.advance();
            if open == 0 {
                return;
            }
        }
    }

    fn alignment(&mut self, to: &mut Attributes, align: Option<i64>, at: u32) {
        match align {
            Some(0) | None => {}
            Some(align) if align > 0 && align <= MOST && align & (align - 1) == 0 => {
                to.align = to.align.max(align as u32);
            }
            Some(_) => {
                let message = "E-code aligns to 1, 2, 4, 8, 16, 32 or 64 bytes".into();
                self.error(Rule::Unsupported, at, message, "");
            }
        }
    }

    /// The type with the size that `mode` asks for.
    pub(crate) fn with_mode(&mut self, ty: Type, attributes: &Attributes, at: u32) -> Type {
        let Some((size, float)) = attributes.mode else {
            return ty;
        };
        if ty == ERROR || float != self.types.is_float(ty) || !self.types.is_arithmetic(ty) {
            if ty != ERROR {
                let message = "this mode does not fit the type".into();
                self.error(Rule::BadType, at, message, "");
            }
            return ERROR;
        }
        let plain = match (size, float, self.types.is_unsigned(ty)) {
            (4, true, _) => FLOAT,
            (_, true, _) => DOUBLE,
            (1, _, false) => SCHAR,
            (1, ..) => UCHAR,
            (2, _, false) => SHORT,
            (2, ..) => USHORT,
            (4, _, false) => INT,
            (4, ..) => UINT,
            (_, _, false) => LONG,
            _ => ULONG,
        };
        plain.with(ty.qualifiers())
    }

    /// What `#pragma pack` says here, or 0.
    pub(crate) fn pack(&self) -> u32 {
        let packs = &self.tokens.packs;
        let index = packs.partition_point(|(from, _)| *from as usize <= self.pos);
        index
            .checked_sub(1)
            .map_or(0, |index| packs[index].1.into())
    }
}
