//! What devices are asked, and how arrivals and completions are told.
//!
//! A [`Ring`] is a page of an environment's own, in which it names places for what comes, and the
//! kernel says what came. The kernel believes nothing that stands there: numbers of pages and
//! capabilities are looked at whenever something comes.

use core::sync::atomic::AtomicU64;

/// Entries of a ring.
pub const ENTRIES: usize = 64;

/// A page with arrivals and completions. Entry `n % 64` is the n-th.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Ring {
    /// How many entries the kernel has filled so far.
    pub filled: AtomicU64,
    /// How many entries the environment has made ready so far: at most 64 more than it is done
    /// with.
    pub ready: AtomicU64,
    /// Not used.
    pub reserved: [AtomicU64; 2],
    /// The entries.
    pub entries: [Entry; ENTRIES],
}

/// An entry of a ring. The environment fills the first two words, the kernel the others.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Entry {
    /// Where a frame goes: a page's number in bits 12 to 43, and an offset in it, a multiple of 8,
    /// below. Frames that do not fit from there to the end of the page are cut.
    pub place: AtomicU64,
    /// The capability to write the page, if it is another's.
    pub capability: AtomicU64,
    /// What came: the length of a frame before it was cut, in the lower half, and the endpoint's
    /// number above. Of a request to the disk the tag.
    pub what: AtomicU64,
    /// Of a frame when it came, in cycles. Of a request to the disk 0, or the error below zero.
    pub result: AtomicU64,
}

/// What the disk is asked: an element of the array that [`Blocks`](crate::Call::Blocks) takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// [`Request::READ`], [`Request::WRITE`] or [`Request::FLUSH`].
    pub operation: u64,
    /// The holding: a range of blocks.
    pub holding: u64,
    /// Which of its blocks, from 0.
    pub block: u64,
    /// The page's number. A flush needs none.
    pub page: u64,
    /// The page's capability, if it is another's: to write it for a read.
    pub capability: u64,
    /// The range's capability, if it is another's.
    pub authority: u64,
    /// Said again when it is done.
    pub tag: u64,
}

impl Request {
    /// A block to a page.
    pub const READ: u64 = 0;
    /// A page to a block.
    pub const WRITE: u64 = 1;
    /// All that was written before, and told to be done, is on the disk for good. The holding is
    /// any that the caller may write.
    pub const FLUSH: u64 = 2;

    /// As it stands in memory.
    pub const fn words(&self) -> [u64; 7] {
        [
            self.operation,
            self.holding,
            self.block,
            self.page,
            self.capability,
            self.authority,
            self.tag,
        ]
    }

    /// What stands in memory so.
    pub const fn of(words: [u64; 7]) -> Request {
        let [operation, holding, block, page, capability, authority, tag] = words;
        Request {
            operation,
            holding,
            block,
            page,
            capability,
            authority,
            tag,
        }
    }
}

/// Requests of one environment that can be under way at a time.
pub const REQUESTS: usize = 16;
/// Requests of all that can be under way at a time. The last few are for who has none.
pub const ALL_REQUESTS: usize = 64;

/// A piece of a frame: an element of the array that [`Send`](crate::Call::Send) takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The page's number in bits 12 to 43, and the offset of the first byte below.
    pub place: u64,
    /// Bytes, all of them in this page.
    pub length: u64,
    /// The page's capability, if it is another's.
    pub capability: u64,
}

/// Pieces of a frame at most.
pub const PIECES: usize = 7;
/// Bytes of a frame: both addresses, the type, and what it carries.
pub const FRAME: core::ops::RangeInclusive<usize> = 14..=1514;
/// Bytes of a frame for this machine itself at most.
pub const OWN_FRAME: usize = crate::PAGE;
/// The priority of an endpoint that gets what no other one wants, and from which everybody may take
/// frames.
pub const BEHIND: u32 = u32::MAX;
/// Frames of one environment that can be under way at a time.
pub const FRAMES: usize = 8;

const _: () = assert!(core::mem::size_of::<Ring>() == crate::PAGE);
