//! E-code: a subset of C, compiled in the process, in microseconds, to machine code that the
//! verifier accepts.
//!
//! [`compile`] turns source text into an [`Object`]: text, constants, data, and relocations for
//! what it calls by name. Whoever loads the object gives it a place ([`Object::place`]) and has the
//! verifier judge the text. The compiler is outside what is trusted: a mistake of it makes code
//! that is refused, or that computes something else inside its window.
//!
//! The way of a function, in the order of reading: `lex` (tokens, of the whole source), `parse` (a
//! tree with types), `lower` (the tree to the intermediate form, `ir`), `optimize`, `allocate`
//! (registers), `encode` (bytes). Each function goes all the way before the next one is read, so
//! that one tree and one function's code are kept at a time.
//!
//! ```
//! let unit = postern_ecode::compile("int twice(int x) { return 2 * x; }").unwrap();
//! assert_eq!(unit.symbol("twice").unwrap().signature, "i(i)");
//!
//! let errors = postern_ecode::compile("int f(int x) { return y; }").unwrap_err();
//! assert_eq!((errors.list[0].line, errors.list[0].column), (1, 23));
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod allocate;
mod building;
mod diagnostics;
mod encode;
mod facts;
mod float;
mod fold;
mod generate;
mod headers;
mod image;
mod ir;
mod kernel;
mod lex;
mod limits;
#[cfg(feature = "std")]
mod lines;
mod lower;
mod names;
mod optimize;
mod order;
mod parse;
mod report;
mod token;
mod tree;
mod types;

pub use diagnostics::{Diagnostic, Errors, Rule};
pub use image::{LinkError, Linked, link, link_for_kernel};
pub use limits::Limits;
pub use order::Call;
pub use postern_image::object::{Import, Object, PlaceError, Placed, Symbol};
pub use postern_verifier::relocation::{Places, Relocation, Section, Target, Width};

use alloc::string::String;
use alloc::vec::Vec;

use allocate::Allocator;
use generate::{Finish, generate};
use ir::Code;
use lex::File;
use lower::{Lowering, LoweringBuffers};
use parse::{Lexed, Parser, ParserBuffers};
use tree::Function;

/// What a compilation may be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How large everything may get.
    pub limits: Limits,
    /// Calls of functions that are not static are relocations, also within the source, so that who
    /// loads the unit can put another function in the place of each.
    pub replaceable: bool,
    /// The code is for ring 0: memory through fs, general registers only, no landing pads. What
    /// cannot be is an error: floating point, and calls through pointers. Calls are relocations,
    /// and [`link_for_kernel`] puts callees behind their callers.
    pub kernel: bool,
}

/// A compiler that keeps its memory from one compilation to the next.
#[derive(Debug, Default)]
pub struct Compiler {
    options: Options,
    state: ParserBuffers,
    code: Code,
    scratch: LoweringBuffers,
    allocator: Allocator,
    headers: Vec<(String, Vec<u8>)>,
}

impl Compiler {
    /// A compiler with these options.
    pub fn new(options: Options) -> Compiler {
        let mut compiler = Compiler {
            options,
            ..Compiler::default()
        };
        compiler.code.kernel = options.kernel;
        compiler
    }

    /// Gives a text that sources may include by this name; one given before by the same name is
    /// replaced. `limits.h`, `stdarg.h`, `stdbool.h`, `stddef.h` and `stdint.h` are there already.
    pub fn header(&mut self, name: &str, text: impl Into<Vec<u8>>) -> &mut Compiler {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.into(), text.into()));
        self
    }

    /// Compiles a source: any number of functions and objects. It is UTF-8 where that matters, in
    /// wide strings; comments and other strings may hold any bytes.
    ///
    /// # Errors
    /// All that is wrong with the source, up to [`Limits::errors`].
    pub fn compile(&mut self, source: impl AsRef<[u8]>) -> Result<Object, Errors> {
        let source = source.as_ref();
        match self.compile_with(source, Vec::new()) {
            Some(result) => result,
            None => {
                let (whole, files) = headers::together(source, &self.headers);
                let result = self.compile_with(&whole, files);
                result.unwrap_or_else(|| Ok(Object::default())) // there are headers now
            }
        }
    }

    /// Compiles a source with what it includes. `None` if it includes something, and there are no
    /// files.
    fn compile_with(&mut self, source: &[u8], files: Vec<File>) -> Option<Result<Object, Errors>> {
        (self.code.steps, self.allocator.steps) = (0, 0);
        let mut parser = Parser::new(source, files, self.options.limits, &mut self.state);
        let lexed = parser.lex();
        if lexed == Lexed::Tokens {
            while let Some(function) = parser.next_function() {
                if !parser.report.any() {
                    self.function(&mut parser, &function);
                }
            }
            parser.finish_unit();
        }
        let result = if lexed == Lexed::Again {
            None
        } else if parser.report.any() {
            Some(Err(parser.report.take(parser.source, &parser.files)))
        } else {
            let mut finish = Finish {
                source: parser.source,
                files: &parser.files,
                names: &parser.names,
                types: &parser.types,
                unit: &mut parser.unit,
                relocated: self.options.kernel,
                replaceable: self.options.replaceable,
            };
            Some(Ok(finish.finish()))
        };
        self.state = parser.into_state();
        result
    }

    /// Makes machine code of the function that was just read; what cannot be done for its size is
    /// reported.
    fn function(&mut self, parser: &mut Parser, function: &Function) {
        let front = (&parser.tree, &parser.types, &mut parser.unit);
        let limits = &self.options.limits;
        Lowering::new(front, limits, &mut self.code, &mut self.scratch).function(function);
        for at in self.scratch.exceeded.drain(..) {
            parser.limit(at, limits::FRAME, "frame");
        }
        if self.code.overflow {
            parser.limit(parser.at(), "instructions in a function", "function");
        }
        if self.code.kernel {
            kernel::check(&self.code, parser);
        }
        if parser.report.any() {
            return;
        }
        let unit = &mut parser.unit;
        match generate(&mut self.code, &mut self.allocator, unit, limits.liveness) {
            Some((offset, size)) => {
                let global = &mut parser.unit.globals[function.global as usize];
                (global.offset, global.size) = (offset, size);
            }
            None => {
                let at = parser.unit.globals[function.global as usize].at;
                parser.limit(at, "variables and branches in a function", "liveness");
            }
        }
    }

    /// How much work the last compilation was, in steps that do not depend on the machine: tokens,
    /// instructions each time that one is made, moved or encoded, and what [`Limits::liveness`]
    /// bounds.
    pub fn steps(&self) -> u64 {
        let state = &self.state;
        let tokens = state.tokens.list.len() as u64 + state.names.probes;
        tokens + self.code.steps + self.allocator.steps
    }
}

/// Compiles one source with the default options.
///
/// # Errors
/// All that is wrong with the source.
pub fn compile(source: impl AsRef<[u8]>) -> Result<Object, Errors> {
    Compiler::default().compile(source)
}
