//! The C face of Postern: `libpostern.so`, `libpostern.a`, and the headers in `include`.
//!
//! The engine is the crate `postern`; here its words become C's. Invariants:
//! - No panic crosses into C: every function runs inside [`failure::code`] or [`failure::or`].
//! - A handle is never dereferenced: it is a number that is looked up ([`handle`]), so stale and invented ones are refused.
//! - Raw pointers become Rust values in [`boundary`] only, and all `unsafe` is there.
//!
//! | module | functions |
//! |---|---|
//! | [`process`] | `pt_init`, `pt_supported`, `pt_handle_signal` |
//! | [`image`] | `pt_image_…` |
//! | [`options`] | `pt_options_…`, `pt_service…`, `pt_on_fault` |
//! | [`peer`] | `pt_peer…` |
//! | [`domain`] | `pt_open` to `pt_user` |
//! | [`policy`] | `pt_policy_…`, `pt_options_policy`, `pt_set_policy`, `pt_system_calls`, `pt_main` |
//! | [`decision`] | `pt_options_decider…`, `pt_set_decider…`, `pt_decisions` |
//! | [`revoke`] | `pt_revoke`, `pt_revoke_at_once`, `pt_restore`, `pt_repossessed`, `pt_grants` |
//! | [`pool`], [`module`] | `pt_pool_…`, `pt_module_…` |
//! | [`namespace`] | `pt_namespace_…` |
//! | [`filter`], [`filter_set`] | `pt_filter_…`, `pt_filter_set_…` |
//! | [`source`], [`writer`] | `pt_source_…`, `pt_interfaces`, `pt_writer_…` |
//! | [`handler`], [`demux`] | `pt_handler_…`, `pt_demux_…` |
//! | [`symbol`] | `pt_sym…` |
//! | [`service`] | `pt_current`, `pt_service_abort`, `pt_service_exit` |
//! | [`memory`] | `pt_alloc` to `pt_read_string` |
//! | [`observe`] | `pt_count`, `pt_pages`, `pt_shared_pages`, `pt_metrics`, `pt_set_placement`, `pt_hot…` |
//! | [`share`] | `pt_shared_…`, `pt_expose` |
//! | [`failure`], [`fault`] | `pt_error…`, `pt_last_fault` and its kin |

pub mod boundary;
pub mod decision;
pub mod demux;
pub mod domain;
pub mod failure;
pub mod fault;
pub mod filter;
pub mod filter_set;
pub mod fork;
pub mod handle;
pub mod handler;
pub mod image;
pub mod memory;
pub mod module;
pub mod namespace;
pub mod observe;
pub mod options;
pub mod peer;
pub mod policy;
pub mod pool;
pub mod process;
pub mod revoke;
pub mod service;
pub mod share;
pub mod source;
pub mod symbol;
pub mod writer;
