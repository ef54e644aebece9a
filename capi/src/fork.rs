//! Handles across fork: no table is being changed by another thread at the moment when the child is made.

use crate::boundary;
use crate::demux::DemuxKind;
use crate::domain::{DomainKind, Hold, hold_ids};
use crate::filter::FilterKind;
use crate::filter_set::FilterSetKind;
use crate::handle::{Holding, Kind};
use crate::handler::HandlerKind;
use crate::image::ImageKind;
use crate::module::ModuleKind;
use crate::namespace::NamespaceKind;
use crate::options::OptionsKind;
use crate::policy::PolicyKind;
use crate::pool::{self, PoolKind};
use crate::share::SharedKind;
use crate::source::SourceKind;
use crate::writer::WriterKind;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::Once;

type Held = (
    Holding<ImageKind>,
    Holding<OptionsKind>,
    Holding<DomainKind>,
    Holding<SharedKind>,
    Holding<PolicyKind>,
    Holding<PoolKind>,
    Holding<ModuleKind>,
    Holding<NamespaceKind>,
    Holding<FilterKind>,
    Holding<FilterSetKind>,
    Holding<SourceKind>,
    (
        Holding<WriterKind>,
        Holding<HandlerKind>,
        Holding<DemuxKind>,
    ),
    pool::Hold,
    Hold,
);

thread_local! {
    // Boxed, as there is little static thread-local storage for libraries that are opened at run time; and without a destructor, for
    // a thread may fork at its very end.
    static HELD: ManuallyDrop<Cell<Option<Box<Held>>>> =
        const { ManuallyDrop::new(Cell::new(None)) };
}

extern "C" fn before() {
    // No function holds one of these while it takes another, so the order does not matter.
    let held = (
        ImageKind::table().hold(),
        OptionsKind::table().hold(),
        DomainKind::table().hold(),
        SharedKind::table().hold(),
        PolicyKind::table().hold(),
        PoolKind::table().hold(),
        ModuleKind::table().hold(),
        NamespaceKind::table().hold(),
        FilterKind::table().hold(),
        FilterSetKind::table().hold(),
        SourceKind::table().hold(),
        (
            WriterKind::table().hold(),
            HandlerKind::table().hold(),
            DemuxKind::table().hold(),
        ),
        pool::loans(),
        hold_ids(),
    );
    HELD.with(|place| place.set(Some(Box::new(held))));
}

extern "C" fn after() {
    HELD.with(|place| drop(place.take()));
}

/// Asks libc to do so from now on.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| boundary::at_fork(before, after));
}
