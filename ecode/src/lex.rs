//! Source text to tokens, all at once, with the preprocessor's work done.
//!
//! Invariant: the list of tokens ends with [`TokenKind::End`], and each token's position lies in
//! the source or, behind it, in a header that it includes.

mod condition;
mod define;
mod directive;
mod literal;
mod macros;
mod predefined;
mod punctuator;

use alloc::string::String;
use alloc::vec::Vec;

use crate::diagnostics::Rule;
use crate::limits::Limits;
use crate::names::{Name, Names, is_name};
use crate::report::Report;
use crate::token::{Token, TokenKind};
use crate::types::Type;

/// A number as written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Literal {
    /// Value, written in decimal, suffix u, suffix l.
    Int {
        value: u64,
        decimal: bool,
        unsigned: bool,
        long: bool,
        /// The type, if the spelling says it: of character constants.
        ty: Option<Type>,
    },
    /// Value, suffix f.
    Float { bits: u64, single: bool },
}

/// A string: its bytes in [`Tokens::bytes`], without the terminating NUL; of wide ones in their
/// elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub first: u32,
    pub last: u32,
    /// Bytes of an element: 1, or 2 and 4 of wide strings.
    pub kind: TextKind,
    /// Where it stands in the source, or nowhere.
    pub spot: (u32, u32),
}

/// Which prefix a string has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Plain,
    Wide,
    Char16,
    Char32,
}

/// A source among those that are lexed: the host's headers lie behind the one that is compiled.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub name: String,
    pub start: u32,
    pub end: u32,
    /// It said `#pragma once`.
    pub once: bool,
    /// Where it was included first, in the source that is compiled.
    pub included: Option<u32>,
}

/// Where a number's spelling begins and ends.
#[derive(Clone, Copy, Debug)]
enum Spot {
    Source(u32, u32),
    Made(u32, u32),
}

/// What the lexer produces.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub list: Vec<Token>,
    pub literals: Vec<Literal>,
    /// How the numbers are spelled: start and end in the source, or in `spelled`.
    spots: Vec<Spot>,
    /// Spellings of numbers that macros made.
    spelled: Vec<u8>,
    pub texts: Vec<Text>,
    pub bytes: Vec<u8>,
    /// From which token on `#pragma pack` says what: alignment in bytes, or 0.
    pub packs: Vec<(u32, u8)>,
    macros: macros::Macros,
}

struct Lexer<'a> {
    /// All of the text, and that up to the end of what is being read.
    whole: &'a [u8],
    source: &'a [u8],
    at: usize,
    names: &'a mut Names,
    out: &'a mut Tokens,
    report: &'a mut Report,
    files: &'a mut [File],
    limits: &'a Limits,
    /// Tokens of macros that were looked at.
    replaced: usize,
    /// Only blanks so far on this line.
    line_start: bool,
    state: directive::Preprocessor<'a>,
}

/// Makes the tokens of `source`, whose `files` are the text to compile and the headers behind it.
/// False if a header is wanted and there is none: the source has to be lexed again, with them.
pub(crate) fn lex(
    source: &[u8],
    files: &mut [File],
    names: &mut Names,
    out: &mut Tokens,
    report: &mut Report,
    limits: &Limits,
) -> bool {
    out.list.clear();
    out.literals.clear();
    out.spots.clear();
    out.spelled.clear();
    out.texts.clear();
    out.bytes.clear();
    out.packs.clear();
    out.macros.clear();
    let length = files.first().map_or(source.len(), |file| file.end as usize);
    out.list.reserve(length / 4 + 16);
    let mut lexer = Lexer {
        whole: source,
        source: &source[..length],
        at: 0,
        names,
        out,
        report,
        files,
        limits,
        replaced: 0,
        line_start: true,
        state: directive::Preprocessor::default(),
    };
    lexer.run();
    let again = lexer.state.wants_headers;
    out.list.push(Token {
        kind: TokenKind::End,
        at: length as u32,
        value: 0,
        space: true,
    });
    !again
}

