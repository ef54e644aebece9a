//! Calls of procedures in other environments, by registers.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::load::Child;
use postern_aegis::{Error, books, entry};
use postern_aegis_programs::{Role, words};

use crate::pages::patient;
use crate::scenario::{Named, Outcome, Why, check, player, same, wait};

crate::scenarios! {
    "procedures.answer" answer;
    "procedures.end" end;
    "procedures.silent" silent;
    "procedures.asleep" asleep;
}

/// A server without a slice, parked.
fn server(misbehaves: u64) -> Result<Child, Why> {
    entry::coprocessor(true);
    entry::accept();
    let child = player(Role::Procedure, misbehaves, 0)?;
    child.mailbox.set(words::ASKED, 1);
    while child.mailbox.get(words::ASKED) != 0 {
        patient(|| entry::yield_to(child.number)).named("its first slice")?;
    }
    let _ = patient(|| entry::yield_to(child.number));
    Ok(child)
}

/// Once more as long as the server is busy.
fn call(server: &Child, words: [u64; 4]) -> entry::Answer {
    loop {
        let answer = entry::call_procedure(server.number, words);
        if answer.error != Error::Busy as i64 {
            return answer;
        }
        entry::yield_slice();
    }
}

fn answer() -> Outcome {
    let first = server(0)?;
    for round in 1..2000u64 {
        let answer = call(&first, [round, !round, 0, 0]);
        same("an error", answer.error as u64, 0)?;
        same("a sum", answer.word, u64::MAX)?;
    }
    first.end();
    // Longer than a slice. Where the host takes the processor away at a slice's end for as long as an
    // environment may take, the server is ended for that: another one is asked.
    let mut asked = 0;
    let mut answered = 0;
    while answered < 3 {
        let server = server(0)?;
        while answered < 3 && server.lives() {
            asked += 1;
            let answer = call(&server, [7, 8, 3_000_000, 0]);
            if server.lives() || asked > 20 {
                same("an error of a long one", answer.error as u64, 0)?;
                same("a long sum", answer.word, 15)?;
                answered += 1;
            }
        }
        server.end();
    }
    entry::coprocessor(false);
    Ok(())
}

fn end() -> Outcome {
    let server = server(1)?;
    same("a sum", call(&server, [1, 1, 0, 0]).word, 2)?;
    let error = call(&server, [0; 4]).error;
    check(
        error == Error::NoEnvironment as i64,
        "it is not told that the server ended",
    )?;
    let error = call(&server, [1; 4]).error;
    check(error == Error::NoEnvironment as i64, "a dead one answers")?;
    check(entry::call_procedure(0, [0; 4]).error < 0, "nobody answers")?;
    server.end();
    entry::coprocessor(false);
    Ok(())
}

/// A server that hears events has no slices while nobody calls, and answers, and hears of them.
fn asleep() -> Outcome {
    entry::coprocessor(true);
    entry::accept();
    let server = player(Role::Procedure, 3, 0)?;
    server.run_on(0)?;
    wait("it does not begin", || {
        server.mailbox.get(words::ASKED) == 0
    })?;
    let ran = || books::environment(server.number).ran.load(Relaxed);
    let mut rounds = 0u64;
    while server.mailbox.get(words::OTHER) < 3 {
        rounds += 1;
        let answer = call(&server, [rounds, 1, 0, 0]);
        same("an error", answer.error as u64, 0)?;
        same("a sum", answer.word, rounds + 1)?;
        let before = ran();
        (0..50).for_each(|_| entry::yield_slice());
        check(ran() - before < 25, "it has slices all the time")?;
        check(rounds < 1_000_000, "it hears of no alarm")?;
    }
    server.end();
    entry::coprocessor(false);
    Ok(())
}

fn silent() -> Outcome {
    let (bad, good) = (server(2)?, server(0)?);
    entry::set_patience(8);
    let error = call(&bad, [0; 4]).error;
    entry::set_patience(4096);
    check(error == Error::Again as i64, "it waits for ever")?;
    check(
        entry::call_procedure(bad.number, [1; 4]).error < 0,
        "it is not busy",
    )?;
    same("a sum", call(&good, [1, 1, 0, 0]).word, 2)?;
    bad.end();
    good.end();
    entry::coprocessor(false);
    Ok(())
}
