//! The root environment of ExOS: registry of processes and keeper of pages that they share. It
//! decides who may be made and who may act on whom; the work is done by the library in the
//! processes themselves. It believes nothing that it is told, and never panics: a panic here would
//! stop the machine.
//!
//! | module | what |
//! |---|---|
//! | `trusted` | the registry behind a lock that is only tried; pages that others see, as atomics |
//! | `tree` | what processes of a tree may have together |
//! | `keeper` | pages that were given to be kept for several |
//! | `public` | what everybody reads: the table, the archive's directory |
//! | `making` | environments for processes |
//! | `registry` | processes: numbers, births, ends, who may act on whom |
//! | `serve` | requests, decoded |
//! | `first` | the first process |
//!
//! Requests come as functions that interrupt the main program: whoever finds the registry's lock
//! taken is told to come again.
#![no_std]
#![no_main]

mod first;
mod keeper;
mod making;
mod public;
mod registry;
mod serve;
mod tree;
mod trusted;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use postern_aegis::abi::call::NAME_EVERYBODY;
use postern_aegis::records::CONSOLE;
use postern_aegis::{calls, entry, println, start};

use crate::registry::Registry;
use crate::trusted::Guarded;

postern_aegis::program!(main);

/// Everything that is known of processes.
static REGISTRY: Guarded<Registry> = Guarded::new(Registry::new());

/// Somebody may have ended since the registry looked.
static DEATHS: AtomicBool = AtomicBool::new(false);

fn main() -> ! {
    let _ = calls::rename_holding(CONSOLE, NAME_EVERYBODY, NAME_EVERYBODY);
    let begun = REGISTRY.attempt(|registry| {
        let table = public::open()?;
        registry.open(table);
        first::start(registry)
    });
    if let Some(Err(error)) = begun {
        println!("init: the first process: {error}");
        let _ = calls::stop(1);
    }
    entry::on_events(|_| DEATHS.store(true, Relaxed));
    entry::on_request(serve::request);
    loop {
        REGISTRY.attempt(|registry| {
            if DEATHS.swap(false, Relaxed) {
                registry.find_dead();
                registry.keeper.look();
            }
            if registry.wanting {
                registry.give_wanted();
            }
            registry.keeper.sweep();
            registry.settle();
        });
        entry::yield_slice();
    }
}

/// The machine stops as the first process ended.
pub fn stop(status: u32) -> ! {
    let code = match status & 0x7f {
        0 => status >> 8 & 0x3f,
        signal => {
            println!("init: signal {signal} ended the first process");
            1
        }
    };
    let _ = calls::stop(code as u8);
    start::exit()
}
