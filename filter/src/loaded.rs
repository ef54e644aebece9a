//! A filter as machine code in a domain of its own.

use postern::{CallError, Domain, Func, Image, Offset, RestartPolicy};

use crate::Code;
use crate::classifier::{ClassifierError, ROOM, ended, failed};

/// A filter that is ready to be called. Packets that lie in areas which [`Loaded::domain`] sees are
/// judged there, others are copied.
pub struct Loaded {
    domain: Domain,
    room: Offset,
    entry: Func<fn(Offset, u32, u32) -> u32>,
}

impl Code {
    /// Loads the code; `room` is whether there shall be room for packets that are copied.
    ///
    /// # Errors
    /// The verifier refuses the code, or a domain cannot be made.
    pub fn load(&self, room: bool) -> Result<Loaded, ClassifierError> {
        let cannot = "cannot load the filter's code";
        let mut builder = self.builder();
        if room {
            builder.data([0; 16], ROOM as u64);
        }
        let room = Offset(builder.layout().map_err(failed(cannot))?.data);
        let file = builder.build().map_err(failed(cannot))?;
        let image = Image::from_bytes(&file).map_err(failed(cannot))?;
        let domain = Domain::builder(&image)
            .name("filter")
            .restart(RestartPolicy::Immediate)
            .build()
            .map_err(failed(cannot))?;
        let entry = domain.func("filter").map_err(failed(cannot))?;
        Ok(Loaded {
            domain,
            room,
            entry,
        })
    }
}

impl Loaded {
    /// The domain, to show it packets in areas.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// How many bytes of a packet are accepted, 0 if it is rejected. It is copied to the filter's
    /// room, so one thread at a time may ask this; what lies beyond [`ROOM`] bytes counts as not
    /// captured.
    ///
    /// # Errors
    /// There is no room, or the call failed.
    pub fn run(&self, packet: &[u8], wire: u32) -> Result<u32, ClassifierError> {
        let seen = &packet[..packet.len().min(ROOM)];
        let written = self.domain.write(self.room, seen);
        written.map_err(failed("cannot copy the packet"))?;
        let verdict = self.run_at(self.room, wire, seen.len() as u32);
        verdict.map_err(ended("cannot judge a packet"))
    }

    /// The same for a packet of which `captured` bytes lie at `packet` in an area that the domain
    /// sees. Any number of threads may ask.
    ///
    /// # Errors
    /// The call failed, as it does if the packet does not lie there.
    #[inline]
    pub fn run_at(&self, packet: Offset, wire: u32, captured: u32) -> Result<u32, CallError> {
        self.entry.call(packet, wire, captured)
    }
}
