//! Scenes of what the kernel is for: the root of `make aegis-demo`. Lines that begin with
//! `trace` are for the host, which draws them.
#![no_std]
#![no_main]

mod blocks;
mod filters;
mod messages;
mod scenes;
mod shares;

use postern_aegis::load::LoadError;
use postern_aegis::{calls, entry, println, slices, start};

postern_aegis::program!(main);

/// Whether a scene showed what it should.
pub type Shown = Result<bool, LoadError>;

/// A scene: what it shows, and how.
type Scene = (&'static str, fn() -> Shown);

const SCENES: &[Scene] = &[
    (
        "three environments share a processor 3 : 2 : 1",
        shares::shares,
    ),
    (
        "one is asked for a page, refuses, and loses it",
        scenes::refusal,
    ),
    ("one divides by zero, and dies alone", scenes::death),
    (
        "a secret page that its neighbour cannot map",
        scenes::secret,
    ),
    (
        "a transfer into another environment, and back",
        scenes::transfer,
    ),
    (
        "a page of disk that its neighbours read and cannot write",
        blocks::blocks,
    ),
    ("pings are answered while the owner sleeps", messages::pings),
    ("a lock for the network, kept by a handler", messages::lock),
    (
        "a binding that another wants to take, and is refused",
        filters::filters,
    ),
];

fn main() -> ! {
    let mut failed = 0;
    for (number, (title, scene)) in SCENES.iter().enumerate() {
        println!("\n{}. {title}", number + 1);
        match scene() {
            Ok(true) => {}
            Ok(false) => {
                println!("   that is not what it should be");
                failed += 1;
            }
            Err(error) => {
                println!("   it could not be shown: {error}");
                failed += 1;
            }
        }
    }
    let _ = calls::stop(u8::from(failed > 0));
    start::exit()
}

/// Slices that are waited for something at least, and how long in cycles: of few slices a loaded
/// host may give none to another processor.
const SLICES: u32 = 5000;
const CYCLES: u64 = 20_000_000_000;

/// Waits until something is so; whether it is.
pub fn wait(is: impl Fn() -> bool) -> bool {
    let start = slices::clock();
    let mut passed = 0;
    while passed < SLICES || slices::clock().wrapping_sub(start) < CYCLES {
        if is() {
            return true;
        }
        entry::yield_slice();
        passed += 1;
    }
    is()
}
