//! What a set's program reads besides the packet: ranks and tables. The host keeps it, and says
//! what has changed since it was copied to where the program sees it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// No set has more bytes.
const LIMIT: u32 = 1 << 30;
/// Changes that are listed one by one.
const LISTED: usize = 1024;

/// Blocks of powers of two bytes, at least a cache line.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    words: Vec<u64>,
    /// By size.
    free: BTreeMap<u32, Vec<u32>>,
    changed: Vec<Range<u32>>,
}

impl Memory {
    fn size(bytes: u32) -> u32 {
        bytes.max(64).next_power_of_two()
    }

    /// A block of zeros.
    pub fn allocate(&mut self, bytes: u32) -> Option<u32> {
        if bytes > LIMIT {
            return None;
        }
        let size = Memory::size(bytes);
        if let Some(at) = self.free.get_mut(&size).and_then(Vec::pop) {
            let from = at as usize / 8;
            self.words[from..from + size as usize / 8].fill(0);
            self.touch(at..at + size);
            return Some(at);
        }
        let at = (self.words.len() * 8) as u32;
        if size > LIMIT - at {
            return None;
        }
        self.words.resize((at + size) as usize / 8, 0);
        self.touch(at..at + size);
        Some(at)
    }

    pub fn release(&mut self, at: u32, bytes: u32) {
        let size = Memory::size(bytes);
        self.free.entry(size).or_default().push(at);
    }

    pub fn get(&self, at: u32) -> u64 {
        self.words.get(at as usize / 8).copied().unwrap_or(0)
    }

    pub fn put(&mut self, at: u32, value: u64) {
        if let Some(word) = self.words.get_mut(at as usize / 8) {
            *word = value;
            self.touch(at..at + 8);
        }
    }

    fn touch(&mut self, range: Range<u32>) {
        if let Some(last) = self.changed.last_mut() {
            let inside = range.start >= last.start && range.start <= last.end;
            if inside || self.changed.len() >= LISTED {
                let last = self.changed.last_mut().map_or(0..0, |last| last.clone());
                let whole = last.start.min(range.start)..last.end.max(range.end);
                self.changed.pop();
                self.changed.push(whole);
                return;
            }
        }
        self.changed.push(range);
    }

    /// Bytes that there are.
    pub fn len(&self) -> u32 {
        (self.words.len() * 8) as u32
    }

    /// All of it.
    pub fn into_words(self) -> Vec<u64> {
        self.words
    }

    /// Everything is to be copied.
    pub fn touch_all(&mut self) {
        self.changed.clear();
        self.changed.push(0..self.len());
    }

    /// Hands out what changed since the last time: its place and its bytes.
    pub fn changes<E>(
        &mut self,
        mut copy: impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut bytes = Vec::new();
        while let Some(range) = self.changed.last() {
            let words = &self.words[range.start as usize / 8..range.end as usize / 8];
            bytes.clear();
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            copy(range.start, &bytes)?;
            self.changed.pop();
        }
        Ok(())
    }
}
