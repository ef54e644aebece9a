//! What can go wrong before a call, and who is to blame.

mod call;
mod common;

pub use call::{AllocError, CallError, InstantiateError};
pub use common::CommonError;

use postern_gates::map::{MapError, SystemLimit};
use postern_image::input::ReadError;
use postern_image::{ImageError, Signature};
use postern_verifier::Violation;
use std::path::PathBuf;
use thiserror::Error;

/// An extension file was not loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ReadError,
    },
    /// The file was read, and cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<LoadError>,
    },
    /// The file's form is wrong.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The verifier refused the code: the extension (or whoever compiled it) is to blame.
    #[error("{place}: {violation}")]
    Refused {
        /// Offset of the instruction.
        offset: u32,
        /// Symbol and source line, where known.
        place: String,
        /// What and why.
        violation: Violation,
    },
    /// An export is not a place where code may be entered.
    #[error("export `{name}` at {offset:#x} is not the start of a verified instruction")]
    Export {
        /// Its name.
        name: String,
        /// Its offset.
        offset: u32,
    },
    /// The image is for the kernel, whose images address memory through fs.
    #[error(
        "the image is for the kernel (it addresses memory through fs) and cannot run in a process; compile with `postern cc` without --kernel"
    )]
    Segment,
    /// The processor lacks something that the code uses.
    #[error("the code needs {0}, which this processor lacks; compile for an older -march")]
    Machine(String),
    /// Calls of it were to be bounded by their instructions.
    #[error(
        "it imports functions of the memory gate, whose time no number of instructions bounds; link it with -fpostern-no-memory-gate"
    )]
    MemoryGate,
    /// The kernel refused a memory file.
    #[error(
        "cannot build the image in memory: {0}; {why}",
        why = why_no_file(.0)
    )]
    Memory(std::io::Error),
    /// The kernel refused address space.
    #[error(transparent)]
    Map(#[from] MapError),
    /// Postern cannot run here.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl LoadError {
    /// The error without the name of the file.
    pub fn cause(&self) -> &LoadError {
        match self {
            LoadError::File { source, .. } => source.cause(),
            other => other,
        }
    }
}

/// What may be done about a memory file that cannot be had.
fn why_no_file(error: &std::io::Error) -> String {
    match SystemLimit::of(error, 0) {
        SystemLimit::Other => "check `sysctl vm.memfd_noexec`: it must not be 2".to_owned(),
        limit => limit.to_string(),
    }
}

/// Postern cannot run in this process.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The machine lacks something.
    #[error("{0}")]
    Machine(String),
    /// The kernel refused something.
    #[error("cannot {what}: {reason}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's words.
        reason: String,
    },
    /// `init` was called with another configuration after the first use.
    #[error(
        "Postern is already running with another configuration; call init before everything else"
    )]
    Configured,
}

/// A function of an extension was not found as asked.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum SymbolError {
    /// No such export.
    #[error("the image exports no `{name}`{}", suggestion(.nearest))]
    Missing {
        /// The name asked for.
        name: String,
        /// The export that is spelt most like it.
        nearest: Option<String>,
    },
    /// The types differ.
    #[error("`{name}` is `{found}`, not `{wanted}`")]
    Signature {
        /// The export.
        name: String,
        /// Its signature.
        found: Signature,
        /// The one asked for.
        wanted: Signature,
    },
    /// The image does not say the types.
    #[error(
        "the image does not say the types of `{0}` (no debug information, variadic, or a structure by value); name them where you can: func_unchecked in Rust, pt_domain_sym in C"
    )]
    Untyped(String),
    /// A peer's parameters must be in registers.
    #[error(
        "`{0}` has parameters on the stack, so no peer can call it: at most six integers and eight floats"
    )]
    Parameters(String),
    /// The offset is not a function.
    #[error("offset {0:#x} is not the start of a verified function")]
    NotAFunction(u32),
    /// No stub could be made.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// A peer was not bound to an import.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The import is not one that peers serve.
    #[error("`{0}` is no import that was left open; say so before build(): peer_open(\"{0}\")")]
    NotOpen(String),
    /// The types differ.
    #[error("peer `{name}`: the extension expects `{expected}`, the other exports `{offered}`")]
    Signature {
        /// The import.
        name: String,
        /// Its signature.
        expected: Signature,
        /// The export's.
        offered: Signature,
    },
    /// The import has no type.
    #[error(
        "the image does not say the types of its import `{0}` (no debug information, variadic, or a structure by value), so no peer can serve it"
    )]
    Untyped(String),
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or_else(String::new, |n| format!("; did you mean `{n}`?"))
}

