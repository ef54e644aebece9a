//! A hash table from keys of a fixed number of words to filters, with linear probing.

use alloc::vec::Vec;

/// The places of a table are a power of two, at most three quarters of them taken.
#[derive(Debug, Default)]
pub(super) struct Table {
    width: usize,
    /// `width` words for each place.
    keys: Vec<u32>,
    /// Filters at each place, ascending; none where the place is free.
    ids: Vec<Ids>,
    taken: usize,
}

/// Nearly always one.
#[derive(Clone, Debug, Default)]
enum Ids {
    #[default]
    None,
    One([u32; 1]),
    Many(Vec<u32>),
}

impl Ids {
    fn list(&self) -> &[u32] {
        match self {
            Ids::None => &[],
            Ids::One(id) => id,
            Ids::Many(ids) => ids,
        }
    }
}

impl Table {
    pub fn new(width: usize) -> Table {
        Table {
            width,
            ..Table::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.taken
    }

    fn key(&self, place: usize) -> &[u32] {
        &self.keys[place * self.width..][..self.width]
    }

    /// The place of a key, or the free one where it would be.
    fn place(&self, key: &[u32]) -> usize {
        let mask = self.ids.len() - 1;
        let mut place = hash(key) & mask;
        while !self.ids[place].list().is_empty() && self.key(place) != key {
            place = (place + 1) & mask;
        }
        place
    }

    pub fn get(&self, key: &[u32]) -> &[u32] {
        if self.ids.is_empty() {
            return &[];
        }
        self.ids[self.place(key)].list()
    }

    pub fn entries(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let places = (0..self.ids.len()).filter(|place| !self.ids[*place].list().is_empty());
        places.map(|place| (self.key(place), self.ids[place].list()))
    }

    pub fn insert(&mut self, key: &[u32], id: u32) {
        if (self.taken + 1) * 4 > self.ids.len() * 3 {
            self.grow();
        }
        let place = self.place(key);
        let width = self.width;
        let ids = &mut self.ids[place];
        match ids {
            Ids::None => {
                self.keys[place * width..][..width].copy_from_slice(key);
                *ids = Ids::One([id]);
                self.taken += 1;
            }
            Ids::One([other]) if *other == id => {}
            Ids::One([other]) => {
                let mut both = alloc::vec![*other, id];
                both.sort_unstable();
                *ids = Ids::Many(both);
            }
            Ids::Many(list) => {
                if let Err(index) = list.binary_search(&id) {
                    list.insert(index, id);
                }
            }
        }
    }

    fn grow(&mut self) {
        let places = (self.ids.len() * 2).max(8);
        let mut larger = Table {
            width: self.width,
            keys: alloc::vec![0; places * self.width],
            ids: alloc::vec![Ids::None; places],
            taken: self.taken,
        };
        for place in 0..self.ids.len() {
            let ids = core::mem::take(&mut self.ids[place]);
            if !ids.list().is_empty() {
                let to = larger.place(self.key(place));
                larger.keys[to * self.width..][..self.width].copy_from_slice(self.key(place));
                larger.ids[to] = ids;
            }
        }
        *self = larger;
    }

    pub fn remove(&mut self, key: &[u32], id: u32) {
        if self.ids.is_empty() {
            return;
        }
        let place = self.place(key);
        if let Ids::Many(list) = &mut self.ids[place] {
            list.retain(|other| *other != id);
            if !list.is_empty() {
                return;
            }
        } else if self.ids[place].list() != [id] {
            return;
        }
        self.ids[place] = Ids::None;
        self.taken -= 1;
        self.close(place);
    }

    /// Moves the keys behind a place that became free, so that each is still found from where its search begins.
    fn close(&mut self, mut free: usize) {
        let mask = self.ids.len() - 1;
        let mut place = free;
        loop {
            place = (place + 1) & mask;
            if self.ids[place].list().is_empty() {
                return;
            }
            let wish = hash(self.key(place)) & mask;
            // It may move if its search passes the free place.
            if (place.wrapping_sub(wish) & mask) >= (place.wrapping_sub(free) & mask) {
                let width = self.width;
                self.keys
                    .copy_within(place * width..(place + 1) * width, free * width);
                self.ids[free] = core::mem::take(&mut self.ids[place]);
                free = place;
            }
        }
    }
}

/// Mixes every word into every bit.
fn hash(key: &[u32]) -> usize {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64;
    for word in key {
        hash = (hash ^ u64::from(*word)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 32;
    }
    hash as usize
}
