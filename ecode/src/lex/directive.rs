//! Directives: what follows a `#` at the beginning of a line.
//!
//! Invariant: whatever a directive says, reading goes on behind its line; a group that is left out
//! is read for directives only.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Lexer;
use crate::diagnostics::Rule;
use crate::names::{self, Name, Names};
use crate::token::{Token, TokenKind};

/// An `#if` that is open.
#[derive(Clone, Copy, Debug)]
struct Group {
    at: u32,
    /// One of its parts was taken.
    taken: bool,
    /// `#else` has been there.
    last: bool,
}

/// What the preprocessor knows beside macros.
#[derive(Debug, Default)]
pub(super) struct Preprocessor<'a> {
    groups: Vec<Group>,
    /// Sources that include what is being read: their text, where they go on, and their groups.
    including: Vec<(&'a [u8], usize, usize)>,
    included: u32,
    /// Where the source that is compiled includes what is being read.
    outermost: u32,
    /// Values of `#pragma pack(push)`, and the present one.
    packs: Vec<u8>,
    pack: u8,
    /// Macros of `#pragma push_macro`.
    pushed: Vec<(Name, u32)>,
    /// Where `#line` was last, and the number that it gave to the next line.
    line: (usize, u32),
    pub in_directive: bool,
    /// A header is included, and the source was given alone.
    pub wants_headers: bool,
}

/// Most sources that include each other.
const INCLUDES: usize = 64;
/// Most inclusions in all.
const INCLUDED: u32 = 4096;

/// Most macros that `#pragma push_macro` keeps: each `pop_macro` looks at all of them.
const PUSHED: usize = 256;

/// Pragmas that cannot change what a program means here: two words, or one and whatever follows.
const IGNORED: &[(&str, &str)] = &[
    ("STDC", ""),
    ("message", ""),
    ("region", ""),
    ("endregion", ""),
    ("mark", ""),
    ("omp", ""),
    ("acc", ""),
    ("unused", ""),
    ("ident", ""),
    ("warning", ""),
    ("GCC", "diagnostic"),
    ("GCC", "optimize"),
    ("GCC", "push_options"),
    ("GCC", "pop_options"),
    ("GCC", "reset_options"),
    ("GCC", "unroll"),
    ("GCC", "ivdep"),
    ("GCC", "system_header"),
    ("GCC", "warning"),
    ("GCC", "poison"),
    ("GCC", "dependency"),
    ("clang", "diagnostic"),
    ("clang", "loop"),
];

