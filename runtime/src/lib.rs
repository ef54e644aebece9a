//! Native extensions in the host's own address space, each in its own protection domain, called like functions.
//!
//! ```no_run
//! use postern::{Domain, Image};
//!
//! let image = Image::load("add.px")?;                      // checked and verified, once
//! let domain = Domain::builder(&image)
//!     .service("host_log", |caller: &postern::Caller<'_>, text: postern::Offset| {
//!         println!("{}", caller.domain().read_c_string(text, 200).unwrap_or_default());
//!     })
//!     .build()?;                                           // an instance: a window of 4 GiB
//! let add = domain.func::<fn(i32, i32) -> i64>("add")?;    // a typed entry
//! match add.call(2, 3) {                                   // about the price of a function call
//!     Ok(sum) => println!("{sum}"),
//!     Err(error) => println!("the extension failed, the host did not: {error}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Principles:
//! - Text is verified before it runs and never changes afterwards; who made it does not matter.
//! - Whatever an extension does is a value: a result, or a [`Fault`] with a kind, a place and a source line.
//! - What comes from an extension is an allegation: numbers of any bits, [`Offset`]s that are checked when they are used.
//! - All `unsafe` is in the module `trusted`; the rest is ordinary Rust.

mod access;
mod at_fork;
mod call;
mod counters;
mod decision;
mod domain;
mod engine;
mod error;
mod fault;
mod fork;
mod grants;
mod image;
mod instance;
mod maps;
mod module;
mod namespace;
mod peer;
mod placement;
pub mod policy;
mod pool;
mod restart;
mod revoke;
mod service;
mod share;
mod symbols;
mod table;
#[cfg(feature = "testing")]
pub mod testing;
mod trusted;
mod value;
mod watchdog;
mod window;

pub use call::{
    CallError, Func, FuncType, ModuleFunc, clear_last_error, last_error, nesting, set_last_error,
    unwind,
};
pub use counters::{By, Counters, Metrics, Pages, metrics};
pub use decision::{Asked, Decider, DecisionError, Question};
pub use domain::{Busy, Domain, DomainBuilder, Limits, Placement};
pub use engine::{Config, init, rearm, unsupported};
pub use error::{
    BindError, InstantiateError, LoadError, MemoryError, ShareError, StartError, SymbolError,
};
pub use fault::{Fault, FaultKind, Registers, SharedPage};
pub use grants::Grants;
pub use image::Image;
pub use module::{
    Module, ModuleBuilder, ModuleCounters, ModuleEvent, ReplaceError, Replaced, Replacement,
};
pub use namespace::{
    CreateError, Created, FunctionId, IdCallError, Namespace, NamespaceBuilder, NamespaceCounters,
    NamespaceError, Recovery, RegisterUse, Room,
};
pub use peer::PeerExport;
pub use placement::hot_domain;
pub use policy::{Access, Policy, Rules, Verdict};
pub use pool::{Lendable, Pool, PoolBuilder, PoolCounters, PoolError, Pooled, Recycle};
pub use postern_image::input::{self, ReadError};
pub use postern_image::{Signature, Type};
pub use postern_verifier::{Bounds, Facts, Violation};
pub use restart::{BackOff, RestartPolicy};
pub use revoke::{Grant, Reluctance, Repossession, RevokeError, Revoked};
pub use service::{Caller, DEFAULT_STACK, Service};
pub use share::{AreaBuilder, Prot, Shared};
pub use symbols::Perf;
pub use table::{Cell, Column, MemoryTable, Row, TableDomain, TableError, memory_table};
#[doc(hidden)]
pub use trusted::map::without_reserve;
pub use trusted::map::{MapError, SystemLimit};
pub use trusted::peer::PeerError;
pub use value::{Offset, Output, Value};
pub use window::{HotWindow, hot_window};

/// For a host that owns the signal handlers ([`Config::install_handlers`] false): deals with a signal if it is Postern's.
///
/// # Safety
/// Call it first thing in an `SA_SIGINFO | SA_ONSTACK` handler, with the handler's own arguments. When it returns true, return at once.
pub unsafe fn handle_signal(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut std::ffi::c_void,
) -> bool {
    // SAFETY: the caller passes what the system passed.
    unsafe { trusted::signal::handle(signal, info, context) }
}
