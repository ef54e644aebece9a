//! Who has which address: entries that grow old, and places that are not taken by who asks most.

use core::net::Ipv4Addr;

use crate::Hardware;

/// Places of the table.
pub const PLACES: usize = 128;
/// Microseconds after which an entry is asked for anew, if somebody wants it.
pub const FRESH: u64 = 60_000_000;
/// Microseconds after which it is forgotten.
pub const KEPT: u64 = 1_200_000_000;

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its address.
    pub address: Ipv4Addr,
    /// Of Ethernet.
    pub hardware: Hardware,
    /// When it was heard last, in microseconds.
    pub heard: u64,
    /// Somebody here has asked for it, or talks to it.
    pub wanted: bool,
}

/// What an entry that is heard of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It was known.
    Same,
    /// It is new, or not wanted and put where nobody was.
    New,
    /// Another address of Ethernet has it now than before.
    Moved,
    /// It was not taken: nobody wants it, and all places are taken.
    Refused,
}

/// The table.
#[derive(Debug)]
pub struct Neighbours {
    places: [Option<Neighbour>; PLACES],
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        Neighbours::new()
    }
}

impl Neighbours {
    /// Nobody is known.
    pub const fn new() -> Neighbours {
        Neighbours {
            places: [None; PLACES],
        }
    }

    /// What each place has.
    pub fn places(&self) -> &[Option<Neighbour>; PLACES] {
        &self.places
    }

    /// Who has an address.
    pub fn find(&self, address: Ipv4Addr) -> Option<&Neighbour> {
        let mut all = self.places.iter().flatten();
        all.find(|neighbour| neighbour.address == address)
    }

    /// Somebody said that an address is at one of Ethernet. Whom nobody here wants takes no place
    /// of somebody who is wanted.
    pub fn hear(&mut self, address: Ipv4Addr, hardware: Hardware, now: u64, wanted: bool) -> Heard {
        let mut all = self.places.iter_mut().flatten();
        if let Some(known) = all.find(|known| known.address == address) {
            let same = known.hardware == hardware;
            known.hardware = hardware;
            known.heard = now;
            known.wanted |= wanted;
            return if same { Heard::Same } else { Heard::Moved };
        }
        let Some(place) = self.place(wanted) else {
            return Heard::Refused;
        };
        *place = Some(Neighbour {
            address,
            hardware,
            heard: now,
            wanted,
        });
        Heard::New
    }

    /// A free place, or the oldest one: of those that nobody wants, if there are any.
    fn place(&mut self, wanted: bool) -> Option<&mut Option<Neighbour>> {
        let rank = |place: &Option<Neighbour>| match place {
            None => (0, 0),
            Some(neighbour) if !neighbour.wanted => (1, neighbour.heard),
            Some(neighbour) => (2, neighbour.heard),
        };
        let most = if wanted { 2 } else { 1 };
        let place = self.places.iter_mut().min_by_key(|place| rank(place))?;
        (rank(place).0 <= most).then_some(place)
    }

    /// Forgets who was not heard of for long; whether there were any.
    pub fn forget_old(&mut self, now: u64) -> bool {
        let mut some = false;
        for place in &mut self.places {
            if place.is_some_and(|known| now.saturating_sub(known.heard) > KEPT) {
                *place = None;
                some = true;
            }
        }
        some
    }

    /// Forgets one, who did not answer.
    pub fn forget(&mut self, address: Ipv4Addr) {
        let is =
            |place: &&mut Option<Neighbour>| place.is_some_and(|known| known.address == address);
        if let Some(place) = self.places.iter_mut().find(is) {
            *place = None;
        }
    }

    /// Forgets everybody: this machine is on another network.
    pub fn forget_all(&mut self) {
        self.places = [None; PLACES];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: usize) -> Ipv4Addr {
        Ipv4Addr::from(0x0a00_0000 + number as u32)
    }

    #[test]
    fn who_is_wanted_stays() {
        let mut table = Neighbours::new();
        assert_eq!(table.hear(address(1), [1; 6], 5, true), Heard::New);
        for number in 2..1000 {
            table.hear(address(number), [2; 6], 10 + number as u64, false);
        }
        assert_eq!(table.find(address(1)).expect("it").hardware, [1; 6]);
        assert!(table.find(address(2)).is_none());
        assert!(table.find(address(999)).is_some());
        for number in 2000..2200 {
            table.hear(address(number), [3; 6], 5000 + number as u64, true);
        }
        assert_eq!(table.hear(address(1), [1; 6], 9000, false), Heard::Refused);
        assert_eq!(table.places().iter().flatten().count(), PLACES);
    }

    #[test]
    fn entries_grow_old() {
        let mut table = Neighbours::new();
        table.hear(address(1), [1; 6], 0, true);
        assert_eq!(table.hear(address(1), [1; 6], KEPT, false), Heard::Same);
        assert!(!table.forget_old(KEPT + 5));
        assert_eq!(table.hear(address(1), [2; 6], KEPT, false), Heard::Moved);
        assert!(table.forget_old(2 * KEPT + 1));
        assert!(table.find(address(1)).is_none());
    }
}
