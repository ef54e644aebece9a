//! Packet filters, compiled to machine code that the verifier accepts and that ends by itself.
//!
//! [`Filter::compile`] reads an expression of the language that `pcap-filter(7)` describes, for
//! Ethernet, [`Filter::classic`] a program for the BSD packet filter as `tcpdump -ddd` prints it.
//! Both become the same intermediate form: a graph of tests without cycles. [`Filter::code`] makes
//! machine code of it, of the verifier's `Bounded` profile: its branches go forward only, so the
//! longest path is known before it runs.
//!
//! The order of reading: `token`, `parse` (source to steps), `lower` (steps to a `program` of tests
//! of `expression`s), `classic`, `flow` (what a test says about the ones after it), `encode`
//! (bytes), `run` (the same without machine code). [`set`] is for many filters; with the feature
//! `domain`, `classifier` runs sets of any size in a domain.
//!
//! ```
//! use postern_filter::{Filter, NoNames};
//! let filter = Filter::compile("tcp port 80", &NoNames).unwrap();
//! assert_eq!(filter.run(&[0; 60], 60), 0);
//!
//! let error = Filter::compile("tpc port 80", &NoNames).unwrap_err();
//! assert_eq!(error.suggestion.as_deref(), Some("did you mean `tcp`?"));
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
// Only sets' machine code has tables that change.
#![cfg_attr(not(feature = "domain"), allow(dead_code))]

extern crate alloc;
#[cfg(all(not(test), feature = "domain"))]
extern crate std;

pub mod capture;
pub mod classic;
#[cfg(feature = "domain")]
pub mod classifier;
mod code;
mod encode;
mod error;
mod expression;
mod flow;
mod keyword;
mod link;
mod list;
#[cfg(feature = "domain")]
mod loaded;
mod lookup;
mod lower;
mod names;
mod parse;
mod program;
mod run;
pub mod set;
mod show;
mod token;
mod tree;
mod warning;

pub use code::{Code, KERNEL_SIGNATURE, SIGNATURE};
pub use error::Error;
pub use link::Link;
#[cfg(feature = "domain")]
pub use loaded::Loaded;
pub use lower::Options;
pub use names::{Databases, Names, NoNames};
pub use postern_verifier::Facts;
pub use warning::warnings;

use encode::Site;
use program::Program;

// What the tests draw at random, for those that look inside.
#[cfg(test)]
#[path = "../tests/support/expressions.rs"]
mod expressions;
#[cfg(test)]
#[path = "../tests/support/lists.rs"]
mod lists;
#[cfg(test)]
#[path = "../tests/support/packets.rs"]
mod packets;

/// A filter, ready to be asked or to become machine code.
#[derive(Clone, Debug)]
pub struct Filter {
    program: Program,
}

impl Filter {
    /// Compiles an expression with the default options. The empty one accepts everything.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn compile(source: &str, names: &dyn Names) -> Result<Filter, Error> {
        Filter::compile_with(source, names, Options::default())
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn compile_with(
        source: &str,
        names: &dyn Names,
        options: Options,
    ) -> Result<Filter, Error> {
        let steps = parse::parse(source)?;
        let mut program = lower::compile(&steps, names, options)?;
        flow::simplify(&mut program);
        Ok(Filter { program })
    }

    /// Reads a classic program: a count, then so many lines of four decimal numbers.
    ///
    /// # Errors
    /// The first thing that is wrong; [`Error::at`] counts lines.
    pub fn classic(text: &str) -> Result<Filter, Error> {
        let mut program = classic::read(text)?;
        flow::simplify(&mut program);
        Ok(Filter { program })
    }

    /// A program for the classic machine that does the same, as `tcpdump -ddd` prints it; nothing
    /// if it would be too long, or needs more than that machine can. Run by the kernel it knows
    /// nothing of tags that were taken out: [`classic::Gate`] does.
    pub fn to_classic(&self) -> Option<alloc::vec::Vec<classic::Instruction>> {
        classic::exact(&self.program)
    }

    /// Machine code that does the same, as a function `u32 filter(packet, wire, captured)`: the
    /// packet's offset in the window, its length on the wire, and its captured bytes
    /// ([`SIGNATURE`]).
    pub fn code(&self) -> Code {
        self.code_for(Site::Process)
    }

    /// The same for the kernel's packet hooks, as a function `long filter(packet, captured, wire,
    /// hook)` ([`KERNEL_SIGNATURE`]) whose memory is behind fs. What a hook is given begins with
    /// the network header, so the filter is to be compiled for [`Link::Raw`].
    pub fn kernel_code(&self) -> Code {
        self.code_for(Site::Kernel)
    }

    fn code_for(&self, site: Site) -> Code {
        Code::new(site, encode::encode(site, &list::searched(&self.program)))
    }

    /// How many tests the filter has: its code takes a hundred bytes and as many instructions for
    /// each, at most.
    pub fn tests(&self) -> usize {
        self.program.nodes.len()
    }

    /// How many bytes of a packet the filter accepts, 0 if it rejects it; `wire` is the length that
    /// the packet had before it was captured. Without machine code.
    pub fn run(&self, packet: &[u8], wire: u32) -> u32 {
        let view = run::View {
            bytes: packet,
            wire,
        };
        self.program.run(view)
    }
}

impl core::fmt::Display for Filter {
    /// The tests as the code makes them: what each asks, and where it goes on.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        list::searched(&self.program).fmt(f)
    }
}
