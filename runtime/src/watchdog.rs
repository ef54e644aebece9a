//! Deadlines without a cost in the extension's code: one thread looks at the call numbers of all others.
//!
//! A call whose number has not changed for longer than its domain's deadline is asked to end, and asked again at every tick until
//! it has. While nobody is inside, the watchdog looks less often. It samples time inside, too, and moves domains by it.

use crate::engine;
use crate::placement::{self, Busiest};
use crate::trusted::control::{CLOSED, Control, POISONED};
use crate::trusted::{mask, outcome, signal, thread};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static RUNNING: AtomicBool = AtomicBool::new(false);
/// Longest sleep while nobody is inside.
const IDLE: Duration = Duration::from_millis(10);

/// Starts the watchdog if it does not run. Called from the slow path of the entry gate.
///
/// # Errors
/// No thread can be made, so no deadline would be kept.
pub(crate) fn ensure() -> std::io::Result<()> {
    if RUNNING.load(Ordering::Relaxed) || RUNNING.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    let spawned = std::thread::Builder::new()
        .name("postern-watchdog".into())
        .spawn(watch);
    if let Err(error) = spawned {
        RUNNING.store(false, Ordering::SeqCst);
        return Err(error);
    }
    Ok(())
}

/// In the child after fork: the watchdog's thread is not there.
pub(crate) fn after_fork() {
    RUNNING.store(false, Ordering::SeqCst);
}

/// A call that was inside at the last look.
struct Seen {
    since: Instant,
    round: u64,
}

/// Calls by thread id and sequence number. (The index of a thread would not do: thread after thread may make its first call.)
struct Calls {
    seen: HashMap<(u32, u64), Seen>,
    now: Instant,
    round: u64,
    busiest: Busiest,
}

impl Calls {
    /// Notes that a call is inside, and says how it is to end if it is over its domain's deadline, over what its export as a peer
    /// allows, or over a limit of its own.
    fn overdue(
        &mut self,
        t: &thread::Thread,
        sequence: u64,
        control: &Control,
        peer_limit: u64,
    ) -> Option<u32> {
        let key = (t.tid.load(Ordering::Relaxed), sequence);
        let (since, round) = (self.now, self.round);
        let call = self.seen.entry(key).or_insert(Seen { since, round });
        call.round = round;
        let inside = (self.now - call.since).as_nanos();
        let over = |limit: u64| limit != 0 && inside > u128::from(limit);
        if over(t.limit_of(sequence)) {
            return Some(outcome::INTERRUPT);
        }
        let deadline = control.deadline.load(Ordering::Relaxed);
        (over(deadline) || over(peer_limit)).then_some(outcome::DEADLINE)
    }
}

fn watch() {
    // The watchdog takes no signals meant for the host.
    mask::block_all_signals();
    let tick = engine::config().tick;
    let mut calls = Calls {
        seen: HashMap::new(),
        now: Instant::now(),
        round: 0,
        busiest: Busiest::new(),
    };
    loop {
        let now = Instant::now();
        let passed = now - calls.now;
        calls.now = now;
        calls.round += 1;
        let mut busy = false;
        for (_, t) in thread::registry().iter() {
            busy |= look(t, passed, &mut calls);
        }
        let round = calls.round;
        calls.seen.retain(|_, s| s.round == round);
        // A subscriber to traces may panic, and this thread must go on.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            calls.busiest.compare(now);
            placement::tick();
        }));
        std::thread::sleep(if busy { tick } else { IDLE.max(tick) });
    }
}

/// Looks at one thread; true if it is inside.
fn look(t: &thread::Thread, passed: Duration, calls: &mut Calls) -> bool {
    if t.mark.load(Ordering::SeqCst) == thread::OUTSIDE {
        return false;
    }
    let Some((sequence, control)) = t.innermost_call() else {
        return true;
    };
    let Some(limit) = t.peer_limit(sequence) else {
        return true;
    };
    let nanos = passed.as_nanos() as u64;
    control.time_inside.fetch_add(nanos, Ordering::Relaxed);
    if control.base.load(Ordering::Relaxed) == 0 {
        control.time_hot.fetch_add(nanos, Ordering::Relaxed);
    }
    calls.busiest.note(control, passed);
    let overdue = calls.overdue(t, sequence, control, limit);
    let state = control.state.load(Ordering::SeqCst);
    if t.pending.load(Ordering::SeqCst) == sequence {
        // In a service; it ends when that returns.
    } else if t.request.load(Ordering::SeqCst) == sequence {
        // It was asked while a signal handler of the host had interrupted it.
        signal::remind(t);
    } else if state == POISONED || state == CLOSED {
        signal::request_end(t, sequence, outcome::ANOTHER);
    } else if let Some(kind) = overdue {
        signal::request_end(t, sequence, kind);
    }
    for (sequence, waiting) in t.waiting() {
        let limit = waiting.limit.load(Ordering::SeqCst);
        let Some(domain) = waiting.domain() else {
            continue;
        };
        // The record may be another call's by now.
        if waiting.sequence.load(Ordering::SeqCst) != sequence {
            continue;
        }
        if let Some(kind) = calls.overdue(t, sequence, domain, limit) {
            waiting.end(sequence, kind);
        }
    }
    true
}
