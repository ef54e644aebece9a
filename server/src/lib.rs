//! An HTTP server whose handlers are extensions: what `postern serve` is made of.
//!
//! A program in C, written to `libcgi.h`, is called in the server's own process, as an extension
//! that is confined there, or as a shared object without protection: the LibCGI of Palladium
//! (Chiueh, Venkitachalam and Pradhan, SOSP 1999, section 5.2). What a server can have besides
//! comes from crates of their own, by [`Components`]: the same programs in processes, plugins that
//! clients bring, and a page.
//!
//! Invariants:
//! - Whatever a client sends or a confined program does, the server goes on: there is a limit to
//!   every size, time and number.
//! - What goes to a client is an HTTP message of the server's making. A program gives a head that
//!   is checked, and a body.
#![deny(unsafe_code)]

mod access_line;
mod account;
mod admission;
mod answer;
mod body;
mod checker;
mod components;
mod config;
mod counters;
mod each_second;
mod failure;
mod fast_path;
mod file_stamp;
mod files;
mod half_closed;
mod handler;
pub mod head;
mod host;
mod in_process;
mod lease;
mod log;
mod metrics;
mod program;
mod program_log;
mod range;
mod registry;
mod reload;
mod request_body;
mod rewound;
mod router;
mod server;
mod session;
mod settings;
mod shared_buffer;
mod static_files;
mod status;
mod timeouts;
mod tls;
#[allow(unsafe_code)]
mod trusted;
mod variables;
mod write_timeout;

pub use checker::{Checker, ConfigError};
pub use config::Site;
pub use handler::HandlerError;
pub use log::Log;
pub use program::LIBCGI;
pub use program_log::ProgramLog;
pub use server::{ServeError, Server, check, signals};
pub use settings::{HandlerSettings, Limits, Page, Recycle, Run, Tls};
pub use tls::TlsError;

// What components are made of.
pub use admission::Party;
pub use answer::Answer;
pub use body::{Body, Cut};
pub use components::{
    BoxFuture, Components, ProcessProgram, Processes, ReadRoutes, RouteContext, RouteSettings,
    Routes, ServePage, StartProcesses,
};
pub use counters::Counters;
pub use failure::{Failure, FailureId};
pub use file_stamp::{FileStamp, stamps};
pub use files::has_tag;
pub use registry::{ActiveCall, RegisteredDomain, Registry};
pub use request_body::RequestBody;
pub use router::unescaped;
pub use timeouts::{Timeouts, Waited};
pub use trusted::loaded::{LibraryError, Loaded};
pub use variables::Variables;
