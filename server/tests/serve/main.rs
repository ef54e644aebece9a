//! `postern serve` from outside: real connections to a server in this process.
#![allow(missing_docs)]

mod backends;
mod faults;
mod files;
mod hostile;
mod limits;
mod logs;
mod operations;
mod plain;
mod requests;
#[allow(dead_code)]
mod site;
mod slow;
mod status;
mod variants;

use postern_server::Components;

/// What the server has here.
pub const COMPONENTS: Components = Components {
    processes: Some(postern_cgi::start),
    plugins: Some(postern_plugins::read),
    page: Some(postern_plugins::serve_page),
};
