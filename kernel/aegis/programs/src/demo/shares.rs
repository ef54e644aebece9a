//! The processor as a vector of time slices: who has three positions gets three times as much.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::load::{self, Child, Plan};
use postern_aegis::{books, entry, println, slices};
use postern_aegis_programs::{Role, words};

use crate::Shown;

const LABELS: [&str; 3] = ["3/6", "2/6", "1/6"];
const SHARES: [u64; 3] = [3, 2, 1];
/// Points of the trace, and slices of the least between them.
const POINTS: u64 = 40;
const STEP: u64 = 5;

pub fn shares() -> Shown {
    let plan = Plan::new([Role::Count as u64, 1, 0, 0, 0, 0, 0, 0]);
    let a = load::program("player", &plan)?;
    let b = load::program("player", &plan)?;
    let c = load::program("player", &plan)?;
    let children = [a, b, c];
    // Positions in turn, so that nobody waits for long: a b c a b a.
    for (round, child) in [(0, a), (0, b), (0, c), (1, a), (1, b), (2, a)] {
        let slice = child.run_on(0)?;
        println!(
            "   position {} is environment {}'s ({} of its slices)",
            slice.position,
            child.number,
            round + 1
        );
    }
    let ran = |child: &Child| books::environment(child.number).ran.load(Relaxed);
    let before = children.map(|child| ran(&child));
    println!("trace-of {} {} {}", LABELS[0], LABELS[1], LABELS[2]);
    let start = slices::ticks(0);
    let mut counts = [0; 3];
    for point in 0..=POINTS {
        while ran(&c) - before[2] < point * STEP {
            entry::yield_slice();
        }
        for ((count, child), before) in counts.iter_mut().zip(children).zip(before) {
            *count = ran(&child) - before;
        }
        let [a, b, c] = counts;
        println!("trace {} {a} {b} {c}", slices::ticks(0) - start);
    }
    // Beside the slices, what each has done in them: the same share, since nobody took more.
    let done = children.map(|child| child.mailbox.get(words::PROGRESS));
    for ((child, done), share) in children.iter().zip(done).zip(SHARES) {
        println!(
            "   environment {} with {share} of 6 positions: {done} rounds of its work",
            child.number
        );
    }
    children.into_iter().for_each(Child::end);
    let [_, _, least] = counts;
    let fair = |(count, share): (u64, u64)| count.abs_diff(share * least) <= 2 * share;
    Ok(counts.into_iter().zip(SHARES).all(fair))
}
