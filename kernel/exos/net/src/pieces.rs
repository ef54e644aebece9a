//! Datagrams that come in pieces (RFC 791, section 3.2), put together in one place for all
//! processes: filters by ports do not see what has none.
//!
//! Bounds: [`PLACES`] datagrams at a time, of [`ROOM`] bytes and [`MOST`] pieces each, for half a
//! minute; the oldest one goes if there is no place. One whose pieces overlap, repeat or do not fit
//! together is dropped whole (as RFC 5722 has it for IPv6): whoever sees only a part of it must not
//! be shown another datagram than its receiver.

use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use crate::frame::{self, Datagram, ETHERNET, IP, Part};

/// Datagrams that are put together at a time.
pub const PLACES: usize = 8;
/// Bytes that one carries at most: with its headers it is a page.
pub const ROOM: usize = 4096 - ETHERNET - IP;
/// Pieces of one at most.
pub const MOST: usize = 32;
/// Microseconds that the rest of one is waited for.
const PATIENCE: u64 = 30_000_000;

/// Which pieces are one datagram's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whole {
    from: Ipv4Addr,
    to: Ipv4Addr,
    protocol: u8,
    ident: u16,
}

#[derive(Debug)]
struct Place {
    whole: Option<Whole>,
    until: u64,
    /// What nobody can put together: its other pieces are passed by.
    spoilt: bool,
    /// Where it ends, once its last piece is there.
    end: Option<usize>,
    ranges: [(usize, usize); MOST],
    count: usize,
    bytes: Vec<u8>,
}

impl Place {
    fn new() -> Place {
        Place {
            whole: None,
            until: 0,
            spoilt: false,
            end: None,
            ranges: [(0, 0); MOST],
            count: 0,
            bytes: vec![0; IP + ROOM],
        }
    }

    fn begin(&mut self, whole: Whole, now: u64) {
        (self.whole, self.until) = (Some(whole), now.saturating_add(PATIENCE));
        (self.spoilt, self.end, self.count) = (false, None, 0);
    }

    /// One more piece; `None`: it does not fit to those before.
    fn put(&mut self, part: Part, carries: &[u8]) -> Option<()> {
        let from = part.offset;
        let to = from.checked_add(carries.len()).filter(|to| *to <= ROOM)?;
        let ranges = self.ranges.get(..self.count)?;
        let overlaps = ranges.iter().any(|(a, b)| from < *b && *a < to);
        let behind = self.end.is_some_and(|end| to > end);
        let last = match part.more {
            // All but the last one have whole words of eight bytes.
            true => carries.is_empty() || !carries.len().is_multiple_of(8),
            false => self.end.is_some() || ranges.iter().any(|(_, b)| *b > to),
        };
        if overlaps || behind || last {
            return None;
        }
        *self.ranges.get_mut(self.count)? = (from, to);
        self.count += 1;
        self.bytes
            .get_mut(IP + from..IP + to)?
            .copy_from_slice(carries);
        if !part.more {
            self.end = Some(to);
        }
        Some(())
    }

    /// How many bytes it carries, if all of them are there: pieces do not overlap.
    fn length(&self) -> Option<usize> {
        let ranges = self.ranges.get(..self.count)?;
        let there: usize = ranges.iter().map(|(a, b)| b - a).sum();
        self.end.filter(|end| *end == there)
    }
}

/// Pieces that wait for others.
#[derive(Debug)]
pub struct Pieces(Vec<Place>);

impl Default for Pieces {
    /// None yet. Takes all memory that there will ever be.
    fn default() -> Pieces {
        let mut places = Vec::new();
        places.resize_with(PLACES, Place::new);
        Pieces(places)
    }
}

