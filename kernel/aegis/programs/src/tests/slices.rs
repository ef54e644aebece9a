//! The processor as a vector of time slices (section 5.1.1).

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::SLICES;
use postern_aegis::abi::call::SLICES as RESOURCE;
use postern_aegis::abi::records::end;
use postern_aegis::load::Child;
use postern_aegis::{Error, books, calls, entry, slices};
use postern_aegis_programs::{Role, words};

use crate::scenario::{
    Named, Outcome, Why, check, elsewhere, goes_on, player, refused, running, same, wait,
};

crate::scenarios! {
    "slices.positions" positions;
    "slices.shares" shares;
    "slices.registers" registers;
    "slices.vectors" vectors;
    "slices.end" end_changes;
    "slices.excess" excess;
    "slices.named" named;
    "slices.quota" quota;
    "slices.all" all;
}

fn positions() -> Outcome {
    calls::take_slice(0, 40).named("taking")?;
    refused("taking it again", calls::take_slice(0, 40), Error::Taken)?;
    same(
        "the owner",
        books::machine().slices[0][40].owner.load(Relaxed).into(),
        1,
    )?;
    let beyond = slices::processors();
    for (processor, position) in [
        (beyond, 0),
        (8, 0),
        (usize::MAX, 0),
        (0, SLICES),
        (0, 1 << 40),
    ] {
        let argument = Error::Argument;
        refused(
            "taking beyond",
            calls::take_slice(processor, position),
            argument,
        )?;
        refused(
            "freeing beyond",
            calls::free_slice(processor, position),
            argument,
        )?;
        refused(
            "giving beyond",
            calls::give_slice(processor, position, 1),
            argument,
        )?;
    }
    refused(
        "giving to nobody",
        calls::give_slice(0, 40, 200),
        Error::NoEnvironment,
    )?;
    calls::free_slice(0, 40).named("freeing")?;
    refused("freeing again", calls::free_slice(0, 40), Error::Denied)?;
    refused(
        "giving another's",
        calls::give_slice(0, 40, 1),
        Error::Denied,
    )
}

/// Slices by positions: three to two to one, to within one round and a tenth.
fn shares() -> Outcome {
    let children = [
        player(Role::Count, 0, 0)?,
        player(Role::Count, 0, 0)?,
        player(Role::Count, 0, 0)?,
    ];
    for (child, share) in children.iter().zip([3, 2, 1]) {
        for _ in 0..share {
            child.run_on(elsewhere())?;
        }
    }
    let ran = |child: &Child| books::environment(child.number).ran.load(Relaxed);
    wait("the last one does not run", || ran(&children[2]) > 0)?;
    let before = children.map(|child| ran(&child));
    wait("it does not run on", || ran(&children[2]) >= before[2] + 60)?;
    let [three, two, one] = [0, 1, 2].map(|index| ran(&children[index]) - before[index]);
    children.into_iter().for_each(Child::end);
    // A host that stops the machine between two instructions makes somebody exceed its slice.
    let near = |count: u64, share: u64| count.abs_diff(share * one) <= share + share * one / 10;
    check(near(three, 3), "the first one's share")?;
    check(near(two, 2), "the second one's share")
}

/// The library's handlers keep every register over ends and begins.
fn registers() -> Outcome {
    let children = [
        running(Role::Registers, 0, 0)?,
        running(Role::Registers, 0, 0)?,
    ];
    for child in &children {
        wait("it does not run", || {
            child.mailbox.get(words::PROGRESS) > 20
        })?;
        same("changed registers", child.mailbox.get(words::ERRORS), 0)?;
        let ran = books::environment(child.number).ran.load(Relaxed);
        check(ran > 5, "it was not interrupted")?;
    }
    children.into_iter().for_each(Child::end);
    Ok(())
}

/// Vector registers and the base of gs, too, and nobody sees another's.
fn vectors() -> Outcome {
    let children = [
        running(Role::Vectors, 0x1234, 0)?,
        running(Role::Vectors, u64::MAX / 7, 0)?,
    ];
    for child in &children {
        wait("it does not run", || {
            child.mailbox.get(words::PROGRESS) > 20
        })?;
        same("changed registers", child.mailbox.get(words::ERRORS), 0)?;
    }
    children.into_iter().for_each(Child::end);
    Ok(())
}

/// A function for ends of slices changes what the program goes on with.
fn end_changes() -> Outcome {
    same("the register", crate::trusted::ends_at_a_slice(), 3)
}

/// Who does not stop when its slice ends pays for it, and ends.
fn excess() -> Outcome {
    let neighbour = running(Role::Count, 0, 0)?;
    let child = running(Role::Greedy, 0, 0)?;
    let record = books::environment(child.number);
    wait("it does not end", || {
        !child.lives() && record.ended.load(Relaxed) != end::NOT
    })?;
    same("why", record.ended.load(Relaxed).into(), end::EXCESS.into())?;
    child.end();
    goes_on(&neighbour)?;
    neighbour.end();
    Ok(())
}

/// A yield to an environment gives it time that it has not by itself.
fn named() -> Outcome {
    let child = player(Role::Count, 0, 0)?;
    same("without a slice", child.mailbox.get(words::PROGRESS), 0)?;
    for _ in 0..5 {
        let before = child.mailbox.get(words::PROGRESS);
        let ran = (0..20).any(|_| {
            // A slice that is over already ends, whomever the yield names.
            let _ = entry::yield_to(child.number);
            child.mailbox.get(words::PROGRESS) > before
        });
        check(ran, "it did not run")?;
    }
    let nobody = entry::yield_to(200).map(|()| 0u64);
    refused("yielding to nobody", nobody, Error::NoEnvironment)?;
    let own = entry::yield_to(books::own_number()).map(|()| 0u64);
    refused("yielding to itself", own, Error::Busy)?;
    child.end();
    Ok(())
}

fn quota() -> Outcome {
    let child = player(Role::Count, 0, 0)?;
    calls::quota(child.number, RESOURCE, 0, 1).named("a quota of one")?;
    child.run_on(elsewhere())?;
    let slice = slices::take(elsewhere()).named("a slice")?;
    let given = calls::give_slice(slice.processor, slice.position, child.number);
    refused("a second one", given, Error::Quota)?;
    calls::free_slice(slice.processor, slice.position).named("freeing")?;
    child.end();
    Ok(())
}

/// Every position can be had, once.
fn all() -> Outcome {
    let free = |processor: usize| {
        let vector = &books::machine().slices[processor];
        vector
            .iter()
            .filter(|slice| slice.owner.load(Relaxed) == 0)
            .count()
    };
    let processor = elsewhere();
    let child = player(Role::Count, 0, 0)?;
    calls::quota(child.number, RESOURCE, 0, SLICES as u32).named("a quota")?;
    let count = free(processor);
    for _ in 0..count {
        child.run_on(processor)?;
    }
    same("free positions", free(processor) as u64, 0)?;
    check(slices::take(processor).is_err(), "one more")?;
    refused(
        "any",
        calls::take_slice(processor, usize::MAX),
        Error::Taken,
    )
    .or_else(|_| {
        refused(
            "any",
            calls::take_slice(processor, usize::MAX),
            Error::Quota,
        )
    })?;
    child.end();
    wait("they do not come back", || free(processor) == count).map_err(|_| Why::Not("they stay"))
}
