//! The names of a folder. Each has a place of its own, later ones behind all others, so that a
//! folder can be listed while it changes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// Names, and what they stand for.
#[derive(Debug, Default)]
pub struct Folder {
    /// The folder that it is in; the root is in itself.
    pub above: u64,
    names: BTreeMap<Box<[u8]>, (u64, u64)>,
    places: BTreeMap<u64, Box<[u8]>>,
    last: u64,
}

impl Folder {
    /// Nothing in it.
    pub fn new(above: u64) -> Folder {
        Folder {
            above,
            ..Folder::default()
        }
    }

    /// Names that it has.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// What a name stands for.
    pub fn get(&self, name: &[u8]) -> Option<u64> {
        self.names.get(name).map(|(node, _)| *node)
    }

    /// A name for a node; one that is there stands for this from now on, at its place.
    pub fn set(&mut self, name: &[u8], node: u64) {
        if let Some((former, _)) = self.names.get_mut(name) {
            *former = node;
            return;
        }
        self.last += 1;
        self.names.insert(name.into(), (node, self.last));
        self.places.insert(self.last, name.into());
    }

    /// Takes a name away.
    pub fn remove(&mut self, name: &[u8]) {
        if let Some((_, place)) = self.names.remove(name) {
            self.places.remove(&place);
        }
    }

    /// Names behind a place: the place, the name, the node.
    pub fn behind(&self, place: u64) -> impl Iterator<Item = (u64, &[u8], u64)> {
        let from = place.saturating_add(1);
        self.places
            .range(from..)
            .filter_map(|(place, name)| Some((*place, &name[..], self.get(name)?)))
    }
}
