//! How soon others know that a process was killed inside.

use super::domains::{common, function};
use crate::clock::median_and_90;
use crate::figure::{Figure, Goal};
use crate::machine_code;
use crate::trusted::process::Child;
use postern::{CommonMemory, Domain, Image};
use std::time::{Duration, Instant};

/// Kills, of which the median counts.
const KILLS: usize = 31;
/// Longer than anything waits here.
const PATIENCE: Duration = Duration::from_secs(10);

/// `hold` writes a word and never returns; `held` returns the word.
fn image() -> Result<Image, String> {
    const HELD: usize = 64;
    let text = |word: u32| {
        let mut text = vec![0x65, 0x67, 0xc7, 0x04, 0x25]; // movl $1, %gs:word
        text.extend(word.to_le_bytes());
        text.extend(1u32.to_le_bytes());
        text.extend([0xeb, 0xfe]); // 1: jmp 1b
        text.resize(HELD, postern_verifier::window::FILL);
        text.extend([0x65, 0x67, 0x8b, 0x04, 0x25]); // movl %gs:word, %eax
        text.extend(word.to_le_bytes());
        text.push(0xc3);
        text
    };
    let exports = [("hold", 0, "i(i)"), ("held", HELD, "i(i)")];
    Ok(machine_code::image(text, vec![0; 64], &[], &exports)?.0)
}

fn until(what: &str, mut holds: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let since = Instant::now();
    while !holds()? {
        if since.elapsed() > PATIENCE {
            return Err(format!("{what}: not within {} s", PATIENCE.as_secs()));
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// One process is killed in the middle of a call: the time until this one's domain is closed.
fn kill(image: &Image, memory: &CommonMemory, domain: &Domain) -> Result<Duration, String> {
    let inside = || {
        let domain = common(image, memory).expect("another process attaches");
        let _ = function(&domain, "hold").map(|hold| hold.call(0));
    };
    let child = Child::new(inside)?;
    let held = function(domain, "held")?;
    until("the other process calls", || {
        held.call(0)
            .map(|word| word == 1)
            .map_err(|e| e.to_string())
    })?;
    let begin = Instant::now();
    child.kill();
    until("its end is found", || Ok(domain.is_poisoned()))?;
    let taken = begin.elapsed();
    drop(child);
    until("the domain is reset", || Ok(domain.reset().is_ok()))?;
    Ok(taken)
}

/// The figures.
pub fn figures() -> Result<Vec<Figure>, String> {
    let image = image()?;
    let memory = CommonMemory::new(&image).map_err(|error| error.to_string())?;
    let domain = common(&image, &memory)?;
    let times = (0..KILLS)
        .map(|_| kill(&image, &memory, &domain).map(|time| time.as_secs_f64() * 1e6))
        .collect::<Result<Vec<f64>, String>>()?;
    let (median, late) = median_and_90(times);
    let how = |which| {
        format!(
            "from the signal that kills a process inside until the domain is closed in another \
             one, {which} {KILLS} times"
        )
    };
    let row =
        |name: &str, value, how| Figure::plain(format!("sharing.found.{name}"), value, "µs", how);
    Ok(vec![
        row("median", median, how("median of")).goal(Goal::AtMost(1000.0)),
        row("late", late, how("nine tenths are sooner of")),
    ])
}
