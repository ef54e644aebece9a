//! Page faults: what was promised comes, what the program watches is told to it, and the rest is an
//! end with a reason.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use postern_aegis::calls::Target;
use postern_aegis::entry::{self, Frame};
use postern_aegis::{Mapping, PAGE, books, calls, memory, pages, start};
use postern_exos_abi::address::{PRIVATE, STACK, STACK_LIMIT};
use postern_exos_pages::entry::{EXECUTE, READ, WRITE};

use crate::memory::reason::Reason;
use crate::memory::space::{Found, WINDOW};
use crate::memory::{room, trusted};

/// The exception of page faults.
const VECTOR: usize = 14;
/// Below the stack nothing is mapped.
const GUARD: u64 = 1 << 20;
/// A window of its own, since what is interrupted may be using the other ones.
const URGENT: u64 = WINDOW + 2 * PAGE as u64;
/// Bits of a fault's code.
const PRESENT: u64 = 1;
const STORES: u64 = 1 << 1;
const FETCHES: u64 = 1 << 4;

/// Whether there were ever pages that are copied when they are stored to.
static COPIES: AtomicBool = AtomicBool::new(false);

/// There are pages that are copied when they are stored to.
pub(super) fn copies() {
    COPIES.store(true, Relaxed);
}

static FAULTS: AtomicU64 = AtomicU64::new(0);

/// Has faults come here.
pub fn install() {
    entry::on_exception(VECTOR, Some(fault));
}

/// Faults that were served by the library itself.
pub fn served() -> u64 {
    FAULTS.load(Relaxed)
}

fn fault(frame: &mut Frame) {
    let needed = match frame.code {
        code if code & STORES != 0 => WRITE,
        code if code & FETCHES != 0 => EXECUTE,
        _ => READ,
    };
    // A page that is there and may not be used so is the program's affair, unless some are copied
    // when they are stored to, as those of the image: then the table says which.
    let programs = frame.address >= trusted::layout().end && frame.address < PRIVATE;
    let there = frame.code & PRESENT != 0 && programs;
    if there && !COPIES.load(Relaxed) && trusted::served(frame) {
        return;
    }
    let page = frame.address >> 12;
    let found = trusted::with(|space| space.fault(page, needed));
    if found.is_none() && urgent(page << 12, frame.code) {
        return;
    }
    if found == Some(Found::Served) {
        FAULTS.store(FAULTS.load(Relaxed) + 1, Relaxed);
        return;
    }
    if found == Some(Found::Protected) && trusted::served(frame) {
        return;
    }
    refuse(frame, found);
}

/// A page is touched while somebody has the tables: the library itself stores to the program's stack,
/// or a policy of the program's to its data. What is to be copied is copied, and zeros of the image
/// come; the entry stays as it was, and serves all the same, since who owns a page needs no capability.
#[cold]
fn urgent(at: u64, code: u64) -> bool {
    let image = trusted::layout();
    let flags = match code & PRESENT {
        0 if (image.data..image.end).contains(&at) => Mapping::WRITE,
        PRESENT if code & STORES != 0 && is_anothers(at) => memory::flags_at(at) | Mapping::WRITE,
        _ => return false,
    };
    let Ok(number) = room::take() else {
        return false;
    };
    let copied = match code & PRESENT {
        0 => Ok(()),
        _ => trusted::bind(URGENT, Mapping::new(number, Mapping::WRITE), 0)
            .map(|()| trusted::copy_page(URGENT, at)),
    };
    let bound = copied.and_then(|()| trusted::bind(at, Mapping::new(number, flags), 0));
    if code & PRESENT != 0 {
        let _ = calls::unmap(URGENT, Target::SELF);
    }
    if bound.is_err() {
        let _ = pages::free(number);
    }
    bound.is_ok()
}

/// Whether the page at an address is one that this process has in common with others.
fn is_anothers(at: u64) -> bool {
    let owner = |number: u32| Some(books::page(number)?.owner.load(Relaxed));
    let owner = memory::page_at(at).and_then(owner);
    at < memory::FIRST && owner.is_some_and(|owner| owner != books::own_number())
}

fn reason(found: Option<Found>, address: u64) -> Reason {
    let below = (STACK - STACK_LIMIT).wrapping_sub(address);
    match found {
        None => Reason::Library,
        Some(Found::Memory(_)) => Reason::Memory,
        Some(Found::Lost) => Reason::Lost,
        Some(Found::Protected) => Reason::Protected,
        _ if below < GUARD => Reason::Stack,
        _ => Reason::Nothing,
    }
}

/// Nobody serves it: the program's policy may, signals do, or it is the end.
#[cold]
fn refuse(frame: &mut Frame, found: Option<Found>) {
    let reason = reason(found, frame.address);
    if reason != Reason::Library && trusted::policy(frame, reason as c_int) {
        return;
    }
    if !trusted::otherwise(frame, reason) {
        start::exit();
    }
}
