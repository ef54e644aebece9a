//! The page that a process finds at [`START`](crate::address::START): what it is called with.

/// Bytes of the page.
pub const SIZE: usize = 4096;

/// Words at its beginning. Behind them are strings, each ended by a zero: arguments, then the
/// environment's variables.
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
    /// Where the strings begin, in bytes of the page.
    pub strings: u32,
}
