//! Deadlines without a cost in the extension's code: one thread looks at the call numbers of all
//! others.
//!
//! A call whose number has not changed for longer than its domain's deadline is asked to end, and
//! asked again at every tick until it has. It samples time inside, too, and moves domains by it.
//! While nobody is inside, it looks less often, and if nobody comes, it rests until somebody does:
//! it sends the next call of every thread to the slow path, which wakes it.
//!
//! Invariant: nobody enters before there is a watchdog; and while the state is [`RESTING`], each
//! registered thread is outside, or its present call has seen or will see that state after it was
//! published, and wakes the watchdog. Threads that register see it, too.

mod state;

pub(crate) use state::wake;

use crate::config;
use crate::placement::{self, Busiest};
use postern_gates::call_state::CallPhase;
use postern_gates::control::Control;
use postern_gates::lifecycle::Phase;
use postern_gates::pause::Pause;
use postern_gates::{machine, mask, outcome, safe_point, signal, thread};
use state::{LOOKING, NONE, RESTING, STARTING, STATE, change};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest sleep while nobody is inside.
const IDLE: Duration = Duration::from_millis(10);
/// Looks in a row that find nobody, and no call since the last one, before it rests.
const PATIENCE: u32 = 10;
/// In tests: it looks without a pause, and rests whenever it sees nobody.
#[cfg(test)]
static EAGER: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Sees to it that the watchdog looks. Called from the slow path of the entry gate, also in signal
/// handlers.
///
/// # Errors
/// No thread can be made, so no deadline would be kept.
pub(crate) fn ensure() -> std::io::Result<()> {
    let mut pause = Pause::default();
    loop {
        match STATE.load(Ordering::SeqCst) {
            LOOKING => return Ok(()),
            RESTING => wake(),
            // Whoever is about to make it may fail.
            STARTING => pause.again(),
            _ if change(NONE, STARTING) => break,
            _ => {}
        }
    }
    let spawned = std::thread::Builder::new()
        .name("postern-watchdog".into())
        .spawn(watch);
    // Unless it has done so itself.
    let to = if spawned.is_ok() { LOOKING } else { NONE };
    change(STARTING, to);
    spawned.map(drop)
}

/// Rests until it is woken, unless somebody is inside or something is to be done. Whether it
/// rested.
fn rest() -> bool {
    // Before the threads are diverted: who takes the slow path from then on sees it.
    STATE.store(RESTING, Ordering::SeqCst);
    let quiet = {
        let registry = thread::registry();
        // The host may exchange handlers meanwhile, which nobody would see.
        signal::look_again(&registry);
        // Who entered without being diverted is seen now.
        thread::all_outside(&registry).0
    };
    if !quiet || !placement::is_settled() {
        // Somebody may have done it already.
        STATE.store(LOOKING, Ordering::SeqCst);
        return false;
    }
    while STATE.load(Ordering::SeqCst) == RESTING {
        machine::wait(&STATE, RESTING);
    }
    true
}

/// In the child after fork: the watchdog's thread is not there.
pub(crate) fn after_fork() {
    STATE.store(NONE, Ordering::SeqCst);
}

/// A call that was inside at the last look.
struct Seen {
    since: Instant,
    round: u64,
}

/// Calls by thread id and sequence number. (The index of a thread would not do: thread after thread
/// may make its first call.)
struct Calls {
    seen: HashMap<(u32, u64), Seen>,
    now: Instant,
    round: u64,
    busiest: Busiest,
}

impl Calls {
    /// Notes that a call is inside, and says how it is to end if it is over its domain's deadline,
    /// over what its export as a peer allows, or over a limit of its own.
    fn overdue(
        &mut self,
        t: &thread::Thread,
        sequence: u64,
        control: &Control,
        peer_limit: u64,
    ) -> Option<u32> {
        let key = (t.tid(), sequence);
        let (since, round) = (self.now, self.round);
        let call = self.seen.entry(key).or_insert(Seen { since, round });
        call.round = round;
        let inside = (self.now - call.since).as_nanos();
        let over = |limit: u64| limit != 0 && inside > u128::from(limit);
        if over(t.limit_of(sequence)) {
            return Some(outcome::INTERRUPT);
        }
        let deadline = control.deadline();
        (over(deadline) || over(peer_limit)).then_some(outcome::DEADLINE)
    }
}

