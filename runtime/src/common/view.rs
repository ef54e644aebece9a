//! A common domain, looked at by who has its memory and no seat in it: nothing is changed, and
//! nothing is entered.

use super::CommonMemory;
use super::header::{CommonPhase, SEATS};
use super::ledger::{CommonTally, Entry};
use super::memory::Memory;
use super::poison::Poison;
use crate::image::Image;
use postern_gates::machine;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Whether a common domain lets threads in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommonState {
    /// No process has begun it yet.
    New,
    /// Its static constructors run.
    Starting,
    /// It does.
    Open,
    /// Not before a reset.
    Poisoned(Poison),
    /// A process resets it.
    Resetting,
}

/// A common domain at a moment. Only who has a seat is the kernel's word; everything else stands in
/// the memory, where every process that has it can write anything.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommonView {
    /// BLAKE3 hash of the image.
    pub hash: [u8; 32],
    /// Whether it lets threads in.
    pub state: CommonState,
    /// How often it was reset.
    pub resets: u32,
    /// Bytes of data and heap.
    pub bytes: u32,
    /// The processes with a seat, and those that ended inside and that nobody has looked for yet.
    pub members: Vec<CommonMember>,
    /// What all processes have counted, also those that are gone.
    pub total: CommonTally,
}

/// A process that has a common domain.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommonMember {
    /// The number of its seat: the byte of the memory's file that it has locked.
    pub seat: u32,
    /// The seat is taken.
    pub alive: bool,
    /// Its number, where it runs.
    pub pid: u32,
    /// It runs where the calling process sees it by this number.
    pub here: bool,
    /// Since when it has its seat, if it says.
    pub since: Option<SystemTime>,
    /// Threads that are inside, by the offset of the function that was called.
    pub inside: BTreeMap<u32, u32>,
    /// Threads that are attached to handlers of upcalls.
    pub attached: u32,
    /// Events that wait for them.
    pub waiting: u32,
    /// What it has counted.
    pub tally: CommonTally,
}

impl CommonMemory {
    /// What there is to see of the domain. Names of functions in a poison are those of `image`, if
    /// it is the one whose state this is.
    pub fn view(&self, image: Option<&Image>) -> CommonView {
        let memory = &self.0;
        let header = &memory.header;
        let digest = memory.digest();
        let namespace = machine::process_namespace();
        let ledger = header.ledger();
        let members = || (0..SEATS).filter_map(|seat| member(memory, seat, namespace));
        let (members, gone) = ledger.with_gone(|| members().collect::<Vec<_>>());
        let sums = members.iter().map(|member: &CommonMember| &member.tally);
        CommonView {
            hash: digest,
            state: match header.phase() {
                CommonPhase::New => CommonState::New,
                CommonPhase::Constructing => CommonState::Starting,
                CommonPhase::Open => CommonState::Open,
                CommonPhase::Resetting => CommonState::Resetting,
                CommonPhase::Poisoned => {
                    let image = image.filter(|image| image.hash() == digest);
                    CommonState::Poisoned(Poison::of(header.why(), image.map(|image| &*image.0)))
                }
            },
            resets: header.generation(),
            bytes: memory.layout().bytes(),
            total: sums.fold(gone, |sum, tally| sum.plus(tally)),
            members,
        }
    }

    /// Notes where the image's file is, for those who look at the domain.
    pub fn note_image(&self, path: &Path) {
        self.0.header.ledger().set_path(path);
    }

    /// Where the image's file is said to be. Whoever has the memory may have written it: load it as
    /// a stranger's, and compare its hash.
    pub fn noted_image(&self) -> Option<PathBuf> {
        self.0.header.ledger().path()
    }
}

fn member(memory: &Memory, seat: u32, namespace: u32) -> Option<CommonMember> {
    let header = &memory.header;
    let alive = memory.is_taken(seat);
    let inside = match alive || header.pid(seat) != 0 {
        true => header.all_inside(seat),
        false => return None,
    };
    if !alive && inside.is_empty() {
        return None;
    }
    let Entry {
        attached,
        waiting,
        since,
        tally,
    } = header.ledger().entry(seat);
    Some(CommonMember {
        seat,
        alive,
        pid: header.pid(seat),
        here: namespace != 0 && header.namespace(seat) == namespace,
        since,
        inside,
        attached,
        waiting,
        tally,
    })
}