impl<'a> Lexer<'a> {
    /// The end of the line that a directive is on, lines that are continued and comments included.
    fn directive_end(&self) -> usize {
        let mut at = self.at;
        let mut quote = 0;
        while let Some(&byte) = self.source.get(at) {
            let next = self.source.get(at + 1).copied().unwrap_or(0);
            match (byte, next) {
                (b'\n', _) => break,
                (b'\\', b'\r') => at += 3,
                (b'\\', _) => at += 2,
                (b'"' | b'\'', _) if quote == 0 || quote == byte => {
                    quote ^= byte;
                    at += 1;
                }
                (b'/', b'*') if quote == 0 => {
                    let rest = &self.source[at + 2..];
                    let length = rest.windows(2).position(|pair| pair == b"*/");
                    at += length.map_or(rest.len() + 2, |length| length + 4);
                }
                (b'/', b'/') if quote == 0 => {
                    let rest = &self.source[at..];
                    at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                _ => at += 1,
            }
        }
        at.min(self.source.len())
    }

    /// A directive, whose `#` has been read.
    pub(super) fn directive(&mut self, at: u32) {
        let end = self.directive_end();
        let file = core::mem::replace(&mut self.source, &self.whole[..end]);
        self.state.in_directive = true;
        let skip = self.directive_line(at);
        self.state.in_directive = false;
        // An included file is read first.
        if self
            .state
            .including
            .last()
            .is_some_and(|(_, next, _)| *next == usize::MAX)
        {
            if let Some(entry) = self.state.including.last_mut() {
                (entry.0, entry.1) = (file, end);
            }
            return;
        }
        self.source = file;
        self.at = end;
        self.line_start = true;
        if skip {
            self.skip_group();
        }
    }

    /// All of a directive's line but `#`. True if what follows is left out.
    fn directive_line(&mut self, at: u32) -> bool {
        let word = self.token();
        let name = Name(word.value);
        match (word.kind, Names::token(name)) {
            (TokenKind::End, _) => {}
            (TokenKind::Name, TokenKind::If) => {
                let holds = self.condition(at);
                return self.open_group(at, holds);
            }
            (TokenKind::Name, TokenKind::Else) => return self.next_group(at, true),
            (TokenKind::Number, _) => self.line_directive(word),
            (TokenKind::Name, _) => match name {
                names::IFDEF | names::IFNDEF => {
                    let token = self.macro_name();
                    let known = token.is_some_and(|name| self.names.get(name).macro_ != 0);
                    return self.open_group(at, known == (name == names::IFDEF));
                }
                names::ELIF => return self.next_group(at, false),
                names::ENDIF => {
                    if self.state.groups.len() <= self.own_groups() {
                        self.unopened(at);
                    } else {
                        self.state.groups.pop();
                    }
                }
                names::DEFINE => self.define(),
                names::UNDEF => {
                    if let Some(name) = self.macro_name() {
                        self.names.get_mut(name).macro_ = 0;
                    }
                }
                names::INCLUDE => self.include(at),
                names::PRAGMA => self.pragma(at),
                names::LINE => {
                    let number = self.token();
                    self.line_directive(number);
                }
                names::ERROR => {
                    let text = self.rest_of_line();
                    let message = format!("#error {text}");
                    let length = self.source.len() - at as usize;
                    self.error(Rule::Directive, at as usize, length, &message, "");
                }
                names::WARNING | names::IDENT => {}
                _ => self.unknown_directive(at),
            },
            _ => self.unknown_directive(at),
        }
        false
    }

    fn unknown_directive(&mut self, at: u32) {
        let length = self.source.len() - at as usize;
        let help =
            "there are #define, #undef, #if and its kin, #include, #pragma, #line and #error";
        self.error(
            Rule::Directive,
            at as usize,
            length,
            "E-code has no such directive",
            help,
        );
    }

    fn rest_of_line(&self) -> String {
        let rest = &self.source[self.at.min(self.source.len())..];
        String::from_utf8_lossy(&rest[..rest.len().min(200)])
            .trim()
            .into()
    }

    /// The name behind `#define`, `#undef`, `#ifdef`.
    pub(super) fn macro_name(&mut self) -> Option<Name> {
        let token = self.token();
        if token.kind == TokenKind::Name && Name(token.value) != names::DEFINED {
            return Some(Name(token.value));
        }
        self.error(
            Rule::Directive,
            token.at as usize,
            1,
            "a macro has a name",
            "",
        );
        None
    }

    // Groups

    /// How many groups are those of sources that include this one.
    fn own_groups(&self) -> usize {
        self.state
            .including
            .last()
            .map_or(0, |(_, _, groups)| *groups)
    }

    fn open_group(&mut self, at: u32, taken: bool) -> bool {
        if self.state.groups.len() >= self.limits.nesting as usize {
            self.report.limit(at, "levels of nesting", "nesting");
        }
        self.state.groups.push(Group {
            at,
            taken,
            last: false,
        });
        !taken
    }

    /// `#elif` and `#else`. True if what follows is left out.
    fn next_group(&mut self, at: u32, last: bool) -> bool {
        let own = self.own_groups();
        let count = self.state.groups.len();
        let Some(group) = self
            .state
            .groups
            .last_mut()
            .filter(|g| count > own && !g.last)
        else {
            self.unopened(at);
            return false;
        };
        let done = group.taken;
        group.last = last;
        let holds = !done && (last || self.condition(at));
        if let Some(group) = self.state.groups.last_mut() {
            group.taken |= holds;
        }
        !holds
    }

    fn unopened(&mut self, at: u32) {
        let message = "there is no #if that this belongs to";
        self.error(Rule::Directive, at as usize, 1, message, "");
    }

    /// Skips lines until a part of the innermost group is to be read, or its end.
    fn skip_group(&mut self) {
        let mut inner = 0u32;
        while !self.report.full() {
            self.skip();
            if self.at >= self.source.len() {
                return;
            }
            if !(self.line_start
                && (self.peek(0) == b'#' || self.source[self.at..].starts_with(b"%:")))
            {
                self.at = self.directive_end();
                continue;
            }
            let at = self.at as u32;
            self.at += if self.peek(0) == b'#' { 1 } else { 2 };
            self.line_start = false;
            let end = self.directive_end();
            let file = core::mem::replace(&mut self.source, &self.whole[..end]);
            self.skip();
            let is_word = self.source.get(self.at).is_some_and(u8::is_ascii_lowercase);
            let name = is_word.then(|| self.names.intern(self.whole, self.at));
            let mut skip = true;
            if let Some((name, behind)) = name {
                self.at = behind;
                match (name, Names::token(name)) {
                    (_, TokenKind::If) | (names::IFDEF | names::IFNDEF, _) => inner += 1,
                    (names::ENDIF, _) if inner > 0 => inner -= 1,
                    (names::ENDIF, _) => {
                        self.state.groups.pop();
                        skip = false;
                    }
                    (_, TokenKind::Else) | (names::ELIF, _) if inner == 0 => {
                        self.state.in_directive = true;
                        skip = self.next_group(at, Names::token(name) == TokenKind::Else);
                        self.state.in_directive = false;
                    }
                    _ => {}
                }
            }
            self.source = file;
            self.at = end;
            self.line_start = true;
            if !skip {
                return;
            }
        }
    }

    /// At the end of a source: goes back to the one that included it, if there is one.
    pub(super) fn end_of_file(&mut self) -> bool {
        let own = self.own_groups();
        if let Some(group) = self.state.groups.get(own) {
            let at = group.at as usize;
            self.error(
                Rule::Directive,
                at,
                1,
                "this #if does not end",
                "write #endif behind it",
            );
        }
        self.state.groups.truncate(own);
        let Some((source, at, _)) = self.state.including.pop() else {
            return false;
        };
        (self.source, self.at, self.line_start) = (source, at, true);
        true
    }

    // The other directives

    fn include(&mut self, at: u32) {
        let text = self.rest_of_line();
        let name = match (text.strip_prefix('<'), text.strip_prefix('"')) {
            (Some(rest), _) => rest.split('>').next(),
            (_, Some(rest)) => rest.split('"').next(),
            _ => None,
        };
        let length = self.source.len() - at as usize;
        let Some(name) = name else {
            let help = "write the name in quotes or angle brackets";
            self.error(
                Rule::Directive,
                at as usize,
                length,
                "this names no header",
                help,
            );
            return;
        };
        if self.files.is_empty() {
            self.state.wants_headers = true;
            return;
        }
        let found = self.files.iter().skip(1).position(|file| file.name == name);
        let Some(index) = found else {
            let message = format!("there is no header `{name}`");
            let help = "headers are given with `Compiler::header`; or declare what you use";
            self.error(Rule::Directive, at as usize, length, &message, help);
            return;
        };
        self.state.included += 1;
        if self.state.included > INCLUDED || self.state.including.len() >= INCLUDES {
            self.report.limit(at, "headers in headers", "");
            return;
        }
        if self.state.including.is_empty() {
            self.state.outermost = at;
        }
        let file = &mut self.files[index + 1];
        if file.once {
            return;
        }
        file.included = file.included.or(Some(self.state.outermost));
        self.at = file.start as usize;
        self.source = &self.whole[..file.end as usize];
        self.line_start = true;
        // Where it goes on is known to `directive`.
        let groups = self.state.groups.len();
        self.state.including.push((self.source, usize::MAX, groups));
    }

    /// `#line 12 "name"`, and the same without a word: only `__LINE__` looks at it.
    fn line_directive(&mut self, number: Token) {
        let text = self
            .source
            .get(number.at as usize..self.at)
            .unwrap_or_default();
        let line = core::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok());
        match line {
            Some(line) if number.kind == TokenKind::Number => {
                self.state.line = (self.source.len(), line)
            }
            _ => self.error(
                Rule::Directive,
                number.at as usize,
                1,
                "a line has a number",
                "",
            ),
        }
    }

