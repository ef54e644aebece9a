//! Source text to tokens, all at once, with object-like macros replaced.
//!
//! Invariant: the list of tokens ends with [`Tok::End`], and each token's position lies in the source.

mod literal;

use alloc::string::String;
use alloc::vec::Vec;

use crate::diagnostics::Rule;
use crate::limits::Limits;
use crate::names::{self, Name, Names, is_name};
use crate::report::Report;
use crate::token::{Tok, Token};

/// A number as written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Literal {
    /// Value, written in decimal, suffix u, suffix l.
    Int {
        value: u64,
        decimal: bool,
        unsigned: bool,
        long: bool,
        char: bool,
    },
    /// Value, suffix f.
    Float { value: f64, single: bool },
}

/// What the lexer produces.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub list: Vec<Token>,
    pub literals: Vec<Literal>,
    /// Strings: start and end in `bytes`, without the terminating NUL.
    pub texts: Vec<(u32, u32)>,
    pub bytes: Vec<u8>,
    macro_tokens: Vec<Token>,
    macros: Vec<(u32, u32)>,
}

struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    names: &'a mut Names,
    out: &'a mut Tokens,
    report: &'a mut Report,
    limit: usize,
    /// Tokens of macros that were looked at.
    replaced: usize,
    /// Only blanks so far on this line.
    line_start: bool,
}

/// Deepest replacement of macros within macros.
const MACRO_DEPTH: usize = 32;

/// Makes the tokens of `source`.
pub(crate) fn lex(
    source: &[u8],
    names: &mut Names,
    out: &mut Tokens,
    report: &mut Report,
    limits: &Limits,
) {
    out.list.clear();
    out.literals.clear();
    out.texts.clear();
    out.bytes.clear();
    out.macro_tokens.clear();
    out.macros.clear();
    out.list.reserve(source.len() / 4 + 16);
    let limit = limits.tokens as usize;
    let mut lexer = Lexer {
        source,
        at: 0,
        names,
        out,
        report,
        limit,
        replaced: 0,
        line_start: true,
    };
    lexer.run();
    out.list.push(Token {
        kind: Tok::End,
        at: source.len() as u32,
        value: 0,
    });
}