impl Pieces {
    /// A piece came, at a time in microseconds: the whole datagram, if this was its last one.
    pub fn put(&mut self, now: u64, piece: &Datagram<'_>, part: Part) -> Option<&[u8]> {
        let whole = Whole {
            from: piece.from,
            to: piece.to,
            protocol: piece.protocol,
            ident: part.ident,
        };
        let is = |place: &Place| place.whole == Some(whole) && now < place.until;
        let found = self.0.iter().position(is);
        let index = found.or_else(|| {
            let all = self.0.iter().enumerate();
            let free = all.min_by_key(|(_, place)| match place.whole {
                Some(_) if now < place.until => place.until,
                _ => 0,
            });
            free.map(|(index, _)| index)
        })?;
        let place = self.0.get_mut(index)?;
        if found.is_none() {
            place.begin(whole, now);
        }
        place.spoilt |= place.put(part, piece.carries).is_none();
        let length = place.length().filter(|_| !place.spoilt)?;
        place.whole = None;
        let header = frame::ip(whole.from, whole.to, whole.protocol, whole.ident, length);
        place.bytes.get_mut(..IP)?.copy_from_slice(&header);
        place.bytes.get(..IP + length)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const FROM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const TO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7 + at / 256) as u8).collect()
    }

    /// Puts a range of some content.
    fn put(
        pieces: &mut Pieces,
        now: u64,
        ident: u16,
        range: core::ops::Range<usize>,
        more: bool,
    ) -> Option<&[u8]> {
        let all = content(1 << 16);
        let piece = Datagram {
            from: FROM,
            to: TO,
            protocol: 17,
            carries: all.get(range.clone())?,
            whole: &[],
        };
        let offset = range.start;
        pieces.put(
            now,
            &piece,
            Part {
                ident,
                offset,
                more,
            },
        )
    }

    #[test]
    fn pieces_are_put_together_in_any_order() {
        let mut pieces = Pieces::default();
        let cuts = [0..1480, 1480..2960, 2960..4000];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
            for (step, index) in order.into_iter().enumerate() {
                let whole = put(&mut pieces, 5, 9, cuts[index].clone(), index != 2);
                match step {
                    2 => {
                        let whole = whole.expect("a whole datagram");
                        let read = Datagram::read(whole).expect("a right header");
                        assert_eq!((read.from, read.to, read.protocol), (FROM, TO, 17));
                        assert_eq!(read.carries, content(4000));
                    }
                    _ => assert_eq!(whole, None),
                }
            }
        }
    }

    #[test]
    fn what_overlaps_is_dropped_whole() {
        type Cut = (core::ops::Range<usize>, bool);
        let wrong: [&[Cut]; 7] = [
            // The tear drop: one inside of another.
            &[(0..1480, true), (40..80, false), (1480..1500, false)],
            &[(0..1480, true), (1472..2000, false)],
            &[(0..800, true), (0..800, true), (800..900, false)],
            &[(800..900, false), (0..800, true), (0..800, true)],
            // Two ends, something behind the end, a piece of no whole words.
            &[(800..900, false), (1600..1700, false), (0..800, true)],
            &[(0..801, true), (801..900, false)],
            &[(0..0, true), (0..900, true), (900..901, false)],
        ];
        for (number, cuts) in wrong.iter().enumerate() {
            let mut pieces = Pieces::default();
            let mut wholes = 0;
            for (range, more) in cuts.iter() {
                let whole = put(&mut pieces, 1, 3, range.clone(), *more);
                wholes += usize::from(whole.is_some());
            }
            // Only what repeats after the datagram was whole begins another one.
            assert_eq!(wholes, usize::from(number == 3), "{number}");
        }
    }

    #[test]
    fn what_is_too_long_or_too_late_is_none() {
        let mut pieces = Pieces::default();
        assert_eq!(put(&mut pieces, 1, 1, 0..ROOM / 8 * 8, true), None);
        assert_eq!(put(&mut pieces, 1, 1, ROOM / 8 * 8..ROOM + 1, false), None);
        assert_eq!(put(&mut pieces, 1, 2, 65_528..65_536, false), None);
        assert_eq!(put(&mut pieces, 1, 3, 0..8, true), None);
        assert_eq!(put(&mut pieces, 1 + PATIENCE, 3, 8..9, false), None);
    }

    #[test]
    fn the_newest_have_places() {
        let mut pieces = Pieces::default();
        for ident in 0..1000 {
            assert_eq!(put(&mut pieces, u64::from(ident), ident, 0..8, true), None);
        }
        assert!(put(&mut pieces, 1000, 999, 8..9, false).is_some());
        assert_eq!(put(&mut pieces, 1000, 1, 8..9, false), None);
    }
}
