//! The time of day, alarms, and events that are told at once.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Context;
use postern_aegis::{books, calls, entry, slices, time};
use postern_aegis_programs::{Role, words};

use crate::scenario::{Named, Outcome, check, player, same, wait};

crate::scenarios! {
    "clock.time" time_of_day;
    "clock.alarm" alarm;
    "clock.sleep" sleeps;
    "clock.at-once" at_once;
    "clock.upcalls" upcalls;
    "clock.asleep" asleep;
}

/// The counter goes on, and the day with it.
fn time_of_day() -> Outcome {
    check(time::frequency() > 100_000_000, "a slow counter")?;
    // Since this was planned, and not for a hundred years to come.
    let now = time::now();
    check((1_700_000_000..4_900_000_000).contains(&now), "another day")?;
    let before = books::machine().clock.epoch.load(Relaxed);
    calls::set_clock(86_400, 0).named("setting")?;
    let set = time::now();
    calls::set_clock(now, 0).named("setting it back")?;
    check((86_400..86_500).contains(&set), "it was not set")?;
    let after = books::machine().clock.epoch.load(Relaxed);
    check(after.abs_diff(before) < 100, "it was not set back")
}

static TOLD: AtomicU64 = AtomicU64::new(0);
static AT: AtomicU64 = AtomicU64::new(0);

fn hear(events: u64) {
    if events & Context::EVENT_ALARM != 0 {
        AT.store(slices::clock(), Relaxed);
        TOLD.fetch_add(1, Relaxed);
    }
}

/// Sets an alarm and waits for it by yielding.
fn alarm() -> Outcome {
    entry::on_events(hear);
    for microseconds in [0, 1, 3000] {
        let told = TOLD.load(Relaxed);
        let due = slices::clock() + time::cycles(microseconds);
        calls::alarm(due).named("an alarm")?;
        wait("it is not told", || TOLD.load(Relaxed) > told)?;
        check(AT.load(Relaxed) >= due, "too early")?;
    }
    let told = TOLD.load(Relaxed);
    calls::alarm(slices::clock() + time::cycles(2000)).named("an alarm")?;
    calls::alarm(0).named("none")?;
    let end = slices::clock() + time::cycles(6000);
    wait("time stands still", || slices::clock() > end)?;
    same("alarms that were put off", TOLD.load(Relaxed), told)
}

/// An alarm ends a sleep, also if it rings before that has begun, or while what is waited for is looked
/// at, over ends of slices.
fn sleeps() -> Outcome {
    entry::on_events(hear);
    let told = TOLD.load(Relaxed);
    time::alarm(500).named("an alarm")?;
    wait("it is not told", || TOLD.load(Relaxed) > told)?;
    entry::sleep_unless(|| false);
    for microseconds in [200, 3_000, 40_000] {
        let told = TOLD.load(Relaxed);
        time::alarm(microseconds).named("an alarm")?;
        let end = slices::clock() + time::cycles(20_000);
        let looks = || {
            while slices::clock() < end {
                core::hint::spin_loop();
            }
            false
        };
        while TOLD.load(Relaxed) == told {
            entry::sleep_unless(looks);
        }
        entry::sleep_unless(|| true);
    }
    Ok(())
}

/// Who runs on and on is told all the same, and goes on where it was.
fn at_once() -> Outcome {
    entry::on_events(hear);
    entry::events_at_once();
    for _ in 0..20 {
        let told = TOLD.load(Relaxed);
        let ran = books::environment(books::own_number()).ran.load(Relaxed);
        // Between the beginning of a slice and its end.
        entry::yield_slice();
        calls::alarm(slices::clock() + 1).named("an alarm")?;
        let start = slices::clock();
        while TOLD.load(Relaxed) == told {
            let long = slices::clock().wrapping_sub(start) > time::cycles(20_000_000);
            check(!long, "it is not told")?;
        }
        let more = books::environment(books::own_number()).ran.load(Relaxed);
        check(more >= ran, "slices are taken back")?;
    }
    Ok(())
}

/// Registers are kept over events that are told at once, on any processor, whatever they interrupt:
/// a program, requests that come to it, answers.
fn upcalls() -> Outcome {
    for processor in [0, slices::processors() - 1] {
        let child = player(Role::Alarms, 0, 0)?;
        child.run_on(processor)?;
        wait("it does not start", || child.mailbox.get(words::OTHER) > 0)?;
        let asker = player(Role::Ask, child.number.into(), 0)?;
        asker.run_on(processor)?;
        wait("it is not told often", || {
            child.mailbox.get(words::OTHER) > 100 && child.mailbox.get(words::PROGRESS) > 5
        })?;
        same("changed registers", child.mailbox.get(words::ERRORS), 0)?;
        same("wrong answers", asker.mailbox.get(words::ERRORS), 0)?;
        asker.end();
        child.end();
    }
    Ok(())
}

/// Hears of an alarm for longer than a slice lasts.
fn hear_for_long(events: u64) {
    let record = books::environment(books::own_number());
    let (ran, began) = (record.ran.load(Relaxed), slices::clock());
    while record.ran.load(Relaxed) < ran + 2 {
        // Nobody else may want the processor.
        if slices::clock().wrapping_sub(began) > time::cycles(100_000) {
            break;
        }
        core::hint::spin_loop();
    }
    hear(events);
}

/// Who sleeps is awake while it hears of what ends the sleep, though its slice ends in between.
fn asleep() -> Outcome {
    entry::on_events(hear_for_long);
    for _ in 0..5 {
        let told = TOLD.load(Relaxed);
        calls::alarm(slices::clock() + time::cycles(1000)).named("an alarm")?;
        while TOLD.load(Relaxed) == told {
            entry::sleep_unless(|| TOLD.load(Relaxed) > told);
        }
    }
    Ok(())
}
