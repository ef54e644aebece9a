//! A hash table that a set's program reads: a key is in one of two buckets of two entries, or not
//! there at all. So every search takes the same steps.
//!
//! The two hashes are strongly universal (sums of products of pairs with random keys, the upper
//! half taken): who chooses filters without knowing the random keys cannot make many of them meet.
//! An insertion that finds four entries taken moves one of them to its other bucket, up to
//! [`KICKS`] times; then the table is made anew with other keys, and if that does not help, with
//! more room.

use alloc::vec::Vec;

use super::Random;
use super::memory::Memory;
use crate::lookup::{COUNT, Layout, REST};

const KICKS: usize = 64;
/// How often other keys are tried before the table gets larger.
const TRIES: usize = 3;

#[derive(Debug)]
pub(crate) struct Cuckoo {
    pub layout: Layout,
    /// The descriptor.
    pub at: u32,
    entries: u32,
    /// A power of two.
    buckets: u32,
    keys: Vec<u64>,
    taken: u32,
}

/// Buckets for each entry from which on it is not their number that lets keys meet.
const SPARSE: usize = 64;

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// They are too large.
    #[error("its tables would be larger than a gigabyte")]
    Memory,
    /// No table has room for all.
    #[error("keys meet under every hash: the numbers from `random` are not random")]
    Random,
}

impl Cuckoo {
    pub fn new(
        memory: &mut Memory,
        layout: Layout,
        count: usize,
        random: &mut Random,
    ) -> Result<Cuckoo, TableError> {
        let buckets = (count * 3 / 4).max(8).next_power_of_two();
        let mut table = Cuckoo {
            at: 0,
            entries: 0,
            buckets: u32::try_from(buckets).map_err(|_| TableError::Memory)?,
            keys: Vec::new(),
            taken: 0,
            layout,
        };
        table.at = memory
            .allocate(table.descriptor())
            .ok_or(TableError::Memory)?;
        table.entries = memory.allocate(table.bytes()?).ok_or(TableError::Memory)?;
        table.choose(memory, random);
        Ok(table)
    }

    pub fn release(self, memory: &mut Memory) {
        memory.release(self.at, self.descriptor());
        if let Ok(bytes) = self.bytes() {
            memory.release(self.entries, bytes);
        }
    }

    fn descriptor(&self) -> u32 {
        REST + 16 * (2 * self.layout.words + 1)
    }

    fn bytes(&self) -> Result<u32, TableError> {
        self.buckets
            .checked_mul(2 * self.layout.entry())
            .ok_or(TableError::Memory)
    }

    /// New keys for the hashes, and the descriptor but for its bound.
    fn choose(&mut self, memory: &mut Memory, random: &mut Random) {
        self.keys = (0..2 * (2 * self.layout.words + 1))
            .map(|_| random())
            .collect();
        for (index, key) in self.keys.iter().enumerate() {
            memory.put(self.at + REST + 8 * index as u32, *key);
        }
        let sizes = u64::from(self.buckets - 1) | u64::from(self.entries) << 32;
        memory.put(self.at + COUNT, sizes);
    }

    /// Where a bucket's two entries begin.
    fn bucket(&self, hash: usize, key: &[u64]) -> u32 {
        let keys = &self.keys[hash * self.keys.len() / 2..];
        let sum = key
            .iter()
            .zip(keys[1..].chunks_exact(2))
            .fold(keys[0], |sum, (word, pair)| {
                let low = (word & 0xffff_ffff).wrapping_add(pair[0]);
                let high = (word >> 32).wrapping_add(pair[1]);
                sum.wrapping_add(low.wrapping_mul(high))
            });
        let bucket = (sum >> 32) as u32 & (self.buckets - 1);
        self.entries + bucket * 2 * self.layout.entry()
    }

    /// The four places of a key.
    fn places(&self, key: &[u64]) -> [u32; 4] {
        let [a, b] = [0, 1].map(|hash| self.bucket(hash, key));
        let entry = self.layout.entry();
        [a, a + entry, b, b + entry]
    }