/// Memory of a domain could not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Not all of the range is mapped with the access needed.
    #[error("[{offset:#x}, {offset:#x} + {len:#x}) is not all {access} in the domain")]
    Outside {
        /// First offset.
        offset: u32,
        /// Length in bytes.
        len: usize,
        /// `readable` or `writable`.
        access: &'static str,
    },
    /// A page of the range was taken away meanwhile, or the file behind it was truncated.
    #[error(
        "a page of [{offset:#x}, {offset:#x} + {len:#x}) is gone: its file was truncated, or the domain's right to it was taken meanwhile; a part of the range may have been copied"
    )]
    Gone {
        /// First offset.
        offset: u32,
        /// Length in bytes.
        len: usize,
    },
    /// Not all of the range is in the area.
    #[error("[{at:#x}, {at:#x} + {len:#x}) is not all in the area, which has {size:#x} bytes")]
    BeyondArea {
        /// First byte.
        at: usize,
        /// Length in bytes.
        len: usize,
        /// The area's.
        size: usize,
    },
    /// The area is read-only.
    #[error("the area is read-only, because its file or mapping is; open the file for writing")]
    ReadOnlyArea,
    /// No NUL byte was found in time.
    #[error("no NUL byte within {limit} bytes of {offset:#x}")]
    Unterminated {
        /// First offset.
        offset: u32,
        /// How far was looked.
        limit: usize,
    },
    /// The domain's heap has no room, or the image exports no `malloc`.
    #[error("the domain's heap has no room for {0} bytes (or the image exports no malloc)")]
    NoRoom(usize),
}

/// Memory was not shared.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum ShareError {
    /// No such length.
    #[error(
        "an area of {0} bytes cannot be shared: it has at least one and fits a window with its heap"
    )]
    Length(usize),
    /// All offsets for shared areas are in use.
    #[error("no room for a shared area of {0} bytes; drop others first")]
    NoRoom(usize),
    /// The place asked for is beyond the window.
    #[error(
        "no area of {len:#x} bytes can lie at {offset:#x}: areas begin at multiples of 0x1000 from 0x100000 up and end, with a page behind them, below 0xffff0000"
    )]
    Place {
        /// The offset asked for.
        offset: u32,
        /// Length in bytes.
        len: usize,
    },
    /// The place asked for is another area's.
    #[error(
        "offset {offset:#x} is taken: area `{other}` or the page behind it overlaps; choose another place, or none"
    )]
    Taken {
        /// The offset asked for.
        offset: u32,
        /// The area that is there.
        other: String,
    },
    /// A number is not one of whole pages.
    #[error("{0:#x} is not a multiple of 4096: only whole pages can be shared and protected")]
    Misaligned(u64),
    /// The range is not all in the area.
    #[error("bytes {start:#x} to {end:#x} are not all in the area, which has {size:#x}")]
    Beyond {
        /// First byte.
        start: usize,
        /// Behind the last byte.
        end: usize,
        /// The area's length.
        size: usize,
    },
    /// The file is too short.
    #[error("[{at:#x}, {at:#x} + {len:#x}) is not all in the file, which has {size:#x} bytes")]
    Range {
        /// First offset in the file.
        at: u64,
        /// Length in bytes.
        len: usize,
        /// The file's size.
        size: u64,
    },
    /// Memory of the host that only this mapping has.
    #[error(
        "the memory at {address:#x} is private to this process's mapping (heap, stack, MAP_PRIVATE), so no domain can see the same pages; put the data into `Shared::new` (pt_shared_new), or allocate it with memfd_create and mmap(MAP_SHARED) and expose that"
    )]
    Private {
        /// The first such address.
        address: usize,
    },
    /// Nothing is mapped there.
    #[error("nothing is mapped at {address:#x}; expose whole pages of one shared mapping")]
    NotMapped {
        /// The first such address.
        address: usize,
    },
    /// Pages of different files.
    #[error("another mapping begins at {address:#x}; expose each one alone")]
    Several {
        /// Where.
        address: usize,
    },
    /// The area cannot be written.
    #[error("area `{0}` is read-only, because its file or mapping is; give the domain read access")]
    ReadOnly(String),
    /// The domain is too large.
    #[error(
        "the domain's heap and stacks reach to {reached:#x}, over the place of area `{area}`; give it a smaller heap"
    )]
    Overlap {
        /// The area.
        area: String,
        /// How far heap and stacks reach.
        reached: u32,
    },
    /// Seen already.
    #[error(
        "the domain sees area `{0}` already, with other access; change that with protect (pt_domain_protect)"
    )]
    Already(String),
    /// Postern cannot run here.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The kernel refused something.
    #[error("cannot {what}: {reason}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's words.
        reason: String,
    },
    /// The kernel refused address space.
    #[error(transparent)]
    Map(#[from] MapError),
}
