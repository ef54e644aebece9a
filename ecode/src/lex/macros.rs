//! Macros: what names are replaced by.
//!
//! Tokens come from the source or from *frames*: lists that take the place of a macro's name, and
//! are read for more macros. A macro is not replaced while a frame of it is being read; its name is
//! then *painted*, and stays what it is. Invariant: each token of a macro that is looked at counts
//! in `replaced`, and so do the bytes that `#` and `##` write, before they are written: each may be
//! twice as long as the one before. The limit is that of tokens, so work and memory are bounded by
//! it.

use alloc::vec::Vec;

use super::punctuator::{punctuator, spelling};
use super::{Lexer, Spot};
use crate::diagnostics::Rule;
use crate::names::{self, Name, Names};
use crate::token::{Token, TokenKind};

/// Calls of macros within each other's arguments.
const DEPTH: u32 = 32;

/// Bytes of a text that `#` or `##` makes, which count as a token.
const BYTES: usize = 16;

/// A macro: its tokens are a range of [`Macros::tokens`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Macro {
    pub start: u32,
    pub end: u32,
    /// Number of parameters, if it is called.
    pub parameters: Option<u8>,
    /// The last parameter takes all arguments that are left.
    pub variadic: bool,
    /// `#` or `##` are in it.
    pub operators: bool,
}

/// Tokens in place of a macro's name.
#[derive(Clone, Copy, Debug)]
struct Frame {
    next: u32,
    end: u32,
    /// The tokens are those of the macro as it was defined, otherwise of [`Macros::made`].
    defined: bool,
    /// The macro, or none if this is an argument.
    name: Option<Name>,
    /// Where the name stood.
    at: u32,
    /// How long [`Macros::made`] was before.
    before: u32,
}

#[derive(Debug, Default)]
pub(super) struct Macros {
    pub tokens: Vec<Token>,
    pub list: Vec<Macro>,
    frames: Vec<Frame>,
    made: Vec<Token>,
    depth: u32,
}

impl Macros {
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.list.clear();
        self.frames.clear();
        self.made.clear();
        self.depth = 0;
    }
}

