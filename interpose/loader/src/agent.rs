//! Who is asked about calls.

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call is made.
    Pass,
    /// It is not, and has this result.
    Answer(i64),
}

/// Asks about a call.
pub fn ask(_number: u64, _arguments: [u64; 6]) -> Verdict {
    Verdict::Pass
}
