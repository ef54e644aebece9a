//! The parser: recursive descent over the tokens, types checked as it goes. A function becomes a
//! tree, everything else is done when it is read: types, names, objects and their values.
//!
//! Invariant: after an error the parser is in *panic* until the end of the statement or
//! declaration, says nothing, and always goes forward; nothing that it made is used once there is
//! an error.

mod assembler;
mod attribute;
mod build;
mod builtin;
mod builtin_type;
mod constant;
mod declarator;
mod declare;
mod designator;
mod expression;
mod function;
mod initializer;
mod member;
mod operator;
mod postfix;
mod primary;
mod scope;
mod specifier;
mod statement;
mod switch;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::building::Building;
use crate::diagnostics::Rule;
use crate::lex::{File, Tokens};
use crate::limits::Limits;
use crate::names::{KNOWN, Name, Names, is_name};
use crate::report::Report;
use crate::token::{Token, TokenKind};
use crate::tree::{Function, Initializer, LocalId, NodeId, Tree};
use crate::types::*;

/// What an ordinary identifier stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Meaning {
    Typedef,
    Constant(i64),
    /// A local in a register.
    Register(LocalId),
    /// A local in memory.
    Memory(LocalId),
    /// A structure whose address is in a register: a parameter.
    Indirect(LocalId),
    /// An array of variable length, whose address is in a register.
    Variable(LocalId),
    Global(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    pub name: Name,
    pub meaning: Meaning,
    pub ty: Type,
    pub at: u32,
    pub depth: u32,
    /// What a `typedef` asks for beyond the type's alignment, or 0.
    pub align: u32,
    previous: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    name: Name,
    ty: Type,
    depth: u32,
    previous: u32,
    enumeration: bool,
}

/// A label of the function that is being parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    name: Name,
    defined: bool,
    at: u32,
}

/// A switch that is being parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    ty: Type,
    has_default: bool,
}

/// What is kept between compilations, so that its memory is used again.
#[derive(Debug, Default)]
pub(crate) struct ParserBuffers {
    pub names: Names,
    pub tokens: Tokens,
    types: Types,
    tree: Tree,
    unit: Building,
    report: Report,
    symbols: Vec<Symbol>,
    tags: Vec<Tag>,
    labels: Vec<Label>,
    cases: Vec<i64>,
    values: Vec<Initializer>,
}

pub(crate) struct Parser<'a> {
    pub source: &'a [u8],
    /// The source and the headers in it, if there are any.
    pub files: Vec<File>,
    pub limits: Limits,
    pub names: Names,
    pub tokens: Tokens,
    pub types: Types,
    pub tree: Tree,
    pub unit: Building,
    pub report: Report,
    symbols: Vec<Symbol>,
    tags: Vec<Tag>,
    labels: Vec<Label>,
    /// Values of the cases of the switches being parsed.
    cases: Vec<i64>,
    /// Values of the initialisers being parsed.
    values: Vec<Initializer>,
    /// Bytes of the object whose earlier values later ones take the place of: how many values there
    /// were, and which bytes.
    replaced: Vec<(usize, u32, u32)>,
    /// Which member of a union designators led to, by the union's offset and type; none stands for
    /// the first.
    chosen: BTreeMap<(u32, u32), u32>,
    /// How many values ranges of designators stand for so far.
    repeated: u32,
    /// All values of the object so far lie before this offset.
    reach: u32,
    pos: usize,
    panic: bool,
    depth: u32,
    nested: u32,
    /// Names of the parameters of the function declarator that ended last.
    params: Vec<(Name, u32)>,
    switches: Vec<Switch>,
    /// Number of loops around what is being parsed.
    loops: u32,
    /// Number of functions so far.
    functions: u32,
    /// The function that was read last, until somebody asks for it.
    defined: Option<Function>,
    /// The present function's result.
    result: Type,
    /// Bytes of the present function's locals.
    frame: u64,
    /// Where the statement or expression is that was read last.
    reached: u32,
    /// Inside `sizeof`: nothing is evaluated.
    unevaluated: u32,
    /// The length of the array that was declared last, if it is known only when it is declared.
    variable: Option<NodeId>,
    /// Parameters are being read, whose names mean nothing outside.
    prototypes: u32,
    /// Arrays of variable length: address and size; and those whose scope is open, with its depth.
    sizes: Vec<(LocalId, LocalId)>,
    variables: Vec<(LocalId, u32)>,
    /// The type of lists of arguments, once it has been used.
    argument_list: Type,
    /// The present function: its name, whether it takes `...`, and whether it calls `alloca`.
    function: Name,
    variadic: bool,
    allocates: bool,
}

/// What came of lexing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lexed {
    Tokens,
    /// There is an error.
    Nothing,
    /// The source includes headers, which have to be given with it.
    Again,
}

