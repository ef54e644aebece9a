//! Waiting that a deadline, a signal or the end of the domain interrupts.

use postern_runtime::system::interruption;
use rustix::io::Errno;
use std::time::Duration;

/// Tries until there is a result, or the runtime says why the call is to give up. What is tried
/// waits no longer than it is told.
pub(crate) fn waiting<T>(
    mut attempt: impl FnMut(Duration) -> Result<Option<T>, Errno>,
) -> Result<T, Errno> {
    const SLICE: Duration = Duration::from_millis(10);
    loop {
        if let Some(error) = interruption() {
            return Err(error);
        }
        if let Some(done) = attempt(SLICE)? {
            return Ok(done);
        }
    }
}
