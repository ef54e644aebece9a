//! Handles across fork: no table is being changed by another thread at the moment when the child is
//! made.
//!
//! Every table with a lock registers here before it is used first, so this knows none of them, and
//! none is forgotten. A fork takes [`TABLES`] first, then each table's lock; no function holds two
//! of these locks, so their order does not matter. What single objects hold is not among them, for
//! it may be held for long: see [`crate::object`].

use crate::boundary;
use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// What is locked while the child is made.
pub trait Table: Sync {
    /// Takes the lock; the guard, which both processes drop.
    fn hold(&'static self) -> Box<dyn Any>;
}

/// Tables that were ever used.
static TABLES: Mutex<Vec<&'static dyn Table>> = Mutex::new(Vec::new());

/// Whether a table is among them.
#[derive(Default)]
pub struct Registration(AtomicBool);

impl Registration {
    /// It is not.
    pub const fn new() -> Registration {
        Registration(AtomicBool::new(false))
    }

    /// Sees to it that it is. Call it before each use of the table's lock, without that lock.
    pub fn ensure(&self, table: &'static dyn Table) {
        // Acquire: whoever sees the mark does not wait for the list, which a forking thread may
        // hold.
        if self.0.load(Ordering::Acquire) {
            return;
        }
        static PREPARED: Once = Once::new();
        PREPARED.call_once(|| boundary::at_fork(before, after, in_child));
        let mut tables = tables();
        if !self.0.load(Ordering::Acquire) {
            tables.push(table);
            self.0.store(true, Ordering::Release);
        }
    }
}

fn tables() -> MutexGuard<'static, Vec<&'static dyn Table>> {
    TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value under a lock that a fork takes, too.
pub struct Shared<T> {
    value: Mutex<T>,
    registration: Registration,
}

impl<T: Send + 'static> Shared<T> {
    /// A value.
    pub const fn new(value: T) -> Shared<T> {
        Shared {
            value: Mutex::new(value),
            registration: Registration::new(),
        }
    }

    /// Takes the lock. Nothing else is taken under it.
    pub fn lock(&'static self) -> MutexGuard<'static, T> {
        self.registration.ensure(self);
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> Table for Shared<T> {
    fn hold(&'static self) -> Box<dyn Any> {
        Box::new(self.value.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The guards of all tables, which are dropped before that of their list.
type Held = (
    Vec<Box<dyn Any>>,
    MutexGuard<'static, Vec<&'static dyn Table>>,
);

thread_local! {
    // Boxed, as there is little static thread-local storage for libraries that are opened at run
    // time; and without a destructor, for a thread may fork at its very end.
    static HELD: ManuallyDrop<Cell<Option<Box<Held>>>> =
        const { ManuallyDrop::new(Cell::new(None)) };
}

extern "C" fn before() {
    let tables = tables();
    let guards = tables.iter().map(|table| table.hold()).collect();
    HELD.with(|place| place.set(Some(Box::new((guards, tables)))));
}

extern "C" fn after() {
    HELD.with(|place| drop(place.take()));
}

/// How many forks lie between the process that made the first handle and this one.
static PROCESS: AtomicU64 = AtomicU64::new(0);

/// Which process this is, among those that forks made of one another.
pub fn process() -> u64 {
    PROCESS.load(Ordering::Relaxed)
}

extern "C" fn in_child() {
    PROCESS.fetch_add(1, Ordering::Relaxed);
    after();
}
