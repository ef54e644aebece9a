//! Frames that come: a ring, and a page for each of its places. Several endpoints may have one inlet;
//! what comes is in the order of its arrival.

use postern_aegis::ring::Ring;
use postern_aegis::{Error, Mapping, PAGE, calls, memory};
use postern_exos_net::stack::Arrivals;

use crate::memory::room;
use crate::net::trusted;

/// Frames that wait at most. What comes then is lost, and counted in the endpoint's record.
pub const FRAMES: usize = 32;

/// An inlet. It is this environment's alone: a copy of the process has none.
#[derive(Debug)]
pub struct Inlet {
    ring: Ring,
    /// Where the first place's page stands.
    at: u64,
    pages: [u32; FRAMES],
    /// The place of the frame that was told and not done with, and its length.
    current: Option<(usize, usize)>,
    /// How many were done with.
    done: u64,
}

impl Inlet {
    /// An inlet that no endpoint has yet.
    pub fn new() -> Result<Inlet, Error> {
        room::ahead(FRAMES as u64 + 2)?;
        let at = memory::reserve(FRAMES as u64);
        let mut inlet = Inlet {
            ring: room::patiently(Ring::new)?,
            at,
            pages: [0; FRAMES],
            current: None,
            done: 0,
        };
        for index in 0..FRAMES {
            let to = at + (index * PAGE) as u64;
            let page = room::patiently(|| memory::map_fresh(to, Mapping::WRITE))?;
            inlet.pages[index] = page;
            inlet.ring.offer(u64::from(page) << 12, 0);
        }
        Ok(inlet)
    }

    /// Has frames come that a filter accepts, and nobody has whose filter is older or of a higher
    /// priority: the endpoint's number.
    pub fn bind(&self, filter: &str, priority: u32) -> Result<usize, Error> {
        // Through the stack, whose pages are this process's own for sure.
        let mut text = [0; postern_aegis::abi::FILTER];
        let place = text.get_mut(..filter.len()).ok_or(Error::Argument)?;
        place.copy_from_slice(filter.as_bytes());
        let filter = core::str::from_utf8(place).map_err(|_| Error::Argument)?;
        calls::bind(filter, priority, self.ring.page())
    }

    /// Has an endpoint's frames go to a handler first, and here if that is not done with them.
    pub fn direct(&self, endpoint: usize, handler: usize) -> Result<(), Error> {
        calls::direct(endpoint, self.ring.page(), handler).map(drop)
    }

    /// Whether there is a frame.
    pub fn has_some(&self) -> bool {
        self.current.is_some() || trusted::filled(self.ring_at()) != self.done
    }

    /// Where the ring's count of what came stands, and what it is when all was seen.
    pub fn watch(&self) -> (u64, u64) {
        (self.ring_at(), self.done)
    }

    fn ring_at(&self) -> u64 {
        self.ring.address()
    }

    /// Looks for a frame, if there was none.
    pub fn look(&mut self) {
        if self.current.is_none() {
            self.current = self.ring.next().map(|told| {
                let place = (self.done % FRAMES as u64) as usize;
                (place, told.length().min(PAGE))
            });
        }
    }
}

impl Arrivals for Inlet {
    fn first(&self) -> Option<&[u8]> {
        let (place, length) = self.current?;
        Some(trusted::frame(self.at + (place * PAGE) as u64, length))
    }

    fn next(&mut self) {
        if let Some((place, _)) = self.current.take() {
            self.done += 1;
            self.ring.offer(u64::from(self.pages[place]) << 12, 0);
        }
        self.look();
    }
}
