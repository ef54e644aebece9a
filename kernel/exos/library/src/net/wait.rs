//! Waiting for the network: a process sleeps until a frame comes, or its stack has something to do.

use postern_aegis::{entry, time};
use postern_exos_abi::errno::{self, Errno};

use crate::net::own::{self, Net};
use crate::process::signals;

/// Microseconds that a process sleeps at most: signals are looked at as often.
const NAP: u64 = 20_000;
/// Less is not slept but yielded: clocks of sleepers are looked at once in a slice.
const SHORT: u64 = 500;

/// How long something is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Not at all.
    Now,
    /// Until a time in microseconds, as [`own::now`] has it.
    Time(u64),
    /// For ever.
    Ever,
}

impl Until {
    /// So many microseconds from now on.
    pub fn after(microseconds: u64) -> Until {
        Until::Time(own::now().saturating_add(microseconds))
    }

    /// Microseconds that are left; `None`: it is over.
    pub fn left(self) -> Option<u64> {
        match self {
            Until::Now => None,
            Until::Ever => Some(u64::MAX),
            Until::Time(time) => time.checked_sub(own::now()).filter(|left| *left != 0),
        }
    }
}

/// Sleeps until something may have come, at most so long.
pub fn rest(most: u64) {
    let most = most.min(NAP);
    if most < SHORT || time::alarm(most).is_err() {
        return entry::yield_slice();
    }
    entry::sleep_unless(own::has_come);
}

/// Attempts something until it is not to be waited for any more ([`errno::AGAIN`] is), with the network
/// polled before and behind.
pub fn attempt<T>(
    until: Until,
    mut act: impl FnMut(&mut Net) -> Result<T, Errno>,
) -> Result<T, Errno> {
    loop {
        let mut left = None;
        let result = own::with(|net| {
            net.poll();
            net.tend();
            let result = act(net);
            net.poll();
            left = net.rest();
            result
        });
        if result.as_ref().err() != Some(&errno::AGAIN) {
            return result;
        }
        let most = until.left().ok_or(errno::AGAIN)?;
        if signals::poll() {
            return Err(errno::INTR);
        }
        rest(most.min(left.unwrap_or(u64::MAX)));
    }
}
