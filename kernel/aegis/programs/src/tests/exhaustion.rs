//! All memory is gone: every path that needs some says so, and loses nothing.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Call;
use postern_aegis::abi::call::NAME_NOBODY;
use postern_aegis::calls;
use postern_aegis::load::Plan;
use postern_aegis::{Error, books, context, memory, pages};
use postern_aegis_programs::Role;

use crate::scenario::{Named, Outcome, Why, ask, check, elsewhere, planned, player, wait};

crate::scenarios! {
    "exhaustion.paths" paths;
    "exhaustion.reserved" reserved;
}

/// The name of pages that are taken to have none left.
const NAME: u32 = 0xf1f1;

/// Takes all free pages but some; the last refusal, if there was one.
fn take_all(but: u32) -> Option<Error> {
    while books::machine().free.load(Relaxed) > but {
        if let Err(error) = calls::allocate(NAME, NAME_NOBODY) {
            return Some(error);
        }
    }
    None
}

/// Gives them back.
fn give_all() -> Outcome {
    let own = books::own_number();
    for (number, page) in books::pages().iter().enumerate() {
        if page.owner.load(Relaxed) == own && page.read.load(Relaxed) == NAME {
            pages::free(number as u32).named("freeing")?;
        }
    }
    Ok(())
}

/// With each number of pages left up to those of a program, a program is not loaded, and nothing of
/// it is left.
fn paths() -> Outcome {
    let child = player(Role::Count, 0, 0)?;
    let needed = books::environment(child.number).pages.load(Relaxed) + 1;
    child.end();
    wait("it does not end", || {
        books::environment(books::own_number())
            .children
            .load(Relaxed)
            == 0
    })?;
    let outcome = (|| {
        for left in (0..needed).rev().step_by(3).chain([0]) {
            take_all(left);
            let free = books::machine().free.load(Relaxed);
            check(
                player(Role::Count, 0, 0).is_err(),
                "a program without pages",
            )?;
            wait("pages are lost", || {
                books::machine().free.load(Relaxed) == free
            })?;
        }
        let at = memory::reserve_tables(1);
        check(memory::map_fresh(at, 0).is_err(), "a page without one")?;
        let last = calls::allocate(NAME_NOBODY, NAME_NOBODY);
        // The root may have as many as there are.
        check(
            matches!(last, Err(Error::Exhausted | Error::Quota)),
            "one more page",
        )
    })();
    give_all()?;
    outcome
}

/// What is reserved for somebody is there when it comes for it: others are asked, and if they do not
/// answer, theirs is taken.
fn reserved() -> Outcome {
    let plan = Plan {
        reserved: 8,
        more_pages: 8,
        ..Plan::new([0; 8])
    };
    let child = planned(Role::Obey, &plan)?;
    child.run_on(elsewhere())?;
    let taken = context::context().repossessions.load(Relaxed);
    take_all(0);
    let outcome = (|| {
        let mut again = 0;
        for _ in 0..2000 {
            let result = ask(&child, Call::Allocate, &[u64::MAX, 0, 0])?;
            match Error::of(result as i64) {
                Some(Error::Again) => again += 1,
                None => return check(again > 0, "nobody was asked"),
                Some(error) => return Err(Why::Refused("a reserved page", error)),
            }
        }
        Err(Why::Not("it waits for what is reserved for it"))
    })();
    let lost = context::context().repossessions.load(Relaxed) - taken;
    give_all()?;
    child.end();
    outcome?;
    check(lost >= 1, "nobody lost anything")
}
