//! Address translation by the program itself (section 5.4): pages of a range are bound when they
//! are first touched, by the program's own handler.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis_abi::{Mapping, PAGE};

use crate::entry::{self, Frame};
use crate::{memory, println, start};

static START: AtomicU64 = AtomicU64::new(0);
static LENGTH: AtomicU64 = AtomicU64::new(0);
static FAULTS: AtomicU64 = AtomicU64::new(0);

/// Has fresh pages bound in a range as they are touched. One range at a time.
pub fn install(first: u64, pages: u64) {
    LENGTH.store(0, Relaxed);
    START.store(first, Relaxed);
    LENGTH.store(pages * PAGE as u64, Relaxed);
    entry::on_exception(VECTOR, Some(missed));
}

/// How many pages were bound so.
pub fn faults() -> u64 {
    FAULTS.load(Relaxed)
}

const VECTOR: usize = 14;
/// Bit 0 of a page fault's code: the page is there, but may not be used so.
const PRESENT: u64 = 1;

fn missed(frame: &mut Frame) {
    let inside = frame.address.wrapping_sub(START.load(Relaxed)) < LENGTH.load(Relaxed);
    if !inside || frame.code & PRESENT != 0 {
        println!("fault at {:#x}: address {:#x}", frame.rip, frame.address);
        start::exit();
    }
    if let Err(error) = memory::map_fresh(frame.address & !(PAGE as u64 - 1), Mapping::WRITE) {
        println!("no page for {:#x}: {error}", frame.address);
        start::exit();
    }
    FAULTS.fetch_add(1, Relaxed);
}
