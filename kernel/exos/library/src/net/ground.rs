//! Ports, as filters that the kernel delivers frames by.

use core::net::Ipv4Addr;

use postern_aegis::{Error, books, calls, slices};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_net::ports::Claim;
use postern_exos_net::stack::Ground;

use crate::net::inlet::Inlet;
use crate::net::trusted;
use crate::process::registry;

/// Filters that a process has at most.
pub const CLAIMS: usize = 20;
/// Parts of devices that it may have besides, and how many more are asked for at once: a machine has
/// few of them, so nobody has more than are needed.
const HOLDINGS: u64 = 4;

/// What is claimed, and the endpoint for it.
#[derive(Debug, Default)]
pub struct Claims {
    all: [Option<(Claim, usize)>; CLAIMS],
    /// Parts of devices that were asked for.
    asked: u64,
}

/// Claims, with what they need.
#[derive(Debug)]
pub struct Claiming<'a> {
    /// What is claimed.
    pub claims: &'a mut Claims,
    /// Where frames go.
    pub inlet: &'a Inlet,
    /// This machine's address.
    pub address: Ipv4Addr,
}

impl Claiming<'_> {
    /// Claims what is not claimed yet.
    pub fn claim_once(&mut self, claim: Claim) -> Result<(), Errno> {
        let mut all = self.claims.all.iter().flatten();
        match all.any(|(claimed, _)| *claimed == claim) {
            true => Ok(()),
            false => self.claim(claim),
        }
    }
}

impl Ground for Claiming<'_> {
    fn claim(&mut self, claim: Claim) -> Result<(), Errno> {
        let claims = self.claims.all.iter().flatten().count() as u64 + 1;
        let wanted = claims.next_multiple_of(HOLDINGS) + HOLDINGS;
        if wanted > self.claims.asked {
            // Fewer serve as well.
            let _ = registry::holdings(wanted);
            self.claims.asked = wanted;
        }
        let free = self.claims.all.iter_mut().find(|place| place.is_none());
        let place = free.ok_or(errno::NOBUFS)?;
        let filter = claim.filter();
        let endpoint = self
            .inlet
            .bind(filter.as_str(), 0)
            .map_err(|error| match error {
                Error::Taken => errno::ADDRINUSE,
                Error::NoDevice => errno::NETDOWN,
                _ => errno::NOBUFS,
            })?;
        // Who was there before gets the frames, and this filter nothing: it is somebody else's port.
        let mut first = [0];
        let sample = claim.sample(self.address);
        let found = calls::matches(&sample, &mut first);
        if found.is_ok() && first != [endpoint as u64] {
            let _ = calls::drop_holding(endpoint, 0);
            return Err(errno::ADDRINUSE);
        }
        *place = Some((claim, endpoint));
        Ok(())
    }

    fn leave(&mut self, claim: Claim) {
        for place in &mut self.claims.all {
            if let Some((_, endpoint)) = place.take_if(|(claimed, _)| *claimed == claim) {
                let _ = calls::drop_holding(endpoint, 0);
            }
        }
    }

    fn own(&self) -> u16 {
        books::own_number()
    }

    fn random(&mut self) -> u32 {
        random() as u32
    }
}

/// A number that nobody guesses: the processor's, and its clock.
pub fn random() -> u64 {
    trusted::random() ^ slices::clock()
}