    fn rank_at(&self, memory: &Memory, place: u32) -> u64 {
        memory.get(place + 8 * self.layout.words)
    }

    fn holds(&self, memory: &Memory, place: u32, key: &[u64]) -> bool {
        let mut words = (place..).step_by(8).zip(key);
        self.rank_at(memory, place) != 0 && words.all(|(at, word)| memory.get(at) == *word)
    }

    /// The words of an entry: the key and the rank.
    fn words(&self, place: u32) -> impl Iterator<Item = u32> + use<> {
        (place..).step_by(8).take(self.layout.words as usize + 1)
    }

    /// Writes an entry; gives back what was there.
    fn exchange(&self, memory: &mut Memory, place: u32, entry: &mut [u64]) {
        for (at, word) in self.words(place).zip(entry) {
            let old = memory.get(at);
            memory.put(at, *word);
            *word = old;
        }
    }

    /// Gives a key this rank; 0 takes it away.
    pub fn set(
        &mut self,
        memory: &mut Memory,
        key: &[u64],
        rank: u64,
        random: &mut Random,
    ) -> Result<(), TableError> {
        let places = self.places(key);
        let found = places.iter().find(|at| self.holds(memory, **at, key));
        if let Some(at) = found {
            memory.put(at + 8 * self.layout.words, rank);
            self.taken -= u32::from(rank == 0);
            return Ok(());
        }
        if rank == 0 {
            return Ok(());
        }
        if (self.taken + 1) * 4 > self.buckets * 2 * 3 {
            self.anew(memory, random, None, true)?;
        }
        let mut entry = key.to_vec();
        entry.push(rank);
        match self.place(memory, &mut entry, random) {
            true => Ok(()),
            false => self.anew(memory, random, Some(entry), false),
        }
    }

    /// Puts an entry in, if not many others have to move for it; else it becomes one that found no
    /// place.
    fn place(&mut self, memory: &mut Memory, entry: &mut [u64], random: &mut Random) -> bool {
        for _ in 0..KICKS {
            let places = self.places(&entry[..self.layout.words as usize]);
            let free = places.iter().find(|at| self.rank_at(memory, **at) == 0);
            if let Some(at) = free {
                self.exchange(memory, *at, entry);
                self.taken += 1;
                return true;
            }
            let victim = places[(random() & 3) as usize];
            self.exchange(memory, victim, entry);
        }
        false
    }

    /// All entries again, with other keys, and in a larger table if the others do not do.
    fn anew(
        &mut self,
        memory: &mut Memory,
        random: &mut Random,
        homeless: Option<Vec<u64>>,
        larger: bool,
    ) -> Result<(), TableError> {
        let width = self.layout.words as usize + 1;
        let bytes = self.bytes()?;
        let mut all = homeless.unwrap_or_default();
        for at in (self.entries..self.entries + bytes).step_by(self.layout.entry() as usize) {
            if self.rank_at(memory, at) != 0 {
                all.extend(self.words(at).map(|at| memory.get(at)));
            }
        }
        let mut tries = if larger { TRIES } else { 0 };
        loop {
            let old = (self.entries, self.bytes()?);
            if tries >= TRIES {
                if self.buckets as usize > SPARSE * (all.len() / width).max(8) {
                    return Err(TableError::Random);
                }
                self.buckets = self.buckets.checked_mul(2).ok_or(TableError::Memory)?;
                tries = 0;
            }
            tries += 1;
            // A fresh block is all zeros.
            let fresh = memory.allocate(self.bytes()?).ok_or(TableError::Memory)?;
            memory.release(old.0, old.1);
            self.entries = fresh;
            self.choose(memory, random);
            self.taken = 0;
            let mut entry = alloc::vec![0; width];
            let mut entries = all.chunks_exact(width);
            if entries.all(|words| {
                entry.copy_from_slice(words);
                self.place(memory, &mut entry, random)
            }) {
                return Ok(());
            }
        }
    }
}
