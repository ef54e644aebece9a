//! Frames that go: pages of this process's that are filled in turn. At most eight frames of an
//! environment are under way, and they are done with in their order, so sixteen places are enough.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::device::{self, Piece};
use postern_aegis::{Error, Mapping, PAGE, books, calls, memory};
use postern_exos_net::frame::LONGEST;
use postern_exos_net::stack::Departures;

use crate::memory::room;
use crate::net::trusted;

/// Places for frames, two in each page.
const PLACES: usize = 2 * device::FRAMES;
const PAGES: usize = PLACES / 2;

/// An outlet. It is this environment's alone.
#[derive(Debug)]
pub struct Outlet {
    at: u64,
    pages: [u32; PAGES],
    turn: usize,
    /// Bytes of the next place that are to go, and could not yet.
    waits: usize,
}

impl Outlet {
    /// One with all places free.
    pub fn new() -> Result<Outlet, Error> {
        room::ahead(PAGES as u64)?;
        let at = memory::reserve(PAGES as u64);
        let mut pages = [0; PAGES];
        for (index, page) in pages.iter_mut().enumerate() {
            let to = at + (index * PAGE) as u64;
            *page = room::patiently(|| memory::map_fresh(to, Mapping::WRITE))?;
        }
        Ok(Outlet {
            at,
            pages,
            turn: 0,
            waits: 0,
        })
    }

    /// Sends what could not go before; whether nothing waits any more.
    pub fn flush(&mut self) -> bool {
        if self.waits == 0 {
            return true;
        }
        let page = self.pages[self.turn / 2];
        let piece = Piece {
            place: u64::from(page) << 12 | self.offset(),
            length: self.waits as u64,
            capability: 0,
        };
        match calls::send(&[piece]) {
            Err(Error::Again) => false,
            // What cannot be sent at all is lost, as frames are.
            _ => {
                self.waits = 0;
                self.turn = (self.turn + 1) % PLACES;
                true
            }
        }
    }

    fn offset(&self) -> u64 {
        (self.turn % 2 * PAGE / 2) as u64
    }

    /// Sends a copy of a frame, which may be as long as a page if it is for this machine itself;
    /// whether it went.
    pub fn send_frame(&mut self, frame: &[u8]) -> bool {
        if frame.len() > PAGE / 2 {
            return self.send_page(frame);
        }
        let place = self.place().and_then(|place| place.get_mut(..frame.len()));
        match place {
            Some(place) => {
                place.copy_from_slice(frame);
                self.send(frame.len());
                true
            }
            None => false,
        }
    }
}

impl Outlet {
    /// Sends a copy of a frame that takes both places of a page. The kernel copies it, too, before
    /// it says that it went.
    fn send_page(&mut self, frame: &[u8]) -> bool {
        if under_way() >= device::FRAMES - 1 || !self.flush() || frame.len() > PAGE {
            return false;
        }
        self.turn = self.turn.next_multiple_of(2) % PLACES;
        let at = self.at + (self.turn / 2 * PAGE) as u64;
        let place = trusted::frame_to_fill(at, frame.len());
        place.copy_from_slice(frame);
        self.waits = frame.len();
        self.flush()
    }
}

/// Frames of this environment's that are under way.
pub fn under_way() -> usize {
    let record = books::environment(books::own_number());
    record.frames.load(Relaxed) as usize
}

impl Departures for Outlet {
    fn place(&mut self) -> Option<&mut [u8]> {
        if under_way() >= device::FRAMES || !self.flush() {
            return None;
        }
        let at = self.at + (self.turn / 2 * PAGE) as u64 + self.offset();
        Some(trusted::frame_to_fill(at, LONGEST))
    }

    fn send(&mut self, length: usize) {
        self.waits = length.min(LONGEST);
        self.flush();
    }
}
