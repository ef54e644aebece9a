//! Integrated layer processing: what several layers do with the words of a message, in one loop
//! over it, put together while the program runs.
//!
//! A [`Piece`] is what one layer does, as E-code: what it keeps, what it does with a word, and what
//! is to be done at the end. [`compose`] makes one source of pieces, [`compile`] an image of it,
//! here in the environment, and [`load`] a handler, which the kernel's judge looks at like any
//! other. A piece is believed in nothing: what is wrong with its text is told with its number, and
//! what its code does wrong ends the run as that of every handler.
//!
//! | module | what |
//! |---|---|
//! | `piece` | pieces: a sum, bytes swapped, a key, copies |
//! | `heap` | memory for what allocates: all programs that use this crate have it |
#![no_std]

extern crate alloc;

pub mod heap;
mod piece;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use postern_aegis::Error;
use postern_aegis::handler::{self, Handler};
use postern_ecode::{Compiler, Errors, Limits, Options};

pub use piece::Piece;

/// Where handlers of pipes have the page that they share with their owner.
pub const SHARED: u64 = 0x10_0000;

/// Words that a loop takes before it asks whether there are more.
const UNROLLED: usize = 8;
/// Handlers have a page of stack.
const STACK_LOG2: u32 = 12;
/// Bytes of text, and depth of what is inside each other there: the compiler runs on the program's
/// stack.
const LIMITS: Limits = Limits {
    source: 32 << 10,
    tokens: 16 << 10,
    nesting: 24,
    data: 16 << 10,
    bss: 64 << 10,
    frame: 2 << 10,
    function: 8 << 10,
    liveness: 1 << 20,
    errors: 4,
};

/// Pieces that take a word one after the other: one loop.
pub type Pass = [Piece];

/// Why there is no pipe.
#[derive(Debug)]
pub enum PipeError {
    /// The text is wrong: the number of the piece, of all passes together, if it is in one.
    Text(Option<usize>, Errors),
    /// It cannot be an image for the kernel.
    Link,
    /// The kernel does not take it, or something else is missing.
    Call(Error),
}

/// A source, and which piece each of its lines is of.
#[derive(Debug, Default)]
pub struct Source {
    /// The text.
    pub text: String,
    lines: Vec<Option<usize>>,
}

impl Source {
    /// Lines of a piece's, with its number for `$`; they end here.
    fn piece(&mut self, number: usize, text: &str) {
        for part in text.split_inclusive('$') {
            match part.strip_suffix('$') {
                Some(part) => {
                    self.text.push_str(part);
                    let _ = write!(self.text, "{number}");
                }
                None => self.text.push_str(part),
            }
        }
        self.text.push('\n');
        self.count(Some(number));
    }

    /// Lines of nobody's.
    fn own(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.count(None);
    }

    fn count(&mut self, of: Option<usize>) {
        self.lines.resize(self.text.split('\n').count() - 1, of);
    }
}

/// One source of passes, each a loop over the words of the message behind its first `skip` bytes.
/// The last word is filled with zeros.
pub fn compose(skip: usize, passes: &[&Pass]) -> Source {
    let mut source = Source::default();
    let mut number = 0;
    source.own(piece::SERVICES);
    let all = || passes.iter().flat_map(|pass| pass.iter()).enumerate();
    for (number, piece) in all() {
        source.piece(number, &piece.outside);
    }
    source.own(
        "long message(const unsigned char *in, unsigned long length, unsigned long endpoint) {",
    );
    source.own("unsigned long *result = (unsigned long *)0x100000;");
    let _ = write!(source.text, "const unsigned long skip = {skip}; ");
    source.own("const unsigned long *from = (const unsigned long *)(in + skip);");
    source.own("unsigned long words = length > skip ? (length - skip + 7) / 8 : 0;");
    for pass in passes {
        let pieces = || (number..).zip(pass.iter());
        source.own("{ unsigned long i = 0, word;");
        pieces().for_each(|(number, piece)| source.piece(number, &piece.before));
        let _ = write!(
            source.text,
            "for (; i + {UNROLLED} <= words; i += {UNROLLED}) "
        );
        source.own("{");
        for at in 0..UNROLLED {
            let _ = writeln!(source.text, "#define AT i + {at}");
            source.own("word = from[AT];");
            pieces().for_each(|(number, piece)| source.piece(number, &piece.step));
            source.own("#undef AT");
        }
        source.own("}");
        source.own("#define AT i");
        source.own("for (; i < words; i++) { word = from[AT];");
        pieces().for_each(|(number, piece)| source.piece(number, &piece.step));
        source.own("}");
        source.own("#undef AT");
        pieces().for_each(|(number, piece)| source.piece(number, &piece.end));
        source.own("}");
        number += pass.len();
    }
    source.own("result[0]++; return 1; }");
    source
}

/// The image of a source.
///
/// # Errors
/// What is wrong with the text, and whose it is.
pub fn compile(source: &Source) -> Result<Vec<u8>, PipeError> {
    let options = Options {
        limits: LIMITS,
        kernel: true,
        ..Options::default()
    };
    let object = Compiler::new(options)
        .compile(&source.text)
        .map_err(|errors| {
            let line = errors.list.first().map_or(0, |error| error.line as usize);
            let of = line.checked_sub(1).and_then(|line| source.lines.get(line));
            PipeError::Text(of.copied().flatten(), errors)
        })?;
    let linked = postern_ecode::link_for_kernel(&[object], STACK_LOG2);
    Ok(linked.map_err(|_| PipeError::Link)?.file)
}

/// A handler of passes over what is behind the first `skip` bytes of messages. Its owner is to
/// bind a page at [`SHARED`]: the first word counts messages, the one behind it is the first
/// piece's, and so on.
///
/// # Errors
/// What is wrong with the text, or what the kernel said.
pub fn load(skip: usize, passes: &[&Pass]) -> Result<Handler, PipeError> {
    let image = compile(&compose(skip, passes))?;
    handler::load(&image, 1).map_err(PipeError::Call)
}