impl Lexer<'_> {
    fn run(&mut self) {
        while !self.report.full() {
            let token = self.token();
            match token.kind {
                Tok::End => return,
                Tok::Bad => {}
                Tok::Hash => self.directive(token.at),
                Tok::Name => {
                    let name = Name(token.value);
                    if self.names.get(name).macro_ != 0 {
                        self.replace(name, token.at, 0);
                    } else {
                        let kind = Names::token(name);
                        self.out.list.push(Token { kind, ..token });
                    }
                }
                _ => self.out.list.push(token),
            }
            if self.out.list.len() > self.limit {
                self.report.limit(token.at, "tokens");
                return;
            }
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.source.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error(&mut self, rule: Rule, at: usize, length: usize, message: &str, help: &str) {
        self.report.error(
            rule,
            at as u32,
            length as u32,
            String::from(message),
            String::from(help),
        );
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            match self.peek(0) {
                b' ' | b'\t' | b'\r' | 0x0c | 0x0b => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.line_start = true;
                }
                b'\\' if self.peek(1) == b'\n' => self.at += 2,
                b'/' if self.peek(1) == b'/' => {
                    let rest = &self.source[self.at..];
                    self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                b'/' if self.peek(1) == b'*' => {
                    let start = self.at;
                    let rest = &self.source[self.at + 2..];
                    match rest.windows(2).position(|pair| pair == b"*/") {
                        Some(end) => {
                            self.line_start |= rest[..end].contains(&b'\n');
                            self.at += end + 4;
                        }
                        None => {
                            self.at = self.source.len();
                            self.error(
                                Rule::Unterminated,
                                start,
                                2,
                                "this comment does not end",
                                "write */ behind it",
                            );
                        }
                    }
                }
                _ => return,
            }
        }
    }

    /// The next token as written, before macros and keywords.
    fn token(&mut self) -> Token {
        self.skip();
        let start = self.at;
        let first_of_line = core::mem::replace(&mut self.line_start, false);
        let Some(&byte) = self.source.get(start) else {
            return Token {
                kind: Tok::End,
                at: start as u32,
                value: 0,
            };
        };
        let token = |kind, value| Token {
            kind,
            at: start as u32,
            value,
        };
        if is_name(byte) && !byte.is_ascii_digit() {
            let (name, end) = self.names.intern(self.source, start);
            self.at = end;
            if self.names.crowded {
                self.report.limit(start as u32, "names that look alike");
            }
            return token(Tok::Name, name.0);
        }
        if byte.is_ascii_digit() || byte == b'.' && self.peek(1).is_ascii_digit() {
            let literal = self.number();
            self.out.literals.push(literal);
            return token(Tok::Number, self.out.literals.len() as u32 - 1);
        }
        if byte == b'"' {
            return token(Tok::Text, self.text());
        }
        if byte == b'\'' {
            let value = self.character();
            let char = true;
            self.out.literals.push(Literal::Int {
                value,
                decimal: true,
                unsigned: false,
                long: false,
                char,
            });
            return token(Tok::Number, self.out.literals.len() as u32 - 1);
        }
        if byte == b'#' && first_of_line {
            self.at += 1;
            return token(Tok::Hash, 0);
        }
        let (kind, length) = punctuator(byte, self.peek(1), self.peek(2));
        if kind == Tok::Bad {
            let length = self.source[start..]
                .iter()
                .take_while(|b| **b >= 0x80)
                .count()
                .max(1);
            self.at += length;
            self.error(
                Rule::Character,
                start,
                length,
                "no token begins with this character",
                "remove it",
            );
        } else {
            self.at += length;
        }
        token(kind, 0)
    }

    /// Puts the tokens of a macro in place of its name.
    fn replace(&mut self, name: Name, at: u32, depth: usize) {
        let index = self.names.get(name).macro_;
        let Some(&(start, end)) = (index as usize)
            .checked_sub(1)
            .and_then(|i| self.out.macros.get(i))
        else {
            return;
        };
        // Macros that come to nothing cost time, too.
        self.replaced += 1 + (end - start) as usize;
        if depth >= MACRO_DEPTH || self.replaced > self.limit {
            self.report.limit(at, "nested macros");
            return;
        }
        self.names.get_mut(name).macro_ = 0; // a macro is not replaced within itself
        for index in start..end {
            let token = self.out.macro_tokens[index as usize];
            let inner = Name(token.value);
            if token.kind == Tok::Name && self.names.get(inner).macro_ != 0 {
                self.replace(inner, at, depth + 1);
            } else {
                let kind = if token.kind == Tok::Name {
                    Names::token(inner)
                } else {
                    token.kind
                };
                self.out.list.push(Token {
                    kind,
                    at,
                    value: token.value,
                });
            }
            if self.report.full() {
                break;
            }
        }
        self.names.get_mut(name).macro_ = index;
    }

    /// What follows a `#` at the beginning of a line.
    fn directive(&mut self, at: u32) {
        let rest = &self.source[self.at..];
        let mut end = self.at;
        for (index, byte) in rest.iter().enumerate() {
            if *byte == b'\n' && (index == 0 || rest[index - 1] != b'\\') {
                break;
            }
            end = self.at + index + 1;
        }
        let word = self.token();
        let name = Name(word.value);
        match word.kind {
            Tok::Name if name == names::DEFINE => self.define(end),
            Tok::Name if name == names::UNDEF => {
                let token = self.token();
                if token.kind == Tok::Name && (token.at as usize) < end {
                    self.names.get_mut(Name(token.value)).macro_ = 0;
                }
            }
            // Behind a lone `#` the name is the next line's.
            Tok::Name if name == names::INCLUDE && self.at <= end => {
                let header = core::str::from_utf8(&self.source[self.at..end])
                    .unwrap_or("")
                    .trim();
                if !matches!(header, "<stddef.h>" | "<stdint.h>" | "<stdbool.h>") {
                    let message = "E-code has no header files";
                    let help = "declare what you use; the names of stddef.h, stdint.h and stdbool.h are known";
                    self.error(
                        Rule::Directive,
                        at as usize,
                        end - at as usize,
                        message,
                        help,
                    );
                }
            }
            Tok::Name if name == names::PRAGMA => {}
            _ => {
                let help = "there is only #define NAME TOKENS, #undef, #pragma (ignored) and #include of stddef.h, stdint.h and stdbool.h";
                self.error(
                    Rule::Directive,
                    at as usize,
                    end - at as usize,
                    "E-code has no such directive",
                    help,
                );
            }
        }
        self.at = end.max(self.at.min(end));
    }

    fn define(&mut self, end: usize) {
        let name = self.token();
        if name.kind != Tok::Name || name.at as usize >= end {
            self.error(
                Rule::Directive,
                name.at as usize,
                1,
                "a macro has a name",
                "",
            );
            return;
        }
        if self.peek(0) == b'(' && self.at < end {
            let help = "write a function (static inline), or an object-like macro";
            self.error(
                Rule::Directive,
                name.at as usize,
                1,
                "E-code has no macros with parameters",
                help,
            );
            return;
        }
        let start = self.out.macro_tokens.len() as u32;
        loop {
            let before = self.at;
            self.skip();
            if self.at >= end {
                self.at = before;
                break;
            }
            let token = self.token();
            if !matches!(token.kind, Tok::Hash | Tok::Bad | Tok::End) {
                self.out.macro_tokens.push(token);
            }
        }
        self.line_start = true;
        self.out
            .macros
            .push((start, self.out.macro_tokens.len() as u32));
        self.names.get_mut(Name(name.value)).macro_ = self.out.macros.len() as u32;
    }
}

