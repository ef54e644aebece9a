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
//! | `registry` | what is known of processes |
//! | `slices`, `accounts` | what they have, and may have |
//! | `births`, `ends` | how they come and go |
//! | `acts` | who may act on whom |
//! | `groups` | process groups, and the one that the console is for |
//! | `services` | what processes offer to all, and parts of devices for them |
//! | `serve` | requests, decoded |
//! | `first` | the first process, and services that start with the machine |
//!
//! Requests come as functions that interrupt the main program: whoever finds the registry's lock
//! taken is told to come again. The main program sleeps while there is nothing for it to do: a registry
//! that runs on one processor cannot be entered from another.
#![no_std]
#![no_main]

mod accounts;
mod acts;
mod births;
mod ends;
mod first;
mod groups;
mod keeper;
mod making;
mod public;
mod registry;
mod serve;
mod services;
mod slices;
mod tree;
mod trusted;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use postern_aegis::abi::Context;
use postern_aegis::abi::call::NAME_EVERYBODY;
use postern_aegis::records::CONSOLE;
use postern_aegis::{calls, entry, println, start, time};

use crate::registry::Registry;
use crate::trusted::Guarded;

postern_aegis::program!(main);

/// Everything that is known of processes.
static REGISTRY: Guarded<Registry> = Guarded::new(Registry::new());

/// Somebody may have ended since the registry looked.
static DEATHS: AtomicBool = AtomicBool::new(false);

/// Something may be free that nobody binds any more.
static LOOKS: AtomicBool = AtomicBool::new(false);

/// Microseconds after which the registry looks in any case.
const PERIOD: u64 = 20_000;

fn main() -> ! {
    let _ = calls::rename_holding(CONSOLE, NAME_EVERYBODY, NAME_EVERYBODY);
    let begun = REGISTRY.attempt(|registry| {
        let (table, services) = public::open()?;
        registry.open(table, services);
        registry.open_disk();
        first::start(registry)
    });
    if let Some(Err(error)) = begun {
        println!("init: the first process: {error}");
        let _ = calls::stop(1);
    }
    entry::on_events(|events| {
        if events & Context::EVENT_CHILD != 0 {
            DEATHS.store(true, Relaxed);
        }
        if events & Context::EVENT_ALARM != 0 {
            LOOKS.store(true, Relaxed);
        }
    });
    entry::on_request(serve::request);
    let _ = time::alarm(PERIOD);
    loop {
        let wanting = REGISTRY.attempt(tend);
        let awake = || DEATHS.load(Relaxed) || LOOKS.load(Relaxed) || wanting != Some(false);
        entry::sleep_unless(awake);
    }
}

/// What nobody asks for: whether there is more to do soon.
fn tend(registry: &mut Registry) -> bool {
    let mut looks = LOOKS.swap(false, Relaxed);
    if DEATHS.swap(false, Relaxed) {
        registry.find_dead();
        looks = true;
    }
    if registry.wanting {
        registry.give_wanted();
    }
    if looks {
        registry.sweep();
        registry.count_slices();
        let _ = time::alarm(PERIOD);
    }
    registry.wanting
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
