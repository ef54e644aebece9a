//! Primitive operations (Table 3): they touch no register of the application.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::call::MANY;
use postern_aegis::abi::mapping::Request;
use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, books, memory, pages};

use crate::holdings::restore_clock;
use crate::scenario::{Named, Outcome, check, refused, same};
use crate::trusted;

crate::scenarios! {
    "primitives.registers" registers;
    "primitives.map" map;
    "primitives.protect" protect;
    "primitives.many" many;
    "primitives.many-stops" many_stops;
    "primitives.flush" flush;
    "primitives.coprocessor" coprocessor;
}

/// Every call keeps every register but rax, rcx and r11.
fn registers() -> Outcome {
    let epoch = books::machine().clock.epoch.load(Relaxed);
    for call in 0..=255 {
        check(trusted::keeps_registers(call), "a call changes a register")?;
    }
    // One has set the time of day.
    restore_clock(epoch);
    Ok(())
}

fn map() -> Outcome {
    let at = memory::reserve(1);
    let first = memory::map_fresh(at, Mapping::WRITE).named("mapping")?;
    memory::write(at, 1);
    let second = pages::take().named("a page")?;
    calls::map(at, Mapping::new(second, Mapping::WRITE), 0, Target::SELF).named("over it")?;
    same("the new page", memory::read(at), 0)?;
    memory::write(at, 2);
    calls::map(at, Mapping::new(first, 0), 0, Target::SELF).named("the first again")?;
    same("the first page", memory::read(at), 1)?;
    calls::unmap(at, Target::SELF).named("unmapping")?;
    refused(
        "unmapping again",
        calls::unmap(at, Target::SELF),
        Error::Unmapped,
    )?;
    check(trusted::read_faults(at), "it is there still")?;
    pages::free(first).named("freeing")?;
    pages::free(second).named("freeing")
}

fn protect() -> Outcome {
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, Mapping::WRITE).named("mapping")?;
    check(!trusted::write_faults(at), "it cannot be written")?;
    calls::protect(at, 0).named("protecting")?;
    check(trusted::write_faults(at), "it can be written")?;
    check(!trusted::read_faults(at), "it cannot be read")?;
    calls::protect(at, Mapping::WRITE).named("more again")?;
    check(!trusted::write_faults(at), "it cannot be written again")?;
    pages::free(page).named("freeing")?;
    refused("protecting nothing", calls::protect(at, 0), Error::Unmapped)
}

const COUNT: usize = 100;

fn many() -> Outcome {
    let from = memory::reserve_tables(1);
    memory::give_table(from, 1, Target::SELF).named("a table")?;
    let address = |index: usize| from + (index * PAGE) as u64;
    let mut numbers = [0; COUNT];
    let mut requests = [Request::default(); COUNT];
    for (index, number) in numbers.iter_mut().enumerate() {
        *number = pages::take().named("a page")?;
        let mapping = Mapping::new(*number, Mapping::WRITE);
        requests[index] = Request {
            address: address(index),
            mapping,
            capability: 0,
        };
    }
    same(
        "mapped",
        calls::map_many(&requests).named("mapping")?,
        COUNT as u64,
    )?;
    for index in 0..COUNT {
        memory::write(address(index), index as u64);
    }
    let addresses = core::array::from_fn::<u64, COUNT, _>(address);
    same(
        "protected",
        calls::protect_many(&addresses, 0).named("protecting")?,
        COUNT as u64,
    )?;
    check(
        addresses.iter().all(|at| trusted::write_faults(*at)),
        "some can be written",
    )?;
    let kept = (0..COUNT).all(|index| memory::read(address(index)) == index as u64);
    check(kept, "some have something else")?;
    for request in &mut requests {
        request.mapping = Request::UNMAP;
    }
    same(
        "unmapped",
        calls::map_many(&requests).named("unmapping")?,
        COUNT as u64,
    )?;
    check(
        addresses.iter().all(|at| trusted::read_faults(*at)),
        "some are there still",
    )?;
    numbers
        .iter()
        .try_for_each(|number| pages::free(*number).named("freeing"))
}

/// What a vectored call did before it met something that cannot be done stays done, and is counted.
fn many_stops() -> Outcome {
    let from = memory::reserve_tables(1);
    memory::give_table(from, 1, Target::SELF).named("a table")?;
    let page = pages::take().named("a page")?;
    let mapping = Mapping::new(page, 0);
    let request = |address| Request {
        address,
        mapping,
        capability: 0,
    };
    let bad = [
        request(from),
        request(from + 4096),
        request(from + 1),
        request(from + 8192),
    ];
    let done = calls::map_many(&bad).named("mapping")?;
    same("done before the bad one", done, 2)?;
    check(
        trusted::read_faults(from + 8192),
        "it went on after a bad one",
    )?;
    same(
        "a bad one first",
        calls::map_many(&bad[2..]).named("a bad one first")?,
        0,
    )?;
    same("none", calls::map_many(&[]).named("none")?, 0)?;
    let long = MANY + 1;
    refused(
        "too many",
        trusted::any_call(19, [bad.as_ptr() as u64, long, 0, 0, 0, 0]),
        Error::Argument,
    )?;
    refused(
        "from nowhere",
        trusted::any_call(19, [0x1000, 1, 0, 0, 0, 0]),
        Error::Unmapped,
    )?;
    pages::free(page).named("freeing")
}

fn flush() -> Outcome {
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, Mapping::WRITE).named("mapping")?;
    calls::flush(at).named("flushing")?;
    calls::flush_all().named("flushing all")?;
    for odd in [0, 1, u64::MAX, 1 << 47, 1 << 63] {
        calls::flush(odd).named("flushing what is nothing")?;
    }
    same("a word", memory::read(at), 0)?;
    pages::free(page).named("freeing")
}

fn coprocessor() -> Outcome {
    check(trusted::vector_faults(), "it is on")?;
    // It is off again if a slice ends in between.
    let on = (0..10).any(|_| calls::fpu(true).is_ok() && !trusted::vector_faults());
    check(on, "it is not on")?;
    calls::fpu(false).named("off")?;
    check(trusted::vector_faults(), "it is on still")
}
