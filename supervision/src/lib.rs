//! What a host does with its domains over time: [pools](Pool) of them, [restarts](RestartPolicy)
//! after faults, and [modules](Module), whose image is replaced while they are called.
//!
//! The line to the runtime. What a domain does at each call, reset or end is there, with what
//! decides at that moment known by a trait: a domain counts its faults in a row and asks a
//! [`RestartRule`](postern_runtime::restart::RestartRule) when a call finds it closed; a call that
//! a version does not let in asks the [`Route`](postern_gates::switch::Route) of its switch; a
//! fault is told to the [`Supervisor`](postern_runtime::Supervisor) before it closes the domain.
//! When versions change, who is lent what, and how long a domain rests is decided here, over what
//! the runtime offers: letting nobody in, closing a domain that is empty.
//!
//! Three things that are like these stay below, since every domain has them, asked for or not:
//! taking grants back exchanges entries of a domain's own table of services and waits for those
//! inside; deciders are asked by a guard in that table; and the hot window is given at each
//! domain's making, at calls and by the watchdog.

#![forbid(unsafe_code)]

mod module;
mod pool;
mod restart;

pub use module::{
    Module, ModuleBuilder, ModuleCounters, ModuleEvent, ModuleFunc, ReplaceError, Replaced,
    Replacement,
};
pub use pool::{Lendable, Pool, PoolBuilder, PoolCounters, PoolError, Pooled, Recycle};
pub use restart::{BackOff, RestartPolicy};