    /// The number that a place's line has.
    pub(super) fn line_of(&mut self, at: u32) -> u32 {
        let (from, line) = self.state.line;
        let inside = |file: &&super::File| (file.start..=file.end).contains(&at);
        let start = self
            .files
            .iter()
            .find(inside)
            .map_or(0, |file| file.start as usize);
        let (from, line) = match line {
            line if line > 0 && from >= start && from <= at as usize => {
                (from, line.wrapping_sub(1))
            }
            _ => (start, 1),
        };
        let text = self.whole.get(from..at as usize).unwrap_or_default();
        // The work is limited as that of macros is.
        self.replaced += text.len() / 64;
        line.wrapping_add(text.iter().filter(|b| **b == b'\n').count() as u32)
    }

    fn pragma(&mut self, at: u32) {
        let text = self.rest_of_line();
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let second = words.next().unwrap_or_default();
        let ignored =
            |&(one, two): &(&str, &str)| one == first && (two.is_empty() || two == second);
        if first.is_empty() || IGNORED.iter().any(ignored) {
            return;
        }
        let name = text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next();
        let done = match name.unwrap_or_default() {
            "once" => {
                let place = self.at as u32;
                let file = self.files.iter_mut().skip(1);
                for file in file.filter(|file| (file.start..file.end).contains(&place)) {
                    file.once = true;
                }
                true
            }
            "pack" => self.pragma_pack(&text["pack".len()..]),
            word @ ("push_macro" | "pop_macro") => self.pragma_macro(&text, word == "push_macro"),
            _ => false,
        };
        if !done {
            let message = format!("E-code does not know the pragma `{text}`");
            let length = self.source.len() - at as usize;
            let help = "remove it if it does not change what the program means";
            self.error(Rule::Directive, at as usize, length, &message, help);
        }
    }

