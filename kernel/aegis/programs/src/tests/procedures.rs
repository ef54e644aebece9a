//! Calls of procedures in other environments, by registers.

use postern_aegis::load::Child;
use postern_aegis::{Error, entry};
use postern_aegis_programs::{Role, words};

use crate::pages::patient;
use crate::scenario::{Named, Outcome, Why, check, player, same};

crate::scenarios! {
    "procedures.answer" answer;
    "procedures.end" end;
    "procedures.silent" silent;
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

/// Once more as long as the server is busy. It has no slice: if its last one ended before it was
/// parked again, it comes to that in the caller's time.
fn call(server: &Child, words: [u64; 4]) -> entry::Answer {
    loop {
        let answer = entry::call_procedure(server.number, words);
        if answer.error != Error::Busy as i64 {
            return answer;
        }
        let _ = entry::yield_to(server.number);
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
    // Longer than a slice.
    let server = server(0)?;
    for _ in 0..3 {
        let answer = call(&server, [7, 8, 3_000_000, 0]);
        same("an error of a long one", answer.error as u64, 0)?;
        same("a long sum", answer.word, 15)?;
    }
    server.end();
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
