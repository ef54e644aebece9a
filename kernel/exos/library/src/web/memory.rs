//! Where what is sent stands: files of the archive, whose pages everybody may read; pages that servers
//! of files lend; and pages of the server's own for heads, for what programs made, and for copies of
//! files whose server lends none.
//!
//! A page that is lent may be taken back at any time, so it is never bound here: its bytes are asked
//! for, to be summed, and the server says afterwards that they are still that page's.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use postern_aegis::calls::Target;
use postern_aegis::{Error, Mapping, PAGE, memory};
use postern_exos_abi::errno;
use postern_exos_abi::protocol::status;
use postern_exos_load::archive::File;
use postern_exos_web::objects::{HEAD, HEADS, Memory};
use postern_exos_web::sum::Sum;

use crate::files::served;
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
    Served(Served),
}

/// A file of another process's, at one version.
#[derive(Debug)]
struct Served {
    file: served::File,
    version: u64,
    /// Copies of its pages, by their index.
    copies: BTreeMap<u64, Own>,
}

/// Bytes of a file's page that were asked for last.
#[derive(Debug)]
struct Last {
    of: (u64, u64),
    page: (u32, u64),
    bytes: Vec<u8>,
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
    last: Option<Last>,
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
            last: None,
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

    /// A file that is held, at a version: its number as a source. With the source it is closed.
    pub fn served(&mut self, file: served::File, version: u64) -> u64 {
        let copies = BTreeMap::new();
        self.add(Source::Served(Served {
            file,
            version,
            copies,
        }))
    }

    /// A copy of the first bytes of a source.
    pub fn bytes(&self, source: u64, length: u64) -> Option<Vec<u8>> {
        let source = self.sources.get(usize::try_from(source).ok()?)?.as_ref()?;
        let length = usize::try_from(length).ok()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        let read = match source {
            Source::Archive(file) => file.read(0, &mut bytes).ok()?,
            Source::Served(served) => served.file.read_at(0, &mut bytes).ok()?,
            Source::Own(_) => return None,
        };
        bytes.truncate(read);
        Some(bytes)
    }

    fn served_of(&mut self, source: u64) -> Option<&mut Served> {
        let source = self.sources.get_mut(usize::try_from(source).ok()?)?;
        match source {
            Some(Source::Served(served)) => Some(served),
            _ => None,
        }
    }

    /// A page of a file of another process's: lent, or a copy.
    fn served_page(&mut self, source: u64, index: u64) -> Option<(u32, u64)> {
        let served = self.served_of(source)?;
        if let Some(own) = served.copies.get(&index) {
            return Some((own.number, 0));
        }
        let (file, version) = (served.file, served.version);
        match file.page(index) {
            Ok((number, capability, now)) => (now == version).then_some((number, capability)),
            Err(errno::NOTSUP) => {
                let bytes = read_page(file, index)?;
                let now = file.status().ok()?[status::VERSION];
                let own = self.take()?;
                trusted::copy_in(own.at, &bytes);
                match self.served_of(source) {
                    Some(served) if now == version => _ = served.copies.insert(index, own),
                    _ => {
                        self.free.push(own);
                        return None;
                    }
                }
                Some((own.number, 0))
            }
            Err(_) => None,
        }
    }

    /// The bytes of a page that is lent.
    fn lent(&mut self, of: (u64, u64), page: (u32, u64)) -> Option<&[u8]> {
        let is = |last: &Last| last.of == of && last.page == page;
        if !self.last.as_ref().is_some_and(is) {
            let file = self.served_of(of.0)?.file;
            let bytes = read_page(file, of.1)?;
            // Afterwards, so that these are the bytes of no other page.
            if self.served_page(of.0, of.1)? != page {
                return None;
            }
            self.last = Some(Last { of, page, bytes });
        }
        self.last.as_ref().map(|last| &last.bytes[..])
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

/// A page of a file, behind whose end are zeros.
fn read_page(file: served::File, index: u64) -> Option<Vec<u8>> {
    let mut bytes = alloc::vec![0; PAGE];
    file.read_at(index.checked_mul(PAGE as u64)?, &mut bytes)
        .ok()?;
    Some(bytes)
}

impl Memory for Memories {
    fn page(&mut self, file: u64, index: u64) -> Option<(u32, u64)> {
        let source = self.sources.get(usize::try_from(file).ok()?)?.as_ref()?;
        match source {
            Source::Archive(file) => Some((file.page(index.checked_mul(PAGE as u64)?)?, 0)),
            Source::Own(pages) => Some((pages.get(usize::try_from(index).ok()?)?.number, 0)),
            Source::Served(_) => self.served_page(file, index),
        }
    }

    fn sum(
        &mut self,
        of: Option<(u64, u64)>,
        page: (u32, u64),
        offset: usize,
        length: usize,
    ) -> Option<Sum> {
        if offset.checked_add(length)? > PAGE {
            return None;
        }
        if let Some(of) = of
            && page.1 != 0
        {
            let bytes = self.lent(of, page)?;
            return Some(Sum::of(bytes.get(offset..offset + length)?));
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
        match place.and_then(Option::take) {
            Some(Source::Own(mut pages)) => self.free.append(&mut pages),
            Some(Source::Served(served)) => {
                // The number may be another file's before long.
                self.last = None;
                served.file.close();
                self.free.extend(served.copies.into_values());
            }
            _ => {}
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
