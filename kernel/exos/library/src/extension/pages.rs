//! Pages for extensions: what the gates ask of memory and time.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::calls::{self, Target};
use postern_aegis::memory::TABLE_SPAN;
use postern_aegis::{Mapping, PAGE, memory, pages, println, slices, start, time};
use postern_gates::below::{Access, Below, NoPages};
use postern_gates::sync::{Mutex, MutexGuard};

use super::trusted;
use crate::memory::room;

/// Addresses for windows begin here: far from everything that the process has.
const FIRST: u64 = 0x2000_0000_0000;
const END: u64 = 0x6000_0000_0000;
const STEP: u64 = PAGE as u64;

static NEXT: AtomicU64 = AtomicU64::new(FIRST);

/// The table.
pub(super) static BELOW: Below = Below {
    reserve,
    open,
    promise,
    protect,
    close,
    stack: trusted::stack,
    now,
    contended: || abandon("a lock is taken"),
    abandon,
};

fn reserve(bytes: u64, alignment: u64) -> Option<u64> {
    let start = NEXT.load(Relaxed).checked_next_multiple_of(alignment)?;
    let end = start.checked_add(bytes.checked_next_multiple_of(STEP)?)?;
    (end <= END).then(|| {
        NEXT.store(end, Relaxed);
        start
    })
}

fn each(range: &Range<u64>) -> impl Iterator<Item = u64> {
    range.clone().step_by(PAGE)
}

fn open(range: Range<u64>) -> Result<(), NoPages> {
    for at in each(&range) {
        if room::patiently(|| memory::map_fresh(at, Mapping::WRITE)).is_err() {
            free(range.start..at);
            return Err(NoPages);
        }
        trusted::zero(at);
    }
    Ok(())
}

fn protect(range: Range<u64>, access: Access) -> Result<(), NoPages> {
    let flags = match access {
        Access::Read => 0,
        Access::ReadWrite => Mapping::WRITE,
        Access::ReadExecute => Mapping::EXECUTE,
    };
    for at in each(&range) {
        let page = memory::page_at(at).ok_or(NoPages)?;
        calls::map(at, Mapping::new(page, flags), 0, Target::SELF).map_err(|_| NoPages)?;
    }
    Ok(())
}

/// A range whose pages come when they are touched. Which of its spans have a table is known here:
/// where there is none, not even the processor's tables can be read.
struct Promise {
    range: Range<u64>,
    tables: Vec<bool>,
}

impl Promise {
    fn first(&self) -> u64 {
        self.range.start & !(TABLE_SPAN - 1)
    }
}

static PROMISES: Mutex<Vec<Promise>> = Mutex::new(Vec::new());

fn promises() -> MutexGuard<'static, Vec<Promise>> {
    PROMISES.lock().unwrap_or_else(|never| never.into_inner())
}

fn promise(range: Range<u64>) -> Result<(), NoPages> {
    let spans = range.end.div_ceil(TABLE_SPAN) - range.start / TABLE_SPAN;
    let mut all = promises();
    all.retain(|known| known.range != range);
    all.push(Promise {
        range,
        tables: vec![false; spans as usize],
    });
    Ok(())
}

/// Something was touched where nothing is: a page that was promised comes, if there is one.
pub(super) fn touched(address: u64) -> bool {
    let mut all = promises();
    let Some(promise) = all.iter_mut().find(|p| p.range.contains(&address)) else {
        return false;
    };
    let at = address & !(STEP - 1);
    if room::patiently(|| memory::map_fresh(at, Mapping::WRITE)).is_err() {
        return false;
    }
    let span = (at - promise.first()) / TABLE_SPAN;
    promise.tables[span as usize] = true;
    trusted::zero(at);
    true
}

/// Whether an address is where windows are.
pub(super) fn in_windows(address: u64) -> bool {
    (FIRST..END).contains(&address)
}

fn close(range: Range<u64>) {
    let mut all = promises();
    match all.iter().position(|promise| promise.range == range) {
        None => free(range),
        Some(at) => {
            let promise = all.swap_remove(at);
            let first = promise.first();
            for (span, _) in promise.tables.iter().enumerate().filter(|(_, is)| **is) {
                let start = first + span as u64 * TABLE_SPAN;
                free(start.max(range.start)..(start + TABLE_SPAN).min(range.end));
            }
        }
    }
}

fn free(range: Range<u64>) {
    for at in each(&range) {
        if let Some(page) = memory::page_at(at) {
            let _ = calls::unmap(at, Target::SELF);
            let _ = pages::free(page);
        }
    }
}

fn now() -> u64 {
    let cycles = u128::from(slices::clock()) * 1_000_000_000;
    (cycles / u128::from(time::frequency())) as u64
}

fn abandon(message: &str) -> ! {
    println!("{message}");
    start::exit()
}
