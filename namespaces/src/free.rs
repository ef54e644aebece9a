//! Free ranges of offsets, first fit: where text, constants and data of units go.

use std::collections::BTreeMap;
use std::ops::Range;

/// What is free of a range. Free pieces do not touch each other.
#[derive(Debug)]
pub(crate) struct FreeRanges {
    /// Start and end of each piece.
    free: BTreeMap<u32, u32>,
}

impl FreeRanges {
    pub(crate) fn new(range: Range<u32>) -> FreeRanges {
        let free = [(range.start, range.end)].into_iter();
        FreeRanges {
            free: free.filter(|(start, end)| start < end).collect(),
        }
    }

    /// Takes `bytes` bytes that begin at a multiple of `alignment`, a power of two.
    pub(crate) fn take(&mut self, bytes: u32, alignment: u32) -> Option<u32> {
        if bytes == 0 {
            return Some(0);
        }
        let fits = |(&start, &end): (&u32, &u32)| {
            let at = u64::from(start).next_multiple_of(alignment.into());
            (at + u64::from(bytes) <= u64::from(end)).then_some((start, end, at as u32))
        };
        let (start, end, at) = self.free.iter().find_map(fits)?;
        self.free.remove(&start);
        if start < at {
            self.free.insert(start, at);
        }
        if at + bytes < end {
            self.free.insert(at + bytes, end);
        }
        Some(at)
    }

    /// Gives back what was taken.
    pub(crate) fn give(&mut self, range: Range<u32>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        if let Some((&before, &until)) = self.free.range(..=start).next_back()
            && until == start
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(after) = self.free.remove(&end) {
            end = after;
        }
        self.free.insert(start, end);
    }

    /// Bytes that are free.
    pub(crate) fn left(&self) -> u64 {
        self.free.iter().map(|(s, e)| u64::from(e - s)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_overlap_and_join_again() {
        let mut free = FreeRanges::new(100..1000);
        let mut taken: Vec<Range<u32>> = Vec::new();
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..5000 {
            let bytes = random.u32(1..=60);
            if random.bool() || taken.is_empty() {
                let Some(at) = free.take(bytes, 16) else {
                    continue;
                };
                let new = at..at + bytes;
                assert!(at % 16 == 0 && at >= 100 && new.end <= 1000);
                assert!(
                    taken
                        .iter()
                        .all(|t| t.end <= new.start || new.end <= t.start)
                );
                taken.push(new);
            } else {
                free.give(taken.swap_remove(random.usize(..taken.len())));
            }
            let used: u64 = taken.iter().map(|t| t.len() as u64).sum();
            assert_eq!(free.left() + used, 900);
        }
        taken.drain(..).for_each(|t| free.give(t));
        assert_eq!(free.free, BTreeMap::from([(100, 1000)]));
        assert_eq!(free.take(901, 1), None);
        assert_eq!(FreeRanges::new(5..5).take(1, 1), None);
    }
}
