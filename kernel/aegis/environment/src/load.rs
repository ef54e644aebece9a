//! Loading: an ELF file becomes an environment of its own. All of it is calls that every program
//! may make: pages are taken, filled through a window of the maker's space, given to the child, and
//! bound in the child's tables, which are the child's pages, too.

use core::sync::atomic::Ordering::Relaxed;

use elf::ElfBytes;
use elf::abi::{EM_X86_64, ET_EXEC, PF_W, PF_X, PT_LOAD};
use elf::endian::LittleEndian;
use elf::segment::ProgramHeader;
use postern_aegis_abi::call::{ENVIRONMENTS, PAGES, SLICES};
use postern_aegis_abi::{Context, Error, Mapping, PAGE, address};

use crate::calls::{self, Target};
use crate::mailbox::Mailbox;
use crate::slices::{self, Slice};
use crate::{archive, books, memory, pages};

/// What a new environment is given beside its program.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Pages that it may have beyond those of its program, and how many of these are reserved.
    pub more_pages: u32,
    /// Of them, pages that it keeps in any case.
    pub reserved: u32,
    /// Environments that it may make.
    pub environments: u32,
    /// Slices that it may have beyond those that it is given.
    pub more_slices: u32,
    /// The first words of its mailbox.
    pub words: [u64; 8],
}

impl Plan {
    /// Nothing but the program, with words for its mailbox.
    pub const fn new(words: [u64; 8]) -> Plan {
        Plan {
            more_pages: 16,
            reserved: 0,
            environments: 0,
            more_slices: 0,
            words,
        }
    }
}

/// Why a program was not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// There is no file of this name in the archive.
    Missing,
    /// It is no static ELF executable for this processor, or a segment is not at a page's start, or
    /// lies where none can be.
    Form,
    /// A call was refused.
    Call(&'static str, Error),
}

impl core::fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            LoadError::Missing => formatter.write_str("no program of this name"),
            LoadError::Form => formatter.write_str("it is no program for an environment"),
            LoadError::Call(what, error) => write!(formatter, "{what}: {error}"),
        }
    }
}

impl core::error::Error for LoadError {}

/// An environment that this one has made.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// Its number.
    pub number: u16,
    /// Its birth: another one has the number if this has changed.
    pub birth: u32,
    /// The page that it shares with its maker.
    pub mailbox: Mailbox,
}

impl Child {
    /// To name it in calls.
    pub fn target(&self) -> Target {
        Target::child(self.number)
    }

    /// Whether it lives.
    pub fn lives(&self) -> bool {
        books::lives(self.number)
            && books::environment(self.number).birth.load(Relaxed) == self.birth
    }

    /// Gives it a slice of this environment's.
    pub fn give(&self, slice: Slice) -> Result<(), LoadError> {
        let give = || calls::give_slice(slice.processor, slice.position, self.number);
        pages::patiently(give)
            .map_err(|error| LoadError::Call("giving a slice", error))
            .map(drop)
    }

    /// Takes the first free slice of a processor and gives it the child.
    pub fn run_on(&self, processor: usize) -> Result<Slice, LoadError> {
        let slice = slices::take(processor).map_err(|error| LoadError::Call("a slice", error))?;
        self.give(slice)?;
        Ok(slice)
    }

    /// Ends it, and gives the mailbox back.
    pub fn end(self) {
        if self.lives() {
            let _ = calls::destroy(self.target());
        }
        let _ = self.mailbox.close();
    }
}

/// Makes an environment of a program of the root's archive.
pub fn program(name: &str, plan: &Plan) -> Result<Child, LoadError> {
    load(archive::own().file(name).ok_or(LoadError::Missing)?, plan)
}

