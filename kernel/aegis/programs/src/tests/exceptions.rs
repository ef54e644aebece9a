//! Exceptions to the program's own handlers, and back without the kernel (section 5.3).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::entry::{self, Frame};
use postern_aegis::memory::{self, demand};
use postern_aegis::{Mapping, PAGE, pages};

use crate::scenario::{Named, Outcome, Why, check, same};
use crate::trusted::{self, Probe, probe};

crate::scenarios! {
    "exceptions.vectors" vectors;
    "exceptions.unaligned" unaligned;
    "exceptions.coprocessor" coprocessor;
    "exceptions.protection" protection;
    "exceptions.registers" registers;
    "exceptions.nested" nested;
    "exceptions.demand" demand_paging;
}

fn raises(what: &'static str, instruction: Probe, argument: u64, vector: u64) -> Outcome {
    match probe(instruction, argument) {
        Ok(_) => Err(Why::Not(what)),
        Err(fault) => same(what, fault.vector, vector),
    }
}

fn vectors() -> Outcome {
    raises("division", Probe::Divide, 0, 0)?;
    raises("breakpoint", Probe::Breakpoint, 0, 3)?;
    raises("undefined", Probe::Undefined, 0, 6)?;
    raises("an address that is none", Probe::Read, 1 << 62, 13)?;
    raises("an interrupt by number", Probe::Overflow, 0, 13)
}

fn unaligned() -> Outcome {
    entry::coprocessor(true);
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, Mapping::WRITE).named("mapping")?;
    let outcome = raises("an unaligned vector move", Probe::Unaligned, at, 13);
    entry::coprocessor(false);
    pages::free(page).named("freeing")?;
    outcome
}

fn coprocessor() -> Outcome {
    raises("a vector register", Probe::Vector, 0, 7)?;
    raises("an x87 register", Probe::X87, 0, 7)
}

fn protection() -> Outcome {
    let at = memory::reserve(1);
    let fault = probe(Probe::Read, at)
        .err()
        .ok_or(Why::Not("a missing page is read"))?;
    same("the address", fault.address, at)?;
    same("the code of a missing page", fault.code, 4)?;
    let page = memory::map_fresh(at, 0).named("mapping")?;
    let fault = probe(Probe::Write, at + 8)
        .err()
        .ok_or(Why::Not("it is written"))?;
    same("the address of a write", fault.address, at + 8)?;
    same("the code of a write", fault.code, 7)?;
    pages::free(page).named("freeing")
}

fn registers() -> Outcome {
    check(
        (0..100).all(|_| trusted::exception_keeps_registers()),
        "a register has changed",
    )
}

static DEPTH: AtomicU64 = AtomicU64::new(0);

/// A handler that raises the exception that it handles, some times.
fn deeper(_: &mut Frame) {
    if DEPTH.fetch_add(1, Relaxed) < 4 && !trusted::breakpoint_only() {
        DEPTH.store(1000, Relaxed);
    }
}

fn nested() -> Outcome {
    DEPTH.store(0, Relaxed);
    entry::on_exception(3, Some(deeper));
    let fine = trusted::breakpoint_only();
    entry::on_exception(3, None);
    check(fine, "the outer one does not go on")?;
    same("depth", DEPTH.load(Relaxed), 5)
}

/// Pages that come when they are touched: translation by the program itself.
fn demand_paging() -> Outcome {
    let count = 32;
    let from = memory::reserve(count);
    demand::install(from, count);
    let before = demand::faults();
    for index in 0..count {
        memory::write(from + index * PAGE as u64, index);
    }
    let kept = (0..count).all(|index| memory::read(from + index * PAGE as u64) == index);
    entry::on_exception(14, None);
    check(kept, "a word is another")?;
    same("pages that came", demand::faults() - before, count)?;
    for index in 0..count {
        let page = memory::page_at(from + index * PAGE as u64).ok_or(Why::Not("a page is gone"))?;
        pages::free(page).named("freeing")?;
    }
    Ok(())
}
