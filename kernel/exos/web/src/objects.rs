//! What is sent: files and answers as pages that somebody keeps, and the sums of their chunks,
//! which are computed when a chunk is sent first, and never again. Whoever sends a page again, to
//! the same client or to another, touches none of its bytes.

use alloc::vec::Vec;

use crate::piece::{Piece, Store};
use crate::sum::Sum;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Where chunks of a page begin: three, each as much as a segment takes. None is in two pages, so
/// each is one piece, and all begin at even places.
const CHUNKS: [usize; 4] = [0, 1366, 2732, PAGE];

/// Bytes of a head, and of short answers with it.
pub const HEAD: usize = 512;
/// Heads of one connection at a time.
pub const HEADS: usize = 2;
/// Numbers of objects that are heads begin here: [`HEADS`] for each connection.
pub const FIRST_HEAD: u32 = 1 << 31;

/// Memory, as the platform has it.
pub trait Memory {
    /// The page of a file from an index on: its number, and the capability to read it.
    fn page(&mut self, file: u64, index: u64) -> Option<(u32, u64)>;
    /// The sum of bytes in a page, that of a file from an index on; heads are of no file.
    fn sum(
        &mut self,
        of: Option<(u64, u64)>,
        page: (u32, u64),
        offset: usize,
        length: usize,
    ) -> Option<Sum>;
    /// Nobody sends a file any more: an object of it is gone.
    fn forget(&mut self, file: u64);
    /// Stores a head: the page that has it, and the offset there.
    fn head(&mut self, head: usize, bytes: &[u8]) -> Option<u64>;
}

#[derive(Clone, Copy, Debug)]
struct Page {
    number: u32,
    /// Which of the sums are there, as bits.
    known: u8,
    capability: u64,
    sums: [Sum; 3],
}

#[derive(Debug)]
struct Object {
    file: u64,
    length: u64,
    users: u32,
    pages: Vec<Option<Page>>,
}

/// All of them.
#[derive(Debug)]
pub struct Objects<M> {
    /// The memory that they are in.
    pub memory: M,
    all: Vec<Option<Object>>,
    heads: Vec<Piece>,
    /// Chunks whose sum was there, and whose was computed.
    pub sums: [u64; 2],
}

impl<M: Memory> Objects<M> {
    /// None, with heads for so many connections.
    pub fn new(memory: M, connections: usize) -> Objects<M> {
        Objects {
            memory,
            all: Vec::new(),
            heads: alloc::vec![Piece::default(); connections * HEADS],
            sums: [0; 2],
        }
    }

    /// An object of so many bytes of a file, with one user. `None`: it is too large for what a
    /// process can know of pages.
    pub fn add(&mut self, file: u64, length: u64) -> Option<u32> {
        let count = usize::try_from(length.div_ceil(PAGE as u64)).ok()?;
        let mut pages = Vec::new();
        pages.try_reserve_exact(count).ok()?;
        pages.resize(count, None);
        let object = Object {
            file,
            length,
            users: 1,
            pages,
        };
        let free = self.all.iter().position(Option::is_none);
        let at = free.unwrap_or(self.all.len());
        match self.all.get_mut(at) {
            Some(place) => *place = Some(object),
            None => self.all.push(Some(object)),
        }
        Some(at as u32)
    }

    /// One user more.
    pub fn retain(&mut self, object: u32) {
        if let Some(Some(object)) = self.all.get_mut(object as usize) {
            object.users += 1;
        }
    }

    /// One user fewer; with the last one it goes.
    pub fn release(&mut self, object: u32) {
        let Some(place) = self.all.get_mut(object as usize) else {
            return;
        };
        if let Some(object) = place {
            object.users = object.users.saturating_sub(1);
            if object.users == 0 {
                let file = object.file;
                *place = None;
                self.memory.forget(file);
            }
        }
    }

    /// The number of objects that there are.
    pub fn count(&self) -> usize {
        self.all.iter().flatten().count()
    }

    /// How many use an object.
    pub fn users(&self, object: u32) -> u32 {
        let found = self.all.get(object as usize).and_then(Option::as_ref);
        found.map_or(0, |object| object.users)
    }

    /// Stores the head of an answer; its number as an object.
    pub fn put_head(&mut self, head: usize, bytes: &[u8]) -> Option<u32> {
        let place = self.memory.head(head, bytes)?;
        *self.heads.get_mut(head)? = Piece {
            place,
            capability: 0,
            length: bytes.len(),
            sum: Sum::of(bytes),
        };
        Some(FIRST_HEAD + head as u32)
    }

    fn head_piece(&mut self, head: u32, offset: u64, most: usize) -> Option<Piece> {
        let head = *self.heads.get(head as usize)?;
        if offset == 0 && head.length <= most {
            return Some(head);
        }
        let skipped = usize::try_from(offset).ok()?;
        let length = head.length.checked_sub(skipped)?.min(most);
        let (page, within) = (
            (head.place >> 12) as u32,
            head.place as usize % PAGE + skipped,
        );
        let sum = self.memory.sum(None, (page, 0), within, length)?;
        Some(Piece {
            place: head.place + offset,
            capability: 0,
            length,
            sum,
        })
    }
}

impl<M: Memory> Store for Objects<M> {
    fn piece(&mut self, number: u32, offset: u64, most: usize) -> Option<Piece> {
        if let Some(head) = number.checked_sub(FIRST_HEAD) {
            return self.head_piece(head, offset, most);
        }
        let object = self.all.get_mut(number as usize)?.as_mut()?;
        let left = object.length.checked_sub(offset).filter(|left| *left > 0)?;
        let index = offset / PAGE as u64;
        let place = object.pages.get_mut(usize::try_from(index).ok()?)?;
        let page = match place {
            Some(page) => page,
            None => {
                let (number, capability) = self.memory.page(object.file, index)?;
                place.insert(Page {
                    number,
                    known: 0,
                    capability,
                    sums: [Sum::default(); 3],
                })
            }
        };
        let within = (offset % PAGE as u64) as usize;
        let chunk = CHUNKS
            .iter()
            .skip(1)
            .take_while(|end| **end <= within)
            .count();
        let (begin, end) = (*CHUNKS.get(chunk)?, *CHUNKS.get(chunk + 1)?);
        let whole = usize::try_from(left).unwrap_or(PAGE).min(end - within);
        let length = whole.min(most);
        let key = (page.number, page.capability);
        let kept = within == begin && length == whole;
        let sum = match page.sums.get_mut(chunk).filter(|_| kept) {
            Some(sum) if page.known & 1 << chunk != 0 => {
                self.sums[0] += 1;
                *sum
            }
            sum => {
                self.sums[1] += 1;
                let of = Some((object.file, index));
                let found = self.memory.sum(of, key, within, length)?;
                if let Some(sum) = sum {
                    *sum = found;
                    page.known |= 1 << chunk;
                }
                found
            }
        };
        Some(Piece {
            place: u64::from(page.number) << 12 | within as u64,
            capability: page.capability,
            length,
            sum,
        })
    }
}