/// The punctuator that begins with these three bytes, and its length.
#[inline]
fn punctuator(a: u8, b: u8, c: u8) -> (Tok, usize) {
    use Tok::*;
    match (a, b, c) {
        (b'<', b'<', b'=') => (ShlAssign, 3),
        (b'>', b'>', b'=') => (ShrAssign, 3),
        (b'.', b'.', b'.') => (Ellipsis, 3),
        (b'-', b'>', _) => (Arrow, 2),
        (b'+', b'+', _) => (PlusPlus, 2),
        (b'-', b'-', _) => (MinusMinus, 2),
        (b'<', b'<', _) => (Shl, 2),
        (b'>', b'>', _) => (Shr, 2),
        (b'<', b'=', _) => (LessEqual, 2),
        (b'>', b'=', _) => (GreaterEqual, 2),
        (b'=', b'=', _) => (Equal, 2),
        (b'!', b'=', _) => (NotEqual, 2),
        (b'&', b'&', _) => (AndAnd, 2),
        (b'|', b'|', _) => (OrOr, 2),
        (b'*', b'=', _) => (StarAssign, 2),
        (b'/', b'=', _) => (SlashAssign, 2),
        (b'%', b'=', _) => (PercentAssign, 2),
        (b'+', b'=', _) => (PlusAssign, 2),
        (b'-', b'=', _) => (MinusAssign, 2),
        (b'&', b'=', _) => (AmpAssign, 2),
        (b'^', b'=', _) => (CaretAssign, 2),
        (b'|', b'=', _) => (PipeAssign, 2),
        _ => (single(a), 1),
    }
}

fn single(byte: u8) -> Tok {
    use Tok::*;
    match byte {
        b'(' => LParen,
        b')' => RParen,
        b'{' => LBrace,
        b'}' => RBrace,
        b'[' => LBracket,
        b']' => RBracket,
        b';' => Semi,
        b',' => Comma,
        b':' => Colon,
        b'?' => Question,
        b'.' => Dot,
        b'~' => Tilde,
        b'!' => Bang,
        b'*' => Star,
        b'/' => Slash,
        b'%' => Percent,
        b'+' => Plus,
        b'-' => Minus,
        b'<' => Less,
        b'>' => Greater,
        b'&' => Amp,
        b'^' => Caret,
        b'|' => Pipe,
        b'=' => Assign,
        _ => Bad,
    }
}
