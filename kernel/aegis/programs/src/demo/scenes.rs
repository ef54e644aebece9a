//! Revocation, death, a secret, a transfer.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Call;
use postern_aegis::abi::call::{PAGES, RIGHT_READ};
use postern_aegis::abi::records::end;
use postern_aegis::load::{self, Child, LoadError, Plan};
use postern_aegis::{Error, Mapping, address, books, calls, entry, memory, pages, println, slices};
use postern_aegis_programs::{Role, words};

use crate::{Shown, wait};

pub fn player(role: Role, first: u64) -> Result<Child, LoadError> {
    let plan = Plan::new([role as u64, first, 0, 0, 0, 0, 0, 0]);
    let child = load::program("player", &plan)?;
    child.run_on(slices::processors() - 1)?;
    Ok(child)
}

pub fn failed(what: &'static str) -> impl Fn(Error) -> LoadError {
    move |error| LoadError::Call(what, error)
}

pub fn refusal() -> Shown {
    let child = player(Role::Refuse, 8)?;
    if !wait(|| child.mailbox.get(words::PROGRESS) > 0) {
        return Ok(false);
    }
    let has = || books::environment(child.number).pages.load(Relaxed);
    let before = has();
    println!(
        "   environment {} has {before} pages, 8 of them beyond its needs",
        child.number
    );
    calls::revoke(child.target(), PAGES, 1).map_err(failed("asking for a page"))?;
    println!(
        "   it is asked for one, until tick {}; it does nothing",
        books::environment(child.number).deadline.load(Relaxed)
    );
    let taken = wait(|| child.mailbox.get(words::RESULT) == 1);
    println!(
        "   now it has {}, and its repossession vector says: page {} is gone",
        has(),
        child.mailbox.get(words::ARGUMENT)
    );
    let progress = child.mailbox.get(words::PROGRESS);
    let goes_on = wait(|| child.mailbox.get(words::PROGRESS) > progress);
    println!("   it goes on with what is left");
    let fewer = has() + 1 == before;
    child.end();
    Ok(taken && goes_on && fewer)
}

pub fn death() -> Shown {
    let neighbour = player(Role::Count, 4)?;
    // It has all its memory before the other one comes.
    wait(|| neighbour.mailbox.get(words::PROGRESS) > 0);
    let free = books::machine().free.load(Relaxed);
    let child = player(Role::Crash, 0)?;
    let number = child.number;
    let record = books::environment(number);
    // It is no more a moment before its record says why.
    let died = wait(|| !books::lives(number) && record.ended.load(Relaxed) != end::NOT);
    let why = record.ended.load(Relaxed);
    println!(
        "   environment {number} ended by exception {} at {:#x}",
        why.wrapping_sub(end::EXCEPTION),
        record.ended_at.load(Relaxed)
    );
    child.end();
    let freed = wait(|| books::machine().free.load(Relaxed) >= free);
    println!(
        "   its pages are {}free again",
        if freed { "" } else { "not " }
    );
    let progress = neighbour.mailbox.get(words::PROGRESS);
    let goes_on = wait(|| neighbour.mailbox.get(words::PROGRESS) > progress);
    let wrong = neighbour.mailbox.get(words::ERRORS);
    println!(
        "   environment {} beside it goes on; {wrong} words of it changed",
        neighbour.number
    );
    neighbour.end();
    Ok(died && why == end::EXCEPTION && freed && goes_on && wrong == 0)
}

/// A name for the page of the scene.
const NAME: u32 = 1995;
/// Where the neighbour maps it.
const AT: u64 = 0x2000_0000_0000;

pub fn secret() -> Shown {
    let at = memory::reserve(1);
    let page = calls::allocate(NAME, 0).map_err(failed("a page"))?;
    memory::map(
        at,
        Mapping::new(page, Mapping::WRITE),
        0,
        calls::Target::SELF,
    )
    .map_err(failed("mapping"))?;
    memory::write(at, 42);
    let neighbour = player(Role::Obey, 0)?;
    while memory::give_table(AT, 1, neighbour.target()) == Err(Error::Busy) {
        entry::yield_slice();
    }
    let maps = |capability: u64| {
        let arguments = [AT, Mapping::new(page, 0).0, capability, 0, 0];
        for (index, argument) in arguments.into_iter().enumerate() {
            neighbour.mailbox.set(words::ARGUMENT + index, argument);
        }
        neighbour.mailbox.set(words::ASKED, Call::Map as u64 + 1);
        wait(|| neighbour.mailbox.get(words::ASKED) == 0);
        Error::of(neighbour.mailbox.get(words::RESULT) as i64)
    };
    let say = |what: &str, result: Option<Error>| match result {
        Some(error) => println!("   {what}: refused ({error:?})"),
        None => println!("   {what}: mapped"),
    };
    println!(
        "   page {page} is environment 1's; environment {} tries",
        neighbour.number
    );
    let without = maps(0);
    say("without a capability", without);
    let real = calls::capability(NAME, RIGHT_READ, 0).map_err(failed("a capability"))?;
    let forged = maps(real ^ 1);
    say("with a forged one", forged);
    let with = maps(real);
    say("with one that the owner gave it", with);
    calls::rename(page, NAME + 1, 0).map_err(failed("renaming"))?;
    let after = maps(real);
    say(
        "with the same one, after the owner changed the page's name",
        after,
    );
    println!(
        "   the kernel's own memory begins at {:#x}, where nobody maps anything",
        address::END
    );
    neighbour.end();
    pages::free(page).map_err(failed("freeing"))?;
    let denied = Some(Error::Denied);
    Ok(without == denied && forged == denied && with.is_none() && after == denied)
}

pub fn transfer() -> Shown {
    let server = player(Role::Serve, 0)?;
    let asks = [10, 20, 30, 40, 50];
    // Until its entry is set it accepts none.
    let answer = Cell::new(Err(Error::Busy));
    wait(|| {
        answer.set(entry::request(server.number, asks));
        answer.get() != Err(Error::Busy)
    });
    println!(
        "   environment 1 asks environment {}, by registers: {asks:?}",
        server.number
    );
    let answer = answer.get().map_err(failed("asking"))?;
    println!("   it answers, in the slice that it was given: {answer:?}");
    println!(
        "   requests that it has had: {}",
        server.mailbox.get(words::PROGRESS)
    );
    let right = answer == asks.map(|word| word + 1);
    let once = server.mailbox.get(words::PROGRESS) == 1;
    server.end();
    Ok(right && once)
}
