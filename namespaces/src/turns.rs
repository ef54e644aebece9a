//! Whose turn it is with a namespace's lock.
//!
//! A thread that changes a namespace again and again takes its lock again as soon as it has let it
//! go: those who wait for it are woken too late, every time, and always at the same step of that
//! thread's. So whoever is about to change a namespace first lets those have the lock who asked for
//! it before.

use postern_gates::pause::Pause;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// How often the lock was asked for, and had.
#[derive(Default)]
pub(crate) struct Turns {
    asked: AtomicU64,
    had: AtomicU64,
}

impl Turns {
    /// Takes the lock by `lock`, which waits for nothing but short work of others.
    pub(crate) fn ask<L>(&self, lock: impl FnOnce() -> L) -> L {
        self.asked.fetch_add(1, SeqCst);
        let locked = lock();
        self.had.fetch_add(1, SeqCst);
        locked
    }

    /// Waits until the lock was had as often as it has been asked for so far. The caller holds no
    /// lock.
    pub(crate) fn give_way(&self) {
        let asked = self.asked.load(SeqCst);
        let mut pause = Pause::default();
        while self.had.load(SeqCst) < asked {
            pause.again();
        }
    }

    /// In a forked child: whoever else asked is not here.
    pub(crate) fn forget(&self) {
        self.had.store(self.asked.load(SeqCst), SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn who_asked_before_has_it_before() {
        let (turns, lock) = (Turns::default(), Mutex::new(Vec::new()));
        for round in 0..200 {
            let asks = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let held = turns.ask(|| lock.lock().unwrap());
                scope.spawn(|| {
                    turns
                        .ask(|| {
                            asks.store(true, SeqCst);
                            lock.lock().unwrap()
                        })
                        .push("waited");
                });
                while !asks.load(SeqCst) {
                    std::thread::yield_now();
                }
                drop(held);
                turns.give_way();
                turns.ask(|| lock.lock().unwrap()).push("changed");
            });
            let order = std::mem::take(&mut *lock.lock().unwrap());
            assert_eq!(order, ["waited", "changed"], "round {round}");
        }
    }

    #[test]
    fn nobody_is_waited_for_who_is_not_here() {
        let turns = Turns::default();
        turns.asked.fetch_add(1, SeqCst);
        turns.forget();
        turns.give_way();
    }
}
