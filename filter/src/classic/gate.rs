//! What the kernel asks before it copies a packet into a ring: whether any filter may want it.
//!
//! Invariant: no packet is refused that a filter accepts, whatever was left out to keep the program
//! short. The filter's own verdict on what comes through is the one that counts.

use alloc::vec::Vec;

use super::layout::{Item, Target, layout};
use super::write::{HARDWARE, Listing, Manner, TAGGED};
use super::{Instruction, MAX, op};
use crate::Filter;
use crate::program::Program;
use crate::set::Set;

/// Filters of a packet socket, of which one has to accept.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    links: Vec<LinkFilters>,
}

/// What is asked of packets of some kinds of hardware.
#[derive(Clone, Debug)]
struct LinkFilters {
    /// None is every one.
    hardware: Vec<u16>,
    tags: bool,
    /// One after the other.
    programs: Vec<Program>,
}

impl Gate {
    /// Adds a filter for packets of interfaces with these hardware types (ARPHRD), all if there are
    /// none. Those of other types come through. `tags` says that a tag of a VLAN, which the kernel
    /// takes out, stands where it was when the filter sees the packet.
    pub fn filter(&mut self, hardware: &[u16], tags: bool, filter: &Filter) {
        self.links.push(LinkFilters {
            hardware: hardware.to_vec(),
            tags,
            programs: alloc::vec![filter.program.clone()],
        });
    }

    /// The same with the filters of a set; all packets come through if they are too many.
    pub fn set(&mut self, hardware: &[u16], tags: bool, set: &Set) {
        if let Some(programs) = set.any() {
            self.links.push(LinkFilters {
                hardware: hardware.to_vec(),
                tags,
                programs,
            });
        }
    }

    /// The program, at most as long as the kernel takes; it returns `kept` where it accepts. And
    /// whether nothing comes through that no filter accepts, as far as the kernel sees the same
    /// bytes.
    pub fn program(&self, kept: u32) -> (Vec<Instruction>, bool) {
        let longest = |link: &LinkFilters| link.programs.iter().map(|p| p.nodes.len()).max();
        let nodes = self.links.iter().filter_map(longest).max().unwrap_or(0);
        // First what the kernel knows of tags is left out, then the ends of the programs.
        for tags in [true, false] {
            let (list, exact) = self.written(kept, tags, usize::MAX);
            if list.len() <= MAX {
                return (list, exact);
            }
        }
        let (mut fits, mut long) = (0, nodes);
        let mut best = self.written(kept, false, 0).0;
        while long - fits > 1 {
            let limit = fits + (long - fits) / 2;
            let (list, _) = self.written(kept, false, limit);
            match list.len() <= MAX {
                true => (fits, best) = (limit, list),
                false => long = limit,
            }
        }
        if best.len() > MAX {
            best = layout(&[Item::Goto(Target::Accept)], 0, kept);
        }
        (best, false)
    }

    fn written(&self, kept: u32, tags: bool, limit: usize) -> (Vec<Instruction>, bool) {
        let mut listing = Listing::default();
        let load = |listing: &mut Listing, place| {
            let load = Item::Plain(op::LOAD_PACKET | op::size(4), place);
            listing.items.push(load);
        };
        for link in &self.links {
            let other = listing.label();
            if !link.hardware.is_empty() {
                let this = listing.label();
                load(&mut listing, HARDWARE);
                for kind in &link.hardware {
                    let is = Item::Branch(
                        op::IF_EQUAL,
                        u32::from(*kind),
                        Target::Label(this),
                        Target::Next,
                    );
                    listing.items.push(is);
                }
                listing.items.push(Item::Goto(Target::Label(other)));
                listing.items.push(Item::Label(this));
            }
            if link.tags {
                let plain = listing.label();
                load(&mut listing, TAGGED);
                let tagged = if tags { Target::Next } else { Target::Accept };
                let untagged = Target::Label(plain);
                listing
                    .items
                    .push(Item::Branch(op::IF_EQUAL, 0, untagged, tagged));
                if tags {
                    chain(&mut listing, &link.programs, true, limit);
                } else {
                    listing.coarse = true;
                }
                listing.items.push(Item::Label(plain));
            }
            chain(&mut listing, &link.programs, false, limit);
            listing.items.push(Item::Label(other));
        }
        listing.items.push(Item::Goto(Target::Accept));
        let list = layout(&listing.items, listing.labels, kept);
        (list, !listing.coarse)
    }
}

/// The programs, each asked if the one before rejects.
fn chain(listing: &mut Listing, programs: &[Program], tagged: bool, limit: usize) {
    for (index, program) in programs.iter().enumerate() {
        let last = index + 1 == programs.len();
        let next = listing.label();
        let fail = match last {
            true => Target::Reject,
            false => Target::Label(next),
        };
        let manner = Manner {
            fail,
            tagged,
            returns: false,
            limit,
        };
        listing.program(program, manner);
        listing.items.push(Item::Label(next));
    }
    if programs.is_empty() {
        listing.items.push(Item::Goto(Target::Reject));
    }
}
