//! `postern serve` from outside: real connections to a server in this process.
#![allow(missing_docs)]

mod apart;
mod broken;
mod clients;
mod faults;
mod files;
mod limits;
mod operations;
mod orphans;
mod pictures;
mod plugins;
mod requests;
mod site;
mod slow;
mod status;
mod variants;
