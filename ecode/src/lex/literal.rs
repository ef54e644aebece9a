//! Numbers, strings and character constants.

use super::{Lexer, Literal, Text, TextKind};
use crate::diagnostics::Rule;
use crate::float;
use crate::names::is_name;
use crate::token::{Token, TokenKind};
use crate::types::{INT, Type, UINT, USHORT};

impl Lexer<'_> {
    pub(super) fn number(&mut self) -> Literal {
        let start = self.at;
        let hex = self.peek(0) == b'0' && self.peek(1) | 0x20 == b'x';
        let mut end = start;
        while let Some(&byte) = self.source.get(end) {
            let exponent = matches!(byte | 0x20, b'e' | b'p') && !(hex && byte | 0x20 == b'e');
            end += if exponent && matches!(self.source.get(end + 1), Some(b'+' | b'-')) {
                2
            } else {
                1
            };
            if !is_name(byte) && byte != b'.' {
                end -= 1;
                break;
            }
        }
        self.at = end;
        self.number_of(&self.source[start..end], start)
    }

    /// The number that a text is, for errors at `start`.
    pub(super) fn number_of(&mut self, text: &[u8], start: usize) -> Literal {
        let hex = matches!(text, [b'0', b'x' | b'X', ..]);
        let float = text.contains(&b'.') || !hex && text.iter().any(|b| b | 0x20 == b'e');
        let zero = Literal::Int {
            value: 0,
            decimal: true,
            unsigned: false,
            long: false,
            ty: None,
        };
        if hex && (float || text.iter().any(|b| b | 0x20 == b'p')) {
            if let Some(literal) = hexadecimal(text) {
                return literal;
            }
            let message = "this is not a number";
            let help = "floating constants look like 1.5, 2e-3, 1.5f or 0x1.8p3";
            self.error(Rule::Number, start, text.len(), message, help);
            return zero;
        }
        if float {
            if text.last().is_some_and(|b| b | 0x20 == b'l') {
                let message = "E-code does not have long double";
                self.error(
                    Rule::Unsupported,
                    start,
                    text.len(),
                    message,
                    "leave out the suffix",
                );
                return zero;
            }
            let single = text.last().is_some_and(|b| b | 0x20 == b'f');
            let digits = if single {
                &text[..text.len() - 1]
            } else {
                text
            };
            let digits = core::str::from_utf8(digits).ok();
            if let Some(bits) = digits.and_then(|digits| float::decimal(digits, single)) {
                return Literal::Float { bits, single };
            }
            self.error(
                Rule::Number,
                start,
                text.len(),
                "this is not a number",
                "floating constants look like 1.5, 2e-3, 1.5f or 0x1.8p3",
            );
            return zero;
        }
        let (radix, digits) = match text {
            [b'0', b'x' | b'X', rest @ ..] => (16, rest),
            [b'0', b'b' | b'B', rest @ ..] => (2, rest),
            [b'0', _, ..] => (8, text),
            _ => (10, text),
        };
        let length = digits
            .iter()
            .take_while(|b| (**b as char).is_digit(radix))
            .count();
        let (unsigned, long) = match &digits[length..] {
            b"" => (false, false),
            b"u" | b"U" => (true, false),
            b"l" | b"L" | b"ll" | b"LL" => (false, true),
            b"ul" | b"uL" | b"Ul" | b"UL" | b"lu" | b"lU" | b"Lu" | b"LU" | b"ull" | b"uLL"
            | b"Ull" | b"ULL" | b"llu" | b"LLu" | b"llU" | b"LLU" => (true, true),
            _ => {
                self.error(
                    Rule::Number,
                    start,
                    text.len(),
                    "this is not a number",
                    "a suffix is u, l, ul, ll or ull; 0 begins an octal number",
                );
                return zero;
            }
        };
        let mut value = 0u64;
        for digit in &digits[..length] {
            let digit = (*digit as char).to_digit(radix).unwrap_or(0);
            let next = value
                .checked_mul(radix.into())
                .and_then(|v| v.checked_add(digit.into()));
            let Some(next) = next else {
                self.error(
                    Rule::Number,
                    start,
                    text.len(),
                    "this number does not fit 64 bits",
                    "",
                );
                return zero;
            };
            value = next;
        }
        if length == 0 {
            self.error(
                Rule::Number,
                start,
                text.len(),
                "this number has no digits",
                "",
            );
        }
        Literal::Int {
            value,
            decimal: radix == 10,
            unsigned,
            long,
            ty: None,
        }
    }

    /// One character of a string or character constant, of which bytes behind ASCII are one each;
    /// what it stands for.
    fn escaped(&mut self) -> Option<u64> {
        let start = self.at;
        let byte = *self.source.get(start)?;
        self.at += 1;
        if byte == b'?' && self.peek(0) == b'?' && b"=/'()!<>-".contains(&self.peek(1)) {
            let help = "write \\? for one of the question marks";
            self.error(Rule::Escape, start, 3, "E-code has no trigraphs", help);
        }
        if byte != b'\\' {
            return Some(byte.into());
        }
        let byte = *self.source.get(self.at)?;
        self.at += 1;
        Some(match byte {
            b'u' | b'U' => return self.universal(start, if byte == b'u' { 4 } else { 8 }),
            b'e' | b'E' => 27, // as gcc has it
            b'n' => 10,
            b't' => 9,
            b'r' => 13,
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'\\' | b'\'' | b'"' | b'?' => byte.into(),
            b'0'..=b'7' => {
                let mut value = u64::from(byte - b'0');
                for _ in 0..2 {
                    if let digit @ b'0'..=b'7' = self.peek(0) {
                        value = value * 8 + u64::from(digit - b'0');
                        self.at += 1;
                    }
                }
                value
            }
            b'x' if self.peek(0).is_ascii_hexdigit() => {
                let mut value = 0u64;
                while let Some(digit) = (self.peek(0) as char).to_digit(16) {
                    value = value << 4 & 0xffff_ffff | u64::from(digit);
                    self.at += 1;
                }
                value
            }
            _ => {
                self.error(
                    Rule::Escape,
                    start,
                    2,
                    "C has no such escape sequence",
                    "write \\\\ for a backslash",
                );
                0
            }
        })
    }

    /// `\u` or `\U` and so many digits: the character's number, marked so that it is not taken for
    /// bytes.
    fn universal(&mut self, start: usize, digits: usize) -> Option<u64> {
        let mut value = 0;
        for _ in 0..digits {
            let Some(digit) = (self.peek(0) as char).to_digit(16) else {
                break;
            };
            value = value << 4 | digit;
            self.at += 1;
        }
        if char::from_u32(value).is_none() || self.at - start != digits + 2 {
            let message = "this is the number of no character";
            let help = "write \\u and four digits, or \\U and eight";
            self.error(Rule::Escape, start, 2, message, help);
            return Some(0);
        }
        Some(u64::from(value) | UNIVERSAL)
    }

    /// A string or character constant with a prefix, if one begins here.
    pub(super) fn prefixed(&mut self, space: bool) -> Option<Token> {
        let start = self.at;
        let (kind, length) = match (self.peek(0), self.peek(1), self.peek(2)) {
            (b'u', b'8', b'"') => (TextKind::Plain, 2),
            (b'L', b'"' | b'\'', _) => (TextKind::Wide, 1),
            (b'u', b'"' | b'\'', _) => (TextKind::Char16, 1),
            (b'U', b'"' | b'\'', _) => (TextKind::Char32, 1),
            _ => return None,
        };
        self.at += length;
        let (tok, value) = if self.peek(0) == b'"' {
            (TokenKind::Text, self.text(kind))
        } else {
            let literal = self.character(kind);
            (TokenKind::Number, self.literal(literal, start))
        };
        Some(Token {
            kind: tok,
            at: start as u32,
            value,
            space,
        })
    }

    /// A string; its number among the texts.
    pub(super) fn text(&mut self, kind: TextKind) -> u32 {
        let start = self.at;
        self.at += 1;
        let first = self.out.bytes.len() as u32;
        loop {
            match self.peek(0) {
                b'"' => {
                    self.at += 1;
                    break;
                }
                0 | b'\n' => {
                    self.error(
                        Rule::Unterminated,
                        start,
                        1,
                        "this string does not end on its line",
                        "write \" behind it",
                    );
                    break;
                }
                b'\\' if self.peek(1) == b'\n' => self.at += 2,
                _ => self.text_character(kind),
            }
        }
        let last = self.out.bytes.len() as u32;
        self.out.texts.push(Text {
            first,
            last,
            kind,
            spot: (start as u32, self.at as u32),
        });
        self.out.texts.len() as u32 - 1
    }

    fn text_character(&mut self, kind: TextKind) {
        let value = match kind {
            TextKind::Plain => self.escaped(),
            _ => self.wide_character(),
        };
        let value = value.unwrap_or(0);
        let code = value as u32;
        let bytes = &mut self.out.bytes;
        match (kind, char::from_u32(code)) {
            (TextKind::Plain, Some(character)) if value & UNIVERSAL != 0 => {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            (TextKind::Plain, _) => bytes.push(code as u8),
            (TextKind::Char16, Some(character)) if code > 0xffff => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    bytes.extend_from_slice(&unit.to_le_bytes());
                }
            }
            (TextKind::Char16, _) => bytes.extend_from_slice(&(code as u16).to_le_bytes()),
            _ => bytes.extend_from_slice(&code.to_le_bytes()),
        }
    }

    /// One character of a wide string: the source is UTF-8.
    fn wide_character(&mut self) -> Option<u64> {
        let rest = &self.source[self.at..];
        if rest.first().is_some_and(|byte| *byte >= 0x80) {
            let character = &rest[..rest.len().min(4)];
            let valid = match core::str::from_utf8(character) {
                Ok(text) => text,
                Err(error) => core::str::from_utf8(&character[..error.valid_up_to()]).unwrap_or(""),
            };
            if let Some(character) = valid.chars().next() {
                self.at += character.len_utf8();
                return Some(character as u64);
            }
        }
        self.escaped()
    }

    pub(super) fn character(&mut self, kind: TextKind) -> Literal {
        let start = self.at;
        self.at += 1;
        let empty = self.peek(0) == b'\'';
        let value = match (self.peek(0), kind) {
            (0 | b'\n', _) => None,
            (_, TextKind::Plain) => self.escaped(),
            _ => self.wide_character(),
        };
        let value = value.filter(|value| kind != TextKind::Plain || value & UNIVERSAL == 0);
        if empty || value.is_none() || self.peek(0) != b'\'' {
            let line = &self.source[start + 1..];
            let end = line.iter().take(8).position(|b| matches!(b, b'\'' | b'\n'));
            self.at = start
                + 1
                + end
                    .map_or(1, |end| end + usize::from(line[end] == b'\''))
                    .min(line.len());
            self.error(
                Rule::Unterminated,
                start,
                self.at - start,
                "a character constant is one character in single quotes",
                "write \"…\" for a string",
            );
        } else {
            self.at += 1;
        }
        let value = value.unwrap_or(0) as u32;
        let value = match kind {
            TextKind::Plain => value as i8 as i64 as u64,
            TextKind::Wide => value as i32 as i64 as u64,
            TextKind::Char16 => value as u16 as u64,
            TextKind::Char32 => value.into(),
        };
        Literal::Int {
            value,
            decimal: true,
            unsigned: false,
            long: false,
            ty: Some(match kind {
                TextKind::Plain => INT,
                other => other.element(),
            }),
        }
    }
}

