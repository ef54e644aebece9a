//! A domain that other processes have, too, beside one of the process's own, and beside what takes
//! a byte to another process and back.

mod domains;
mod found;
mod working_set;

pub use working_set::charts;

use crate::clock::best_of;
use crate::figure::{Figure, Goal};
use crate::machine_code;
use crate::trusted::{cycle, process};
use domains::{Function, common, function, private, repeat};
use postern::{CommonMemory, Image};
use postern_verifier::window;

/// Calls in one round.
const CALLS: u64 = 50_000;
const ROUNDS: usize = 60;

/// `plain`, and `locked`, which takes a word in data and gives it back; both return their argument
/// plus one.
fn image() -> Result<Image, String> {
    const LOCKED: usize = 64;
    let text = |lock: u32| {
        let mut text = vec![0x8d, 0x47, 0x01, 0xc3]; // lea 1(%rdi), %eax; ret
        text.resize(LOCKED, window::FILL);
        text.extend([0xb9, 1, 0, 0, 0]); // mov $1, %ecx
        text.extend([0x65, 0x67, 0x87, 0x0c, 0x25]); // xchg %ecx, %gs:lock
        text.extend(lock.to_le_bytes());
        text.extend([0x65, 0x67, 0xc7, 0x04, 0x25]); // movl $0, %gs:lock
        text.extend(lock.to_le_bytes());
        text.extend(0u32.to_le_bytes());
        text.extend([0x8d, 0x47, 0x01, 0xc3]);
        text
    };
    let exports = [("plain", 0, "i(i)"), ("locked", LOCKED, "i(i)")];
    Ok(machine_code::image(text, vec![0; 64], &[], &exports)?.0)
}

fn call(function: &Function) -> impl FnMut(i32) -> i32 + '_ {
    |x| function.call(x).expect("the function returns")
}

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let mut figures = calls()?;
    figures.extend(working_set::figures()?);
    figures.extend(found::figures()?);
    Ok(figures)
}

fn calls() -> Result<Vec<Figure>, String> {
    let image = image()?;
    let memory = CommonMemory::new(&image).map_err(|error| error.to_string())?;
    // Two that have the memory, as two processes do.
    let domains = [
        private(&image)?,
        common(&image, &memory)?,
        common(&image, &memory)?,
    ];
    let [own, first, second] = [0, 1, 2].map(|index| function(&domains[index], "plain"));
    let (own, first, second) = (own?, first?, second?);
    let locked = function(&domains[1], "locked")?;
    let times = best_of(
        ROUNDS,
        [
            &mut || cycle::chain(10 * CALLS),
            &mut || repeat(CALLS, call(&own)),
            &mut || repeat(CALLS, call(&first)),
            &mut || repeat(CALLS, call(&locked)),
            &mut || {
                let (mut a, mut b) = (call(&first), call(&second));
                repeat(CALLS / 2, |x| b(a(x)));
            },
        ],
    );
    let cycle = times[0] / 10.0;
    let [own, plain, locked, turns] = [1, 2, 3, 4].map(|index| times[index] / cycle);
    let seconds = cycle / CALLS as f64;
    let row = |name: &str, value: f64, how: &str| {
        Figure::plain(format!("sharing.{name}"), value, "cycles", how)
    };
    let mut figures = vec![
        row(
            "call",
            plain,
            "call of a domain that others have, over one of a private domain",
        )
        .against(own)
        .goal(Goal::RatioAtMost(1.3)),
        row(
            "lock",
            locked,
            "the same, with a lock word taken and given back in it",
        )
        .against(own),
    ];
    let ways = [
        (
            "pipe",
            process::pipe_round_trip(20, 500)?,
            Some(Goal::RatioAtMost(1.0 / 50.0)),
        ),
        ("socket", process::socket_round_trip(20, 500)?, None),
        ("futex", process::futex_round_trip(20, 500)?, None),
    ];
    for (way, trip, goal) in ways {
        let how = format!(
            "calls by one that has the domain and by another in turns, over a byte to a \
             process on the same core and back by {way}"
        );
        let figure = row(&format!("turns.{way}"), turns, &how).against(trip / seconds);
        figures.push(match goal {
            Some(goal) => figure.goal(goal),
            None => figure,
        });
    }
    if let Some(trip) = process::spinning_round_trip(20, 500)? {
        let how = "calls by one that has the domain and by another in turns, over a word handed \
                   to a process on another core and back, where both spin";
        figures.push(row("turns.spin", turns, how).against(trip / seconds));
    }
    Ok(figures)
}
