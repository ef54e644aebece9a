//! Fork: the child finds every table whole, and nobody inside but the thread that forked.
//!
//! Invariant: a lock of the runtime is either among those that [`before`] takes, or held only under
//! one of them ([`fork::Held`]). So no other thread holds any of them at the moment of the fork.

use crate::counters::metrics;
use crate::own_threads::mine;
use crate::{domain, fork, image, placement, share, symbols, table, watchdog};
use postern_gates::machine::{AroundFork, InChild};
use postern_gates::{
    control, debugger, inside, machine, outcome, pages, register, signal, stub, thread, window,
};
use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::MutexGuard;

/// What a forking thread holds.
struct All {
    registry: MutexGuard<'static, thread::Registry>,
    domains: MutexGuard<'static, domain::Domains>,
    // Released last, as it was taken first.
    _owner: MutexGuard<'static, placement::HotWindowOwner>,
    _others: Vec<Box<dyn Any>>,
}

thread_local! {
    // Boxed, as there is little static thread-local storage for libraries that are opened at run
    // time; and without a destructor, for a thread may fork at its very end.
    static ALL: ManuallyDrop<Cell<Option<Box<All>>>> = const { ManuallyDrop::new(Cell::new(None)) };
}

/// Makes fork safe from now on. Called once, at start.
pub(crate) fn prepare() {
    machine::at_fork(AroundFork {
        before,
        in_parent,
        in_child,
    });
}

/// Takes all locks, those first under which others are taken.
fn before() {
    let owner = placement::owner();
    let objects = fork::hold_objects();
    let retired = domain::reclaim::list();
    let domains = domain::domains();
    let registry = thread::registry();
    let many = fork::hold_many();
    let leaves = fork::hold_leaves();
    let others: Vec<Box<dyn Any>> = vec![
        Box::new(leaves),
        Box::new(many),
        Box::new(objects),
        Box::new(retired),
        Box::new(image::cache()),
        Box::new(share::arena()),
        Box::new(table::area_records()),
        Box::new(window::pool()),
        Box::new(metrics::gone()),
        Box::new(symbols::files()),
        Box::new(debugger::all()),
        Box::new(control::table()),
        Box::new(stub::stubs()),
    ];
    let all = All {
        registry,
        domains,
        _owner: owner,
        _others: others,
    };
    ALL.with(|place| place.set(Some(Box::new(all))));
}

fn in_parent() {
    ALL.with(|place| drop(place.take()));
}

/// Other threads do not exist here: what they were inside, or about to reset, or had to go on in,
/// is poisoned, and the watchdog starts again at the next call.
fn in_child(child: &InChild) {
    fork::child_begins();
    if let Some(mut all) = ALL.with(|place| place.take()) {
        register::after_fork(&mut all.registry, child, |control| {
            control.lifecycle().poison();
        });
        for domain in all.domains.iter().filter_map(|d| d.upgrade()) {
            if domain.sandbox.after_fork(child) {
                domain.control.lifecycle().poison();
            }
            domain.control.lifecycle().orphaned();
            domain.threads.after_fork(mine::held(&domain.threads));
            domain.instance.window().after_fork(child);
            if let Some(seat) = domain.instance.seat() {
                // The seat is the parent's: so is what the domain has in common with others.
                seat.after_fork();
                domain.control.goes_unseen();
                domain.control.lifecycle().close();
                inside::end_mine(&domain.control, outcome::ANOTHER);
            }
            if domain
                .code
                .get()
                .is_some_and(|code| !code.after_fork(child))
            {
                domain.control.lifecycle().close();
            }
        }
    }
    pages::after_fork(child);
    note_all();
    signal::after_fork(child);
    watchdog::after_fork();
}

/// Puts the child's domains and areas into the child's own table for other processes. No lock is
/// held.
fn note_all() {
    if !table::begin_anew() {
        return;
    }
    for inner in domain::domains().iter().filter_map(|d| d.upgrade()) {
        inner.note();
    }
    if let Some(arena) = share::arena().as_ref() {
        for (number, start, end, name) in arena.records() {
            table::put_area(number, start, end, name);
        }
    }
}
