//! Environments: birth, the contexts of section 5.1.2, what is guaranteed, death.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::call::{NAME_NOBODY, RIGHT_CONTROL};
use postern_aegis::abi::records::{claim, end};
use postern_aegis::abi::{Call, ENVIRONMENTS};
use postern_aegis::calls::{self, Target};
use postern_aegis::load::Plan;
use postern_aegis::{Error, books, context, entry, load, memory, pages};
use postern_aegis_programs::{Role, words};

use crate::pages::patient;
use crate::scenario::{
    Named, Outcome, Why, ask_done, ask_refused, check, goes_on, gone, planned, player, refused,
    running, same, wait,
};
use crate::trusted::{self, Probe, probe};

crate::scenarios! {
    "environments.birth" birth;
    "environments.bases" bases;
    "environments.guaranteed" guaranteed;
    "environments.emergency" emergency;
    "environments.submitted" submitted;
    "environments.crashes" crashes;
    "environments.no-program" no_program;
    "environments.control" control;
    "environments.frozen" frozen;
    "environments.family" family;
    "environments.all-numbers" all_numbers;
}

fn birth() -> Outcome {
    let births = books::machine().births.load(Relaxed);
    for round in 1..=10 {
        let child = running(Role::Count, 2, 0)?;
        same(
            "births",
            books::machine().births.load(Relaxed).into(),
            u64::from(births) + round,
        )?;
        same("the birth", child.birth.into(), u64::from(births) + round)?;
        goes_on(&child)?;
        same(
            "the maker",
            books::environment(child.number).parent.load(Relaxed).into(),
            1,
        )?;
        let number = child.number;
        child.end();
        gone(number)?;
        same(
            "why",
            books::environment(number).ended.load(Relaxed).into(),
            end::DESTROYED.into(),
        )?;
    }
    Ok(())
}

/// The bases of fs and gs come from the context at every entry.
fn bases() -> Outcome {
    let set = |fs, gs| {
        context::context().fs.store(fs, Relaxed);
        context::context().gs.store(gs, Relaxed);
        entry::yield_slice();
    };
    set(0x1234_5000, 0x7e00_0000_0008);
    let got = (probe(Probe::Rdfs, 0), probe(Probe::Rdgs, 0));
    // Bits of the upper half are lost.
    set(u64::MAX, 1 << 63);
    let high = (probe(Probe::Rdfs, 0), probe(Probe::Rdgs, 0));
    set(0, 0);
    check(
        got == (Ok(0x1234_5000), Ok(0x7e00_0000_0008)),
        "they are others",
    )?;
    check(
        high == (Ok((1 << 47) - 1), Ok(0)),
        "addresses of the upper half",
    )
}

fn guaranteed() -> Outcome {
    let child = running(Role::Guarantee, 0, 0)?;
    wait("its handlers do not run", || {
        child.mailbox.get(words::PROGRESS) > 100
    })?;
    same("refused calls", child.mailbox.get(words::ERRORS), 0)?;
    child.end();
    Ok(())
}

/// The handler of page faults is on a page that is missing: the kernel goes to the emergency's.
fn emergency() -> Outcome {
    let missing = memory::reserve(1);
    let fault = trusted::probe_without_handler(missing, memory::reserve(1));
    let fault = fault.err().ok_or(Why::Not("it does not fault"))?;
    same("the vector", fault.vector, 14)?;
    same("the address", fault.address, missing)
}

/// An emergency that only a swap server can do something about: the environment stands still, and
/// all its registers are in its context.
fn submitted() -> Outcome {
    let child = player(Role::Submitted, 0, 0)?;
    calls::set_server(child.target(), books::own_number()).named("its server")?;
    child.run_on(0)?;
    let record = books::environment(child.number);
    wait("it is not submitted", || {
        record.claim.load(Relaxed) == claim::SUBMITTED
    })?;
    calls::set_frozen(child.target(), false).named("thawing")?;
    wait("it does not go on", || {
        child.mailbox.get(words::RESULT) != 0
    })?;
    // All but the one that has the address.
    same("registers", child.mailbox.get(words::RESULT), 12)?;
    check(child.mailbox.get(words::OTHER) != 0, "no address")?;
    child.end();
    Ok(())
}

fn crashes() -> Outcome {
    let reasons = [
        end::EXCEPTION,
        end::EXCEPTION + 14,
        end::EXCEPTION + 6,
        end::EMERGENCY,
    ];
    for (kind, reason) in reasons.into_iter().enumerate() {
        let neighbour = running(Role::Count, 1, 0)?;
        let child = running(Role::Crash, kind as u64, 0)?;
        let record = books::environment(child.number);
        wait("it does not end", || {
            !child.lives() && record.ended.load(Relaxed) != end::NOT
        })?;
        same("why", record.ended.load(Relaxed).into(), reason.into())?;
        let at = record.ended_at.load(Relaxed);
        check(at != 0, "it is not said where")?;
        same(
            "what it did afterwards",
            child.mailbox.get(words::ERRORS),
            0,
        )?;
        child.end();
        goes_on(&neighbour)?;
        neighbour.end();
    }
    Ok(())
}

