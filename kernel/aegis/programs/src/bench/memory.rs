//! Pages and translations: primitive operations (Table 3), a missing page (section 5.4), and more
//! pages than a translation buffer has entries.

use postern_aegis::abi::Call;
use postern_aegis::abi::mapping::Request;
use postern_aegis::calls::{self, Target};
use postern_aegis::{Mapping, PAGE, memory, pages};

use crate::rows::{Named, Outcome, call, call_row, row};
use crate::trusted::{self, Handler, Raise};

const MANY: usize = 100;

/// Pages of an entry-level table.
const TABLE: u64 = 512;

/// The vector of page faults.
const MISSING: usize = 14;

/// What lies in one page: the kernel walks to each page that it reads, and where a stack's frame lies,
/// which the compiler decides anew for each folder that it is called in, is no part of a figure.
#[repr(align(4096))]
struct InAPage<T>(T);

pub fn all() -> Outcome {
    call_row("flush", Call::Flush, &[memory::FIRST])?;
    call_row("flush-all", Call::FlushAll, &[])?;
    single()?;
    many()?;
    translation()?;
    records()?;
    reach()
}

fn single() -> Outcome {
    let at = memory::reserve_tables(1);
    let page = memory::map_fresh(at, Mapping::WRITE).named("mapping")?;
    let mapping = Mapping::new(page, Mapping::WRITE).0;
    let unmap = || calls::unmap(at, Target::SELF).named("unmapping");
    let map = || memory::map(at, Mapping(mapping), 0, Target::SELF).named("mapping");
    row("map", 1, || {
        unmap()?;
        call("map", Call::Map, &[at, mapping]).map(|(took, _)| took)
    })?;
    row("protect", 1, || {
        let took = call("protect", Call::Protect, &[at, 0])?.0;
        calls::protect(at, Mapping::WRITE).named("unprotecting")?;
        Ok(took)
    })?;
    row("unprotect", 1, || {
        calls::protect(at, 0).named("protecting")?;
        call("unprotect", Call::Protect, &[at, Mapping::WRITE]).map(|(took, _)| took)
    })?;
    row("unmap", 1, || {
        let took = call("unmap", Call::Unmap, &[at])?.0;
        map()?;
        Ok(took)
    })?;
    pages::free(page).named("freeing")
}

fn many() -> Outcome {
    let from = memory::reserve_tables(1);
    memory::give_table(from, 1, Target::SELF).named("a table")?;
    let mut requests = InAPage([Request::default(); MANY]);
    for (index, request) in requests.0.iter_mut().enumerate() {
        request.address = from + (index * PAGE) as u64;
        request.mapping = Mapping::new(pages::take().named("a page")?, Mapping::WRITE);
    }
    let InAPage(requests) = &requests;
    let gone = InAPage(requests.map(|request| Request {
        mapping: Request::UNMAP,
        ..request
    }));
    let InAPage(gone) = &gone;
    let addresses = InAPage(requests.map(|request| request.address));
    let InAPage(addresses) = &addresses;
    let count = MANY as u64;
    let map = [requests.as_ptr() as u64, count];
    let unmap = [gone.as_ptr() as u64, count];
    let less = [addresses.as_ptr() as u64, count, 0];
    let more = [addresses.as_ptr() as u64, count, Mapping::WRITE];
    row("map-100", 1, || {
        let took = call("map-100", Call::MapMany, &map)?.0;
        calls::map_many(gone).named("unmapping")?;
        Ok(took)
    })?;
    calls::map_many(requests).named("mapping")?;
    row("protect-100", 1, || {
        let took = call("protect-100", Call::ProtectMany, &less)?.0;
        calls::protect_many(addresses, Mapping::WRITE).named("unprotecting")?;
        Ok(took)
    })?;
    row("unprotect-100", 1, || {
        calls::protect_many(addresses, 0).named("protecting")?;
        call("unprotect-100", Call::ProtectMany, &more).map(|(took, _)| took)
    })?;
    row("unmap-100", 1, || {
        let took = call("unmap-100", Call::MapMany, &unmap)?.0;
        calls::map_many(requests).named("mapping")?;
        Ok(took)
    })?;
    requests.iter().try_for_each(|request| {
        let page = request.mapping.page().unwrap_or_default();
        pages::free(page).named("freeing")
    })
}

/// A page that is missing, to the handler, and mapped by it.
fn translation() -> Outcome {
    let at = memory::reserve_tables(1);
    let page = memory::map_fresh(at, 0).named("mapping")?;
    calls::unmap(at, Target::SELF).named("unmapping")?;
    row("translation", 1, || {
        Ok(trusted::exception(
            Raise::Load,
            MISSING,
            at,
            Handler::Arrives,
        ))
    })?;
    let maps = Handler::Maps(Mapping::new(page, 0).0);
    row("translation-trip", 1, || {
        let took = trusted::exception(Raise::Load, MISSING, at, maps);
        calls::unmap(at, Target::SELF).named("unmapping")?;
        Ok(took)
    })?;
    pages::free(page).named("freeing")
}

/// Pages by number, names, capabilities, tables.
fn records() -> Outcome {
    let any = u64::MAX;
    row("allocate", 1, || {
        let (took, page) = call("allocate", Call::Allocate, &[any, 0, 0])?;
        calls::free(page as u32).named("freeing")?;
        Ok(took)
    })?;
    row("free", 1, || {
        let page = calls::allocate(0, 0).named("allocating")?;
        call("free", Call::Free, &[page.into()]).map(|(took, _)| took)
    })?;
    let page = pages::take().named("a page")?;
    call_row("rename", Call::Rename, &[page.into(), 7, 8])?;
    call_row("break", Call::Break, &[page.into()])?;
    row("capability", 1, || {
        // Any word is a capability: below zero, too.
        Ok(trusted::call(Call::Capability, [7, 1, 0, 0, 0, 0]).0)
    })?;
    let links = pages::take().named("a page")?;
    // A place whose tables of the other levels are there.
    let at = memory::reserve_tables(2);
    memory::give_table(at, 1, Target::SELF).named("a table")?;
    let at = at + TABLE * PAGE as u64;
    let table = [at, 1, page.into(), links.into()];
    row("table", 1, || {
        let took = call("table", Call::Table, &table)?.0;
        calls::untable(at, 1, Target::SELF).named("untabling")?;
        Ok(took)
    })?;
    row("untable", 1, || {
        calls::table(at, 1, page, links, Target::SELF).named("a table")?;
        call("untable", Call::Untable, &[at, 1]).map(|(took, _)| took)
    })?;
    pages::free(page).named("freeing")?;
    pages::free(links).named("freeing")
}

/// Instructions of a touch, of a few pages and of more than any translation buffer holds: a capacity
/// miss is served by the processor, and there is nothing for a software buffer to save.
fn reach() -> Outcome {
    let tables = 16;
    let from = memory::reserve_tables(tables);
    let page = pages::take().named("a page")?;
    for index in 0..tables * TABLE {
        let at = from + index * PAGE as u64;
        memory::map(at, Mapping::new(page, 0), 0, Target::SELF).named("mapping")?;
    }
    row("touch-16", 16, || Ok(trusted::touch(from, 16)))?;
    let all = tables * TABLE;
    row("touch-8192", all, || Ok(trusted::touch(from, all)))
}
