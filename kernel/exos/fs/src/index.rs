//! A hash table from numbers above zero to places: open, probed one after the other; what follows a
//! place that is emptied moves up. At most half of it is used, or it grows.

use alloc::vec;
use alloc::vec::Vec;

/// The table.
#[derive(Debug)]
pub struct Index {
    places: Vec<(u64, u32)>,
    length: usize,
}

impl Index {
    /// For so many without growing.
    pub fn new(length: usize) -> Index {
        Index {
            places: vec![(0, 0); (2 * length.max(8)).next_power_of_two()],
            length: 0,
        }
    }

    fn mask(&self) -> usize {
        self.places.len() - 1
    }

    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & self.mask()
    }

    /// Where a key is, or the empty place for it.
    fn probe(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while self.places[at].0 != key && self.places[at].0 != 0 {
            at = (at + 1) & self.mask();
        }
        at
    }

    /// What a key stands for.
    #[inline]
    pub fn find(&self, key: u64) -> Option<usize> {
        let (found, place) = self.places[self.probe(key)];
        (found == key && key != 0).then_some(place as usize)
    }

    /// Makes an entry, or changes it.
    pub fn insert(&mut self, key: u64, place: usize) {
        if 2 * self.length >= self.places.len() {
            let former = core::mem::take(&mut self.places);
            self.places = vec![(0, 0); 2 * former.len()];
            for (key, place) in former {
                if key != 0 {
                    let at = self.probe(key);
                    self.places[at] = (key, place);
                }
            }
        }
        let at = self.probe(key);
        self.length += usize::from(self.places[at].0 == 0);
        self.places[at] = (key, place as u32);
    }

    /// Takes an entry away.
    pub fn remove(&mut self, key: u64) {
        let mut hole = self.probe(key);
        if self.places[hole].0 == 0 {
            return;
        }
        self.length -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask();
            if self.places[at].0 == 0 {
                break;
            }
            let home = self.home(self.places[at].0);
            // From its home on to here, is the hole on the way?
            if at.wrapping_sub(home) & self.mask() >= at.wrapping_sub(hole) & self.mask() {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole] = (0, 0);
    }
}
