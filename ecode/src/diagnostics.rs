//! Errors of a compilation: what is wrong, where, and what to do about it.
//!
//! Invariant: every error has a [`Rule`], a position in the source, and prints as one line
//! `LINE:COLUMN: error: …`, followed by the source line, a caret, and a suggestion where there is
//! one.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use crate::lex::File;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident $text:literal),* $(,)?) => {
        /// What kind of error it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule { $($(#[$doc])* $name),* }

        impl Rule {
            /// All kinds.
            pub const ALL: &'static [Rule] = &[$(Rule::$name),*];

            /// The kind's name, as tests and tools spell it.
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$name => $text),* }
            }
        }
    };
}

rules! {
    /// A byte that begins no token.
    Character "character",
    /// A string, character constant or comment that does not end.
    Unterminated "unterminated",
    /// A number that is none, or is too large.
    Number "number",
    /// An escape sequence that C does not have.
    Escape "escape",
    /// A directive of the preprocessor that E-code does not have.
    Directive "directive",
    /// Something of C that E-code does not have.
    Unsupported "unsupported",
    /// Something else was expected here.
    Expected "expected",
    /// A name that nothing declares.
    UnknownName "unknown-name",
    /// A member that the structure does not have.
    UnknownMember "unknown-member",
    /// A name that is declared twice, or differently than before.
    Redeclared "redeclared",
    /// Declaration specifiers that do not go together, or a type that cannot be.
    BadType "bad-type",
    /// A type whose size is not known where it must be.
    Incomplete "incomplete",
    /// Operands whose types do not fit the operator.
    Operands "operands",
    /// A value of one type where another is wanted.
    Mismatch "mismatch",
    /// Something that cannot be assigned to, or have its address taken.
    NotLvalue "not-lvalue",
    /// A write to something const.
    Constant "constant",
    /// An expression that must be known at compile time and is not.
    NotConstant "not-constant",
    /// A call with the wrong number of arguments, or of what is no function.
    Call "call",
    /// An initialiser that does not fit.
    Initializer "initializer",
    /// `break`, `continue`, `case` or `default` where it means nothing, or a case twice.
    Misplaced "misplaced",
    /// A label that is missing or there twice.
    Label "label",
    /// `return` with a value from a void function, or without one from another.
    Return "return",
    /// A `_Static_assert` that does not hold.
    Assertion "assertion",
    /// A limit of the compilation.
    Limit "limit",
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind.
    pub rule: Rule,
    /// Byte position in the source.
    pub at: u32,
    /// The header that it is in, or empty if it is in the source itself.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// Bytes that the caret underlines, at least 1.
    pub length: u32,
    /// What is wrong.
    pub message: String,
    /// What to do, or empty.
    pub help: String,
    /// The source line, shortened if it is long.
    pub source_line: String,
}

/// All errors of a compilation, in the order of the source as far as they were looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    /// The errors, at least one.
    pub list: Vec<Diagnostic>,
    /// There are more than [`crate::Limits::errors`].
    pub more: bool,
}

/// Longest source line that is shown whole.
const SHOWN: usize = 160;

impl Diagnostic {
    /// Fills in line, column and source line.
    pub(crate) fn locate(&mut self, source: &[u8], files: &[File]) {
        let inside = |file: &&File| (file.start..=file.end).contains(&self.at);
        let (source, start) = match files.iter().find(inside) {
            Some(file) => {
                if file.start > 0 {
                    self.file = file.name.clone();
                }
                (&source[file.start as usize..file.end as usize], file.start)
            }
            None => (source, 0),
        };
        self.at -= start;
        let at = (self.at as usize).min(source.len());
        let start = source[..at]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |p| p + 1);
        let end = source[at..]
            .iter()
            .position(|b| *b == b'\n')
            .map_or(source.len(), |p| at + p);
        self.line = 1 + source[..start].iter().filter(|b| **b == b'\n').count() as u32;
        self.column = (at - start) as u32 + 1;
        self.length = self.length.clamp(1, (end - at).max(1) as u32);
        let shown = &source[start..end.min(start + SHOWN)];
        self.source_line = String::from_utf8_lossy(shown).into_owned();
        self.source_line = self.source_line.trim_end_matches('\r').to_owned();
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
        }
        write!(f, "{}:{}: error: {}", self.line, self.column, self.message)?;
        if !self.source_line.is_empty() && (self.column as usize) <= SHOWN {
            // Bytes that would command a terminal are not passed on.
            let clean = |c: char| if c == '\t' || !c.is_control() { c } else { '?' };
            let line: String = self.source_line.chars().map(clean).collect();
            write!(f, "\n{:5} | {line}\n      | ", self.line)?;
            for byte in self.source_line.bytes().take(self.column as usize - 1) {
                f.write_char(if byte == b'\t' { '\t' } else { ' ' })?;
            }
            f.write_char('^')?;
            for _ in 1..self.length {
                f.write_char('~')?;
            }
        }
        if !self.help.is_empty() {
            write!(f, "\n      = help: {}", self.help)?;
        }
        Ok(())
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_char('\n')?;
            }
            write!(f, "{error}")?;
        }
        if self.more {
            f.write_str("\ntoo many errors; the rest is not shown")?;
        }
        Ok(())
    }
}

impl core::error::Error for Errors {}
