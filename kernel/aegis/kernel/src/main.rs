//! Aegis, an exokernel: it multiplexes a machine among environments and manages nothing.
//!
//! What it decides is in the crate `postern-aegis-books`; what it needs of the machine is in
//! [`hardware`], where all unsafe code is. What is here joins them:
//!
//! | file | what |
//! |---|---|
//! | `boot.rs` | from the loader's word to the first environment |
//! | `machine.rs` | the books with this machine below them |
//! | `calls.rs` | calls that take a stack |
//! | `events.rs` | interrupts, ends of slices, exceptions that the kernel looks at first; who runs next |
//! | `network.rs` | frames: from the device to whom they are for, and to it |
//! | `filters.rs` | endpoints' filters, compiled together |
//! | `handlers.rs` | code that runs when a message arrives |
//! | `disk.rs` | requests to the disk |
//! | `console.rs` | the serial line, for who may read or write it |
//! | `clock.rs` | what the time of day follows from |
//! | `judge.rs` | Postern's judge: images that environments ask about |
//! | `panic.rs` | last words: a backtrace with names |
//!
//! Interrupts are off in the kernel, always; each processor has one stack; nothing is allocated.
#![no_std]
#![no_main]

extern crate alloc;

mod boot;
mod calls;
mod clock;
mod console;
mod disk;
mod events;
mod filters;
mod handlers;
mod hardware;
mod judge;
mod machine;
mod network;
mod panic;
