//! Numbers, strings and character constants.

use super::{Lexer, Literal};
use crate::diagnostics::Rule;
use crate::names::is_name;

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
        let text = &self.source[start..end];
        let float = text.contains(&b'.') || !hex && text.iter().any(|b| b | 0x20 == b'e');
        let zero = Literal::Int {
            value: 0,
            decimal: true,
            unsigned: false,
            long: false,
            char: false,
        };
        if hex && (float || text.iter().any(|b| b | 0x20 == b'p')) {
            self.error(
                Rule::Number,
                start,
                text.len(),
                "hexadecimal floating constants are not supported",
                "write it in decimal",
            );
            return zero;
        }
        if float {
            let single = text.last().is_some_and(|b| b | 0x20 == b'f');
            let digits = if single {
                &text[..text.len() - 1]
            } else {
                text
            };
            let value: Option<f64> = core::str::from_utf8(digits).ok().and_then(|digits| {
                // A float is rounded once, from its digits.
                if single {
                    digits.parse::<f32>().ok().map(f64::from)
                } else {
                    digits.parse().ok()
                }
            });
            if let Some(value) = value {
                return Literal::Float { value, single };
            }
            self.error(
                Rule::Number,
                start,
                text.len(),
                "this is not a number",
                "floating constants look like 1.5, 2e-3 or 1.5f",
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
            char: false,
        }
    }

    /// One byte of a string or character constant; what it stands for.
    fn escaped(&mut self) -> Option<u8> {
        let start = self.at;
        let byte = *self.source.get(start)?;
        self.at += 1;
        if byte != b'\\' {
            return Some(byte);
        }
        let byte = *self.source.get(self.at)?;
        self.at += 1;
        Some(match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'\\' | b'\'' | b'"' | b'?' => byte,
            b'0'..=b'7' => {
                let mut value = u32::from(byte - b'0');
                for _ in 0..2 {
                    if let digit @ b'0'..=b'7' = self.peek(0) {
                        value = value * 8 + u32::from(digit - b'0');
                        self.at += 1;
                    }
                }
                value as u8
            }
            b'x' if self.peek(0).is_ascii_hexdigit() => {
                let mut value = 0u32;
                while let Some(digit) = (self.peek(0) as char).to_digit(16) {
                    value = value << 4 & 0xff0 | digit;
                    self.at += 1;
                }
                value as u8
            }
            _ => {
                self.error(
                    Rule::Escape,
                    start,
                    2,
                    "C has no such escape sequence",
                    "write \\\\ for a backslash",
                );
                byte
            }
        })
    }

    pub(super) fn text(&mut self) -> u32 {
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
                _ => {
                    let byte = self.escaped().unwrap_or(0);
                    self.out.bytes.push(byte);
                }
            }
        }
        self.out.texts.push((first, self.out.bytes.len() as u32));
        self.out.texts.len() as u32 - 1
    }

    pub(super) fn character(&mut self) -> u64 {
        let start = self.at;
        self.at += 1;
        let empty = self.peek(0) == b'\'';
        let value = if matches!(self.peek(0), 0 | b'\n') {
            None
        } else {
            self.escaped()
        };
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
        value.unwrap_or(0) as i8 as i64 as u64
    }
}
