//! The library and the root environment, built by cargo in their own workspace.

use postern_aegis_machine::build::{self, BuildError};

use crate::place;

/// Builds Aegis, the library and the root environment, without a word if they can be built.
pub fn all() -> Result<(), BuildError> {
    build::all()?;
    library()
}

/// Builds the library and the root environment.
pub fn library() -> Result<(), BuildError> {
    let words = ["build", "--release", "--quiet", "--color", "never"];
    build::cargo_in(&place::sources(), &words).map(drop)
}