impl Lexer<'_> {
    /// Puts what becomes of a macro's name into the list of tokens.
    pub(super) fn replace(&mut self, token: Token) {
        let mut list = core::mem::take(&mut self.out.list);
        let from = list.len();
        self.expand(token, &mut list);
        for token in &mut list[from..] {
            if matches!(token.kind, TokenKind::Name | TokenKind::Painted) {
                token.kind = Names::token(Name(token.value));
            }
        }
        self.out.list = list;
    }

    /// Appends what becomes of a macro's name, with arguments from the source.
    pub(super) fn expand(&mut self, token: Token, to: &mut Vec<Token>) {
        self.name(token, 0, to);
        self.drain(0, to);
        self.out.macros.made.clear();
    }

    /// Reads the frames above the lowest `floor`.
    fn drain(&mut self, floor: usize, to: &mut Vec<Token>) {
        while self.out.macros.frames.len() > floor && !self.report.full() {
            match self.next_of_frame() {
                None => self.leave(),
                Some(token) if token.kind == TokenKind::Name => self.name(token, floor, to),
                Some(token) => to.push(token),
            }
        }
        while self.out.macros.frames.len() > floor {
            self.leave();
        }
    }

    /// The next token of the innermost frame.
    fn next_of_frame(&mut self) -> Option<Token> {
        let macros = &mut self.out.macros;
        let frame = macros.frames.last_mut()?;
        if frame.next == frame.end {
            return None;
        }
        let index = frame.next as usize;
        frame.next += 1;
        self.replaced += 1;
        Some(if frame.defined {
            Token {
                at: frame.at,
                ..macros.tokens[index]
            }
        } else {
            macros.made[index]
        })
    }

    fn leave(&mut self) {
        let macros = &mut self.out.macros;
        if let Some(frame) = macros.frames.pop() {
            macros.made.truncate(frame.before as usize);
            if let Some(name) = frame.name {
                self.names.get_mut(name).active = false;
            }
        }
    }

    /// A name, which may be a macro's: then there is a frame for it afterwards.
    fn name(&mut self, token: Token, floor: usize, to: &mut Vec<Token>) {
        let name = Name(token.value);
        let info = *self.names.get(name);
        if info.macro_ == 0 {
            return to.push(token);
        }
        if info.active {
            let kind = TokenKind::Painted;
            return to.push(Token { kind, ..token });
        }
        self.replaced += 1;
        if self.replaced > self.limits.tokens as usize || self.out.macros.frames.len() > 10_000 {
            self.report.limit(token.at, "tokens of macros", "tokens");
            return;
        }
        let index = info.macro_ as usize - 1;
        let Some(definition) = self.out.macros.list.get(index).copied() else {
            return self.predefined(name, token.at, to);
        };
        let before = self.out.macros.made.len() as u32;
        let mut frame = Frame {
            next: definition.start,
            end: definition.end,
            defined: true,
            name: Some(name),
            at: token.at,
            before,
        };
        if definition.parameters.is_some() || definition.operators {
            let mut arguments = Vec::new();
            if definition.parameters.is_some() {
                if !self.parenthesis(floor) {
                    return to.push(token);
                }
                match self.arguments(definition, floor, token.at) {
                    Some(list) => arguments = list,
                    None => return,
                }
            }
            let made = self.substitute(definition, &arguments, token);
            let macros = &mut self.out.macros;
            // Arguments may have ended frames.
            frame.before = macros.made.len() as u32;
            frame.next = frame.before;
            macros.made.extend_from_slice(&made);
            frame.end = macros.made.len() as u32;
            frame.defined = false;
        }
        self.names.get_mut(name).active = true;
        self.out.macros.frames.push(frame);
    }

    /// Whether `(` follows, which is then taken.
    fn parenthesis(&mut self, floor: usize) -> bool {
        loop {
            let macros = &self.out.macros;
            match macros.frames.last() {
                Some(frame) if macros.frames.len() > floor => {
                    if frame.next == frame.end {
                        self.leave();
                        continue;
                    }
                    let list = if frame.defined {
                        &macros.tokens
                    } else {
                        &macros.made
                    };
                    let yes = list[frame.next as usize].kind == TokenKind::LParen;
                    if yes {
                        self.next_of_frame();
                    }
                    return yes;
                }
                _ if floor > 0 => return false,
                _ => {
                    self.skip();
                    let yes = self.peek(0) == b'(' && !self.report.full();
                    self.at += usize::from(yes);
                    self.line_start &= !yes;
                    return yes;
                }
            }
        }
    }

    /// The arguments behind `(`, as they are written.
    fn arguments(&mut self, definition: Macro, floor: usize, at: u32) -> Option<Vec<Vec<Token>>> {
        let wanted = definition.parameters.unwrap_or(0) as usize;
        let mut list: Vec<Vec<Token>> = Vec::new();
        let (mut argument, mut open) = (Vec::new(), 0u32);
        loop {
            let token = if self.out.macros.frames.len() > floor {
                match self.next_of_frame() {
                    Some(token) => token,
                    None => {
                        self.leave();
                        continue;
                    }
                }
            } else if floor > 0 {
                break;
            } else {
                self.token()
            };
            let all = definition.variadic && list.len() + 1 >= wanted;
            match token.kind {
                TokenKind::End | TokenKind::Hash => break,
                TokenKind::Bad => continue,
                TokenKind::LParen => open += 1,
                TokenKind::RParen if open == 0 => {
                    list.push(argument);
                    if wanted == 0 && list.len() == 1 && list[0].is_empty() {
                        list.clear();
                    }
                    // What `...` stands for may be missing with its comma.
                    if definition.variadic && list.len() + 1 == wanted {
                        list.push(Vec::new());
                    }
                    if list.len() == wanted {
                        return Some(list);
                    }
                    let message = "this macro has another number of parameters";
                    self.error(Rule::Directive, at as usize, 1, message, "");
                    return None;
                }
                TokenKind::RParen => open -= 1,
                TokenKind::Comma if open == 0 && !all => {
                    list.push(core::mem::take(&mut argument));
                    continue;
                }
                _ => {}
            }
            argument.push(token);
            if argument.len() > self.limits.tokens as usize {
                break;
            }
        }
        let help = "a directive cannot stand among the arguments of a macro";
        let message = "the arguments of this macro do not end";
        self.error(Rule::Directive, at as usize, 1, message, help);
        None
    }

    /// An argument with its macros replaced.
    fn expanded(&mut self, argument: &[Token], at: u32) -> Vec<Token> {
        let mut to = Vec::new();
        let macros = &mut self.out.macros;
        macros.depth += 1;
        if macros.depth > DEPTH {
            self.report
                .limit(at, "macros within arguments of macros", "");
        }
        let (floor, before) = (macros.frames.len(), macros.made.len() as u32);
        macros.made.extend_from_slice(argument);
        macros.frames.push(Frame {
            next: before,
            end: macros.made.len() as u32,
            defined: false,
            name: None,
            at,
            before,
        });
        // The floor is above 0, so that nothing is read from the source.
        if floor == 0 {
            let barrier = Frame {
                next: 0,
                end: 0,
                defined: true,
                name: None,
                at,
                before,
            };
            macros.frames.insert(0, barrier);
            self.drain(1, &mut to);
            self.leave();
        } else {
            self.drain(floor, &mut to);
        }
        self.out.macros.depth -= 1;
        to
    }

    /// The tokens of a macro with its arguments in place of its parameters.
    fn substitute(
        &mut self,
        definition: Macro,
        arguments: &[Vec<Token>],
        name: Token,
    ) -> Vec<Token> {
        let mut known: Vec<Option<Vec<Token>>> = Vec::new();
        known.resize(arguments.len(), None);
        let mut made: Vec<Token> = Vec::new();
        let (mut paste, mut missing) = (false, false);
        let mut index = definition.start as usize;
        let end = definition.end as usize;
        while index < end && !self.report.full() {
            let token = self.out.macros.tokens[index];
            let next = self.out.macros.tokens[..end].get(index + 1).copied();
            index += 1;
            self.replaced += 1;
            if token.kind == TokenKind::Paste
                && index > definition.start as usize + 1
                && index < end
            {
                paste = true;
                continue;
            }
            let here = Token {
                at: name.at,
                ..token
            };
            let mut part: Vec<Token> = Vec::new();
            match (token.kind, next) {
                (TokenKind::Hash, Some(next)) if next.kind == TokenKind::Parameter => {
                    let text = self.stringized(&arguments[next.value as usize], name.at);
                    let value = self.made_text(&text);
                    part.push(Token {
                        kind: TokenKind::Text,
                        value,
                        ..here
                    });
                    index += 1;
                }
                (TokenKind::Parameter, next) => {
                    let number = token.value as usize;
                    let raw = paste || next.is_some_and(|next| next.kind == TokenKind::Paste);
                    // `, ## __VA_ARGS__` leaves out the comma if there is nothing.
                    let behind_comma = definition.variadic
                        && number + 1 == arguments.len()
                        && made
                            .last()
                            .is_some_and(|last| last.kind == TokenKind::Comma);
                    if paste && behind_comma {
                        paste = false;
                        if arguments[number].is_empty() {
                            made.pop();
                            continue;
                        }
                    }
                    if raw && !behind_comma {
                        part.extend_from_slice(&arguments[number]);
                    } else {
                        if known[number].is_none() {
                            known[number] = Some(self.expanded(&arguments[number], name.at));
                        }
                        part.extend_from_slice(known[number].as_deref().unwrap_or_default());
                    }
                    if let Some(first) = part.first_mut() {
                        first.space = token.space;
                    }
                }
                _ => part.push(here),
            }
            self.replaced += part.len();
            if self.replaced > self.limits.tokens as usize {
                self.report.limit(name.at, "tokens of macros", "tokens");
            }
            let mut rest = &part[..];
            if paste
                && !missing
                && let (Some(last), Some((first, others))) =
                    (made.last().copied(), part.split_first())
            {
                if let Some(token) = self.pasted(last, *first, name.at) {
                    made.pop();
                    made.push(token);
                }
                rest = others;
            }
            // Nothing, pasted to something, is that.
            missing = part.is_empty() && (!paste || missing);
            paste = false;
            made.extend_from_slice(rest);
        }
        made
    }

    /// Counts bytes that are about to be written. False if they are too many.
    fn may_write(&mut self, bytes: usize, at: u32) -> bool {
        self.replaced = self.replaced.saturating_add(bytes.div_ceil(BYTES));
        if self.replaced > self.limits.tokens as usize {
            self.report.limit(at, "tokens of macros", "tokens");
        }
        !self.report.full()
    }

    /// The bytes of a token.
    fn token_text<'b>(&'b self, token: &Token) -> &'b [u8] {
        match token.kind {
            TokenKind::Name | TokenKind::Painted => {
                self.names.spelling(self.whole, Name(token.value))
            }
            TokenKind::Number => match self.out.spots[token.value as usize] {
                Spot::Source(start, end) => &self.whole[start as usize..end as usize],
                Spot::Made(start, end) => &self.out.spelled[start as usize..end as usize],
            },
            TokenKind::Text => {
                let text = self.out.texts[token.value as usize];
                &self.out.bytes[text.first as usize..text.last as usize]
            }
            kind => spelling(kind).as_bytes(),
        }
    }

    /// Where a string stands in the source.
    fn spot(&self, token: &Token) -> (u32, u32) {
        self.out
            .texts
            .get(token.value as usize)
            .map_or((0, 0), |text| text.spot)
    }

    /// What `#` makes of an argument.
    fn stringized(&mut self, argument: &[Token], at: u32) -> Vec<u8> {
        let mut text = Vec::new();
        for (index, token) in argument.iter().enumerate() {
            if token.space && index > 0 {
                text.push(b' ');
            }
            let spot = match token.kind {
                TokenKind::Text => self.spot(token),
                _ => (0, 0),
            };
            let length = self.token_text(token).len().max((spot.1 - spot.0) as usize);
            if !self.may_write(length, at) {
                break;
            }
            let bytes = self.token_text(token);
            if spot.0 < spot.1 {
                text.extend_from_slice(&self.whole[spot.0 as usize..spot.1 as usize]);
                continue;
            }
            if token.kind != TokenKind::Text {
                text.extend_from_slice(bytes);
                continue;
            }
            text.push(b'"');
            for byte in bytes {
                match byte {
                    b'\n' => text.extend_from_slice(b"\\n"),
                    b'\t' => text.extend_from_slice(b"\\t"),
                    b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
                    0..32 | 127 => {
                        let octal = [byte >> 6, byte >> 3 & 7, byte & 7].map(|d| d + b'0');
                        text.push(b'\\');
                        text.extend_from_slice(&octal);
                    }
                    _ => text.push(*byte),
                }
            }
            text.push(b'"');
        }
        text
    }

    /// What `##` makes of two tokens.
    fn pasted(&mut self, left: Token, right: Token, at: u32) -> Option<Token> {
        let length = self.token_text(&left).len() + self.token_text(&right).len();
        if !self.may_write(length, at) {
            return None;
        }
        let mut text = Vec::from(self.token_text(&left));
        text.extend_from_slice(self.token_text(&right));
        let token = |kind, value| Token {
            kind,
            at,
            value,
            space: left.space,
        };
        let is_text = left.kind == TokenKind::Text || right.kind == TokenKind::Text;
        let word = text.iter().all(|byte| names::is_name(*byte));
        match text.first() {
            Some(first) if word && !first.is_ascii_digit() && !is_text => {
                let name = self.names.make(self.whole, &text);
                return Some(token(TokenKind::Name, name.0));
            }
            Some(first)
                if !is_text && (first.is_ascii_digit() || *first == b'.' && text.len() > 1) =>
            {
                let literal = self.number_of(&text, at as usize);
                return Some(token(TokenKind::Number, self.made_literal(literal, &text)));
            }
            Some(_) if !is_text => {
                let (kind, length) = punctuator(&text, 0);
                if length == text.len() && kind != TokenKind::Bad {
                    return Some(token(kind, 0));
                }
            }
            _ => {}
        }
        let help = "## makes one token of two";
        self.error(Rule::Directive, at as usize, 1, "this is no token", help);
        None
    }
}
