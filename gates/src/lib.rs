//! Gates: all that the runtime needs `unsafe` for, and nothing of domains. Windows and what is
//! mapped in them, control blocks, the instructions that cross a boundary, threads, signals, text
//! that comes while threads run.
//!
//! This crate is for Postern's own crates, and no interface for others: whatever is `pub` here may
//! change with any version. The crate `postern` is for users.
//!
//! What the gates must ask of the crates above them comes through one table of functions:
//! [`above`].
//!
//! | module | what |
//! |---|---|
//! | `gate.s`, `peer.s`, `assembly`, [`gate`] | the instructions that cross a domain's boundary; their binding; what Rust knows of them |
//! | [`above`] | what is asked of the code that is built on it |
//! | [`lifecycle`] | a domain's lifecycle: its phases and the transitions between them |
//! | [`call_state`] | where a thread is with its innermost call, and what others may read of that |
//! | [`end_request`] | another thread's wish that a call end |
//! | [`atomic`] | what these three ask of an atomic word, so that a model can stand in for it |
//! | `model` | a test: calls, aborts, resets and closes in every order in which threads can see each other's stores |
//! | [`control`] | what gates read of a domain, and its services; the table of control blocks |
//! | [`block`] | a domain's control block, what it keeps alive, and its entries |
//! | [`entry`] | entries, and how they are made, of what is known |
//! | [`thread`] | what gates and handlers know of a thread |
//! | [`register`] | how a thread becomes known, and is forgotten |
//! | [`record`], `nesting` | a call that waits; how it begins to, and becomes the innermost again |
//! | [`peer`] | calls from one extension to another: the slow path, and ends |
//! | [`slow`] | the entry gate's slow path, and the way out of ended calls |
//! | [`stale`] | calls that the host has left behind |
//! | [`signal`], `copies` | faults and aborts; other copies of this library in the process |
//! | [`safe_point`] | a function of the host's that runs between two instructions of an extension |
//! | [`outcome`] | how a call ended, in raw facts |
//! | [`jump`] | setjmp and longjmp: moving an extension's control stack pointer |
//! | [`host`] | floating-point control and the gs base: the host's and the extension's |
//! | [`enter`], [`payload`] | typed calls through an entry gate; what they bring besides arguments |
//! | `bulk.s`, [`bulk`] | the memory gate: copies and searches of long ranges, at the host's speed |
//! | [`shim`] | closures behind the service gate |
//! | [`callee`] | what imports lead to, with what those functions find there; tables of services |
//! | [`guard`] | services that are decided about before they are called |
//! | [`registers`] | which bits of registers the values of C types fill |
//! | `upcall.s`, [`upcall`] | handlers of domains that interrupt a thread at any instruction |
//! | `resume.s`, [`resume`] | such handlers that had to wait go on on other threads |
//! | `stray` | services that return out of turn |
//! | [`stub`] | plain C function pointers to entries |
//! | [`inside`] | who is inside a domain, and who waits for whom to leave |
//! | [`switch`] | entries that are exchanged while threads call them |
//! | [`atomic_box`] | boxed values that threads exchange |
//! | [`lock`] | locks on parts of files |
//! | [`code`] | text that comes while threads run: the code area of a namespace |
//! | [`mask`] | the signals that a thread takes, and on which stack |
//! | [`window`] | windows and their parts, owned |
//! | [`text`] | verified text, which alone may run in windows |
//! | [`map`], `memory` | address space; bytes in it |
//! | [`pause`] | waiting for some microseconds |
//! | [`machine`] | what the processor and the kernel must have |
//!
//! What of it is the platform's stands in two: for Linux beside the rest, and in `exos/` for the
//! library operating system ExOS, which is without `std` (feature `linux` off). The instructions of
//! the gates, what they read, and all decisions of the slow path are the same:
//!
//! | module | on Linux | on ExOS |
//! |---|---|---|
//! | [`map`], [`text`], [`window`] | mappings and memory files | pages of the process, asked of `below` |
//! | [`signal`] / `fault` | signals | exceptions of Aegis, ends of slices |
//! | [`register`], [`mask`], [`machine`], [`pause`], `sync` | threads, futexes, masks | one thread, and what interrupts it |
//! | [`block`], [`stub`], [`enter`] | | no threads to wait for; no vector registers in Rust |
#![cfg_attr(not(feature = "linux"), no_std)]
#![cfg_attr(
    not(feature = "linux"),
    allow(dead_code, reason = "moves, switches and added code are not on ExOS")
)]

extern crate alloc;

pub mod above;
mod assembly;
pub mod atomic;
pub mod bulk;
pub mod call_state;
pub mod callee;
pub mod control;
pub mod end_request;
pub mod entry;
pub mod gate;
pub mod host;
pub mod jump;
pub mod lifecycle;
mod memory;
mod nesting;
pub mod outcome;
pub mod payload;
pub mod peer;
pub mod record;
pub mod registers;
pub mod shim;
mod slots;
pub mod slow;
pub mod stale;
mod stray;
pub mod thread;

#[cfg(feature = "linux")]
pub mod atomic_box;
#[cfg(feature = "linux")]
pub mod code;
#[cfg(feature = "linux")]
mod copies;
#[cfg(feature = "linux")]
pub mod debugger;
#[cfg(feature = "linux")]
pub mod guard;
#[cfg(feature = "linux")]
pub mod inside;
#[cfg(feature = "linux")]
pub mod lock;
#[cfg(test)]
mod model;
#[cfg(feature = "linux")]
pub mod pages;
#[cfg(feature = "linux")]
pub mod resume;
#[cfg(feature = "linux")]
pub mod safe_point;
#[cfg(feature = "linux")]
pub mod signal;
#[cfg(feature = "linux")]
pub mod switch;
#[cfg(feature = "linux")]
pub mod upcall;

#[cfg_attr(not(feature = "linux"), path = "exos/block.rs")]
pub mod block;
#[cfg_attr(not(feature = "linux"), path = "exos/enter.rs")]
pub mod enter;
#[cfg_attr(not(feature = "linux"), path = "exos/machine.rs")]
pub mod machine;
#[cfg_attr(not(feature = "linux"), path = "exos/map.rs")]
pub mod map;
#[cfg_attr(not(feature = "linux"), path = "exos/mask.rs")]
pub mod mask;
#[cfg_attr(not(feature = "linux"), path = "exos/pause.rs")]
pub mod pause;
#[cfg_attr(not(feature = "linux"), path = "exos/register.rs")]
pub mod register;
#[cfg_attr(not(feature = "linux"), path = "exos/stub.rs")]
pub mod stub;
#[cfg_attr(not(feature = "linux"), path = "exos/sync.rs")]
pub mod sync;
#[cfg_attr(not(feature = "linux"), path = "exos/text.rs")]
pub mod text;
#[cfg_attr(not(feature = "linux"), path = "exos/window.rs")]
pub mod window;

#[cfg(not(feature = "linux"))]
#[path = "exos/below.rs"]
pub mod below;
#[cfg(not(feature = "linux"))]
#[path = "exos/fault.rs"]
pub mod fault;