fn watch() {
    change(STARTING, LOOKING);
    // The watchdog takes no signals meant for the host.
    mask::block_all_signals();
    let tick = config::current().tick;
    let mut calls = Calls {
        seen: HashMap::new(),
        now: Instant::now(),
        round: 0,
        busiest: Busiest::new(),
    };
    let (mut quiet, mut calls_before) = (0, 0);
    loop {
        let now = Instant::now();
        let passed = now - calls.now;
        calls.now = now;
        calls.round += 1;
        let mut busy = false;
        let (outside, made) = {
            let registry = thread::registry();
            for (_, t) in registry.iter() {
                busy |= look(t, passed, &mut calls);
            }
            thread::all_outside(&registry)
        };
        let idle = outside && !busy && made == calls_before && placement::is_settled();
        quiet = if idle { quiet + 1 } else { 0 };
        let called = busy || made != calls_before;
        calls_before = made;
        let round = calls.round;
        if called {
            signal::inspect(round);
        }
        calls.seen.retain(|_, s| s.round == round);
        // A subscriber to traces may panic, and this thread must go on.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            calls.busiest.compare(now);
            placement::tick();
        }));
        #[cfg(test)]
        if EAGER.load(Ordering::SeqCst) {
            quiet = if outside { PATIENCE } else { 0 };
        }
        if quiet >= PATIENCE {
            quiet = 0;
            if rest() {
                // Nobody was inside all that time.
                calls.now = Instant::now();
                calls.busiest.rested(calls.now);
                continue;
            }
        }
        std::thread::sleep(if busy { tick } else { IDLE.max(tick) });
    }
}

/// Looks at one thread; true if it is inside.
fn look(t: &thread::Thread, passed: Duration, calls: &mut Calls) -> bool {
    if t.seen_phase() == CallPhase::Outside {
        return false;
    }
    let Some((sequence, control)) = t.innermost_call() else {
        return true;
    };
    let Some(limit) = t.peer_limit(sequence) else {
        return true;
    };
    let nanos = passed.as_nanos() as u64;
    control.note_time(nanos);
    calls.busiest.note(control, passed);
    let overdue = calls.overdue(t, sequence, control, limit);
    let phase = control.lifecycle().now();
    if t.ends_when_back(sequence) {
        // In a service; it ends when that returns.
    } else if t.end_request().is_for(sequence) {
        // It was asked while a signal handler of the host had interrupted it.
        signal::remind(t);
    } else if matches!(phase, Phase::Poisoned | Phase::Closed) {
        signal::request_end(t, sequence, outcome::ANOTHER);
    } else if let Some(kind) = overdue {
        signal::request_end(t, sequence, kind);
    } else if t.seen_phase() == CallPhase::Inside && safe_point::is_wanted() {
        signal::remind(t);
    }
    for (sequence, waiting) in t.waiting() {
        let domain = waiting.domain();
        // The record may be another call's by now.
        let (Some(domain), Some(limit)) = (domain, waiting.limit_of(sequence)) else {
            continue;
        };
        if let Some(kind) = calls.overdue(t, sequence, domain, limit) {
            waiting.end(sequence, kind);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultKind, sample};

    /// A call that the watchdog neither saw nor was woken by would never end.
    #[test]
    fn nobody_enters_unseen_while_it_goes_to_rest() {
        const THREADS: u64 = 4;
        const ROUNDS: u64 = 150;
        let domain = || {
            let source = "int one(void) { return 1; } void spin(void) { for (;;) ; }";
            let limit = Some(Duration::from_micros(100));
            sample::domain(source).deadline(limit).build().unwrap()
        };
        EAGER.store(true, Ordering::SeqCst);
        std::thread::scope(|scope| {
            for seed in 0..THREADS {
                scope.spawn(move || {
                    let domain = domain();
                    let one = domain.func::<fn() -> i32>("one").unwrap();
                    let spin = domain.func::<fn()>("spin").unwrap();
                    let mut random = fastrand::Rng::with_seed(seed);
                    for _ in 0..ROUNDS {
                        // It goes to rest at some moment of this.
                        for _ in 0..random.u32(0..2000) {
                            std::hint::spin_loop();
                        }
                        if random.bool() {
                            // Its thread may be kept waiting for longer than the limit.
                            match one.call() {
                                Ok(result) => assert_eq!(result, 1),
                                Err(late) => {
                                    assert_eq!(late.fault().unwrap().kind, FaultKind::Deadline);
                                    domain.reset().unwrap();
                                }
                            }
                        }
                        let ended = spin.call().unwrap_err();
                        assert_eq!(ended.fault().unwrap().kind, FaultKind::Deadline);
                        domain.reset().unwrap();
                    }
                });
            }
        });
        EAGER.store(false, Ordering::SeqCst);
    }
}
