//! Visible revocation (section 3.3) and the abort protocol (3.4).

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Context;
use postern_aegis::abi::call::{NAME_NOBODY, PAGES, RIGHT_WRITE, SLICES};
use postern_aegis::abi::records::claim;
use postern_aegis::calls::{self, Target};
use postern_aegis::load::{Child, Plan};
use postern_aegis::{Error, Mapping, books, memory, pages};
use postern_aegis_programs::{Role, words};

use crate::pages::patient;
use crate::scenario::{
    Named, Outcome, Why, check, elsewhere, goes_on, planned, player, refused, running, same, wait,
};

crate::scenarios! {
    "revocation.complied" complied;
    "revocation.refused" refusal;
    "revocation.saved" saved;
    "revocation.server" server;
    "revocation.slices" slices_back;
    "revocation.reserved" reserved;
    "revocation.submitted" submitted;
}

fn pages_of(child: &Child) -> u64 {
    books::environment(child.number).pages.load(Relaxed).into()
}

/// Pages of the players of these scenes.
const COUNT: u64 = 8;

/// A player that has its pages.
fn rich(role: Role) -> Result<Child, Why> {
    let child = running(role, COUNT, 0)?;
    wait("it does not start", || {
        child.mailbox.get(words::PROGRESS) > 0
    })?;
    Ok(child)
}

/// Who gives back what it is asked for loses nothing else. A host that gives the machine no time may
/// let the deadline pass first, by slices that are forfeited: so it has three attempts.
fn complied() -> Outcome {
    for _ in 0..3 {
        let child = rich(Role::Comply)?;
        let record = books::environment(child.number);
        let before = pages_of(&child);
        calls::revoke(child.target(), PAGES, 5).named("asking")?;
        wait("it is still asked", || {
            record.asked_pages.load(Relaxed) == 0
        })?;
        for _ in 0..200 {
            postern_aegis::entry::yield_slice();
        }
        same("its pages", pages_of(&child), before - 5)?;
        same("errors", child.mailbox.get(words::ERRORS), 0)?;
        goes_on(&child)?;
        let itself = child.mailbox.get(words::OTHER) == COUNT - 5;
        child.end();
        if itself {
            return Ok(());
        }
    }
    Err(Why::Not("it gives nothing back itself"))
}

fn refusal() -> Outcome {
    let child = rich(Role::Refuse)?;
    let before = pages_of(&child);
    calls::revoke(child.target(), PAGES, 3).named("asking")?;
    check(
        books::environment(child.number).deadline.load(Relaxed) > 0,
        "there is no deadline",
    )?;
    wait("it keeps all", || child.mailbox.get(words::RESULT) == 3)?;
    same("its pages", pages_of(&child), before - 3)?;
    same(
        "pages that are mapped",
        child.mailbox.get(words::OTHER),
        COUNT - 3,
    )?;
    goes_on(&child)?;
    child.end();
    Ok(())
}

const NAME: u32 = 90;

/// The contents of a page that is taken stand where its owner said.
fn saved() -> Outcome {
    let page = calls::allocate(NAME_NOBODY, NAME).named("a page")?;
    let word = calls::capability(NAME, RIGHT_WRITE, 0).named("a capability")?;
    let plan = Plan::new([0, COUNT, page.into(), word, 0, 0, 0, 0]);
    let child = planned(Role::Refuse, &plan)?;
    child.run_on(elsewhere())?;
    wait("it does not start", || {
        child.mailbox.get(words::PROGRESS) > 0
    })?;
    calls::revoke(child.target(), PAGES, 1).named("asking")?;
    wait("it keeps all", || child.mailbox.get(words::RESULT) == 1)?;
    same(
        "what became of it",
        child.mailbox.get(words::ARGUMENT + 1),
        1,
    )?;
    let at = memory::reserve(1);
    memory::map(at, Mapping::new(page, 0), 0, Target::SELF).named("mapping")?;
    let first = memory::read(at);
    let whole = (0..512).all(|word| memory::read(at + 8 * word) == first);
    check(
        whole && (FILLING..FILLING + COUNT).contains(&first),
        "it has something else",
    )?;
    child.end();
    pages::free(page).named("freeing")
}

/// What players fill their pages with, and the index of each.
const FILLING: u64 = 0x5ec7_e700;