/// Marks a character that was written as `\u`.
const UNIVERSAL: u64 = 1 << 32;

impl TextKind {
    /// The type of an element.
    pub fn element(self) -> Type {
        match self {
            TextKind::Plain => crate::types::CHAR,
            TextKind::Wide => INT,
            TextKind::Char16 => USHORT,
            TextKind::Char32 => UINT,
        }
    }

    /// Its size.
    pub fn unit(self) -> u8 {
        match self {
            TextKind::Plain => 1,
            TextKind::Char16 => 2,
            TextKind::Wide | TextKind::Char32 => 4,
        }
    }
}

/// A hexadecimal floating constant: digits, a point among them, and an exponent of two.
fn hexadecimal(text: &[u8]) -> Option<Literal> {
    let text = core::str::from_utf8(text.get(2..)?).ok()?;
    let single = text.ends_with(['f', 'F']) && text.contains(['p', 'P']);
    let text = if single {
        &text[..text.len() - 1]
    } else {
        text
    };
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let mut exponent: i64 = exponent.parse::<i32>().ok()?.into();
    let (mut mantissa, mut point, mut any) = (0u64, false, false);
    for character in digits.chars() {
        if character == '.' && !point {
            point = true;
            continue;
        }
        let digit = u64::from(character.to_digit(16)?);
        any = true;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if point { 4 } else { 0 };
        } else {
            mantissa |= u64::from(digit != 0); // for rounding
            exponent += if point { 0 } else { 4 };
        }
    }
    any.then_some(())?;
    let bits = float::binary(mantissa, exponent, single);
    Some(Literal::Float { bits, single })
}
