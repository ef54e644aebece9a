//! Memory that the host has mapped already: may it be shared? The kernel's list of mappings says.

use crate::error::ShareError;
use crate::maps;

/// Whether `[start, start + len)` is all of one shared mapping (in one piece or, after changes of
/// protection, in several).
pub(super) fn check(start: usize, len: usize) -> Result<(), ShareError> {
    let end = start.checked_add(len).ok_or(ShareError::NotMapped {
        address: usize::MAX,
    })?;
    let maps = maps::list("self").map_err(|e| ShareError::System {
        what: "read /proc/self/maps",
        reason: e.to_string(),
    })?;
    let mut reached = start;
    let mut file = None;
    for m in maps
        .iter()
        .filter(|m| m.end > start as u64 && m.start < end as u64)
    {
        if m.start > reached as u64 {
            break;
        }
        if !m.shared {
            return Err(ShareError::Private { address: reached });
        }
        // Which file, and which byte of it lies at address 0.
        let identity = (m.file, m.at.wrapping_sub(m.start));
        if *file.get_or_insert(identity) != identity {
            return Err(ShareError::Several { address: reached });
        }
        reached = m.end as usize;
    }
    match reached >= end {
        true => Ok(()),
        false => Err(ShareError::NotMapped { address: reached }),
    }
}
