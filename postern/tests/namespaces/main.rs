//! Namespaces: functions that are added, replaced and deleted while others run.
#![cfg(feature = "ecode")]

mod fairness;
mod mixing;
mod names;
mod objects;
mod replacing;
mod rules;
#[path = "../support/mod.rs"]
mod support;

use postern::Namespace;

fn empty() -> Namespace {
    Namespace::builder().build().unwrap()
}
