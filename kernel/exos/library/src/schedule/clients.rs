//! Who is able to run, by the books of Aegis and the table of processes, and giving them a slice.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::books;
use postern_aegis::records::claim;
use postern_aegis::{Error, calls, entry, slices};
use postern_exos_abi::table::{PROCESSES, Process, Table, state};

/// What is known of a process without asking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is none, or it has ended.
    Ended,
    /// It stands still, or another processor runs it.
    Away,
    /// It may be given a slice: its environment.
    Able(u16),
}

/// A process's record. A pid is its place plus a multiple of the number of places, plus one.
fn find(table: &Table, pid: i32) -> Option<&Process> {
    let pid = u32::try_from(pid).ok()?;
    let place = pid.checked_sub(1)? as usize % PROCESSES;
    let record = table.processes.get(place)?;
    (record.pid.load(Relaxed) == pid).then_some(record)
}

/// How a process stands.
pub fn standing(table: &Table, pid: i32) -> Standing {
    let Some(record) = find(table, pid) else {
        return Standing::Ended;
    };
    match record.state.load(Relaxed) {
        state::LIVES => {}
        state::NEW | state::STOPPED => return Standing::Away,
        _ => return Standing::Ended,
    }
    let environment = record.environment.load(Relaxed);
    if environment == 0 || books::is_self(environment) {
        return Standing::Away;
    }
    match books::environment(environment).claim.load(Relaxed) {
        claim::IDLE => Standing::Able(environment),
        _ => Standing::Away,
    }
}

/// Gives an environment what is left of this slice. Comes back when the next one begins, with the
/// number of slices that this one cost: 1, or more if the environment kept the processor too long.
///
/// # Errors
/// It waits for something, or another processor runs it.
pub fn give(environment: u16) -> Result<u64, Error> {
    let own = books::environment(books::own_number());
    let before = own.ran.load(Relaxed);
    entry::yield_to(environment)?;
    let after = own.ran.load(Relaxed);
    // Somebody who gives the rest back had its chance: else it could be chosen for ever.
    Ok(after.saturating_sub(before).max(1))
}

/// Gives this process's own slices back, and ends this one.
pub fn without_slices() -> Result<(), Error> {
    let own = books::own_number();
    let mut freed = Ok(());
    for slice in slices::of(own) {
        if let Err(error) = calls::free_slice(slice.processor, slice.position) {
            freed = Err(error);
        }
    }
    entry::yield_slice();
    freed
}
