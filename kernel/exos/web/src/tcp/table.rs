//! Where connections are found: by a keyed hash, so that nobody chooses who shares a place with
//! whom.

use alloc::vec::Vec;

use super::connection::{Connection, State};
use crate::frame::Segment;
use crate::keyed::Key;

const EMPTY: u16 = u16::MAX;

#[derive(Debug)]
pub struct Table {
    all: Vec<Connection>,
    free: Vec<u16>,
    /// Slots by hash; the next ones if a place is taken.
    index: Vec<u16>,
    /// By slot: its hash.
    homes: Vec<usize>,
    /// The slot that was found last: segments of one connection often follow each other.
    last: u16,
}

fn hash(key: &Key, from: u32, from_port: u16) -> usize {
    key.hash(&[u64::from(from) << 16 | u64::from(from_port)]) as usize
}

impl Table {
    pub fn new(connections: usize) -> Table {
        Table {
            all: alloc::vec![Connection::none(); connections],
            free: (0..connections as u16).rev().collect(),
            index: alloc::vec![EMPTY; (4 * connections).next_power_of_two()],
            homes: alloc::vec![0; connections],
            last: EMPTY,
        }
    }

    pub fn count(&self) -> usize {
        self.all.len() - self.free.len()
    }

    pub fn get(&self, slot: u16) -> Option<&Connection> {
        self.all.get(usize::from(slot))
    }

    pub fn get_mut(&mut self, slot: u16) -> Option<&mut Connection> {
        self.all.get_mut(usize::from(slot))
    }

    pub fn all(&self) -> impl Iterator<Item = (u16, &Connection)> {
        let all = self.all.iter().enumerate();
        all.filter(|(_, c)| c.state != State::Free)
            .map(|(slot, c)| (slot as u16, c))
    }

    /// The connection of a segment. With one port, that is who sent it.
    pub fn find(&mut self, key: &Key, segment: &Segment<'_>) -> Option<u16> {
        if self.get(self.last).is_some_and(|last| last.is_of(segment)) {
            return Some(self.last);
        }
        let mask = self.index.len() - 1;
        let begin = hash(key, segment.from, segment.from_port);
        for step in 0..self.index.len() {
            let slot = *self.index.get(begin.wrapping_add(step) & mask)?;
            if self.get(slot)?.is_of(segment) {
                self.last = slot;
                return Some(slot);
            }
        }
        None
    }

    /// A place for a connection that is not there yet; `None`: all are taken.
    pub fn insert(&mut self, key: &Key, connection: Connection) -> Option<u16> {
        let slot = self.free.pop()?;
        let mask = self.index.len() - 1;
        let home = hash(key, connection.from, connection.from_port);
        self.homes[usize::from(slot)] = home;
        let mut at = home & mask;
        while self.index[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.index[at] = slot;
        let place = self.get_mut(slot)?;
        // It may wait for its turn on behalf of the one before.
        let pending = place.pending;
        *place = connection;
        place.pending = pending;
        Some(slot)
    }

    /// Frees a place. What was moved on past it is put back in order.
    pub fn remove(&mut self, slot: u16) {
        if let Some(connection) = self.get_mut(slot) {
            let pending = connection.pending;
            *connection = Connection::none();
            connection.pending = pending;
            self.free.push(slot);
        }
        let mask = self.index.len() - 1;
        let Some(home) = self.homes.get(usize::from(slot)) else {
            return;
        };
        let mut hole = home & mask;
        while self.index[hole] != slot {
            if self.index[hole] == EMPTY {
                return;
            }
            hole = (hole + 1) & mask;
        }
        self.index[hole] = EMPTY;
        let mut at = (hole + 1) & mask;
        while self.index[at] != EMPTY {
            let home = self.homes[usize::from(self.index[at])] & mask;
            // It may move to the hole if its own place is not behind that.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.index.swap(at, hole);
                hole = at;
            }
            at = (at + 1) & mask;
        }
    }
}