impl Lexer<'_> {
    fn run(&mut self) {
        while !self.report.full() {
            let token = self.token();
            match token.kind {
                TokenKind::End => {
                    if !self.end_of_file() {
                        return;
                    }
                }
                TokenKind::Bad => {}
                TokenKind::Hash => self.directive(token.at),
                TokenKind::Name => {
                    let name = Name(token.value);
                    if self.names.get(name).macro_ != 0 {
                        self.replace(token);
                    } else {
                        let kind = Names::token(name);
                        self.out.list.push(Token { kind, ..token });
                    }
                }
                _ => self.out.list.push(token),
            }
            if self.out.list.len() > self.limits.tokens as usize {
                self.report.limit(token.at, "tokens", "tokens");
                return;
            }
            if self.state.wants_headers {
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
                b'\\' if self.peek(1) == b'\n' => self.splice(2),
                b'\\' if self.peek(1) == b'\r' && self.peek(2) == b'\n' => self.splice(3),
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
        let before = self.at;
        self.skip();
        let start = self.at;
        let space = start != before;
        let first_of_line = core::mem::replace(&mut self.line_start, false);
        let Some(&byte) = self.source.get(start) else {
            return Token {
                kind: TokenKind::End,
                at: start as u32,
                value: 0,
                space,
            };
        };
        let token = |kind, value| Token {
            kind,
            at: start as u32,
            value,
            space,
        };
        if is_name(byte) && !byte.is_ascii_digit() {
            if matches!(byte, b'L' | b'u' | b'U')
                && let Some(token) = self.prefixed(space)
            {
                return token;
            }
            let (name, end) = self.names.intern(self.whole, start);
            self.at = end;
            if self.names.crowded {
                self.report.limit(start as u32, "names that look alike", "");
            }
            return token(TokenKind::Name, name.0);
        }
        if byte.is_ascii_digit() || byte == b'.' && self.peek(1).is_ascii_digit() {
            let literal = self.number();
            return token(TokenKind::Number, self.literal(literal, start));
        }
        if byte == b'"' {
            return token(TokenKind::Text, self.text(TextKind::Plain));
        }
        if byte == b'\'' {
            let literal = self.character(TextKind::Plain);
            return token(TokenKind::Number, self.literal(literal, start));
        }
        let (kind, length) = punctuator::punctuator(self.source, start);
        if kind == TokenKind::Hash && first_of_line {
            self.at += length;
            return token(TokenKind::Hash, 1);
        }
        let stray = matches!(kind, TokenKind::Hash | TokenKind::Paste) && !self.state.in_directive;
        if kind == TokenKind::Bad || stray {
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
        token(if stray { TokenKind::Bad } else { kind }, 0)
    }

    /// Keeps a number; which one it is.
    fn literal(&mut self, literal: Literal, start: usize) -> u32 {
        self.literal_at(literal, Spot::Source(start as u32, self.at as u32))
    }

    /// Keeps a number that is spelled so, and that the source need not have.
    fn made_literal(&mut self, literal: Literal, spelling: &[u8]) -> u32 {
        let start = self.out.spelled.len() as u32;
        self.out.spelled.extend_from_slice(spelling);
        let end = self.out.spelled.len() as u32;
        self.literal_at(literal, Spot::Made(start, end))
    }

    fn literal_at(&mut self, literal: Literal, spot: Spot) -> u32 {
        self.out.literals.push(literal);
        self.out.spots.push(spot);
        self.out.literals.len() as u32 - 1
    }

    /// A line that goes on in the next one; no token may, for all that follow are read as they
    /// stand.
    fn splice(&mut self, length: usize) {
        let before = self.at.checked_sub(1).map_or(b' ', |at| self.source[at]);
        let after = self.peek(length);
        let part = |byte: u8| is_name(byte) || b"<>=!&|+-*/%^.:#".contains(&byte);
        if part(before) && part(after) && is_name(before) == is_name(after) {
            let help = "begin the next line with a blank";
            let message = "a token cannot go on in the next line";
            self.error(Rule::Character, self.at, 1, message, help);
        }
        self.at += length;
    }
}
