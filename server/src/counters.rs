//! What one handler, the static files, or routes did: counted when an answer is through.

use http::StatusCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram of times, in microseconds.
pub const BOUNDS: [u64; 9] = [
    50, 100, 250, 1_000, 5_000, 25_000, 100_000, 1_000_000, 10_000_000,
];

/// What one handler, or the static files, did.
#[derive(Debug, Default)]
pub struct Counters {
    /// Answers by the first digit of their status.
    pub(crate) answers: [AtomicU64; 6],
    pub(crate) faults: AtomicU64,
    pub(crate) cut: AtomicU64,
    pub(crate) left: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) microseconds: AtomicU64,
    pub(crate) times: [AtomicU64; BOUNDS.len() + 1],
}

impl Counters {
    /// An answer that was sent.
    pub fn answer(&self, status: StatusCode, bytes: u64, time: Duration) {
        let add = |counter: &AtomicU64, n| counter.fetch_add(n, Ordering::Relaxed);
        add(&self.answers[usize::from(status.as_u16() / 100).min(5)], 1);
        add(&self.bytes, bytes);
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        add(&self.microseconds, time);
        add(
            &self.times[BOUNDS.partition_point(|bound| *bound < time)],
            1,
        );
    }

    /// Answers so far whose status begins with a digit.
    pub fn answers(&self, digit: usize) -> u64 {
        self.answers
            .get(digit)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// A program that faulted.
    pub fn fault(&self) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }

    /// An answer that was cut off.
    pub fn cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// A client that left before the end of its answer.
    pub fn left(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }
}
