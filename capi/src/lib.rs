//! The C face of Postern: `libpostern.so`, `libpostern.a`, and the headers in `include`.
//!
//! The engine is the crate `postern`; here its words become C's. Invariants:
//! - No panic crosses into C: every function runs inside [`failure::code`] or [`failure::or`].
//! - A handle is never dereferenced: it is a number that is looked up ([`handle`]), so stale and
//!   invented ones are refused.
//! - Raw pointers become Rust values in [`boundary`] only, and all `unsafe` is there.
//!
//! | module | functions |
//! |---|---|
//! | [`process`] | `pt_version`, `pt_init`, `pt_supported`, `pt_handle_signal` |
//! | [`image`] | `pt_image_…` |
//! | [`options`] | `pt_options_…`, `pt_options_service…`, `pt_options_on_fault` |
//! | [`peer`] | `pt_options_peer…` |
//! | [`domain`] | `pt_domain_new`, `pt_domain_free`, `pt_domain_reset`, `pt_domain_interrupt`, `pt_domain_poisoned`, `pt_domain_name`, `pt_domain_user` |
//! | [`event`] | `pt_domain_on_…`, `pt_subscription_…`, `pt_domain_way`, `pt_options_way`, `pt_thread_attach` and its kin |
//! | [`policy`] | `pt_policy_…`, `pt_options_policy`, `pt_domain_set_policy`, `pt_domain_system_calls`, `pt_domain_main` |
//! | [`decision`] | `pt_options_decider…`, `pt_domain_set_decider…`, `pt_domain_decisions` |
//! | [`revoke`] | `pt_domain_revoke`, `pt_domain_revoke_at_once`, `pt_domain_restore`, `pt_domain_repossessed`, `pt_domain_grants` |
//! | [`pool`], [`module`] | `pt_pool_…`, `pt_module_…` |
//! | [`namespace`] | `pt_namespace_…` |
//! | [`filter`], [`filter_set`] | `pt_filter_…`, `pt_filter_set_…` |
//! | [`kernel`], [`kernel_map`] | `pt_kernel_…` |
//! | [`source`], [`writer`] | `pt_source_…`, `pt_interfaces`, `pt_writer_…` |
//! | [`handler`], [`demux`] | `pt_handler_…`, `pt_demux_…` |
//! | [`symbol`], [`pointers`] | `pt_domain_sym…` |
//! | [`service`] | `pt_service_…`, `pt_thread_…` |
//! | [`memory`] | `pt_heap_…`, `pt_domain_read`, `pt_domain_write`, `pt_domain_read_string` |
//! | [`observe`] | `pt_domain_counters`, `pt_domain_pages`, `pt_domain_shared_pages`, `pt_metrics`, `pt_domain_set_placement`, `pt_domain_hot`, `pt_hot_window_…` |
//! | [`share`] | `pt_shared_…`, `pt_domain_expose`, `pt_domain_protect`, `pt_domain_withdraw` |
//! | [`failure`], [`fault`] | `pt_error_…`, `pt_fault_…` |
//! | [`structures`] | none: the structures of the headers |
//! | [`handle`], [`fork`] | none: the tables of handles, and that no fork finds them half-changed |
//! | [`object`] | none: what is behind handles and is one thread's at a time |

pub mod boundary;
pub mod decision;
pub mod demux;
pub mod domain;
pub mod event;
pub mod failure;
pub mod fault;
pub mod filter;
pub mod filter_set;
pub mod fork;
pub mod handle;
pub mod handler;
pub mod image;
pub mod kernel;
pub mod kernel_map;
pub mod memory;
pub mod module;
pub mod namespace;
pub mod object;
pub mod observe;
pub mod options;
pub mod peer;
pub mod pointers;
pub mod policy;
pub mod pool;
pub mod process;
pub mod revoke;
pub mod service;
pub mod share;
pub mod source;
pub mod structures;
pub mod symbol;
pub mod writer;
