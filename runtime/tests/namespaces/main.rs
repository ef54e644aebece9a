//! Namespaces: functions that come, are replaced and go while others run.
#![cfg(feature = "ecode")]

mod mixing;
mod names;
mod replacing;
mod rules;

use postern::Namespace;

fn empty() -> Namespace {
    Namespace::builder().build().unwrap()
}
