//! Where what is sent stands: files of the archive, whose pages everybody may read, and pages of the
//! server's own for heads and for what programs made.

use alloc::vec::Vec;

use postern_aegis::calls::Target;
use postern_aegis::{Error, Mapping, PAGE, memory};
use postern_exos_load::archive::File;
use postern_exos_web::objects::{HEAD, HEADS, Memory};
use postern_exos_web::sum::Sum;

use crate::memory::room;
use crate::web::trusted;

/// Pages of the server's own for what programs made, at most: 16 MiB.
const OWN: usize = 4096;
/// Bytes that are summed at a time: more than a segment has.
const SUMMED: usize = 2048;

/// A page of the server's own: where it is bound, and its number.
#[derive(Clone, Copy, Debug)]
struct Own {
    at: u64,
    number: u32,
}

/// Where an object's bytes stand.
#[derive(Debug)]
enum Source {
    Archive(File),
    Own(Vec<Own>),
}

/// All of it.
#[derive(Debug)]
pub struct Memories {
    sources: Vec<Option<Source>>,
    heads: Vec<Own>,
    /// Pages that wait to be used, and how many there are in all.
    free: Vec<Own>,
    count: usize,
    /// Where pages are bound for a moment, and the page that is bound there.
    window: u64,
    bound: Option<(u32, u64)>,
}

fn fresh() -> Result<Own, Error> {
    let at = memory::reserve(1);
    let number = room::patiently(|| memory::map_fresh(at, Mapping::WRITE))?;
    Ok(Own { at, number })
}

impl Memories {
    /// Memory for heads of so many connections.
    pub fn new(connections: usize) -> Result<Memories, Error> {
        let pages = (connections * HEADS * HEAD).div_ceil(PAGE);
        room::ahead(pages as u64)?;
        let heads = (0..pages).map(|_| fresh()).collect::<Result<_, _>>()?;
        Ok(Memories {
            sources: Vec::new(),
            heads,
            free: Vec::new(),
            count: 0,
            window: memory::reserve(1),
            bound: None,
        })
    }

    fn add(&mut self, source: Source) -> u64 {
        let free = self.sources.iter().position(Option::is_none);
        let at = free.unwrap_or(self.sources.len());
        match self.sources.get_mut(at) {
            Some(place) => *place = Some(source),
            None => self.sources.push(Some(source)),
        }
        at as u64
    }

    /// A file of the archive: its number as a source of objects.
    pub fn archive(&mut self, file: File) -> u64 {
        self.add(Source::Archive(file))
    }

    /// Bytes that are copied: their number as a source. `None`: there is no room.
    pub fn keep(&mut self, bytes: &[u8]) -> Option<u64> {
        let mut pages = Vec::new();
        for chunk in bytes.chunks(PAGE) {
            let Some(page) = self.take() else {
                self.free.append(&mut pages);
                return None;
            };
            trusted::copy_in(page.at, chunk);
            pages.push(page);
        }
        Some(self.add(Source::Own(pages)))
    }

    /// A copy of the first bytes of a source.
    pub fn bytes(&self, source: u64, length: u64) -> Option<Vec<u8>> {
        let source = self.sources.get(usize::try_from(source).ok()?)?;
        let Some(Source::Archive(file)) = source else {
            return None;
        };
        let length = usize::try_from(length).ok()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        let read = file.read(0, &mut bytes).ok()?;
        bytes.truncate(read);
        Some(bytes)
    }

    fn take(&mut self) -> Option<Own> {
        if let Some(page) = self.free.pop() {
            return Some(page);
        }
        if self.count == OWN {
            return None;
        }
        let page = fresh().ok()?;
        self.count += 1;
        Some(page)
    }
}

impl Memory for Memories {
    fn page(&mut self, file: u64, index: u64) -> Option<(u32, u64)> {
        let source = self.sources.get(usize::try_from(file).ok()?)?.as_ref()?;
        match source {
            Source::Archive(file) => Some((file.page(index.checked_mul(PAGE as u64)?)?, 0)),
            Source::Own(pages) => Some((pages.get(usize::try_from(index).ok()?)?.number, 0)),
        }
    }

    fn sum(&mut self, page: (u32, u64), offset: usize, length: usize) -> Option<Sum> {
        if offset.checked_add(length)? > PAGE {
            return None;
        }
        if self.bound != Some(page) {
            let (number, capability) = page;
            let mapping = Mapping::new(number, 0);
            room::patiently(|| memory::map(self.window, mapping, capability, Target::SELF)).ok()?;
            self.bound = Some(page);
        }
        let mut bytes = [0; SUMMED];
        let bytes = bytes.get_mut(..length)?;
        trusted::copy_out(bytes, self.window + offset as u64);
        Some(Sum::of(bytes))
    }

    fn forget(&mut self, file: u64) {
        let place = usize::try_from(file).ok();
        let place = place.and_then(|at| self.sources.get_mut(at));
        if let Some(Source::Own(mut pages)) = place.and_then(Option::take) {
            self.free.append(&mut pages);
        }
    }

    fn head(&mut self, head: usize, bytes: &[u8]) -> Option<u64> {
        const EACH: usize = PAGE / HEAD;
        let page = self.heads.get(head / EACH)?;
        let offset = (head % EACH * HEAD) as u64;
        trusted::copy_in(page.at + offset, bytes.get(..HEAD.min(bytes.len()))?);
        Some(u64::from(page.number) << 12 | offset)
    }
}
