//! Extensions: native code of others in protection domains inside the process, called like
//! functions. What a host on Linux has of the crate `postern`, on the same gates.
//!
//! An [`Image`] is an extension file (`.px`) whose every claim was checked and whose code was
//! verified; a [`Domain`] is one in a window of 4 GiB of the process. What an extension does wrong
//! comes as an exception of Aegis, and becomes a [`Fault`]; a call that takes too long ends at the
//! end of a slice.
//!
//! Invariant: no byte of a window is executed that the verifier has not judged where it stands, and
//! nothing is put into a window but by its domain.

mod domain;
mod engine;
mod fault;
mod image;
mod pages;
mod trusted;

pub use domain::{Domain, Options};
pub use engine::{Failure, clear_failure, in_service, read_caller, with_failure};
pub use fault::{Fault, FaultKind};
pub use image::Image;
pub use trusted::service;

use alloc::string::String;
use postern_gates::map::MapError;
use postern_image::ImageError;
use postern_verifier::Violation;

/// Why there is no image, no domain or no function.
#[derive(Clone, Debug)]
pub enum ExtensionError {
    /// The file is no well-formed extension.
    Image(ImageError),
    /// Its parts do not fit into a window.
    Shape,
    /// The verifier refuses the code.
    Refused(Violation),
    /// The processor lacks what it needs.
    Machine(String),
    /// There are no pages, or no control blocks.
    Memory(MapError),
    /// Nobody provides what it imports.
    Unresolved(String),
    /// An import or export has other types.
    Signature(String),
    /// There is no export of this name, or its place is no start of an instruction.
    Missing(String),
    /// A size that does not fit.
    Limit,
    /// A call of the thread is inside the domain.
    Busy,
    /// Its constructors did not return.
    Constructors,
}

impl core::fmt::Display for ExtensionError {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ExtensionError::Image(error) => write!(to, "{error}"),
            ExtensionError::Shape => to.write_str("the image does not fit into a window"),
            ExtensionError::Refused(why) => write!(to, "the verifier refuses it: {why}"),
            ExtensionError::Machine(what) => write!(to, "the processor has no {what}"),
            ExtensionError::Memory(error) => write!(to, "{error}"),
            ExtensionError::Unresolved(name) => write!(to, "nobody provides `{name}`"),
            ExtensionError::Signature(name) => write!(to, "`{name}` has other types"),
            ExtensionError::Missing(name) => write!(to, "there is no export `{name}`"),
            ExtensionError::Limit => to.write_str("a size does not fit the window"),
            ExtensionError::Busy => to.write_str("a call is inside the domain"),
            ExtensionError::Constructors => to.write_str("its constructors did not return"),
        }
    }
}

impl From<MapError> for ExtensionError {
    fn from(error: MapError) -> ExtensionError {
        ExtensionError::Memory(error)
    }
}
