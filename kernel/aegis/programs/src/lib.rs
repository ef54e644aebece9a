//! What roots and the programs that they start say to each other: words of a mailbox.
//!
//! | root | what |
//! |---|---|
//! | `hello` | the smallest: says so and stops |
//! | `echo` | a small one with a network: sends frames back |
//! | `monitor` | a command line that shows the books |
//! | `demo` | scenes |
//! | `tests` | a scenario for each promise of the interface |
//! | `bench` | figures |
//! | `fuzz` | calls at random, beside environments that must not notice |
//!
//! `player` has one of several roles for their scenes, `hammer` is what calls at random.
#![no_std]
#![forbid(unsafe_code)]

pub mod peer;

/// Words of the mailbox of `player`, the program that has one of several roles.
pub mod words {
    /// A [`Role`](super::Role).
    pub const ROLE: usize = 0;
    /// What the role is told.
    pub const FIRST: usize = 1;
    /// More of it.
    pub const SECOND: usize = 2;
    /// More of it.
    pub const THIRD: usize = 3;
    /// How far it is: counts up while the player runs.
    pub const PROGRESS: usize = 16;
    /// What it found wrong.
    pub const ERRORS: usize = 17;
    /// A result, as a call gives it: errors as the numbers below zero that they are.
    pub const RESULT: usize = 18;
    /// Another result.
    pub const OTHER: usize = 19;
    /// What the maker asks of it now; it becomes 0 when it is done.
    pub const ASKED: usize = 20;
    /// Arguments of that.
    pub const ARGUMENT: usize = 24;
}

macro_rules! roles {
    ($($(#[doc = $what:literal])+ $name:ident,)+) => {
        /// What a player does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u64)]
        pub enum Role { $($(#[doc = $what])+ $name),+ }

        impl Role {
            /// The role of a number.
            pub fn of(number: u64) -> Option<Role> {
                [$(Role::$name),+].get(number as usize).copied()
            }
        }
    };
}

roles! {
    /// Computes without an end, and checks some memory meanwhile: `FIRST` pages.
    Count,
    /// Makes calls that the maker asks for: number in `ASKED` plus 1, arguments from `ARGUMENT` on.
    Obey,
    /// Answers requests: each word plus 1. Yields otherwise.
    Serve,
    /// Takes `FIRST` pages, fills them, and gives back what it is asked for.
    Comply,
    /// Takes `FIRST` pages, fills them, and gives nothing back; `SECOND` is a page's number for the
    /// contents of the first one that is taken, 0 none, `THIRD` its capability; if that is all ones,
    /// `SECOND` is a swap server.
    Refuse,
    /// Does not stop when its slice ends.
    Greedy,
    /// Raises an exception that it has no handler for: `FIRST` 0 a division, 1 a missing page, 2 an
    /// unknown instruction, 3 a missing page whose handler is missing, too.
    Crash,
    /// Has a pattern in all registers, and counts when one is another.
    Registers,
    /// The same in vector registers.
    Vectors,
    /// Reads a word of page `FIRST`, by capability `SECOND`, as long as it can, and counts in
    /// `ERRORS` what is not zero.
    Watch,
    /// Loses its handlers' pages, has them restored, and raises exceptions meanwhile.
    Guarantee,
    /// Makes a request of environment `FIRST` again and again.
    Ask,
    /// Sends words to environment `FIRST` again and again.
    Send,
    /// As `Registers` and `Vectors`, serves requests, and is told of an alarm again and again, at
    /// once: how often is in `OTHER`.
    Alarms,
    /// Reads blocks of range `FIRST`, of which it may read 64, as many at a time as it can; counts
    /// in `ERRORS` what fails. `SECOND` 1: it is told of them at once, keeps patterns in registers
    /// meanwhile and serves requests; how often it is told is in `OTHER`.
    Disk,
    /// Writes patterns to the first 32 blocks of range `FIRST` and reads them back; counts in `ERRORS`
    /// what is not so.
    Keep,
    /// Never ends a request: the caller waits until it dies.
    Hold,
    /// Frees handed pages: a swap server that keeps what it is given.
    Swap,
    /// Has a pattern in all registers at a fault that nobody but its swap server can do anything
    /// about. Thawed, it begins anew, with `PROGRESS` 1, and says in `RESULT` how many of them the
    /// kernel kept.
    Submitted,
    /// Sends frames of an own page as fast as it can.
    Transmit,
    /// Serves calls of a procedure that takes so many rounds as the third word says: the first word
    /// plus the second. `FIRST` 1: it ends when the first word is 0; 2: it never answers then.
    Procedure,
    /// Calls the procedure of environment `FIRST` again and again, and counts in `ERRORS` what is
    /// answered wrong.
    Call,
}
