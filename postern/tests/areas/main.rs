//! Shared areas: a protection for each domain and page, changed while they live; whatever goes
//! wrong is an error or a fault with names.
#![allow(clippy::undocumented_unsafe_blocks)]
#[path = "../support/mod.rs"]
mod support;

mod copies;
mod expose;
mod kept;
mod life;
mod refused;
mod structures;
mod table;

use postern::{CallError, Domain, Fault, Image, Offset, Prot, Shared};
use postern_verifier::window::PAGE;
use std::sync::Arc;

pub(crate) const P: usize = PAGE as usize;

const SOURCE: &str = "
    load:  movl %gs:(%edi),%eax
           ret
    store: movl %esi,%gs:(%edi)
           ret
    watch: movl %gs:(%edi),%eax
           jmp watch
    ";

/// Loads, stores, and a loop that loads until it cannot.
pub(crate) fn image() -> Image {
    let exports = [("load", "i(p)"), ("store", "v(pi)"), ("watch", "v(p)")];
    support::image(&exports, SOURCE)
}

pub(crate) fn named(image: &Image, name: &str) -> Domain {
    let builder = support::cold(image).name(name).heap(1 << 16);
    builder.deadline(None).build().unwrap()
}

pub(crate) fn load(d: &Domain, at: u32) -> Result<i32, CallError> {
    let load = d.func::<fn(Offset) -> i32>("load").unwrap();
    load.call(Offset(at))
}

pub(crate) fn store(d: &Domain, at: u32, value: i32) -> Result<(), CallError> {
    let store = d.func::<fn(Offset, i32)>("store").unwrap();
    store.call(Offset(at), value)
}

/// The fault, and the domain is fresh again.
pub(crate) fn fault<T: std::fmt::Debug>(d: &Domain, result: Result<T, CallError>) -> Arc<Fault> {
    match result {
        Err(CallError::Fault(fault)) => {
            d.reset().unwrap();
            fault
        }
        other => panic!("{}: {other:?}", d.name()),
    }
}

/// What really happens when the domain reads and writes the page of byte `at`. The value there
/// stays.
pub(crate) fn tried(d: &Domain, area: &Shared, at: usize) -> Prot {
    let offset = area.offset().0 + at as u32;
    match load(d, offset) {
        Err(_) => {
            d.reset().unwrap();
            Prot::None
        }
        Ok(value) => match store(d, offset, value) {
            Err(_) => {
                d.reset().unwrap();
                Prot::Read
            }
            Ok(()) => Prot::ReadWrite,
        },
    }
}
