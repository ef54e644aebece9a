//! What the kernel does when an exception cannot be delivered, because the handler's page or
//! another one of the second segment is missing (section 5.4).

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::context::Context;
use postern_aegis_abi::records::end;

use crate::{Books, Hardware};

/// What becomes of an environment in an emergency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Emergency {
    /// The mapping is there again: the environment goes on where it was.
    Restored,
    /// It goes on at this address, with what it was doing in `emerged`.
    Entry(u64),
    /// It is submitted or ends: the processor leaves it.
    Gone,
}

impl<H: Hardware> Books<'_, H> {
    /// Decides what becomes of the environment that runs here, which misses an address that
    /// nobody can be told of, at an instruction. A guaranteed mapping is restored; otherwise it is
    /// told by its `emergency`; otherwise it is submitted to its swap server, who takes its memory
    /// by the call Submit; otherwise it ends.
    pub fn emergency(&self, environment: u16, address: u64, at: u64) -> Emergency {
        if self.guarantee(environment, address) {
            return Emergency::Restored;
        }
        match self.entry_of(environment, offset_of!(Context, emergency)) {
            0 => {}
            entry => return Emergency::Entry(entry),
        }
        let server = self.environment(environment).server.load(Relaxed);
        if self.lives(server) {
            self.submit_running(environment);
            self.raise(server, Context::EVENT_SERVER);
        } else {
            self.end(environment, end::EMERGENCY, at);
        }
        Emergency::Gone
    }
}
