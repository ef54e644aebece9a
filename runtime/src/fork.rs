//! Which process this is among those that forks made, and the locks of single objects, which a fork
//! finds free.
//!
//! Invariant: the lock of an object of which there are many is held only under [`Held`], whose
//! process-wide part [`crate::at_fork`] takes. So no other thread holds any of them at the moment
//! of a fork.

use postern_gates::thread;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// One of them is taken before the lock of any single object: the thread's own, so that threads do
/// not wait for each other but where they want the same object.
static OBJECTS: [Alone; 64] = [const { Alone(Mutex::new(())) }; 64];

/// In a cache line that nobody else writes.
#[repr(align(128))]
struct Alone(Mutex<()>);

/// The same for objects that are locked at every system call of an extension: many, so that domains
/// do not wait for each other.
static MANY: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// The same for what is looked up where a call has ended in a fault, and waits for nothing longer.
static LEAVES: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// Keeps all objects that are locked by [`lock`] from being locked.
pub(crate) fn hold_objects() -> [MutexGuard<'static, ()>; 64] {
    OBJECTS
        .each_ref()
        .map(|m| m.0.lock().unwrap_or_else(|e| e.into_inner()))
}

/// The calling thread's among [`OBJECTS`].
fn mine() -> &'static Mutex<()> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Without a destructor: objects are locked at the very end of a thread, too.
        static MINE: Cell<usize> = const { Cell::new(0) };
    }
    let number = MINE.with(|mine| {
        if mine.get() == 0 {
            mine.set(1 + NEXT.fetch_add(1, Ordering::Relaxed) % OBJECTS.len());
        }
        mine.get()
    });
    &OBJECTS[number % OBJECTS.len()].0
}

/// The same of those that are locked by [`lock_one_of_many`].
pub(crate) fn hold_many() -> [MutexGuard<'static, ()>; 64] {
    MANY.each_ref()
        .map(|m| m.lock().unwrap_or_else(|e| e.into_inner()))
}

/// The same of those that are locked by [`lock_leaf`].
pub(crate) fn hold_leaves() -> [MutexGuard<'static, ()>; 64] {
    LEAVES
        .each_ref()
        .map(|m| m.lock().unwrap_or_else(|e| e.into_inner()))
}

/// How many forks lie between the process that started Postern and this one.
static PROCESS: AtomicU64 = AtomicU64::new(0);
/// The thread that forked: the only one of the parent's that is here.
static FORKED_BY: AtomicU64 = AtomicU64::new(0);

/// Which process this is, among those that forks made of one another.
pub fn process() -> u64 {
    PROCESS.load(Ordering::SeqCst)
}

/// This is a child: the calling thread is the only one of its parent's that is here.
pub(crate) fn child_begins() {
    FORKED_BY.store(ThreadId::mine().thread, Ordering::SeqCst);
    PROCESS.fetch_add(1, Ordering::SeqCst);
}

/// A thread of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ThreadId {
    process: u64,
    thread: u64,
}

impl ThreadId {
    /// The calling thread's.
    pub fn mine() -> ThreadId {
        ThreadId {
            process: process(),
            thread: thread::id(),
        }
    }

    /// Whether the thread was not left behind by a fork.
    pub fn is_here(&self) -> bool {
        self.process == process() || self.thread == FORKED_BY.load(Ordering::SeqCst)
    }
}

/// The lock of a single object, of which there are many.
pub struct Held<'a, T> {
    value: MutexGuard<'a, T>,
    _objects: MutexGuard<'static, ()>,
}

/// Locks an object. At most one at a time, and no other lock of the runtime that a fork takes under
/// it but the pool's.
pub fn lock<T>(object: &Mutex<T>) -> Held<'_, T> {
    lock_under(mine(), object)
}

/// As [`lock`], for objects that are locked often. `number` is the object's own. No other lock of
/// the runtime is taken under it but those of [`lock_leaf`].
pub fn lock_one_of_many<T>(number: usize, object: &Mutex<T>) -> Held<'_, T> {
    lock_under(&MANY[number % MANY.len()], object)
}

/// As [`lock_one_of_many`], for what is held for a few instructions only, perhaps under a lock of
/// that kind. No other lock is taken under it.
pub fn lock_leaf<T>(number: usize, object: &Mutex<T>) -> Held<'_, T> {
    lock_under(&LEAVES[number % LEAVES.len()], object)
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
