//! What threads of a process share. What interrupts a thread (ends of slices, exceptions) takes no
//! lock; so where there is one thread, a lock that is taken is a mistake, and not waited for.

use super::below::below;
use alloc::boxed::Box;
use core::any::Any;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// Somebody looks at deadlines: the ends of slices do.
pub type Watched = Result<(), core::convert::Infallible>;

/// Does something. Panics end the process.
pub fn catch<R>(work: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    Ok(work())
}

/// A lock.
pub struct Mutex<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through the guard, of which there is one at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// The value, locked.
pub struct MutexGuard<'a, T>(&'a Mutex<T>);

/// Nothing poisons a lock.
pub struct Never<T>(T);

impl<T> Never<T> {
    /// What was locked.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Mutex<T> {
    /// One that is not taken.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes it.
    pub fn lock(&self) -> Result<MutexGuard<'_, T>, Never<MutexGuard<'_, T>>> {
        while self.taken.swap(true, Ordering::Acquire) {
            (below().contended)();
        }
        Ok(MutexGuard(self))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the only guard.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the only guard, borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

/// A value that is set once.
pub struct OnceLock<T> {
    set: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: it is written once, before `set`, and only read afterwards.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Without a value.
    pub const fn new() -> OnceLock<T> {
        OnceLock {
            set: AtomicBool::new(false),
            value: UnsafeCell::new(None),
        }
    }

    /// The value, if it is set.
    pub fn get(&self) -> Option<&T> {
        if !self.set.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: it is set, so nobody writes it any more.
        unsafe { (*self.value.get()).as_ref() }
    }

    /// The value, or this one from now on.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> Option<&T> {
        if !self.set.load(Ordering::Acquire) {
            let value = make();
            // SAFETY: values are set before there are threads, and what interrupts sets nothing:
            // nobody reads or writes it meanwhile.
            unsafe { *self.value.get() = Some(value) };
            self.set.store(true, Ordering::Release);
        }
        self.get()
    }
}
