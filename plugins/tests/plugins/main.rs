//! Plugins by HTTP, from outside: real connections to a server in this process.
#![allow(missing_docs)]

mod broken;
mod clients;
mod pictures;
mod plugins;
#[allow(dead_code)]
#[path = "../../../server/tests/serve/site.rs"]
mod site;
mod status;
mod turns;

use postern_server::Components;

/// What the server has here.
pub const COMPONENTS: Components = Components {
    processes: None,
    plugins: Some(postern_plugins::read),
    page: Some(postern_plugins::serve_page),
};
