//! Page faults: what was promised comes, what the program watches is told to it, and the rest is an
//! end with a reason.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use postern_aegis::entry::{self, Frame};
use postern_aegis::println;
use postern_aegis::start;
use postern_exos_abi::address::{PRIVATE, STACK, STACK_LIMIT};
use postern_exos_pages::entry::{EXECUTE, READ, WRITE};

use crate::memory::space::Found;
use crate::memory::trusted;

/// The exception of page faults.
const VECTOR: usize = 14;
/// Below the stack nothing is mapped.
const GUARD: u64 = 1 << 20;
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
    // when they are stored to: then the table says which.
    let there = frame.code & PRESENT != 0 && frame.address < PRIVATE;
    if there && !COPIES.load(Relaxed) && trusted::served(frame) {
        return;
    }
    let page = frame.address >> 12;
    let found = trusted::with(|space| space.fault(page, needed));
    if found == Some(Found::Served) {
        FAULTS.store(FAULTS.load(Relaxed) + 1, Relaxed);
        return;
    }
    if found == Some(Found::Protected) && trusted::served(frame) {
        return;
    }
    refuse(frame, found);
}

/// Nobody serves it: signals do, or it is the end.
#[cold]
fn refuse(frame: &mut Frame, found: Option<Found>) {
    let below = (STACK - STACK_LIMIT).wrapping_sub(frame.address);
    let why = match found {
        None => "in the library's own tables",
        Some(Found::Memory(_)) => "there is no memory left",
        Some(Found::Lost) => "its page was taken by force",
        Some(Found::Protected) => "it is protected",
        _ if below < GUARD => "the stack is full",
        _ => "nothing is there",
    };
    let known = matches!(found, Some(Found::Nothing | Found::Protected)) && below >= GUARD;
    if !known || !trusted::has_otherwise() {
        println!(
            "fault at {:#x}: address {:#x}: {why}",
            frame.rip, frame.address
        );
    }
    if !trusted::otherwise(frame) {
        start::exit();
    }
}
