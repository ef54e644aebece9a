//! The groups of figures that `postern bench` finds when this package is built: [`GROUPS`] has them
//! and the command's own.
//!
//! A group is one module below this one and one row of the table. Clock, figures and baselines are
//! those of [`postern_figures`].
#![deny(unsafe_code)]

mod anchors;
mod client;
mod ecode;
mod filter;
mod interposed;
mod load;
mod memory;
mod netstack;
mod pages;
mod placement;
mod policy;
pub mod programs;
mod serve;
mod sys;
mod transcode;
mod trusted;
mod verifier;

use postern_figures::{DOMAINS, FAULT, GATES, Group, KERNELS, kernels};

/// All groups, in the order of the table.
pub const GROUPS: &[Group] = &[
    GATES,
    KERNELS,
    Group::new(
        "memory",
        "the library's functions for strings, over the host's",
        memory::figures,
    ),
    Group::new(
        "placement",
        "the hot window: calls and code in it, and moves to it",
        placement::figures,
    ),
    Group::new(
        "programs",
        "run time of six unmodified programs, over gcc -O2",
        |_| programs::figures(),
    ),
    Group::new(
        "verifier",
        "the verifier's speed, over decoding alone",
        |directory| verifier::figures(&kernels::build(directory)?),
    ),
    DOMAINS,
    Group::new(
        "load",
        "a megabyte of code from file to domain, over dlopen",
        load::figures,
    ),
    FAULT,
    Group::new(
        "ecode",
        "E-code: from source to a call; names; calls",
        ecode::figures,
    ),
    Group::new(
        "filter",
        "packets among sets of filters, and changes of sets",
        |_| filter::figures(),
    ),
    Group::new("sys", "calls of an extension's to its policy", sys::figures),
    Group::new(
        "policy",
        "what it costs that somebody decides about a call",
        |_| policy::figures(),
    ),
    Group::new(
        "anchors",
        "what else could stand between two domains",
        |_| anchors::figures(),
    ),
    Group {
        possible: serve::possible,
        ..Group::new(
            "serve",
            "the web server's ways to run a program, by wrk",
            serve::figures,
        )
    },
    Group {
        possible: pages::possible,
        ..Group::new(
            "pages",
            "a program of several servers: FastCGI, their own domains, one domain",
            pages::figures,
        )
    },
    Group {
        possible: interposed::possible,
        draw: interposed::charts,
        ..Group::new(
            "interposed",
            "a web server, a build and interpreters under an agent, beside tracers",
            interposed::figures,
        )
    },
    Group {
        possible: netstack::possible,
        ..Group::new(
            "netstack",
            "the network stack in a domain, over the kernel's",
            netstack::figures,
        )
    },
    Group::new(
        "transcode",
        "pictures through plugins of the web server",
        transcode::figures,
    ),
];
