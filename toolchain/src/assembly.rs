//! GNU assembly (AT&T syntax) as values.
//!
//! [`parse`](parse::parse) turns text into [`Statement`]s and knows the grammar of operands; it
//! knows no instruction. Which mnemonics exist and what becomes of them is the
//! [`rewrite`](crate::rewrite) module's matter. Every statement remembers where it came from, in
//! the terms of whoever wrote it (the C file, where line information names one).

pub mod expression;
mod macros;
pub mod parse;
pub mod register;
pub mod scan;

use std::fmt;
use std::rc::Rc;

pub use expression::Expression;
pub use register::Register;

/// A place in a source file, for messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    /// The file's name as the user or the compiler wrote it.
    pub file: Rc<str>,
    /// One-based line.
    pub line: u32,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One statement and its place.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Where it was written.
    pub place: SourceLocation,
    /// What it says.
    pub kind: StatementKind,
}

/// The three kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// `name:`
    Label(String),
    /// `.name arguments`, the arguments as written (without comments).
    Directive {
        /// With its leading dot.
        name: String,
        /// Everything after the name.
        arguments: String,
    },
    /// A machine instruction.
    Instruction(Instruction),
}

/// A machine instruction as it is written: prefixes, mnemonic, operands in AT&T order (sources
/// first).
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// `lock`, `rep`, `notrack`, …
    pub prefixes: Vec<String>,
    /// In lower case.
    pub mnemonic: String,
    /// Sources first.
    pub operands: Vec<Operand>,
    /// The operand of a branch has a `*`.
    pub indirect: bool,
}

impl Instruction {
    /// One without prefixes and operands.
    pub fn bare(mnemonic: &str) -> Self {
        Self {
            prefixes: Vec::new(),
            mnemonic: mnemonic.to_owned(),
            operands: Vec::new(),
            indirect: false,
        }
    }
}

/// One operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// `%eax`
    Register(Register),
    /// `$expression`
    Immediate(Expression),
    /// `%seg:disp(base,index,scale)`; also a bare expression, which is an absolute address (or a
    /// branch's target).
    Memory(Memory),
}

/// A memory operand.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Memory {
    /// `%fs:` or the like.
    pub segment: Option<Register>,
    /// Displacement; empty when none is written.
    pub displacement: Expression,
    /// Base register.
    pub base: Option<Register>,
    /// Index register.
    pub index: Option<Register>,
    /// 1, 2, 4 or 8; 0 when none is written.
    pub scale: u8,
}

impl Memory {
    /// Nothing but a displacement: an absolute address or a branch's target.
    pub fn is_bare(&self) -> bool {
        self.segment.is_none() && self.base.is_none() && self.index.is_none()
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(segment) = self.segment {
            write!(f, "{segment}:")?;
        }
        write!(f, "{}", self.displacement)?;
        if self.base.is_none() && self.index.is_none() {
            return Ok(());
        }
        f.write_str("(")?;
        if let Some(base) = self.base {
            write!(f, "{base}")?;
        }
        if let Some(index) = self.index {
            write!(f, ",{index}")?;
            if self.scale != 0 {
                write!(f, ",{}", self.scale)?;
            }
        }
        f.write_str(")")
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(register) => register.fmt(f),
            Self::Immediate(value) => write!(f, "${value}"),
            Self::Memory(memory) => memory.fmt(f),
        }
    }
}

/// The alternate form (`{:#}`) is for messages: no tab.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for prefix in &self.prefixes {
            write!(f, "{prefix} ")?;
        }
        f.write_str(&self.mnemonic)?;
        for (k, operand) in self.operands.iter().enumerate() {
            f.write_str(match k {
                0 if f.alternate() => " ",
                0 => "\t",
                _ => ", ",
            })?;
            if self.indirect {
                f.write_str("*")?;
            }
            write!(f, "{operand}")?;
        }
        Ok(())
    }
}
