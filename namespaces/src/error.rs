//! What can be wrong with code that is brought to a namespace.

use postern_gates::map::MapError;
use postern_image::Signature;
use postern_verifier::Violation;
use thiserror::Error;

/// Code was not added to a namespace; nothing has changed then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The source is wrong.
    #[cfg(feature = "ecode")]
    #[error("{0}")]
    Source(#[from] postern_ecode::Errors),
    /// No file can be made of the source.
    #[cfg(feature = "ecode")]
    #[error("{0}")]
    Link(#[from] postern_ecode::LinkError),
    /// The object file is none, or needs what a namespace does not have.
    #[error("the object file: {0}")]
    Object(String),
    /// Nothing of this name is there to be used.
    #[error(
        "nothing provides `{0}`; define it, create it first, or grant a service of this name when the namespace is made"
    )]
    Unresolved(String),
    /// The name is a function's and of another type now.
    #[error(
        "`{name}` is `{found}` in the namespace, not `{wanted}`; delete it first, or declare it so"
    )]
    Signature {
        /// The function.
        name: String,
        /// Its types now.
        found: Signature,
        /// The types in the new code.
        wanted: Signature,
    },
    /// The name belongs to something that a new definition cannot take the place of.
    #[error("`{name}` is {what} already; choose another name, or delete it first")]
    Defined {
        /// The name.
        name: String,
        /// What it is.
        what: &'static str,
    },
    /// The code defines a name twice.
    #[error("the code defines `{0}` twice; give each function and variable a name of its own")]
    Twice(String),
    /// The code defines nothing that others could use.
    #[error("the code defines no function and no variable that is not static; define one")]
    Empty,
    /// The verifier refused the code: whoever compiled it is to blame.
    #[error("{place}: {violation}")]
    Refused {
        /// Function and line, where known.
        place: String,
        /// What and why.
        violation: Violation,
    },
    /// The code touches registers that the namespace leaves to the host.
    #[error(
        "the code uses {needs}; allow it with NamespaceBuilder::registers when the namespace is made"
    )]
    Registers {
        /// What it uses.
        needs: &'static str,
    },
    /// No room is left.
    #[error(
        "no room for {bytes} bytes of {what}; delete functions, or make the namespace with more room"
    )]
    Room {
        /// What for.
        what: &'static str,
        /// How many.
        bytes: usize,
    },
    /// An address of the code cannot be written.
    #[error(
        "an address does not fit where the code needs it; compile it with `postern cc -c`, or as E-code"
    )]
    Address,
    /// The kernel refused something.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The kernel cannot make the other threads see new code.
    #[error("membarrier failed: {0}")]
    Barrier(std::io::Error),
}
