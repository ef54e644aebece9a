//! What a compilation may cost: every list that source text can make longer has a limit here.
//!
//! Invariant: with these limits the time of a compilation is linear in the length of its source,
//! its memory is bounded, and its own stack is bounded by [`Limits::nesting`].

/// Limits of one compilation. [`Limits::default`] suits a server that compiles for strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of source text, headers included.
    pub source: u32,
    /// Tokens, after replacement of macros.
    pub tokens: u32,
    /// Depth of nested expressions, statements, declarators and initialisers together.
    pub nesting: u32,
    /// Bytes of initialised data and constants.
    pub data: u32,
    /// Bytes of zeroed data.
    pub bss: u32,
    /// Bytes of a function's frame on the data stack.
    pub frame: u32,
    /// Intermediate instructions of one function, and its blocks.
    pub function: u32,
    /// Steps of finding out where values are still wanted, in all functions together: for each
    /// function the values that live in more than one block, divided by 64, times its blocks, times
    /// the passes that it takes.
    pub liveness: u32,
    /// Errors that are reported before the compiler gives up.
    pub errors: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            source: 8 << 20,
            tokens: 4 << 20,
            nesting: 160,
            data: 16 << 20,
            bss: 256 << 20,
            frame: 128 << 10,
            function: 1 << 20,
            liveness: 32 << 20,
            errors: 20,
        }
    }
}

/// What [`Limits::frame`] is called in errors: the parser and the lowering both meet it.
pub(crate) const FRAME: &str = "bytes of local variables";
