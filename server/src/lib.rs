//! An HTTP server whose handlers are extensions: `postern serve`.
//!
//! A program in C, written to `libcgi.h`, is run in one of four ways: as an extension that is called in the server's own process and
//! confined there, as a shared object that is called there without protection, by FastCGI, or by CGI. The first two are the LibCGI of
//! Palladium (Chiueh, Venkitachalam and Pradhan, SOSP 1999, section 5.2).
//!
//! Invariants:
//! - Whatever a client sends or a confined program does, the server goes on: there is a limit to every size, time and number.
//! - What goes to a client is an HTTP message of the server's making. A program gives a head that is checked, and a body.
#![deny(unsafe_code)]

mod account;
mod body;
mod child;
mod config;
mod exchange;
mod failure;
mod fastcgi;
mod files;
mod gate;
mod handler;
mod head;
mod input;
mod inside;
mod log;
mod metrics;
mod outlet;
mod page;
mod patience;
mod plugins;
mod process;
mod program;
mod range;
mod reload;
mod seat;
mod server;
mod service;
mod stall;
mod status;
mod tls;
#[allow(unsafe_code)]
mod trusted;
mod variables;

pub use config::{
    ClientSettings, ConfigError, Limits, Page, PluginRun, PluginSettings, Quotas, Recycle, Run,
    Settings, Site, Tls,
};
pub use handler::HandlerError;
pub use log::Log;
pub use patience::Patience;
pub use plugins::{PICTURE_H, SITE_PLUGINS};
pub use program::LIBCGI;
pub use server::{ServeError, Server, check, told_to_end};
pub use tls::TlsError;
