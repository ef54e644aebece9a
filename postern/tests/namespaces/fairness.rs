//! Whoever changes a namespace in a loop does not keep others from calling its functions.

use crate::empty;
use postern::{CallError, FaultKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

#[test]
fn a_loop_of_deletions_and_creations_lets_every_caller_make_progress() {
    const CALLS: u64 = 200;
    /// Many more than it takes, on a machine that does other things besides.
    const ROUNDS: u32 = 50_000;
    let space = empty();
    let source = "int f(int x) { return x + 1; }";
    space.create("a", source).unwrap();
    let f = space.func::<fn(i32) -> i32>("f").unwrap();
    let id = space.lookup("f").unwrap();
    let stop = AtomicBool::new(false);
    let done: [AtomicU64; 4] = Default::default();
    let made = std::thread::scope(|scope| {
        for (number, done) in done.iter().enumerate() {
            let (f, space, stop) = (f.clone(), &space, &stop);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    // One of them by its id, which takes the namespace's lock.
                    if number == 0 {
                        done.fetch_add(u64::from(space.call(id, &[1]).is_ok()), Relaxed);
                        continue;
                    }
                    match f.call(1) {
                        Ok(2) => _ = done.fetch_add(1, Relaxed),
                        Err(CallError::Fault(fault)) if fault.kind == FaultKind::Deleted => {
                            assert_eq!(fault.message.as_deref(), Some("f"));
                        }
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
        let progress = || done.iter().all(|done| done.load(Relaxed) >= CALLS);
        let made = (0..ROUNDS).find(|_| {
            assert!(space.delete("f"));
            // The function is there most of the time.
            for _ in 0..4 {
                space.create("a", source).unwrap();
            }
            progress()
        });
        stop.store(true, Relaxed);
        made
    });
    assert!(made.is_some(), "calls after {ROUNDS} rounds: {done:?}");
}
