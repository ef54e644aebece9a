//! Parts of devices that somebody owns: the console, the clock.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Call;
use postern_aegis::abi::call::{
    HOLDINGS as RESOURCE, NAME_EVERYBODY, NAME_NOBODY, RIGHT_READ, RIGHT_WRITE,
};
use postern_aegis::abi::records::{CLOCK, CONSOLE};
use postern_aegis::load::Child;
use postern_aegis::{Error, books, calls};
use postern_aegis_programs::Role;

use crate::scenario::{
    Named, Outcome, Why, ask, ask_done, ask_refused, check, gone, refused, running, same, wait,
};

crate::scenarios! {
    "holdings.console" console;
    "holdings.given" given;
    "holdings.inherited" inherited;
    "holdings.quota" quota;
}

const NAME: u32 = 501;

fn owner(holding: usize) -> u16 {
    books::machine().holdings[holding].owner.load(Relaxed)
}

/// An obedient player that may have some holdings.
fn holder(limit: u32) -> Result<Child, Why> {
    let child = running(Role::Obey, 0, 0)?;
    calls::quota(child.number, RESOURCE, 0, limit).named("a quota")?;
    Ok(child)
}

/// The console as it is at the start.
fn everybodys() -> Outcome {
    calls::rename_holding(CONSOLE, NAME_NOBODY, NAME_EVERYBODY)
        .named("everybody's console")
        .map(drop)
}

fn console() -> Outcome {
    let child = holder(0)?;
    let write = |capability: u64| [postern_aegis::image::SECOND.start, 0, capability];
    ask_done("writing nothing", &child, Call::Write, &write(0))?;
    ask_refused("reading", &child, Call::Read, &[0], Error::Denied)?;
    calls::rename_holding(CONSOLE, NAME, NAME).named("names")?;
    let refusals = ask_refused("writing", &child, Call::Write, &write(0), Error::Denied);
    let writes = calls::capability(NAME, RIGHT_WRITE, 0).named("to write")?;
    let reads = calls::capability(NAME, RIGHT_READ, 0).named("to read")?;
    let by_word = ask_done("writing by its word", &child, Call::Write, &write(writes))
        .and_then(|_| {
            let word = &write(reads);
            ask_refused("by the other one", &child, Call::Write, word, Error::Denied)
        })
        .and_then(|()| ask_refused("reading", &child, Call::Read, &[writes], Error::Denied))
        .and_then(|()| {
            let read = ask(&child, Call::Read, &[reads])? as i64;
            // Nothing is typed, or something.
            check(
                read == Error::Again as i64 || read >= 0,
                "no reading by its word",
            )
        });
    everybodys()?;
    refusals.and(by_word)?;
    child.end();
    Ok(())
}

fn given() -> Outcome {
    let child = holder(1)?;
    let set = |word: u64| [2_000_000_000, word];
    ask_refused(
        "another's clock",
        &child,
        Call::SetClock,
        &set(0),
        Error::Denied,
    )?;
    let clock = CLOCK as u64;
    let take = [clock, child.number.into()];
    ask_refused("taking it", &child, Call::GiveHolding, &take, Error::Denied)?;
    ask_refused(
        "naming it",
        &child,
        Call::RenameHolding,
        &[clock, 1, 1],
        Error::Denied,
    )?;
    ask_refused("dropping it", &child, Call::Drop, &[clock], Error::Denied)?;
    calls::give_holding(CLOCK, child.number).named("giving")?;
    same("its owner", owner(CLOCK).into(), child.number.into())?;
    refused("what was given", calls::set_clock(0, 0), Error::Denied)?;
    let before = books::machine().clock.epoch.load(Relaxed);
    ask_done("setting it", &child, Call::SetClock, &set(0))?;
    ask_done(
        "naming it",
        &child,
        Call::RenameHolding,
        &[clock, 0, NAME.into()],
    )?;
    let words = [NAME.into(), RIGHT_WRITE, 0];
    let word = ask_done("its word", &child, Call::Capability, &words)?;
    refused(
        "a forged word",
        calls::set_clock(0, word ^ 1),
        Error::Denied,
    )?;
    calls::set_clock(before, word).named("setting it by its word")?;
    ask_done(
        "giving it back",
        &child,
        Call::GiveHolding,
        &[clock, books::own_number().into()],
    )?;
    same(
        "its owner again",
        owner(CLOCK).into(),
        books::own_number().into(),
    )?;
    refused(
        "the old word",
        calls::give_holding(CLOCK, 200),
        Error::NoEnvironment,
    )?;
    restore_clock(before);
    child.end();
    Ok(())
}

/// The time of day as it was, without the seconds that have passed.
pub fn restore_clock(epoch: u64) {
    let frequency = postern_aegis::time::frequency();
    let _ = calls::set_clock(epoch + postern_aegis::slices::clock() / frequency, 0);
}

/// What somebody holds is its maker's when it ends.
fn inherited() -> Outcome {
    let child = holder(2)?;
    calls::give_holding(CONSOLE, child.number).named("giving the console")?;
    calls::give_holding(CLOCK, child.number).named("giving the clock")?;
    let number = child.number;
    let printed = calls::write(b"");
    child.end();
    wait("the console does not come back", || {
        owner(CONSOLE) == books::own_number() && owner(CLOCK) == books::own_number()
    })?;
    everybodys()?;
    refused("writing meanwhile", printed, Error::Denied)?;
    gone(number)
}

fn quota() -> Outcome {
    let child = holder(1)?;
    let has = || books::environment(child.number).holdings.load(Relaxed);
    calls::give_holding(CLOCK, child.number).named("giving")?;
    same("holdings", has().into(), 1)?;
    let second = calls::give_holding(CONSOLE, child.number);
    let dropped = calls::drop_holding(CLOCK, 0).named("its maker drops it");
    everybodys()?;
    refused("a second one", second, Error::Quota)?;
    dropped?;
    same("holdings then", has().into(), 0)?;
    same("the owner", owner(CLOCK).into(), books::own_number().into())?;
    let most = calls::quota(child.number, RESOURCE, 0, 128);
    refused("more than there are", most, Error::Quota)?;
    child.end();
    Ok(())
}