/// A page that is taken becomes the swap server's.
fn server() -> Outcome {
    // All that it may have is reserved for it, so it is not asked for a page in turn.
    let plan = Plan {
        reserved: 16,
        ..Plan::new([0; 8])
    };
    let server = planned(Role::Swap, &plan)?;
    server.run_on(elsewhere())?;
    wait("it does not start", || {
        server.mailbox.get(words::ASKED) == 7
    })?;
    let plan = Plan::new([0, COUNT, server.number.into(), u64::MAX, 0, 0, 0, 0]);
    let child = planned(Role::Refuse, &plan)?;
    calls::set_server(child.target(), server.number).named("its server")?;
    child.run_on(elsewhere())?;
    wait("it does not start", || {
        child.mailbox.get(words::PROGRESS) > 0
    })?;
    let before = pages_of(&server);
    calls::revoke(child.target(), PAGES, 1).named("asking")?;
    wait("it keeps all", || child.mailbox.get(words::RESULT) == 1)?;
    same(
        "what became of it",
        child.mailbox.get(words::ARGUMENT + 1),
        2,
    )?;
    same("the server's pages", pages_of(&server), before + 1)?;
    let taken = child.mailbox.get(words::ARGUMENT) as u32;
    let owner = books::page(taken).map_or(0, |page| page.owner.load(Relaxed));
    same("the page's owner", owner.into(), server.number.into())?;
    wait("the server hears nothing", || {
        server.mailbox.get(words::RESULT) & Context::EVENT_SERVER != 0
    })?;
    child.end();
    server.end();
    Ok(())
}

fn slices_back() -> Outcome {
    let of = |child: &Child| u64::from(books::environment(child.number).slices.load(Relaxed));
    for role in [Role::Comply, Role::Refuse] {
        let child = rich(role)?;
        child.run_on(elsewhere())?;
        child.run_on(elsewhere())?;
        same("its slices", of(&child), 3)?;
        calls::revoke(child.target(), SLICES, 2).named("asking")?;
        wait("it keeps all", || of(&child) == 1)?;
        goes_on(&child)?;
        child.end();
    }
    Ok(())
}

/// Nobody is asked for what is reserved for it.
fn reserved() -> Outcome {
    let child = rich(Role::Refuse)?;
    let record = books::environment(child.number);
    let surplus = record.pages.load(Relaxed) - record.pages_reserved.load(Relaxed);
    let more = calls::revoke(child.target(), PAGES, surplus + 1);
    refused("more than its surplus", more, Error::Quota)?;
    refused(
        "slices beyond",
        calls::revoke(child.target(), SLICES, 9),
        Error::Quota,
    )?;
    refused(
        "of nothing",
        calls::revoke(child.target(), 9, 1),
        Error::Argument,
    )?;
    goes_on(&child)?;
    child.end();
    Ok(())
}

/// A whole environment is handed to its swap server.
fn submitted() -> Outcome {
    let plan = Plan {
        more_pages: 200,
        ..Plan::new([0; 8])
    };
    let server = planned(Role::Swap, &plan)?;
    server.run_on(elsewhere())?;
    wait("it does not start", || {
        server.mailbox.get(words::ASKED) == 7
    })?;
    let child = player(Role::Count, 4, 0)?;
    let without = calls::submit(child.target());
    refused("without a server", without, Error::NoEnvironment)?;
    calls::set_server(child.target(), server.number).named("its server")?;
    child.run_on(elsewhere())?;
    goes_on(&child)?;
    let before = pages_of(&server);
    let had = pages_of(&child);
    // One that runs all the time is stopped first.
    patient(|| calls::set_frozen(child.target(), true)).named("freezing")?;
    patient(|| calls::submit(child.target())).named("submitting")?;
    let state = books::environment(child.number).claim.load(Relaxed);
    same("its state", state.into(), claim::SUBMITTED.into())?;
    let moved = pages_of(&server) - before;
    same("pages of both", pages_of(&child) + moved, had)?;
    check(moved > 4, "its memory is its own still")?;
    let progress = child.mailbox.get(words::PROGRESS);
    for _ in 0..20 {
        postern_aegis::entry::yield_slice();
    }
    same("what it does", child.mailbox.get(words::PROGRESS), progress)?;
    child.end();
    server.end();
    Ok(())
}