fn no_program() -> Outcome {
    let plan = Plan::new([0; 8]);
    let missing = load::program("nobody", &plan).err();
    check(
        missing == Some(load::LoadError::Missing),
        "a missing program",
    )?;
    for bytes in [&[][..], b"\x7fELF", &[0; 4096]] {
        check(load::load(bytes, &plan).is_err(), "what is no program")?;
    }
    Ok(())
}

fn control() -> Outcome {
    let child = running(Role::Obey, 0, 0)?;
    let other = running(Role::Count, 0, 0)?;
    let number = u64::from(other.number);
    let denied = Error::Denied;
    let word = calls::capability(NAME_NOBODY, RIGHT_CONTROL, other.number).named("a capability")?;
    for word in [0, 1, word ^ 1, u64::MAX] {
        ask_refused("destroying", &child, Call::Destroy, &[number, word], denied)?;
        ask_refused("freezing", &child, Call::Set, &[number, 2, 1, word], denied)?;
        ask_refused(
            "revoking",
            &child,
            Call::Revoke,
            &[number, 1, 1, word],
            denied,
        )?;
        ask_refused("submitting", &child, Call::Submit, &[number, word], denied)?;
    }
    ask_refused(
        "its capability",
        &child,
        Call::Capability,
        &[0, RIGHT_CONTROL, number],
        denied,
    )?;
    ask_refused("a quota", &child, Call::Quota, &[number, 1, 0, 9], denied)?;
    goes_on(&other)?;
    ask_done("destroying with it", &child, Call::Destroy, &[number, word])?;
    wait("it lives", || !other.lives())?;
    other.end();
    child.end();
    Ok(())
}

fn frozen() -> Outcome {
    let child = running(Role::Count, 0, 0)?;
    goes_on(&child)?;
    patient(|| calls::set_frozen(child.target(), true)).named("freezing")?;
    let state = books::environment(child.number).claim.load(Relaxed);
    same("its state", state.into(), claim::FROZEN.into())?;
    let progress = child.mailbox.get(words::PROGRESS);
    for _ in 0..20 {
        entry::yield_slice();
    }
    same("its progress", child.mailbox.get(words::PROGRESS), progress)?;
    refused(
        "yielding to it",
        entry::yield_to(child.number).map(|()| 0u64),
        Error::Busy,
    )?;
    calls::set_frozen(child.target(), false).named("thawing")?;
    goes_on(&child)?;
    child.end();
    Ok(())
}

/// Who ends takes along whom it made.
fn family() -> Outcome {
    let plan = Plan {
        reserved: 8,
        environments: 2,
        ..Plan::new([0; 8])
    };
    let child = planned(Role::Obey, &plan)?;
    child.run_on(crate::scenario::elsewhere())?;
    let any = [u64::MAX, 0, 0];
    let mut born = [0; 2];
    for number in &mut born {
        let context = ask_done("a page", &child, Call::Allocate, &any)?;
        let table = ask_done("a page", &child, Call::Allocate, &any)?;
        *number = ask_done("creating", &child, Call::Create, &[context, table])? as u16;
    }
    let context = ask_done("a page", &child, Call::Allocate, &any)?;
    let table = ask_done("a page", &child, Call::Allocate, &any)?;
    ask_refused(
        "a third",
        &child,
        Call::Create,
        &[context, table],
        Error::Quota,
    )?;
    let grandchild = Target::child(born[0]);
    refused(
        "another's child",
        calls::set_frozen(grandchild, false),
        Error::Denied,
    )?;
    check(
        books::lives(born[0]) && books::lives(born[1]),
        "they do not live",
    )?;
    child.end();
    born.into_iter().try_for_each(gone)
}

/// All numbers are given out, none twice, and all come back.
fn all_numbers() -> Outcome {
    let mut born = [false; ENVIRONMENTS];
    let mut count = 0;
    let refusal = loop {
        let pages = (
            pages::take().named("a page")?,
            pages::take().named("a page")?,
        );
        match calls::create(pages.0, pages.1) {
            Ok(number) => {
                check(!born[usize::from(number)], "a number twice")?;
                born[usize::from(number)] = true;
                count += 1;
            }
            Err(error) => {
                pages::free(pages.0).named("freeing")?;
                pages::free(pages.1).named("freeing")?;
                break error;
            }
        }
    };
    let numbers = (1..ENVIRONMENTS as u16).filter(|number| born[usize::from(*number)]);
    for number in numbers {
        calls::destroy(Target::child(number)).named("destroying")?;
    }
    check(
        matches!(refusal, Error::Exhausted | Error::Quota),
        "refused for another reason",
    )?;
    same("environments", count, ENVIRONMENTS as u64 - 2)?;
    let late = player(Role::Count, 0, 0);
    if let Ok(child) = late {
        child.end();
    }
    Ok(())
}
