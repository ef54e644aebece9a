//! A process that is a copy: its memory is copied or shared page by page, as this process's own tables
//! say, and it begins like every program, sees in its memory that it is a copy, and goes on where
//! this process was.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use postern_aegis::address::{GUARANTEED, TABLES};
use postern_aegis::records::Page;
use postern_aegis::{Error, Mapping, PAGE, books, context, entry, image, memory};
use postern_exos_abi::address::START;
use postern_exos_abi::errno::Errno;
use postern_exos_abi::signal;
use postern_exos_abi::start::PAGES;
use postern_exos_load::space::{self, Space};

use crate::files;
use crate::ipc::area;
use crate::process::registry::refusal;
use crate::process::{own, registry, signals, trusted};

/// Whether this memory is a copy that has not gone on yet.
static COPY: AtomicBool = AtomicBool::new(false);
/// The base of fs, which C's thread-local variables have.
static FS: AtomicU64 = AtomicU64::new(0);

/// Pages that a copy may have beyond those that this process has.
const MORE: u64 = 64;

/// Makes it, with the registers that the caller has saved; its number.
pub(super) fn copy() -> Result<u32, Errno> {
    let _busy = signals::hold();
    files::share().map_err(refusal)?;
    let room = own::room().max(own::pages() + MORE);
    let made = registry::create(trusted::first_instruction(), room, own::name())?;
    FS.store(context::context().fs.load(Relaxed), Relaxed);
    COPY.store(true, Relaxed);
    let space = Space {
        target: made.target,
    };
    let begun = fill(&space, made.pid)
        .map_err(refusal)
        .and_then(|()| registry::begin(made.pid));
    COPY.store(false, Relaxed);
    space::close_windows();
    match begun {
        Ok(()) => Ok(made.pid),
        Err(error) => {
            let _ = registry::kill(made.pid, signal::KILL);
            Err(error)
        }
    }
}

fn fill(space: &Space, pid: u32) -> Result<(), Error> {
    let mut keep = |pages: &[u32], writes| registry::keep(pages, writes).map_err(|_| Error::Quota);
    crate::memory::share(space.target, &mut keep)?;
    second_segment(space)?;
    for index in 0..PAGES {
        let at = START + (index * PAGE) as u64;
        if memory::page_at(at).is_none() {
            break;
        }
        if index == 0 {
            let numbers = [pid, own::pid()];
            space.copy_changed(at, Mapping::WRITE, trusted::PID, &numbers)?;
        } else {
            space.copy(at, Mapping::WRITE)?;
        }
    }
    files::inherit(space)?;
    each_page(|at, entry| one_page(space, at, entry))
}

/// Text of entries is shared, their memory begins as it did.
fn second_segment(space: &Space) -> Result<(), Error> {
    let (at_initial, word) = entry::initial();
    for at in image::SECOND.step_by(PAGE).skip(1) {
        let Some(page) = memory::page_at(at) else {
            break;
        };
        let flags = memory::flags_at(at);
        if flags & Mapping::WRITE == 0 {
            share_or_copy(space, at, page, flags)?;
        } else if at == at_initial & !(PAGE as u64 - 1) {
            space.word(at, flags, at_initial - at, word)?;
        } else {
            space.zeros(at, flags)?;
        }
    }
    Ok(())
}

fn share_or_copy(space: &Space, at: u64, page: u32, flags: u64) -> Result<(), Error> {
    let everybodys = |page: &Page| {
        let name = match flags & Mapping::WRITE {
            0 => &page.read,
            _ => &page.write,
        };
        name.load(Relaxed) == postern_aegis::abi::call::NAME_EVERYBODY
    };
    if books::page(page).is_some_and(everybodys) {
        space.bind(at, Mapping::new(page, flags))
    } else {
        space.copy(at, flags).map(drop)
    }
}

fn one_page(space: &Space, at: u64, entry: u64) -> Result<(), Error> {
    if !crate::memory::is_copied(at) {
        return Ok(());
    }
    let page = (entry >> 12 & 0xff_ffff_ffff) as u32;
    share_or_copy(space, at, page, memory::flags_at(at))
}

/// Calls for each page below the second segment that is bound in this space: its address, and the
/// processor's entry.
fn each_page(mut each: impl FnMut(u64, u64) -> Result<(), Error>) -> Result<(), Error> {
    // The processor's tables appear as memory, the upper levels within the lower: the entry of the
    // table that has an address's entry is the entry of that entry's address.
    let slot = |address: u64| TABLES + (address >> 12) * 8;
    let word = |address: u64, level: u32| {
        let at = (0..level).fold(address, |at, _| slot(at) & !7);
        trusted::entry(at)
    };
    let span = |level: u32| 1u64 << (12 + 9 * (level - 1));
    let mut at = 0;
    while at < GUARANTEED {
        // Pipes and shared memory: `files::inherit` binds those.
        if at == area::START {
            at = area::END;
        }
        let empty = [4, 3, 2]
            .into_iter()
            .find(|level| word(at, *level) & 1 == 0);
        if let Some(level) = empty {
            at = (at / span(level) + 1) * span(level);
            continue;
        }
        for page in (at..at + span(2)).step_by(PAGE) {
            let entry = word(page, 1);
            if entry & 1 != 0 {
                each(page, entry)?;
            }
        }
        at += span(2);
    }
    Ok(())
}

/// In a copy: goes on where the process that it is a copy of was. In others: nothing.
pub fn go_on_if_copy() {
    if !COPY.load(Relaxed) {
        return;
    }
    books::forget_own_number();
    entry::install_again();
    crate::memory::in_copy();
    crate::ipc::begin();
    trusted::set_fs(FS.load(Relaxed));
    signals::begin_copy();
    COPY.store(false, Relaxed);
    trusted::go_on()
}
