//! The network: sending by pages, and what the device is lent.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::device::Piece;
use postern_aegis::{Error, PAGE, books, calls, context, memory, pages};
use postern_aegis_programs::peer;

use crate::scenario::{Named, Outcome, Why, check, refused, same, wait};

crate::scenarios! {
    "network.echo" echo;
}

/// Whether the machine has a network; without one there is nothing to test.
fn is_there() -> bool {
    books::machine().network.there.load(Relaxed) != 0
}

/// An own page with a frame for the peer, mapped at an address.
struct Frame {
    at: u64,
    page: u32,
}

impl Frame {
    fn new() -> Result<Frame, Why> {
        let at = memory::reserve(1);
        let page = memory::map_fresh(at, postern_aegis::Mapping::WRITE).named("a page")?;
        Ok(Frame { at, page })
    }

    /// A frame that asks the peer for something.
    fn ask(&self, words: &[u64]) -> Piece {
        memory::write_bytes(self.at, &peer::HEADER);
        for (index, word) in words.iter().enumerate() {
            memory::write(self.at + peer::WORDS + 8 * index as u64, *word);
        }
        self.piece(0, 60)
    }

    fn piece(&self, offset: u64, length: u64) -> Piece {
        Piece {
            place: u64::from(self.page) << 12 | offset,
            length,
            capability: 0,
        }
    }

    fn free(self) -> Outcome {
        pages::free(self.page).named("freeing")
    }
}

fn send(pieces: &[Piece]) -> Outcome {
    pages::patiently(|| calls::send(pieces))
        .named("sending")
        .map(drop)
}

fn arrived() -> u64 {
    books::machine().network.arrived.load(Relaxed)
}

/// A frame there and back.
fn echo() -> Outcome {
    if !is_there() {
        return refused("sending nowhere", calls::send(&[]), Error::NoDevice);
    }
    let frame = Frame::new()?;
    let (before, sent) = (arrived(), context::sent());
    send(&[frame.ask(&[peer::ECHO, 1, 2, 3])])?;
    wait("no echo comes", || arrived() > before)?;
    wait("it is not told", || context::sent() > sent)?;
    same("frames sent", context::sent(), sent + 1)?;
    check(PAGE == 4096, "")?;
    frame.free()
}
