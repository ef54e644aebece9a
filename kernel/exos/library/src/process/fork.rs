//! A process that is a copy: its memory is the same until one of both stores there, but for what the
//! library itself needs to copy a page, which is copied at once. It begins like every program, sees in its memory that it is a copy, and goes on where
//! this process was.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

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

/// Bytes below the stack pointer that whoever comes back from `fork` stores to at once.
const HOT: u64 = 256;

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
        .and_then(|()| files::tell_child(made.pid))
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
    // Both go on in the last pages of the stack, so a fault for each would cost more than a copy.
    let top = trusted::stack_pointer();
    let page = |at: u64| at & !(PAGE as u64 - 1);
    let hot = page(top - HOT)..page(top) + PAGE as u64;
    crate::memory::share(space.target, hot.clone(), &mut keep)?;
    for at in hot.clone().step_by(PAGE) {
        if memory::page_at(at).is_some() {
            space.copy(at, memory::flags_at(at))?;
        }
    }
    // Text and constants, which the table does not know if nobody asked for them.
    for at in crate::memory::constants() {
        share_or_copy(space, at)?;
    }
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
    // Pipes and shared memory are inherited already.
    crate::memory::each_unknown(area::START..area::END, |at| share_or_copy(space, at))?;
    for at in crate::memory::stored_since(&hot) {
        space.copy(at, memory::flags_at(at))?;
    }
    for at in crate::memory::eager() {
        space.copy(at, Mapping::WRITE)?;
    }
    Ok(())
}

/// Text of entries is shared, their memory begins as it did.
fn second_segment(space: &Space) -> Result<(), Error> {
    let (at_initial, word) = entry::initial();
    for at in image::SECOND.step_by(PAGE).skip(1) {
        if memory::page_at(at).is_none() {
            break;
        }
        let flags = memory::flags_at(at);
        if flags & Mapping::WRITE == 0 {
            share_or_copy(space, at)?;
        } else if at == at_initial & !(PAGE as u64 - 1) {
            space.word(at, flags, at_initial - at, word)?;
        } else {
            space.zeros(at, flags)?;
        }
    }
    Ok(())
}

/// A page that is everybody's is the same, others are copied.
fn share_or_copy(space: &Space, at: u64) -> Result<(), Error> {
    let (Some(page), flags) = (memory::page_at(at), memory::flags_at(at)) else {
        return Ok(());
    };
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

/// In a copy: goes on where the process that it is a copy of was. In others: nothing.
pub fn go_on_if_copy() {
    if !COPY.load(Relaxed) {
        return;
    }
    books::forget_own_number();
    entry::install_again();
    crate::memory::in_copy();
    files::in_copy();
    crate::ipc::begin();
    trusted::set_fs(FS.load(Relaxed));
    signals::begin_copy();
    COPY.store(false, Relaxed);
    trusted::go_on()
}