impl<'a> Parser<'a> {
    pub fn new(
        source: &'a [u8],
        files: Vec<File>,
        limits: Limits,
        state: &mut ParserBuffers,
    ) -> Parser<'a> {
        let mut state = core::mem::take(state);
        state.report.reset(limits.errors);
        state.names.reset();
        state.types.reset();
        state.tree.clear();
        state.unit.reset();
        state.symbols.clear();
        state.tags.clear();
        state.labels.clear();
        state.cases.clear();
        state.values.clear();
        let mut parser = Parser {
            source,
            files,
            limits,
            names: state.names,
            tokens: state.tokens,
            types: state.types,
            tree: state.tree,
            unit: state.unit,
            report: state.report,
            symbols: state.symbols,
            tags: state.tags,
            labels: state.labels,
            cases: state.cases,
            values: state.values,
            replaced: Vec::new(),
            chosen: BTreeMap::new(),
            repeated: 0,
            reach: 0,
            pos: 0,
            panic: false,
            depth: 0,
            nested: 0,
            params: Vec::new(),
            switches: Vec::new(),
            loops: 0,
            functions: 0,
            defined: None,
            result: VOID,
            frame: 0,
            reached: 0,
            unevaluated: 0,
            variable: None,
            prototypes: 0,
            sizes: Vec::new(),
            variables: Vec::new(),
            argument_list: VOID,
            function: Name(0),
            variadic: false,
            allocates: false,
        };
        parser.declare_known();
        parser
    }

    /// Gives the memory back.
    pub fn into_state(self) -> ParserBuffers {
        ParserBuffers {
            names: self.names,
            tokens: self.tokens,
            types: self.types,
            tree: self.tree,
            unit: self.unit,
            report: self.report,
            symbols: self.symbols,
            tags: self.tags,
            labels: self.labels,
            cases: self.cases,
            values: self.values,
        }
    }

    /// Makes the tokens.
    pub fn lex(&mut self) -> Lexed {
        if self.source.len() > self.limits.source as usize {
            self.report.limit(0, "bytes of source", "source");
            return Lexed::Nothing;
        }
        let complete = crate::lex::lex(
            self.source,
            &mut self.files,
            &mut self.names,
            &mut self.tokens,
            &mut self.report,
            &self.limits,
        );
        match (complete, self.report.any()) {
            (false, _) => Lexed::Again,
            // What follows from missing tokens helps nobody.
            (true, true) => Lexed::Nothing,
            (true, false) => Lexed::Tokens,
        }
    }

    /// Reads until the end of the next function, whose tree stays until this is called again;
    /// `None` at the end of the source.
    pub fn next_function(&mut self) -> Option<Function> {
        while self.peek() != TokenKind::End && !self.report.full() {
            let before = self.pos;
            self.tree.clear();
            self.external_declaration();
            if self.panic {
                self.synchronize(before);
            }
            if let Some(function) = self.defined.take() {
                return Some(function);
            }
        }
        None
    }

    /// The names that C programs find in stddef.h, stdint.h and stdbool.h.
    fn declare_known(&mut self) {
        self.symbols.push(Symbol {
            name: Name(0),
            meaning: Meaning::Typedef,
            ty: ERROR,
            at: 0,
            depth: 0,
            align: 0,
            previous: 0,
        });
        self.tags.push(Tag {
            name: Name(0),
            ty: ERROR,
            depth: 0,
            previous: 0,
            enumeration: false,
        });
        let types = [
            BOOL, BOOL, INT, INT, INT, ULONG, LONG, SCHAR, SHORT, INT, LONG, UCHAR, USHORT, UINT,
            ULONG, LONG, ULONG,
        ];
        for (index, ty) in types.into_iter().enumerate() {
            let meaning = match KNOWN[index] {
                "true" => Meaning::Constant(1),
                "false" | "NULL" => Meaning::Constant(0),
                _ => Meaning::Typedef,
            };
            self.bind(Names::known(index), meaning, ty, 0);
        }
        // What the source declares at file scope replaces these.
        self.depth = 1;
    }

    // Tokens

    #[inline]
    pub(crate) fn peek(&self) -> TokenKind {
        self.tokens.list[self.pos].kind
    }
    fn peek_at(&self, ahead: usize) -> TokenKind {
        self.tokens
            .list
            .get(self.pos + ahead)
            .map_or(TokenKind::End, |token| token.kind)
    }
    #[inline]
    fn token(&self) -> Token {
        self.tokens.list[self.pos]
    }
    pub(crate) fn at(&self) -> u32 {
        self.token().at
    }
    #[inline]
    fn advance(&mut self) -> Token {
        let token = self.token();
        if token.kind != TokenKind::End {
            self.pos += 1;
        }
        token
    }
    #[inline]
    fn accept(&mut self, kind: TokenKind) -> bool {
        let yes = self.peek() == kind;
        if yes {
            self.pos += 1;
        }
        yes
    }

    /// Takes the token, or says that it is missing.
    fn expect(&mut self, kind: TokenKind, what: &str) -> bool {
        if self.accept(kind) {
            return true;
        }
        if !self.panic {
            self.missing(kind, what);
        }
        false
    }

    #[cold]
    fn missing(&mut self, kind: TokenKind, what: &str) {
        let closing = matches!(
            kind,
            TokenKind::Semi | TokenKind::RParen | TokenKind::RBracket | TokenKind::RBrace
        );
        if closing && self.pos > 0 {
            // It belongs behind the token before.
            let last = self.tokens.list[self.pos - 1];
            let at = last.at + self.length(last);
            self.fail(
                Rule::Expected,
                at,
                1,
                format!("expected {what}"),
                format!("write {what} here"),
            );
        } else {
            let message = format!("expected {what}, found {}", self.found());
            self.fail(
                Rule::Expected,
                self.at(),
                self.length(self.token()),
                message,
                String::new(),
            );
        }
    }

    /// The present token, for messages.
    fn found(&self) -> String {
        let token = self.token();
        if token.kind == TokenKind::End {
            return "the end of the source".into();
        }
        let start = token.at as usize;
        let end = (start + self.length(token) as usize)
            .min(start + 40)
            .min(self.source.len());
        format!("`{}`", String::from_utf8_lossy(&self.source[start..end]))
    }

    /// The bytes of a token.
    fn length(&self, token: Token) -> u32 {
        let rest = &self.source[(token.at as usize).min(self.source.len())..];
        let length = match rest.first() {
            None => 0,
            Some(b'"') => {
                let mut escaped = true; // the opening quote
                let end = rest.iter().position(|b| {
                    let stop = *b == b'"' && !escaped || *b == b'\n';
                    escaped = *b == b'\\' && !escaped;
                    stop
                });
                end.map_or(1, |end| end + 1)
            }
            Some(byte) if is_name(*byte) => rest.iter().take_while(|b| is_name(**b)).count(),
            Some(_) => match token.kind {
                TokenKind::ShlAssign | TokenKind::ShrAssign | TokenKind::Ellipsis => 3,
                TokenKind::Arrow
                | TokenKind::PlusPlus
                | TokenKind::MinusMinus
                | TokenKind::Shl
                | TokenKind::Shr
                | TokenKind::LessEqual
                | TokenKind::GreaterEqual
                | TokenKind::Equal
                | TokenKind::NotEqual
                | TokenKind::AndAnd
                | TokenKind::OrOr => 2,
                kind if kind >= TokenKind::StarAssign && kind <= TokenKind::PipeAssign => 2,
                _ => 1,
            },
        };
        length as u32
    }

    // Errors

    /// An error after which parsing goes on as if nothing were wrong.
    #[cold]
    pub(crate) fn error(&mut self, rule: Rule, at: u32, message: String, help: &str) {
        if self.panic {
            self.report.drop_one();
            return;
        }
        let token = Token {
            kind: TokenKind::Name,
            at,
            value: 0,
            space: false,
        };
        let length = self.length(token).max(1);
        self.report.error(rule, at, length, message, help.into());
    }

    /// Whether an error at this place would be reported, so that it is worth while to look for a
    /// suggestion.
    pub(crate) fn wants(&self, at: u32) -> bool {
        !self.panic && self.report.wants(at)
    }

    /// An error after which the parser does not know where it is.
    #[cold]
    fn fail(&mut self, rule: Rule, at: u32, length: u32, message: String, help: String) {
        if !self.panic {
            self.report.error(rule, at, length, message, help);
            self.panic = true;
        }
    }

    /// A limit: the rest of the source is not looked at.
    #[cold]
    pub(crate) fn limit(&mut self, at: u32, what: &str, option: &str) {
        self.report.limit(at, what, option);
        self.panic = true;
        self.pos = self.tokens.list.len() - 1;
    }

    /// Counts nesting; false if it is too deep.
    fn nest(&mut self) -> bool {
        self.nested += 1;
        if self.nested > self.limits.nesting {
            self.limit(self.at(), "levels of nesting", "nesting");
            return false;
        }
        true
    }

    /// Skips to where a statement or declaration may begin.
    fn synchronize(&mut self, started: usize) {
        self.panic = false;
        let mut braces = 0u32;
        loop {
            match self.peek() {
                TokenKind::End => break,
                TokenKind::Semi if braces == 0 => {
                    self.pos += 1;
                    while self.depth <= 1 && self.accept(TokenKind::RBrace) {
                        self.accept(TokenKind::Semi);
                    }
                    break;
                }
                TokenKind::LBrace => braces += 1,
                TokenKind::RBrace => {
                    if braces <= 1 {
                        let outside = self.depth <= 1;
                        if braces == 1 || outside {
                            self.pos += 1;
                        }
                        break;
                    }
                    braces -= 1;
                }
                TokenKind::If
                | TokenKind::For
                | TokenKind::While
                | TokenKind::Return
                | TokenKind::Switch
                | TokenKind::Do
                    if braces == 0 && self.pos > started && self.depth > 1 =>
                {
                    break;
                }
                _ => {}
            }
            self.pos += 1;
        }
        if self.pos == started {
            self.advance();
        }
    }
}

impl PartialOrd for TokenKind {
    fn partial_cmp(&self, other: &TokenKind) -> Option<core::cmp::Ordering> {
        (*self as u8).partial_cmp(&(*other as u8))
    }
}
