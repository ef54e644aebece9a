//! Protected control transfer (section 5.5).

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::load::Child;
use postern_aegis::{Error, books, calls, entry, slices};
use postern_aegis_programs::{Role, words};

use crate::pages::patient;
use crate::scenario::{
    Named, Outcome, Why, check, elsewhere, player, refused, running, same, wait,
};

crate::scenarios! {
    "transfers.answers" answers;
    "transfers.asynchronous" asynchronous;
    "transfers.refused" refusals;
    "transfers.donated" donated;
    "transfers.crowd" crowd;
    "transfers.death" death;
}

/// A server that has no slice of its own, ready for requests.
fn server(role: Role) -> Result<Child, Why> {
    let child = player(role, 0, 0)?;
    // Its first time comes from us; then its entries are set.
    child.mailbox.set(words::ASKED, 1);
    while child.mailbox.get(words::ASKED) != 0 {
        patient(|| entry::yield_to(child.number)).named("its first slice")?;
    }
    Ok(child)
}

fn answers() -> Outcome {
    let server = server(Role::Serve)?;
    for round in 0..500u64 {
        let words = [round, !round, 0, u64::MAX, round << 32];
        let answer = patient(|| entry::request(server.number, words)).named("asking")?;
        check(
            answer == words.map(|word| word.wrapping_add(1)),
            "another answer",
        )?;
    }
    same("requests", server.mailbox.get(words::PROGRESS), 500)?;
    same(
        "who asked",
        server.mailbox.get(words::OTHER),
        books::own_number().into(),
    )?;
    same(
        "its slices",
        books::environment(server.number)
            .slices
            .load(Relaxed)
            .into(),
        0,
    )?;
    server.end();
    Ok(())
}

fn asynchronous() -> Outcome {
    let server = server(Role::Serve)?;
    for round in 1..100u64 {
        patient(|| entry::send(server.number, [round; 5])).named("sending")?;
        wait("it is not served", || {
            let _ = entry::yield_to(server.number);
            server.mailbox.get(words::PROGRESS) >= round
        })?;
        same("what came", server.mailbox.get(words::RESULT), round)?;
    }
    server.end();
    Ok(())
}

fn refusals() -> Outcome {
    let ask = |number: u16| entry::request(number, [0; 5]).map(|_| 0u64);
    refused("nobody", ask(200), Error::NoEnvironment)?;
    refused("number 0", ask(0), Error::NoEnvironment)?;
    refused("itself", ask(books::own_number()), Error::Busy)?;
    let child = player(Role::Count, 0, 0)?;
    refused("without an entry", ask(child.number), Error::Busy)?;
    calls::set_frozen(child.target(), true).named("freezing")?;
    refused("a frozen one", ask(child.number), Error::Busy)?;
    let number = child.number;
    child.end();
    crate::scenario::gone(number)?;
    refused("a dead one", ask(number), Error::NoEnvironment)
}

/// A synchronous transfer gives the slice and its future: until the answer the callee runs in it.
fn donated() -> Outcome {
    let hold = server(Role::Hold)?;
    let asker = player(Role::Ask, hold.number.into(), 0)?;
    let slice = asker.run_on(elsewhere())?;
    let runs = || {
        let vector = &books::machine().slices[slice.processor];
        vector[slice.position].runs.load(Relaxed)
    };
    wait("the callee does not run in it", || runs() == hold.number)?;
    let owner = books::machine().slices[slice.processor][slice.position]
        .owner
        .load(Relaxed);
    same("the owner", owner.into(), asker.number.into())?;
    hold.end();
    wait("the caller does not get it back", || runs() == asker.number)?;
    asker.end();
    Ok(())
}

/// Many ask one at the same time, on all processors: every request is answered once.
fn crowd() -> Outcome {
    let server = running(Role::Serve, 0, 0)?;
    wait("it does not start", || {
        books::environment(server.number).ran.load(Relaxed) > 1
    })?;
    let asker = || player(Role::Ask, server.number.into(), 0);
    let askers = [asker()?, asker()?, asker()?, asker()?];
    for (index, asker) in askers.iter().enumerate() {
        asker.run_on(index % slices::processors())?;
    }
    let sender = player(Role::Send, server.number.into(), 3)?;
    sender.run_on(0)?;
    for child in askers.iter().chain([&sender]) {
        wait("one is not answered", || {
            child.mailbox.get(words::PROGRESS) > 200
        })?;
        same("wrong answers", child.mailbox.get(words::ERRORS), 0)?;
    }
    askers.into_iter().for_each(Child::end);
    sender.end();
    server.end();
    Ok(())
}

/// Who waits for an answer hears of the callee's death.
fn death() -> Outcome {
    let hold = server(Role::Hold)?;
    let asker = running(Role::Ask, hold.number.into(), 0)?;
    wait("it is not asked", || hold.mailbox.get(words::PROGRESS) > 0)?;
    hold.end();
    let no_environment = Error::NoEnvironment as i64 as u64;
    wait("the caller hears nothing", || {
        asker.mailbox.get(words::RESULT) == no_environment
    })?;
    asker.end();
    Ok(())
}
