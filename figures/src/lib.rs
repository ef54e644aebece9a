//! What Postern costs on this machine: figures, each against a baseline that was measured in the
//! same run.
//!
//! [`clock`] has things that are compared take turns and keeps their best; [`figure`] is one
//! measured number and how it is printed, [`plot`] draws them; [`command`] is what the user may ask
//! for. A group of figures is a function; [`CORE`] are the groups that every user can measure in
//! half a minute, and that `postern bench` has by itself: calls, the run time of code, domains,
//! pools, sharing, upcalls, calls of programs, faults. All others are in the workspace `bench`,
//! which nobody builds to use Postern, and which takes clock, figures and baselines from here.
//!
//! Results of confined code are compared with the native build's, and a difference ends the run.
//! All `unsafe` is in [`trusted`].
#![deny(unsafe_code)]

pub mod clock;
pub mod command;
pub mod comparison;
mod domains;
mod fault;
pub mod figure;
mod gates;
mod interposing;
pub mod kernels;
mod machine_code;
pub mod plot;
mod pools;
pub mod program;
mod sharing;
mod touching;
pub mod trusted;
mod upcalls;

use std::path::Path;

/// Figures, or why they cannot be had here.
pub type Measured = Result<Vec<figure::Figure>, String>;

/// Figures whose names begin with the group's.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The first part of the figures' names.
    pub name: &'static str,
    /// What is measured, in a line.
    pub about: &'static str,
    /// Measures; what it builds goes to the directory.
    pub measure: fn(&Path) -> Measured,
    /// Whether what the group needs is here. One that cannot be measured is left out unless it is
    /// asked for by name.
    pub possible: fn() -> bool,
    /// The pictures that are made of its figures.
    pub draw: fn(&[figure::Figure]) -> Vec<plot::Chart>,
}

impl Group {
    /// A group that needs nothing but Postern and a compiler.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        measure: fn(&Path) -> Measured,
    ) -> Group {
        Group {
            name,
            about,
            measure,
            possible: || true,
            draw: |_| Vec::new(),
        }
    }
}

/// Calls through all gates.
pub const GATES: Group = Group::new("gates", "calls through each gate", |_| gates::figures());
/// Run time of confined code.
pub const KERNELS: Group = Group::new(
    "kernels",
    "run time of eight small C programs, over gcc -O2",
    |directory| kernels::figures(&kernels::build(directory)?),
);
/// Domains: made, reset, kept.
pub const DOMAINS: Group = Group::new(
    "domains",
    "domains made, reset, lent and kept: time and memory",
    |_| domains::figures(),
);
/// Requests in a pool that resets, by threads and pages.
pub const POOLS: Group = Group::new(
    "pools",
    "a request in a pool that resets, by threads and written pages",
    |_| pools::figures(),
);
/// Domains that several processes have.
pub const SHARING: Group = Group {
    draw: sharing::charts,
    ..Group::new(
        "sharing",
        "domains of several processes, beside pipes, sockets and futexes",
        |_| sharing::figures(),
    )
};
/// Handlers that interrupt threads, and events.
pub const UPCALLS: Group = Group {
    draw: upcalls::charts,
    ..Group::new(
        "upcalls",
        "handlers that interrupt threads, and how long events take to them",
        |_| upcalls::figures(),
    )
};
/// Unmodified programs whose calls an agent sees.
pub const INTERPOSE: Group = Group::new(
    "interpose",
    "system calls of an unmodified program under an agent, beside strace",
    interposing::figures,
);
/// Faults, until the host has them.
pub const FAULT: Group = Group::new("fault", "a crash, until the host has it as a value", |_| {
    fault::figures()
});

/// The groups of `postern bench` itself.
pub const CORE: &[Group] = &[
    GATES, KERNELS, DOMAINS, POOLS, SHARING, UPCALLS, INTERPOSE, FAULT,
];
