//! What C calls of `exos/memory.h` for pages that the program chooses itself.

use core::ffi::{c_int, c_long, c_uint};

use postern_aegis::PAGE;

use super::{EINVAL, allowed, number, with};
use crate::memory::space::Space;

/// So many bytes, in pages.
fn pages(length: u64) -> Result<u64, c_int> {
    match length.div_ceil(PAGE as u64) {
        0 => Err(EINVAL),
        pages => Ok(pages),
    }
}

/// Calls with the space for the first of some pages; its address, or none.
fn placed(call: impl FnOnce(&mut Space) -> Result<u64, c_int>) -> u64 {
    with(0, |space| call(space).map(|first| first << 12))
}

/// The same pages at a second address.
#[unsafe(no_mangle)]
pub extern "C" fn exos_alias(from: u64, length: u64, protection: c_int) -> u64 {
    placed(|space| {
        let (pages, protection) = (pages(length)?, allowed(protection)?);
        space
            .alias_many(from >> 12, pages, protection)
            .map_err(number)
    })
}

/// One page at an address that the program has.
#[unsafe(no_mangle)]
pub extern "C" fn exos_alias_at(to: u64, from: u64, protection: c_int) -> c_int {
    with(-1, |space| {
        let protection = allowed(protection)?;
        space
            .alias(to >> 12, from >> 12, protection)
            .map_err(number)?;
        Ok(0)
    })
}

/// A page by its number.
#[unsafe(no_mangle)]
pub extern "C" fn exos_map_page(page: c_long, capability: u64, protection: c_int) -> u64 {
    placed(|space| {
        let protection = allowed(protection)?;
        let page = u32::try_from(page).map_err(|_| EINVAL)?;
        space.map_page(page, capability, protection).map_err(number)
    })
}

/// Fresh pages that are not cached.
#[unsafe(no_mangle)]
pub extern "C" fn exos_map_uncached(length: u64) -> u64 {
    placed(|space| space.uncached(pages(length)?).map_err(number))
}

/// Fresh pages whose numbers have colours.
#[unsafe(no_mangle)]
pub extern "C" fn exos_map_coloured(
    length: u64,
    colours: c_uint,
    first: c_uint,
    step: c_uint,
) -> u64 {
    placed(|space| {
        let coloured = space.coloured(pages(length)?, colours, first, step);
        coloured.map_err(number)
    })
}

/// Forgets that a page was touched and stored to.
#[unsafe(no_mangle)]
pub extern "C" fn exos_clean(page: u64) -> c_int {
    with(-1, |space| {
        space.clean(page >> 12).map_err(number)?;
        Ok(0)
    })
}
