//! Calls inside calls: a softirq comes while a task is in the extension, and calls it, too.

use std::time::{Duration, Instant};

use postern_kernel::{Device, Hook};

use super::expect::{called, ensure, packets, told};

/// What `spin` computes.
fn sum(turns: u64) -> u64 {
    (0..turns).fold(1, |sum: u64, k| sum.wrapping_mul(31).wrapping_add(k))
}

/// A timer calls an extension in the middle of its own long calls. Each has a window, a stack and
/// registers of its own.
pub fn timers_in_calls(device: &Device) -> Result<(), String> {
    const TURNS: u64 = 50_000;
    /// Where the machine that emulates this one has other things to do, few ticks come.
    const PATIENCE: Duration = Duration::from_secs(60);
    let id = packets(device)?;
    let period = Hook::Timer(Duration::from_micros(100));
    let attached = device.attach(id, "beat", &period).map_err(told)?;
    let (mut nested, wanted) = (0, sum(TURNS));
    let begun = Instant::now();
    while nested < 20 && begun.elapsed() < PATIENCE {
        match called(device, id, "spin", &[TURNS])? {
            0 => continue,
            value => ensure(value == wanted, || format!("{value:#x}, not {wanted:#x}"))?,
        }
        nested += 1;
    }
    let known = device.attachment(attached).map_err(told)?;
    ensure(nested == 20 && known.passed >= 20, || {
        format!("{nested} calls with one inside, {known:?}")
    })?;
    device.unload(id).map_err(told)
}
