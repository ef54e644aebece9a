//! Time: several things measured in turn, again and again, the best of each kept.
//!
//! Taking turns lets whatever slows the machine for a while slow all of them alike; the best is
//! what remains when nothing did.

use std::time::{Duration, Instant};

/// A better time by less than this part is no news.
const NEWS: f64 = 0.002;

/// At most this many times the rounds that were asked for.
const PATIENCE: usize = 8;

/// Best wall-clock time of each step in seconds. The steps take turns for `rounds` rounds, and go
/// on until as many rounds brought no better time of any, but not for ever.
pub fn best_of<const N: usize>(rounds: usize, mut steps: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    let mut news = 0;
    for round in 0..rounds * PATIENCE {
        for (step, best) in steps.iter_mut().zip(&mut best) {
            let start = Instant::now();
            step();
            let spent = start.elapsed().as_secs_f64();
            if spent < *best * (1.0 - NEWS) {
                news = round;
            }
            *best = best.min(spent);
        }
        if round + 1 >= news + rounds {
            break;
        }
    }
    best
}

/// Time of `work`, for things that need preparation which does not count.
pub fn time<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// Best mean of `rounds` rounds of `count` times that `one` says, in seconds.
pub fn best_mean<E>(
    rounds: u32,
    count: u32,
    mut one: impl FnMut() -> Result<Duration, E>,
) -> Result<f64, E> {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let mut sum = Duration::ZERO;
        for _ in 0..count {
            sum += one()?;
        }
        best = best.min(sum.as_secs_f64() / f64::from(count));
    }
    Ok(best)
}

/// The median, and what nine of ten are within; NaN of nothing.
pub fn median_and_90(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    (at(values.len() / 2), at(values.len() * 9 / 10))
}

/// Geometric mean; NaN of nothing.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_runs_in_every_round() {
        let (mut a, mut b) = (0, 0);
        let best = best_of(5, [&mut || a += 1, &mut || b += 2]);
        assert!(a >= 5 && b == 2 * a, "{a} {b}");
        assert!(best.iter().all(|t| t.is_finite()));
    }

    #[test]
    fn shares() {
        let values = (1..=100).rev().map(f64::from).collect();
        assert_eq!(median_and_90(values), (51.0, 91.0));
        assert!(median_and_90(Vec::new()).0.is_nan());
    }

    #[test]
    fn means() {
        assert!((geometric_mean(&[2.0, 8.0]) - 4.0).abs() < 1e-12);
        assert!(geometric_mean(&[]).is_nan());
        let mut times = [4u64, 6, 1, 3]
            .into_iter()
            .map(|s| Ok::<_, ()>(Duration::from_secs(s)));
        assert_eq!(best_mean(2, 2, || times.next().unwrap_or(Err(()))), Ok(2.0));
    }
}
