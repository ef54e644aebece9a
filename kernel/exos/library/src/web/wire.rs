//! Frames that go: headers that are copied into a page of the server's own, and behind them bytes where
//! they stand, in pages that others may have.

use postern_aegis::abi::device::{self, FRAMES};
use postern_aegis::{Error, Mapping, PAGE, calls, memory};
use postern_exos_web::piece::{PIECES, Piece, Sent, Wire};

use crate::memory::room;
use crate::net::outlet;
use crate::web::trusted;

/// Bytes of a place for headers.
const PLACE: usize = 64;
const PLACES: usize = PAGE / PLACE;

// Frames are done with in their order, so a place is free again long before its turn.
const _: () = assert!(PLACES > 2 * FRAMES && PIECES < device::PIECES);
const _: () = assert!(postern_exos_web::frame::HEADERS + postern_exos_web::frame::OPTIONS <= PLACE);

/// Places for headers, which are taken in turn.
#[derive(Debug)]
pub struct Gather {
    at: u64,
    page: u32,
    turn: usize,
}

impl Gather {
    /// One with all places free.
    pub fn new() -> Result<Gather, Error> {
        room::ahead(1)?;
        let at = memory::reserve(1);
        let page = room::patiently(|| memory::map_fresh(at, Mapping::WRITE))?;
        Ok(Gather { at, page, turn: 0 })
    }
}

impl Wire for Gather {
    fn send(&mut self, headers: &[u8], pieces: &[Piece]) -> Sent {
        if outlet::under_way() >= FRAMES {
            return Sent::Later;
        }
        let offset = (self.turn * PLACE) as u64;
        trusted::copy_in(self.at + offset, headers);
        let mut all = [device::Piece::default(); PIECES + 1];
        let head = device::Piece {
            place: u64::from(self.page) << 12 | offset,
            length: headers.len() as u64,
            capability: 0,
        };
        let from = pieces.iter().map(|piece| device::Piece {
            place: piece.place,
            length: piece.length as u64,
            capability: piece.capability,
        });
        for (to, piece) in all.iter_mut().zip([head].into_iter().chain(from)) {
            *to = piece;
        }
        match calls::send(all.get(..=pieces.len()).unwrap_or_default()) {
            Ok(_) => {
                self.turn = (self.turn + 1) % PLACES;
                Sent::Yes
            }
            Err(Error::Again) => Sent::Later,
            Err(_) => Sent::Gone,
        }
    }
}
