//! Notes of handlers: each says when it ran, and how often its timer had run out. They are in
//! memory that children have in common with this process: handlers note in whatever process.

use crate::trusted::notice::now;
use crate::trusted::process;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// Events of which shares are taken.
pub(super) const EVENTS: u64 = 100;
/// Of the timer.
pub(super) const PERIOD: Duration = Duration::from_millis(3);

/// When handlers ran, and how many expiries each was told, in whatever process: words of all.
pub(super) struct Log(&'static [AtomicU64]);

/// Before the notes: how many there are, and how many processes are attached.
const HEAD: usize = 2;
const NOTES: usize = 512;

static LOG: LazyLock<Option<Log>> =
    LazyLock::new(|| process::words_of_all(HEAD + 2 * NOTES).ok().map(Log));

/// In a signal handler, too.
pub(super) fn note(count: u64) {
    if let Some(log) = &*LOG {
        log.note(count);
    }
}

impl Log {
    pub(super) fn get() -> Result<&'static Log, String> {
        let log = LOG.as_ref();
        log.ok_or_else(|| "there is no memory for the notes".to_owned())
    }

    pub(super) fn attached(&self) -> &AtomicU64 {
        &self.0[1]
    }

    fn notes(&self) -> impl Iterator<Item = (&AtomicU64, &AtomicU64)> {
        self.0[HEAD..]
            .chunks_exact(2)
            .map(|note| (&note[0], &note[1]))
    }

    fn note(&self, count: u64) {
        let time = now();
        let at = HEAD + 2 * self.0[0].fetch_add(1, SeqCst) as usize;
        if let Some([its_time, its_count]) = self.0.get(at..at + 2) {
            its_count.store(count, Relaxed);
            its_time.store(time, SeqCst);
        }
    }

    pub(super) fn clear(&self) {
        for (time, _) in self.notes() {
            time.store(0, SeqCst);
        }
        self.attached().store(0, SeqCst);
        self.0[0].store(0, SeqCst);
    }

    /// Latencies in seconds of the [`EVENTS`] expiries after `from` of a timer that began at
    /// `begun`, in order; of those that are not handled, infinite.
    pub(super) fn latencies(&self, begun: u64, from: u64) -> Vec<f64> {
        let period = PERIOD.as_nanos() as u64;
        let first = from.saturating_sub(begun) / period + 1;
        let mut times = vec![f64::INFINITY; EVENTS as usize];
        let notes = self.notes();
        let mut notes: Vec<_> = notes
            .map(|(time, count)| (time.load(SeqCst), count.load(Relaxed)))
            .filter(|note| note.0 != 0)
            .collect();
        notes.sort_unstable();
        let mut expiry = 0;
        for (time, count) in notes {
            for _ in 0..count.min(EVENTS * 10) {
                expiry += 1;
                let late = time.saturating_sub(begun + expiry * period) as f64 / 1e9;
                if let Some(at) = u64::checked_sub(expiry, first)
                    && let Some(one) = times.get_mut(at as usize)
                {
                    *one = late;
                }
            }
        }
        times.sort_by(f64::total_cmp);
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expiry_has_its_own_latency() {
        let log = Log(process::words_of_all(HEAD + 2 * NOTES).unwrap());
        let (begun, period) = (1_000, PERIOD.as_nanos() as u64);
        // Two on time, one before the time that counts; then two at once, the later one on time.
        for (at, (expiry, count)) in [(1, 1), (2, 1), (4, 2)].into_iter().enumerate() {
            let (time, its_count) = log.notes().nth(at).unwrap();
            its_count.store(count, Relaxed);
            time.store(begun + expiry * period, SeqCst);
        }
        let times = log.latencies(begun, begun + period);
        assert_eq!(times.len(), EVENTS as usize);
        assert_eq!(times[..3], [0.0, 0.0, PERIOD.as_secs_f64()]);
        assert!(times[3..].iter().all(|time| time.is_infinite()));
        log.clear();
        assert!(log.latencies(begun, begun)[0].is_infinite());
    }
}
