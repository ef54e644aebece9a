//! Tests of the kernel from inside a machine: the root of `make aegis-test`. A scenario for each
//! promise of the interface, also on two processors if there are two.
//!
//! | module | what |
//! |---|---|
//! | `scenario` | what a scenario is, and what they all need |
//! | `pages` | pages, names, capabilities, bindings, tables |
//! | `environments` | birth, contexts, guarantees, death |
//! | `slices` | the vector, shares, saved registers, excess |
//! | `primitives` | operations that touch no register; vectored ones |
//! | `exceptions` | handlers, and back without the kernel |
//! | `transfers` | requests, answers, donated slices |
//! | `procedures` | calls by registers |
//! | `revocation` | what is asked for, and what is taken |
//! | `protection` | what the processor refuses to environments |
//! | `arguments` | calls with arguments out of range, forged, stale |
//! | `attacks` | the kernel's entries, with bases, flags, segments and stacks of no program |
//! | `holdings` | parts of devices: whose they are, and what becomes of them |
//! | `clock` | the time of day, alarms, events that are told at once |
//! | `handlers` | handlers of messages: runs, windows, ends |
//! | `pipes` | handlers that are put together of pieces, and compiled, here |
//! | `disk` | blocks, read and written; pages that are lent; ranges and capabilities |
//! | `network`, `arrivals` | sending by pages; floods, garbage |
//! | `listener` | what scenarios about the network share |
//! | `exhaustion` | all memory gone, on each path |
//! | `endpoints` | filters: whose frame is whose |
#![no_std]
#![no_main]

mod arguments;
mod arrivals;
mod attacks;
mod clock;
mod disk;
mod endpoints;
mod environments;
mod exceptions;
mod exhaustion;
mod handlers;
mod holdings;
mod judge;
mod listener;
mod network;
mod pages;
mod pipes;
mod primitives;
mod procedures;
mod protection;
mod revocation;
mod scenario;
mod slices;
mod transfers;
mod trusted;

use postern_aegis::{archive, calls, println, start};

use scenario::{Scenario, settle};

postern_aegis::program!(main);

const ALL: &[&[Scenario]] = &[
    pages::ALL,
    primitives::ALL,
    exceptions::ALL,
    protection::ALL,
    environments::ALL,
    slices::ALL,
    transfers::ALL,
    procedures::ALL,
    revocation::ALL,
    arguments::ALL,
    attacks::ALL,
    exhaustion::ALL,
    judge::ALL,
    handlers::ALL,
    pipes::ALL,
    holdings::ALL,
    clock::ALL,
    disk::ALL,
    network::ALL,
    arrivals::ALL,
    endpoints::ALL,
];

fn main() -> ! {
    // The archive's file `only` chooses by a part of the name.
    let only = archive::own()
        .file("only")
        .and_then(|text| core::str::from_utf8(text).ok());
    let only = only.map_or("", str::trim);
    let chosen = || {
        ALL.iter()
            .copied()
            .flatten()
            .filter(|scenario| scenario.name.contains(only))
    };
    // Scenarios of a device that is not there have nothing to do.
    let there = |is_there| if is_there { "a" } else { "no" };
    let (network, disk) = (there(listener::is_there()), there(disk::is_there()));
    println!("{network} network, {disk} disk");
    let mut failed = 0;
    for scenario in chosen() {
        let before = scenario::Possessions::now();
        let outcome = (scenario.run)().and_then(|()| settle(&before));
        match outcome {
            Ok(()) => println!("test {} ok", scenario.name),
            Err(why) => {
                failed += 1;
                scenario::clear();
                println!("test {} FAILED: {why}", scenario.name);
            }
        }
    }
    println!("{} tests, {failed} failed", chosen().count());
    let _ = calls::stop(u8::from(failed > 0));
    start::exit()
}
