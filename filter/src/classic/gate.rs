//! What the kernel asks before it copies a packet into a ring: whether any filter may want it.
//!
//! Invariant: no packet is refused that a filter accepts, whatever was left out to keep the program
//! short. The filter's own verdict on what comes through is the one that counts.

use alloc::vec::Vec;

use super::coarse::{RANGES, coarser};
use super::layout::{Item, Target, layout};
use super::write::{HARDWARE, Listing, Manner, TAGGED};
use super::{Instruction, MAX, op};
use crate::Filter;
use crate::list::searched;
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
    /// Programs one after the other, in ever fewer instructions.
    levels: Vec<Vec<Program>>,
    /// So many of the levels accept no more than the filters do.
    exact: usize,
}

/// Nodes from which on a program may be too long for the kernel.
const LONG: usize = 500;

fn nodes(programs: &[Program]) -> usize {
    programs.iter().map(|program| program.nodes.len()).sum()
}

impl Gate {
    /// Adds a filter for packets of interfaces with these hardware types (ARPHRD), all if there are
    /// none. Those of other types come through. `tags` says that a tag of a VLAN, which the kernel
    /// takes out, stands where it was when the filter sees the packet.
    pub fn filter(&mut self, hardware: &[u16], tags: bool, filter: &Filter) {
        let plain = alloc::vec![filter.program.clone()];
        let quick = alloc::vec![searched(&filter.program)];
        self.push(hardware, tags, alloc::vec![quick, plain], |_| None);
    }

    /// The same with the filters of a set.
    pub fn set(&mut self, hardware: &[u16], tags: bool, set: &Set) {
        // Of more filters the whole program is too long anyway.
        let whole = (set.len() <= MAX).then(|| set.any(None)).flatten();
        let whole = whole.into_iter().collect();
        self.push(hardware, tags, whole, |most| set.any(Some(most)));
    }

    /// Adds programs, each of which does the same as the others, with coarser ones, which `coarse`
    /// makes where it can, of lists of at most so many ranges. If there is none at all everything
    /// comes through.
    fn push(
        &mut self,
        hardware: &[u16],
        tags: bool,
        mut levels: Vec<Vec<Program>>,
        coarse: impl Fn(usize) -> Option<Vec<Program>>,
    ) {
        let exact = levels.len();
        let last = levels.last().cloned();
        if last.as_ref().is_none_or(|last| nodes(last) > LONG) {
            for most in RANGES {
                let base = coarse(most).or_else(|| last.clone());
                let each = |program: &Program| coarser(program, most);
                levels.extend(base.map(|base| base.iter().map(each).collect::<Vec<_>>()));
            }
        }
        if !levels.is_empty() {
            self.links.push(LinkFilters {
                hardware: hardware.to_vec(),
                tags,
                levels,
                exact,
            });
        }
    }

    /// The program, at most as long as the kernel takes; it returns `kept` where it accepts. And
    /// whether nothing comes through that no filter accepts, as far as the kernel sees the same
    /// bytes.
    pub fn program(&self, kept: u32) -> (Vec<Instruction>, bool) {
        let levels = self.links.iter().map(|link| link.levels.len()).max();
        let last = levels.unwrap_or(1).saturating_sub(1);
        // What the kernel knows of tags is left out, then lists become coarser, then the ends of
        // programs are left out.
        for level in 0..=last {
            for tags in [true, false] {
                let (list, exact) = self.written(kept, level, tags, usize::MAX);
                if list.len() <= MAX {
                    return (list, exact);
                }
            }
        }
        let programs = |link: &LinkFilters| link.levels.last().cloned().unwrap_or_default();
        let longest = |program: &Program| program.nodes.len();
        let long = self.links.iter().flat_map(programs);
        let (mut fits, mut long) = (0, long.map(|program| longest(&program)).max().unwrap_or(0));
        let mut best = self.written(kept, last, false, 0).0;
        while long - fits > 1 {
            let limit = fits + (long - fits) / 2;
            let (list, _) = self.written(kept, last, false, limit);
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

    fn written(
        &self,
        kept: u32,
        level: usize,
        tags: bool,
        limit: usize,
    ) -> (Vec<Instruction>, bool) {
        let mut listing = Listing::default();
        let load = |listing: &mut Listing, place| {
            let load = Item::Plain(op::LOAD_PACKET | op::size(4), place);
            listing.items.push(load);
        };
        for link in &self.links {
            let least = level.min(link.levels.len().saturating_sub(1));
            let programs = link.levels.get(least).map_or(&[][..], Vec::as_slice);
            listing.coarse |= least >= link.exact;
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
                    chain(&mut listing, programs, true, limit);
                } else {
                    listing.coarse = true;
                }
                listing.items.push(Item::Label(plain));
            }
            chain(&mut listing, programs, false, limit);
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
