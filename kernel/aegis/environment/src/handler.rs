//! Handlers of messages: an image of an archive, or one that was compiled here, gets its pages and
//! its memory. All of it is calls that every program may make.
//!
//! What a handler keeps lies in pages of this environment's, bound in the handler's window: the
//! image's own data, a stack, and what is shared with it. An image's places are offsets in the
//! window; so are pointers of the handler.

use core::sync::atomic::Ordering::Relaxed;

use elf::ElfBytes;
use elf::abi::{PF_W, PF_X, PT_LOAD};
use elf::endian::LittleEndian;
use elf::segment::ProgramHeader;
use postern_aegis_abi::mapping::Request;
use postern_aegis_abi::records::Holding;
use postern_aegis_abi::{Error, Mapping, PAGE, address};

use crate::calls::{self, Target};
use crate::{books, memory, pages};

/// Pages that a handler has at most here, of all kinds.
const PAGES: usize = 64;
/// Where slots and text begin, in an image that does not say otherwise.
const GATES: u64 = 0x1_1000;
/// The page in which code finds numbers about its window: the interface's version, where its heap
/// begins and ends (there is none), and the stack's size less 1, each at a word's offset.
const INFO: u64 = 0x1_0000;
const VERSION: (u64, u64) = (8, 1);
const HEAP: u64 = 16;
const STACK_MASK: u64 = 32;

/// A handler, with its pages.
#[derive(Debug)]
pub struct Handler {
    /// Its number; 0 as long as there is none.
    pub number: usize,
    /// Pages that are given back at its end, and where each is bound. 0: it is the table, its
    /// links, or text.
    pages: [(u32, u64); PAGES],
    count: usize,
}

/// Makes a handler of an image, with so many pages of stack (the image's own size at most).
///
/// # Errors
/// [`Error::Argument`] if the judge, or this, does not take the image for a handler's; otherwise
/// what a call said.
pub fn load(image: &[u8], stack: u64) -> Result<Handler, Error> {
    let mut handler = Handler {
        number: 0,
        pages: [(0, 0); PAGES],
        count: 0,
    };
    match handler.load(image, stack) {
        Ok(()) => Ok(handler),
        Err(error) => {
            handler.end();
            Err(error)
        }
    }
}

impl Handler {
    fn load(&mut self, image: &[u8], stack: u64) -> Result<(), Error> {
        let elf = ElfBytes::<LittleEndian>::minimal_parse(image).map_err(|_| Error::Argument)?;
        let segments = elf.segments().ok_or(Error::Argument)?;
        let loads = || {
            segments
                .iter()
                .filter(|segment| segment.p_type == PT_LOAD && segment.p_memsz > 0)
        };
        let fits = |segment: &ProgramHeader| {
            let end = segment.p_vaddr.checked_add(segment.p_memsz);
            end.is_some_and(|end| segment.p_vaddr >= GATES && end <= address::MESSAGE)
        };
        let text = loads().find(|segment| segment.p_flags & PF_X != 0);
        let text = text.ok_or(Error::Argument)?;
        if !loads().all(|segment| fits(&segment)) {
            return Err(Error::Argument);
        }
        let end = text.p_vaddr + text.p_memsz;
        self.make(image, 2 + (end - GATES).div_ceil(PAGE as u64))?;
        let (mut read, mut all) = (end, end);
        for segment in loads().filter(|segment| segment.p_flags & PF_X == 0) {
            let end = segment.p_vaddr + segment.p_memsz;
            all = all.max(end);
            if segment.p_flags & PF_W == 0 {
                read = end;
            }
            self.segment(image, &segment)?;
        }
        let top = u64::from(self.record().stack.load(Relaxed));
        for index in 1..=stack {
            self.fresh(top - index * PAGE as u64, Mapping::WRITE)?;
        }
        let heap = all.max(top).next_multiple_of(PAGE as u64);
        let words = [
            VERSION,
            (HEAP, heap | heap << 32),
            (STACK_MASK, stack_size(read, top) - 1),
        ];
        self.filled(INFO, 0, |at| {
            for (offset, word) in words {
                memory::write(at + offset, word);
            }
        })
        .map(drop)
    }

