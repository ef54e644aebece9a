//! Images, domains, calls, services, faults, shared areas and deadlines: what stands on the gates,
//! without what hosts may do without.
//!
//! Hosts use the crate `postern`, which has the names that are meant for them; what else is `pub`
//! here is for the crates between.
//!
//! All `unsafe` is in the crate `postern-gates`, and in modules that are named `trusted`; the rest
//! is ordinary Rust.

#![deny(unsafe_code)]

mod access;
mod at_fork;
mod builtin;
pub mod call;
pub mod code;
mod common;
mod config;
mod counters;
mod decision;
mod domain;
mod engine;
mod error;
mod event;
mod fault;
pub mod fork;
mod grants;
mod image;
mod instance;
mod maps;
mod own_threads;
mod peer;
mod placement;
mod program;
pub mod restart;
mod revoke;
mod safe_point;
#[cfg(test)]
mod sample;
mod sandbox_threads;
mod service;
mod share;
pub mod signature;
mod symbols;
pub mod system;
mod table;
#[cfg(feature = "testing")]
pub mod testing;
mod upcall;
mod value;
mod watchdog;

pub use call::{
    CallError, Enter, Func, FuncType, clear_last_error, last_error, nesting, set_last_error, unwind,
};
pub use common::{
    Admission, Broker, BrokerState, CommonMember, CommonMemory, CommonState, CommonTally,
    CommonView, EndInside, Poison, Visit, broker_state, brokers, socket_of,
};
pub use config::{Config, Perf};
pub use counters::{By, Counters, Metrics, Pages, metrics};
pub use decision::{Asked, Decider, DecisionError, Question};
pub use domain::above::inner;
pub use domain::{Busy, Domain, DomainBuilder, DomainInner, Limits, Supervisor};
pub use engine::{init, rearm, unsupported};
pub use error::{
    AllocError, BindError, CommonError, InstantiateError, LoadError, MemoryError, ShareError,
    StartError, SymbolError,
};
pub use event::{
    Client, ClientBuilder, Doorbell, Event, EventCounters, EventError, NoWay, Subscription, Way,
    WayInUse, Ways,
};
pub use fault::{Fault, FaultKind, Registers, SharedPage};
pub use grants::Grants;
pub use image::Image;
pub use peer::PeerExport;
pub use placement::{Placement, hot_domain};
pub use postern_gates::machine::termination;
#[doc(hidden)]
pub use postern_gates::map::without_reserve;
pub use postern_gates::map::{MapError, SystemLimit};
pub use postern_gates::peer::PeerError;
pub use postern_gates::upcall::{
    AttachError, PoolCounters as SandboxCounters, Posted, UpcallCounters,
};
pub use postern_gates::window::{HotWindow, hot_window};
pub use postern_image::input::{self, ReadError};
pub use postern_image::{Signature, Type};
pub use postern_verifier::{Bounds, Facts, Violation};
pub use revoke::{Grant, Reluctance, Repossession, RevokeError, Revoked};
pub use safe_point::{Look, Proceed, clear_safe_point, interrupt_mine, set_look, set_safe_point};
pub use service::{Caller, DEFAULT_STACK, Service, ServiceSet, with_state};
pub use share::{AreaBuilder, Prot, Shared};
pub use system::{Access, SystemPolicy, Verdict};
pub use table::{Cell, Column, MemoryTable, Row, TableDomain, TableError, memory_table};
pub use upcall::{Attachment, Upcall, UpcallSender};
pub use value::{Offset, Output, Value};

/// For a host that owns the signal handlers ([`Config::install_handlers`] false): deals with a
/// signal if it is Postern's.
///
/// # Safety
/// Call it first thing in an `SA_SIGINFO | SA_ONSTACK` handler, with the handler's own arguments.
/// When it returns true, return at once.
#[expect(unsafe_code, reason = "the caller's promise")]
pub unsafe fn handle_signal(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut std::ffi::c_void,
) -> bool {
    // SAFETY: the caller passes what the system passed.
    unsafe { postern_gates::signal::handle(signal, info, context) }
}
