//! Messages in the compiler's form: `file:line: error: what and why`.

use std::fmt;

use crate::assembly::SourceLocation;

/// One message about one place of the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What the user should look at.
    pub place: SourceLocation,
    /// What is wrong and, where there is one, the remedy.
    pub message: String,
}

impl Diagnostic {
    /// A message about `place`.
    pub fn new(place: &SourceLocation, message: impl Into<String>) -> Self {
        Self {
            place: place.clone(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: error: {}", self.place, self.message)
    }
}
