//! Who lives.

use core::sync::atomic::Ordering::Acquire;

use postern_aegis_abi::ENVIRONMENTS;
use postern_aegis_abi::records::{claim, stopping};

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// Whether there is an environment of this number, and it is not to end.
    pub fn lives(&self, environment: u16) -> bool {
        let record = self.environment(environment);
        let there = !matches!(
            record.claim.load(Acquire),
            claim::FREE | claim::ENDING | claim::CHANGING
        );
        (1..ENVIRONMENTS as u16).contains(&environment)
            && there
            && record.stopping.load(Acquire) != stopping::END
    }
}

/// The environment that an argument of a call names: 0 is the caller.
#[inline]
pub(crate) fn meant(caller: u16, environment: u16) -> u16 {
    if environment == 0 {
        caller
    } else {
        environment
    }
}
