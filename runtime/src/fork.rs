//! Fork: the child finds every table whole, and nobody inside but the thread that forked.
//!
//! Invariant: a lock of the runtime is either among those that [`before`] takes, or held only under [`Held`], whose process-wide
//! part is one of them. So no other thread holds any of them at the moment of the fork.

use crate::counters::metrics;
use crate::symbols;
use crate::trusted::{control, debugger, machine, pages, signal, stub, thread};
use crate::{domain, image, placement, share, table, watchdog, window};
use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Taken before the lock of any single object.
static OBJECTS: Mutex<()> = Mutex::new(());

/// The same for objects that are locked at every system call of an extension: many, so that domains do not wait for each other.
static MANY: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// How many forks lie between the process that started Postern and this one.
static PROCESS: AtomicU64 = AtomicU64::new(0);
/// The thread that forked: the only one of the parent's that is here.
static FORKED_BY: AtomicU64 = AtomicU64::new(0);

/// Which process this is, among those that forks made of one another.
pub(crate) fn process() -> u64 {
    PROCESS.load(Ordering::SeqCst)
}

/// A thread of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadId {
    process: u64,
    thread: u64,
}

impl ThreadId {
    /// The calling thread's.
    pub(crate) fn mine() -> ThreadId {
        ThreadId {
            process: process(),
            thread: std::ptr::from_ref(thread::current()) as u64,
        }
    }

    /// Whether the thread was not left behind by a fork.
    pub(crate) fn is_here(&self) -> bool {
        self.process == process() || self.thread == FORKED_BY.load(Ordering::SeqCst)
    }
}

/// The lock of a single object, of which there are many.
pub(crate) struct Held<'a, T> {
    value: MutexGuard<'a, T>,
    _objects: MutexGuard<'static, ()>,
}

/// Locks an object. At most one at a time, and no other lock of the runtime that is taken by [`before`] under it but the pool's.
pub(crate) fn lock<T>(object: &Mutex<T>) -> Held<'_, T> {
    lock_under(&OBJECTS, object)
}

/// As [`lock`], for objects that are locked often. `number` is the object's own. No other lock of the runtime is taken under it.
pub(crate) fn lock_one_of_many<T>(number: usize, object: &Mutex<T>) -> Held<'_, T> {
    lock_under(&MANY[number % MANY.len()], object)
}

fn lock_under<'a, T>(objects: &'static Mutex<()>, object: &'a Mutex<T>) -> Held<'a, T> {
    let objects = objects.lock().unwrap_or_else(|e| e.into_inner());
    Held {
        value: object.lock().unwrap_or_else(|e| e.into_inner()),
        _objects: objects,
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// What a forking thread holds.
struct All {
    registry: MutexGuard<'static, thread::Registry>,
    domains: MutexGuard<'static, domain::Domains>,
    // Released last, as it was taken first.
    _seat: MutexGuard<'static, placement::Seat>,
    _others: Vec<Box<dyn Any>>,
}

thread_local! {
    // Boxed, as there is little static thread-local storage for libraries that are opened at run time; and without a destructor, for
    // a thread may fork at its very end.
    static ALL: ManuallyDrop<Cell<Option<Box<All>>>> = const { ManuallyDrop::new(Cell::new(None)) };
}

/// Makes fork safe from now on. Called once, at start.
pub(crate) fn prepare() {
    machine::at_fork(before, after_in_parent, after_in_child);
}

/// Takes all locks, those first under which others are taken.
extern "C" fn before() {
    let seat = placement::seat();
    let objects = OBJECTS.lock().unwrap_or_else(|e| e.into_inner());
    let retired = domain::retired::list();
    let domains = domain::domains();
    let registry = thread::registry();
    let many = MANY
        .each_ref()
        .map(|m| m.lock().unwrap_or_else(|e| e.into_inner()));
    let others: Vec<Box<dyn Any>> = vec![
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
        _seat: seat,
        _others: others,
    };
    ALL.with(|place| place.set(Some(Box::new(all))));
}

extern "C" fn after_in_parent() {
    ALL.with(|place| drop(place.take()));
}

/// Other threads do not exist here: what they were inside, or about to reset, is poisoned, and the watchdog starts again at the
/// next call.
extern "C" fn after_in_child() {
    FORKED_BY.store(ThreadId::mine().thread, Ordering::SeqCst);
    PROCESS.fetch_add(1, Ordering::SeqCst);
    if let Some(mut all) = ALL.with(|place| place.take()) {
        thread::after_fork(&mut all.registry, |control| {
            control.poison();
        });
        for domain in all.domains.iter().filter_map(|d| d.upgrade()) {
            let (from, to) = (control::BUSY, control::POISONED);
            let state = &domain.control.state;
            let _ = state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
            domain.instance.pins.forget();
            if domain.code.get().is_some_and(|code| !code.after_fork()) {
                domain
                    .control
                    .state
                    .store(control::CLOSED, Ordering::SeqCst);
            }
        }
    }
    pages::after_fork();
    table::after_fork();
    signal::after_fork();
    watchdog::after_fork();
}
