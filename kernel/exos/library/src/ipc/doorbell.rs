//! Doorbells: words in shared memory, and somebody who sleeps until one of them has changed.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use postern_aegis::{Error, books, entry};

use crate::ipc::wait::runs;

/// `struct exos_doorbell` of <exos/doorbell.h>.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Doorbell {
    rings: AtomicU64,
    sleeper: AtomicU64,
}

/// Times that a sleeper is looked for who is about to sleep, or to wake.
const ATTEMPTS: u32 = 1 << 12;
/// The same while it runs on another processor: the host may have halted that one for long, just
/// before it sleeps, and then nobody else wakes it.
const ATTEMPTS_RUNNING: u32 = 1 << 22;

/// Wakes who sleeps at a bell that has rung.
pub fn wake(bell: &Doorbell) {
    let sleeper = bell.sleeper.load(SeqCst);
    let mut left = ATTEMPTS_RUNNING;
    while left > 0 {
        if sleeper == 0 || sleeper > 255 || bell.sleeper.load(SeqCst) != sleeper {
            return;
        }
        match entry::wake(sleeper as u16) {
            Ok(()) => return,
            Err(Error::NoEnvironment) => break,
            Err(_) if books::is_self(sleeper as u16) => break,
            // It runs: it looks once more before it sleeps.
            Err(_) if runs(sleeper as u16) => entry::yield_slice(),
            Err(_) => {
                left = left.saturating_sub(ATTEMPTS_RUNNING / ATTEMPTS);
                entry::yield_slice();
            }
        }
        left = left.saturating_sub(1);
    }
    let _ = bell.sleeper.compare_exchange(sleeper, 0, SeqCst, SeqCst);
}

/// Sleeps until a bell has rung more often than was seen; which. `None`: none has, within so many
/// slices, if they are not 0.
pub fn wait(
    bells: &[&Doorbell],
    seen: impl Fn(usize) -> u64,
    slices: u32,
    stops: impl Fn() -> bool,
) -> Option<usize> {
    let own = u64::from(books::own_number());
    let rung = || {
        let mut all = bells.iter().enumerate();
        all.find(|(index, bell)| bell.rings.load(SeqCst) != seen(*index))
            .map(|(index, _)| index)
    };
    let sleepers = |now: u64| {
        bells
            .iter()
            .for_each(|bell| bell.sleeper.store(now, SeqCst));
    };
    let mut left = slices;
    let found = loop {
        sleepers(own);
        if let Some(index) = rung() {
            break Some(index);
        }
        if stops() || slices != 0 && left == 0 {
            break None;
        }
        match slices {
            0 => entry::sleep_unless(|| rung().is_some() || stops()),
            _ => entry::yield_slice(),
        }
        left = left.saturating_sub(1);
    };
    sleepers(0);
    found
}

/// How often it has rung.
pub fn rings(bell: &Doorbell) -> u64 {
    bell.rings.load(SeqCst)
}
