//! Native extensions in the host's own address space, each in its own protection domain, called
//! like functions.
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
//! - Whatever an extension does is a value: a result, or a [`Fault`] with a kind, a place and a
//!   source line.
//! - What comes from an extension is an allegation: numbers of any bits, [`Offset`]s that are
//!   checked when they are used.
//!
//! This crate is what hosts use: the names of those below it that are meant for them, and nothing
//! of its own.

#![forbid(unsafe_code)]

/// The former name of [`Capacity`].
#[doc(hidden)]
pub use postern_namespaces::Capacity as Room;
#[cfg(feature = "ecode")]
pub use postern_namespaces::compile_image;
pub use postern_namespaces::{
    Capacity, CreateError, Created, FunctionId, IdCallError, Namespace, NamespaceBuilder,
    NamespaceCounters, NamespaceError, Recovery, RegisterUse,
};
pub use postern_policy as policy;
pub use postern_policy::{Access, Policy, Rules, Verdict};
#[cfg(feature = "testing")]
pub use postern_runtime::testing;
#[doc(hidden)]
pub use postern_runtime::without_reserve;
pub use postern_runtime::{
    Admission, AllocError, AreaBuilder, Asked, AttachError, Attachment, BindError, Bounds, Broker,
    BrokerState, Busy, By, CallError, Caller, Cell, Client, ClientBuilder, Column, CommonError,
    CommonMember, CommonMemory, CommonState, CommonTally, CommonView, Config, Counters,
    DEFAULT_STACK, Decider, DecisionError, Domain, DomainBuilder, Doorbell, EndInside, Event,
    EventCounters, EventError, Facts, Fault, FaultKind, Func, FuncType, Grant, Grants, HotWindow,
    Image, InstantiateError, Limits, LoadError, MapError, MemoryError, MemoryTable, Metrics, NoWay,
    Offset, Output, Pages, PeerError, PeerExport, Perf, Placement, Poison, Posted, Proceed, Prot,
    Question, ReadError, Registers, Reluctance, Repossession, RevokeError, Revoked, Row,
    SandboxCounters, Service, ServiceSet, ShareError, Shared, SharedPage, Signature, StartError,
    Subscription, SymbolError, SystemLimit, TableDomain, TableError, Type, Upcall, UpcallCounters,
    UpcallSender, Value, Violation, Visit, Way, WayInUse, Ways, broker_state, brokers,
    clear_last_error, clear_safe_point, handle_signal, hot_domain, hot_window, init, input,
    interrupt_mine, last_error, memory_table, metrics, nesting, rearm, set_last_error,
    set_safe_point, socket_of, termination, unsupported, unwind, with_state,
};
#[doc(hidden)]
pub use postern_runtime::{Look, set_look};
pub use postern_supervision::{
    BackOff, Lendable, Module, ModuleBuilder, ModuleCounters, ModuleEvent, ModuleFunc, Pool,
    PoolBuilder, PoolCounters, PoolError, Pooled, Recycle, ReplaceError, Replaced, Replacement,
    RestartPolicy,
};
