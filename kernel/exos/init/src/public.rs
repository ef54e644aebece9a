//! What everybody reads: the table of processes, services, the archive's directory and its pages' numbers. All
//! of it stands at the same addresses in every process, and here.

use postern_aegis::abi::call::{NAME_EVERYBODY, NAME_NOBODY};
use postern_aegis::calls::Target;
use postern_aegis::{Error, Mapping, PAGE, archive, calls, memory};
use postern_exos_abi::VERSION;
use postern_exos_abi::address::{DIRECTORY, NUMBERS, NUMBERS_PAGES, SERVICES, TABLE};
use postern_exos_abi::directory::{Entry, HEAD};
use postern_exos_abi::service::Services;
use postern_exos_abi::table::{PAGES, Table};

use crate::trusted;

/// Pages of the directory at most.
const DIRECTORY_PAGES: usize = ((NUMBERS - DIRECTORY) / PAGE as u64) as usize;

/// Makes all of it.
pub fn open() -> Result<(&'static Table, &'static Services), Error> {
    for index in 0..PAGES {
        fresh(TABLE + (index * PAGE) as u64)?;
    }
    let table = trusted::table(TABLE);
    table
        .version
        .store(VERSION, core::sync::atomic::Ordering::Relaxed);
    fresh(SERVICES)?;
    list_files()?;
    Ok((table, trusted::services(SERVICES)))
}

/// Where a page that everybody reads is bound.
fn fresh(at: u64) -> Result<(), Error> {
    let page = memory::map_fresh(at, Mapping::WRITE)?;
    calls::rename(page, NAME_EVERYBODY, NAME_NOBODY).map(drop)
}

fn list_files() -> Result<(), Error> {
    let mut count = 0;
    let mut bounds = (u64::MAX, 0);
    for file in archive::own().files() {
        let start = file.bytes.as_ptr() as u64;
        bounds.0 = bounds.0.min(start & !(PAGE as u64 - 1));
        bounds.1 = bounds.1.max(start + file.bytes.len() as u64);
    }
    let pages = bounds.1.saturating_sub(bounds.0).div_ceil(PAGE as u64);
    let pages = (pages as usize).min(NUMBERS_PAGES * PAGE / 4);
    for index in 0..pages {
        let at = NUMBERS + 4 * index as u64;
        if (4 * index).is_multiple_of(PAGE) {
            fresh(at)?;
        }
        let page = memory::page_at(bounds.0 + (index * PAGE) as u64).ok_or(Error::Unmapped)?;
        calls::rename(page, NAME_EVERYBODY, NAME_NOBODY)?;
        trusted::write_number(at, page);
    }
    fresh(DIRECTORY)?;
    for file in archive::own().files() {
        let offset = file.bytes.as_ptr() as u64 - bounds.0;
        let Some(entry) = Entry::new(file.name, offset, file.bytes.len() as u64) else {
            continue;
        };
        count += 1;
        let at = DIRECTORY + 64 * count;
        if at.is_multiple_of(PAGE as u64) {
            if at >= NUMBERS {
                count -= 1;
                break;
            }
            fresh(at)?;
        }
        trusted::write_entry(at, &entry);
    }
    if let Some(head) = Entry::new(HEAD, pages as u64, count) {
        trusted::write_entry(DIRECTORY, &head);
    }
    Ok(())
}

/// Binds it in a space, to be read.
pub fn share(with: Target) -> Result<(), Error> {
    let ranges = [
        (TABLE, PAGES),
        (SERVICES, 1),
        (DIRECTORY, DIRECTORY_PAGES),
        (NUMBERS, NUMBERS_PAGES),
    ];
    for (from, pages) in ranges {
        for index in 0..pages {
            let at = from + (index * PAGE) as u64;
            let Some(page) = memory::page_at(at) else {
                break;
            };
            memory::map(at, Mapping::new(page, 0), 0, with)?;
        }
    }
    Ok(())
}
