//! Other environments: control transfer one way (Table 6), births and deaths, slices.

use postern_aegis::abi::Call;
use postern_aegis::abi::call::{ANY, PAGES};
use postern_aegis::calls::{self, Target};
use postern_aegis::load::{self, LoadError, Plan};
use postern_aegis::{Error, entry, pages};

use crate::rows::{Named, Outcome, Refused, call, call_row, row};
use crate::trusted;

/// The word of `bounce`'s mailbox that says that it is ready.
const READY: usize = 16;

pub fn transfers() -> Outcome {
    let bounce = load::program("bounce", &Plan::new([0; 8])).map_err(|error| match error {
        LoadError::Call(what, error) => Refused(what, error as i64),
        _ => Refused("bounce", 0),
    })?;
    while bounce.mailbox.get(READY) == 0 {
        entry::yield_to(bounce.number).named("starting bounce")?;
    }
    for (name, call) in [
        ("synchronous", Call::CallSynchronous),
        ("asynchronous", Call::CallAsynchronous),
        ("yield", Call::Yield),
    ] {
        row(name, 2, || {
            trusted::transfer(call, bounce.number).ok_or(Refused(name, 0))
        })?;
    }
    call_row("set", Call::Set, &[bounce.number.into(), 1, 0])?;
    let quota = [bounce.number.into(), PAGES, 20, 40];
    call_row("quota", Call::Quota, &quota)?;
    bounce.end();
    Ok(())
}

pub fn births() -> Outcome {
    row("create", 1, || {
        let (context, table) = (take()?, take()?);
        let (took, number) = call("create", Call::Create, &[context.into(), table.into()])?;
        calls::destroy(Target::child(number as u16)).named("destroying")?;
        entry::yield_slice();
        Ok(took)
    })?;
    row("destroy", 1, || {
        let number = calls::create(take()?, take()?).named("creating")?;
        let took = call("destroy", Call::Destroy, &[number.into()])?.0;
        entry::yield_slice();
        Ok(took)
    })
}

fn take() -> Result<u32, Refused> {
    pages::take().named("a page")
}

pub fn slices() -> Outcome {
    row("take-slice", 1, || {
        let (took, position) = call("take-slice", Call::TakeSlice, &[0, ANY])?;
        calls::free_slice(0, position as usize).named("freeing a slice")?;
        Ok(took)
    })?;
    let take = || match calls::take_slice(0, 63) {
        Err(Error::Taken) => Ok(0),
        result => result.named("a slice"),
    };
    row("free-slice", 1, || {
        take()?;
        call("free-slice", Call::FreeSlice, &[0, 63]).map(|(took, _)| took)
    })?;
    take()?;
    call_row("give-slice", Call::GiveSlice, &[0, 63, 1])?;
    calls::free_slice(0, 63).named("freeing a slice").map(drop)
}
