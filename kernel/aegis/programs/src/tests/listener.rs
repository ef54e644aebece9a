//! Frames to the peer and from it: what scenarios about the network share.

use core::cell::{Cell, RefCell};
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::device::Piece;
use postern_aegis::abi::records::Holding;
use postern_aegis::ring::{Ring, Told};
use postern_aegis::{Error, Mapping, PAGE, books, calls, memory, pages};
use postern_aegis_programs::peer;

use crate::scenario::{Named, Outcome, Why, wait};

/// Whether the machine has a network; without one there is nothing to test.
pub fn is_there() -> bool {
    books::machine().network.there.load(Relaxed) != 0
}

/// An own page that is mapped, for frames.
#[derive(Clone, Copy)]
pub struct Frame {
    pub at: u64,
    pub page: u32,
}

impl Frame {
    pub fn new() -> Result<Frame, Why> {
        Frame::named(0)
    }

    /// One that others may read, by the capability of a name.
    pub fn named(name: u32) -> Result<Frame, Why> {
        let at = memory::reserve(1);
        let page = memory::map_fresh(at, Mapping::WRITE).named("a page")?;
        calls::rename(page, name, 0).named("a name")?;
        Ok(Frame { at, page })
    }

    /// A frame that asks the peer for something.
    pub fn ask(&self, words: &[u64]) -> Piece {
        memory::write_bytes(self.at, &peer::HEADER);
        for (index, word) in words.iter().enumerate() {
            memory::write(self.at + peer::WORDS + 8 * index as u64, *word);
        }
        self.piece(0, 60)
    }

    /// A frame of another type, which the peer only counts.
    pub fn plain(&self) -> Piece {
        let mut header = peer::HEADER;
        header[13] = 0xb6;
        memory::write_bytes(self.at, &header);
        self.piece(0, 64)
    }

    pub fn piece(&self, offset: u64, length: u64) -> Piece {
        Piece {
            place: u64::from(self.page) << 12 | offset,
            length,
            capability: 0,
        }
    }

    pub fn byte(&self, offset: u64) -> u8 {
        memory::read(self.at + (offset & !7)).to_le_bytes()[offset as usize % 8]
    }

    pub fn free(self) -> Outcome {
        pages::free(self.page).named("freeing")
    }
}

/// Sends, also if too much is under way at first.
pub fn send(pieces: &[Piece]) -> Outcome {
    let sends = || calls::send(pieces) != Err(Error::Again);
    wait("nothing can be sent", sends)
}

/// Places for frames.
pub const PLACES: usize = 16;

/// An endpoint with a ring, and a page for each place.
pub struct Listener {
    pub endpoint: usize,
    pub ring: Ring,
    places: [Frame; PLACES],
}

impl Listener {
    pub fn new(filter: &str) -> Result<Listener, Why> {
        let mut places = [Frame { at: 0, page: 0 }; PLACES];
        for place in &mut places {
            *place = Frame::new()?;
        }
        let mut ring = Ring::new().named("a ring")?;
        for place in &places {
            for half in [0, PAGE as u64 / 2] {
                ring.offer(u64::from(place.page) << 12 | half, 0);
            }
        }
        let endpoint = calls::bind(filter, 1, ring.page()).named("an endpoint")?;
        Ok(Listener {
            endpoint,
            ring,
            places,
        })
    }

    pub fn record(&self) -> &'static Holding {
        &books::machine().holdings[self.endpoint]
    }

    pub fn counts(&self) -> (u64, u64) {
        let record = self.record();
        (record.arrived.load(Relaxed), record.lost.load(Relaxed))
    }

    /// Waits for the report of something that was asked.
    pub fn report(&mut self, asked: u64) -> Result<[u64; 3], Why> {
        let found = Cell::new(None);
        let listener = RefCell::new(self);
        wait("no report comes", || {
            while let Some((_, words)) = listener.borrow_mut().next() {
                if words[0] == asked | peer::REPORT {
                    found.set(Some([words[1], words[2], words[3]]));
                }
            }
            found.get().is_some()
        })?;
        found.get().ok_or(Why::Not("no report"))
    }

    pub fn free(self) -> Outcome {
        calls::drop_holding(self.endpoint, 0).named("dropping")?;
        self.places.into_iter().try_for_each(Frame::free)?;
        self.ring.free().named("freeing the ring")
    }
}

impl Iterator for Listener {
    type Item = (Told, [u64; 4]);

    /// The next frame, by the words from its word on.
    fn next(&mut self) -> Option<Self::Item> {
        let told = self.ring.next()?;
        let place = self
            .places
            .iter()
            .find(|place| u64::from(place.page) == told.place >> 12);
        let at = place.map_or(0, |place| place.at) + told.place % PAGE as u64;
        let words = [0, 1, 2, 3].map(|index| memory::read(at + peer::WORDS + 8 * index));
        self.ring.offer(told.place, 0);
        Some((told, words))
    }
}

/// Reports of the peer's.
pub const REPORTS: &str = "ether proto 0x88b5";
/// Frames with nothing in them.
pub const PLAIN: &str = "ether proto 0x88b6";
