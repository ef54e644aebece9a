//! What names in folders stand for, or that they stand for nothing, as it was found lately.
//!
//! Invariant: what stands here is so on the disk, or would be after the next commit: whoever
//! changes a name changes it here.

use alloc::vec;
use alloc::vec::Vec;

/// Names that are kept, in sets of two.
const KEPT: usize = 4096;
/// Bytes of a name that is kept.
const SHORT: usize = 42;

#[derive(Clone, Copy, Debug)]
struct Name {
    folder: u64,
    /// 0: there is no such name.
    node: u64,
    sum: u32,
    length: u8,
    bytes: [u8; SHORT],
}

const NONE: Name = Name {
    folder: 0,
    node: 0,
    sum: 0,
    length: 0,
    bytes: [0; SHORT],
};

/// The names.
#[derive(Debug)]
pub struct Names {
    places: Vec<[Name; 2]>,
}

impl Names {
    pub fn new() -> Names {
        Names {
            places: vec![[NONE; 2]; KEPT / 2],
        }
    }

    #[inline]
    fn set_of(&self, folder: u64, sum: u32) -> usize {
        let mixed = (folder ^ u64::from(sum)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        mixed as usize & (self.places.len() - 1)
    }

    /// What a name stands for (0: nothing), if that is known.
    #[inline]
    pub fn find(&self, folder: u64, name: &[u8], sum: u32) -> Option<u64> {
        let set = &self.places[self.set_of(folder, sum)];
        let is_it = |place: &&Name| {
            place.sum == sum
                && place.folder == folder
                && usize::from(place.length) == name.len()
                && place.bytes.get(..name.len()) == Some(name)
        };
        set.iter().find(is_it).map(|place| place.node)
    }

    /// A name stands for something from now on, or for nothing (0).
    pub fn set(&mut self, folder: u64, name: &[u8], sum: u32, node: u64) {
        if name.len() > SHORT {
            return;
        }
        let mut bytes = [0; SHORT];
        for (to, from) in bytes.iter_mut().zip(name) {
            *to = *from;
        }
        let new = Name {
            folder,
            node,
            sum,
            length: name.len() as u8,
            bytes,
        };
        let set = self.set_of(folder, sum);
        let [first, second] = &mut self.places[set];
        let is_same = |place: &Name| {
            place.folder == folder
                && place.sum == sum
                && place.length == new.length
                && place.bytes == bytes
        };
        if !is_same(first) {
            // What was set last stands first.
            core::mem::swap(first, second);
        }
        *first = new;
    }
}
