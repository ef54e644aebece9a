//! Pages for extensions: what the gates ask of memory and time.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::calls::{self, Target};
use postern_aegis::{Mapping, PAGE, memory, pages, println, slices, start, time};
use postern_gates::below::{Access, Below, NoPages};

use super::trusted;

/// Addresses for windows begin here: far from everything that the process has.
const FIRST: u64 = 0x2000_0000_0000;
const END: u64 = 0x6000_0000_0000;
const STEP: u64 = PAGE as u64;

static NEXT: AtomicU64 = AtomicU64::new(FIRST);

/// The table.
pub(super) static BELOW: Below = Below {
    reserve,
    open,
    protect,
    close,
    stack: trusted::stack,
    now,
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
        if memory::map_fresh(at, Mapping::WRITE).is_err() {
            close(range.start..at);
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

fn close(range: Range<u64>) {
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
