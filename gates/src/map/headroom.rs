//! How many mappings are left: whoever is about to map asks first, so that the host keeps a
//! reserve.

use super::error::{MapError, failed};
use super::limit::{SystemLimit, count, most};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Mappings that are left to the host.
pub(crate) const RESERVE: i64 = 1024;

/// Mappings that may still be made before they are counted again.
static LEFT: AtomicI64 = AtomicI64::new(0);
/// In tests: the kernel's own limit is what counts.
static UNCHECKED: AtomicBool = AtomicBool::new(false);

/// Says that about `mappings` more will be made, or that this would leave the host too few.
///
/// Counting takes the kernel about 0.2 us for each mapping, so it is done anew after an eighth as
/// many more as there were, but at least 256; what others of the process map meanwhile, and what is
/// given back, is found then. So this is an estimate, and the reserve is what it may be wrong by.
pub fn room(mappings: i64) -> Result<(), MapError> {
    if LEFT.fetch_sub(mappings, Ordering::Relaxed) >= mappings || UNCHECKED.load(Ordering::Relaxed)
    {
        return Ok(());
    }
    let Some(count) = count() else {
        return Ok(());
    };
    let left = most() - RESERVE - count;
    if left < mappings {
        LEFT.store(0, Ordering::Relaxed);
        return Err(failed("map memory", 0, io::Error::from_raw_os_error(libc::ENOMEM)).mappings());
    }
    LEFT.store(
        (count / 8).max(RESERVE / 4).min(left / 2),
        Ordering::Relaxed,
    );
    Ok(())
}

impl MapError {
    /// The same, where it is known that the limit of mappings was met.
    fn mappings(mut self) -> MapError {
        if let MapError::Refused { limit, .. } = &mut self {
            *limit = SystemLimit::Mappings;
        }
        self
    }
}

/// Has the kernel's own limit count, and no reserve, for tests of what happens when the kernel
/// refuses.
#[doc(hidden)]
pub fn without_reserve() {
    UNCHECKED.store(true, Ordering::SeqCst);
}
