//! Labels, and what is noted of the branches to them.

use core::fmt;

/// Where a label is that nobody bound.
pub(crate) const UNBOUND: u32 = u32::MAX;

/// A place in the code. Its number is the user's choice, and should be small: there is a table as
/// long as the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(pub u32);

/// How many bytes a jump's distance has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One: 128 bytes back, 127 forward.
    Short,
    /// Four.
    Near,
}

/// A jump or call to a label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    /// Position of the distance, which counts from behind it.
    pub at: u32,
    pub to: Label,
    pub reach: Reach,
}

impl Branch {
    /// The position behind it.
    pub fn end(&self) -> u32 {
        self.at
            + match self.reach {
                Reach::Short => 1,
                Reach::Near => 4,
            }
    }
}

/// Why branches cannot be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// A branch leads to a label that was never bound.
    Unbound(Label),
    /// The short jump whose distance is at this position does not reach its label.
    TooFar(u32),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Unbound(Label(number)) => write!(f, "label {number} is nowhere"),
            LinkError::TooFar(at) => write!(f, "the short jump at {at} does not reach its label"),
        }
    }
}

impl core::error::Error for LinkError {}