    /// Has the kernel make it, of so many pages.
    fn make(&mut self, image: &[u8], count: u64) -> Result<(), Error> {
        let mut numbers = [0; PAGES];
        let numbers = numbers.get_mut(..count as usize).ok_or(Error::Exhausted)?;
        for number in numbers.iter_mut() {
            *number = self.take(0)?.into();
        }
        self.number = calls::handler(image, numbers)?;
        Ok(())
    }

    /// Takes a page that is given back at the end.
    fn take(&mut self, at: u64) -> Result<u32, Error> {
        let place = self.pages.get_mut(self.count).ok_or(Error::Exhausted)?;
        let page = pages::take()?;
        *place = (page, at);
        self.count += 1;
        Ok(page)
    }

    /// Its record in the books.
    pub fn record(&self) -> &'static Holding {
        &books::machine().holdings[self.number % postern_aegis_abi::HOLDINGS]
    }

    /// Binds a page at an offset of its window: an own one, or one whose capability is there.
    pub fn bind(&self, offset: u64, mapping: Mapping, capability: u64) -> Result<(), Error> {
        let offset = u32::try_from(offset).map_err(|_| Error::Argument)?;
        calls::window(self.number, offset, mapping, capability).map(drop)
    }

    /// Takes away what is bound at an offset.
    pub fn unbind(&self, offset: u64) -> Result<(), Error> {
        self.bind(offset, Request::UNMAP, 0)
    }

    /// Binds a fresh page at an offset, which is given back at the end; its number.
    pub fn fresh(&mut self, offset: u64, flags: u64) -> Result<u32, Error> {
        let page = self.take(offset)?;
        self.bind(offset, Mapping::new(page, flags), 0)?;
        Ok(page)
    }

    /// The same, bound at an address of this environment's, too, to be read and written there.
    pub fn share(&mut self, offset: u64, address: u64) -> Result<u32, Error> {
        let page = self.fresh(offset, Mapping::WRITE)?;
        memory::map(address, Mapping::new(page, Mapping::WRITE), 0, Target::SELF)?;
        Ok(page)
    }

    /// The page that was taken for an offset.
    pub fn page_at(&self, offset: u64) -> Option<u32> {
        let at = offset & !(PAGE as u64 - 1);
        let pages = self.pages[..self.count].iter();
        let mut here = pages.filter(|(_, bound)| at != 0 && *bound == at);
        here.next().map(|(page, _)| *page)
    }

    /// Pages of a segment that is not text.
    fn segment(&mut self, image: &[u8], segment: &ProgramHeader) -> Result<(), Error> {
        let flags = match segment.p_flags & PF_W {
            0 => 0,
            _ => Mapping::WRITE,
        };
        let file = usize::try_from(segment.p_offset).ok();
        let file = file.and_then(|from| image.get(from..)?.get(..segment.p_filesz as usize));
        let file = file.ok_or(Error::Argument)?;
        for index in 0..segment.p_memsz.div_ceil(PAGE as u64) {
            let bytes = file.chunks(PAGE).nth(index as usize).unwrap_or_default();
            let at = segment.p_vaddr + index * PAGE as u64;
            self.filled(at, flags, |window| memory::write_bytes(window, bytes))?;
        }
        Ok(())
    }

    /// A fresh page at an offset, filled through a window of this space.
    fn filled(&mut self, at: u64, flags: u64, fill: impl FnOnce(u64)) -> Result<u32, Error> {
        let page = self.take(at)?;
        let window = pages::window();
        memory::map(window, Mapping::new(page, Mapping::WRITE), 0, Target::SELF)?;
        fill(window);
        calls::unmap(window, Target::SELF)?;
        self.bind(at, Mapping::new(page, flags), 0)?;
        Ok(page)
    }

    /// Ends it, and gives all its pages back.
    pub fn end(self) {
        if self.number != 0 {
            let _ = calls::drop_holding(self.number, 0);
        }
        for (page, _) in &self.pages[..self.count] {
            let _ = pages::free(*page);
        }
    }
}

/// The size of a data stack, which begins at a multiple of it behind what is only read, and ends at
/// `top`.
fn stack_size(read: u64, top: u64) -> u64 {
    let ends = |log: &u32| read.next_multiple_of(1 << log) + (1 << log) == top;
    (12..27).find(ends).map_or(PAGE as u64, |log| 1 << log)
}