/// Makes an environment of an ELF file. It stands ready, without a slice.
pub fn load(file: &[u8], plan: &Plan) -> Result<Child, LoadError> {
    let elf = ElfBytes::<LittleEndian>::minimal_parse(file).map_err(|_| LoadError::Form)?;
    if elf.ehdr.e_type != ET_EXEC || elf.ehdr.e_machine != EM_X86_64 {
        return Err(LoadError::Form);
    }
    let segments = elf.segments().ok_or(LoadError::Form)?;
    let loaded = || {
        segments
            .iter()
            .filter(|segment| segment.p_type == PT_LOAD && segment.p_memsz > 0)
    };
    if !loaded().all(|segment| fits(&segment, file)) {
        return Err(LoadError::Form);
    }
    let count: u64 = loaded()
        .map(|segment| segment.p_memsz.div_ceil(PAGE as u64))
        .sum();
    let (number, context) = create(elf.ehdr.e_entry)?;
    let birth = books::environment(number).birth.load(Relaxed);
    let result = (|| {
        quotas(number, count as u32, plan)?;
        let whom = Target::child(number);
        let bind = |to, mapping| {
            memory::map(to, mapping, 0, whom).map_err(|error| LoadError::Call("mapping", error))
        };
        bind(address::GUARANTEED, Mapping::new(context, Mapping::WRITE))?;
        for segment in loaded() {
            for index in 0..segment.p_memsz.div_ceil(PAGE as u64) {
                let page = fill(&segment, file, index * PAGE as u64)?;
                if let Err(error) = calls::give(page, number) {
                    let _ = pages::free(page);
                    return Err(LoadError::Call("giving a page", error));
                }
                let to = segment.p_vaddr + index * PAGE as u64;
                bind(to, Mapping::new(page, flags(&segment)))?;
            }
        }
        let mailbox = Mailbox::new().map_err(|error| LoadError::Call("a mailbox", error))?;
        for (index, word) in plan.words.iter().enumerate() {
            mailbox.set(index, *word);
        }
        let shared = mailbox
            .share(number)
            .map_err(|error| LoadError::Call("sharing", error));
        let thawed = shared.and_then(|()| {
            calls::set_frozen(whom, false).map_err(|error| LoadError::Call("thawing", error))
        });
        match thawed {
            Ok(_) => Ok(Child {
                number,
                birth,
                mailbox,
            }),
            Err(error) => {
                let _ = mailbox.close();
                Err(error)
            }
        }
    })();
    if result.is_err() {
        let _ = calls::destroy(Target::child(number));
    }
    result
}

/// Whether a segment lies where it can be mapped, and its bytes are in the file.
fn fits(segment: &ProgramHeader, file: &[u8]) -> bool {
    let end = segment.p_vaddr.checked_add(segment.p_memsz);
    let bytes = segment.p_offset.checked_add(segment.p_filesz);
    address::mappable(segment.p_vaddr)
        && end.is_some_and(|end| end <= address::END)
        && bytes.is_some_and(|bytes| bytes <= file.len() as u64)
        && segment.p_filesz <= segment.p_memsz
}

/// What may be done to a segment's pages.
fn flags(segment: &ProgramHeader) -> u64 {
    let flag = |has: u32, flag: u64| if segment.p_flags & has != 0 { flag } else { 0 };
    flag(PF_W, Mapping::WRITE) | flag(PF_X, Mapping::EXECUTE)
}

/// An environment that stands still, whose slices begin at an address; its number and its page of
/// contexts, which it guarantees itself to have.
fn create(entry: u64) -> Result<(u16, u32), LoadError> {
    let call = |what| move |error| LoadError::Call(what, error);
    let window = pages::window();
    let context = memory::map_fresh(window, Mapping::WRITE).map_err(call("a page of contexts"))?;
    memory::write(window + core::mem::offset_of!(Context, begin) as u64, entry);
    let guaranteed = window + core::mem::offset_of!(Context, guaranteed) as u64;
    memory::write(guaranteed, address::GUARANTEED);
    memory::write(guaranteed + 8, Mapping::new(context, Mapping::WRITE).0);
    let made = calls::unmap(window, Target::SELF)
        .map_err(call("a window"))
        .and_then(|_| pages::take().map_err(call("a root table")))
        .and_then(|table| {
            calls::create(context, table).map_err(|error| {
                let _ = pages::free(table);
                LoadError::Call("creating", error)
            })
        });
    match made {
        Ok(number) => Ok((number, context)),
        Err(error) => {
            let _ = pages::free(context);
            Err(error)
        }
    }
}

/// Room for the program's pages, their tables, and what the plan says.
fn quotas(child: u16, pages: u32, plan: &Plan) -> Result<(), LoadError> {
    // Context and root table, and for each of two segments three tables and a page of links, and
    // some where a segment goes over the end of a table.
    let needed = pages + 2 + 8 + pages / 256;
    let set = |resource, reserved, limit| {
        calls::quota(child, resource, reserved, limit)
            .map_err(|error| LoadError::Call("a quota", error))
            .map(drop)
    };
    set(
        PAGES,
        needed + plan.reserved,
        needed + plan.more_pages.max(plan.reserved),
    )?;
    set(
        SLICES,
        0,
        postern_aegis_abi::SLICES as u32 + plan.more_slices,
    )?;
    if plan.environments > 0 {
        set(ENVIRONMENTS, 0, plan.environments)?;
    }
    Ok(())
}

/// A fresh page with what a segment has at an offset.
fn fill(segment: &ProgramHeader, file: &[u8], offset: u64) -> Result<u32, LoadError> {
    let window = pages::window();
    let page = memory::map_fresh(window, Mapping::WRITE)
        .map_err(|error| LoadError::Call("a page", error))?;
    if offset < segment.p_filesz {
        let from = (segment.p_offset + offset) as usize;
        let length = (segment.p_filesz - offset).min(PAGE as u64) as usize;
        memory::write_bytes(window, &file[from..from + length]);
    }
    match calls::unmap(window, Target::SELF) {
        Ok(_) => Ok(page),
        Err(error) => {
            let _ = pages::free(page);
            Err(LoadError::Call("a window", error))
        }
    }
}