    /// `(1)`, `()`, `(push)`, `(push, 1)`, `(pop)`.
    fn pragma_pack(&mut self, text: &str) -> bool {
        let inside = text
            .trim()
            .strip_prefix('(')
            .and_then(|text| text.split_once(')'));
        let Some((inside, _)) = inside else {
            return false;
        };
        for (index, part) in inside.split(',').enumerate() {
            match (part.trim(), index) {
                ("", 0) => self.state.pack = 0,
                ("push", 0) if self.state.packs.len() < 256 => {
                    self.state.packs.push(self.state.pack)
                }
                ("pop", 0) => match self.state.packs.pop() {
                    Some(pack) => self.state.pack = pack,
                    None => return false,
                },
                (number, _) => match number.parse() {
                    Ok(pack @ (0 | 1 | 2 | 4 | 8 | 16)) => self.state.pack = pack,
                    _ => return false,
                },
            }
        }
        let from = self.out.list.len() as u32;
        self.out.packs.push((from, self.state.pack));
        true
    }

    /// `push_macro("X")` and `pop_macro("X")`.
    fn pragma_macro(&mut self, text: &str, push: bool) -> bool {
        let Some(name) = text
            .split('"')
            .nth(1)
            .filter(|name| name.bytes().all(names::is_name))
        else {
            return false;
        };
        let name = self.names.make(self.whole, name.as_bytes());
        if push {
            if self.state.pushed.len() >= PUSHED {
                self.report
                    .limit(self.at as u32, "macros of push_macro", "");
                return true;
            }
            let entry = (name, self.names.get(name).macro_);
            self.state.pushed.push(entry);
            return true;
        }
        if let Some(index) = self
            .state
            .pushed
            .iter()
            .rposition(|(other, _)| *other == name)
        {
            let (_, value) = self.state.pushed.remove(index);
            self.names.get_mut(name).macro_ = value;
        }
        true
    }
}
