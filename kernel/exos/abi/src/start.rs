//! The pages that a process finds at [`START`](crate::address::START): what it is called with.

/// Pages at most.
pub const PAGES: usize = 8;

/// Bytes at most.
pub const SIZE: usize = PAGES * 4096;

/// Descriptors of files that a process can have.
pub const DESCRIPTORS: usize = 64;

/// Words at the beginning. Behind them are the descriptors that are handed on, and strings, each
/// ended by a zero: arguments, then the environment's variables.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    /// [`VERSION`](crate::VERSION) of who wrote this.
    pub version: u32,
    /// The process's number.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Strings that are arguments.
    pub arguments: u32,
    /// Strings that are variables.
    pub variables: u32,
    /// Where their addresses begin, in bytes from here: of arguments, a zero, of variables, a zero.
    pub pointers: u32,
    /// Where the path of the folder begins that it is in, in bytes from here, ended by a zero;
    /// 0: it is in `/`.
    pub folder: u16,
    /// Permissions that files which it makes do not get.
    pub permissions: u16,
    /// Descriptors that are handed on: a [`Handed`] each, right behind this.
    pub descriptors: u32,
    /// Signals that stay ignored, as bits.
    pub ignored: u64,
    /// Signals that are held back, as bits.
    pub mask: u64,
    /// Pages with offsets of files that are shared with others: their numbers, or 0.
    pub offsets: [u64; 4],
    /// The capabilities to write those.
    pub offsets_capability: [u64; 4],
}

/// A descriptor that is handed on over exec: what its kind makes of the words is its own affair.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Handed {
    /// The descriptor's number.
    pub number: u32,
    /// What it is of.
    pub kind: u32,
    /// How it was opened.
    pub flags: u64,
    /// The kind's own.
    pub words: [u64; 4],
}
