//! A place for one boxed value that threads exchange without a lock.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};

/// Empty, or the owner of a value. As safe to share as a lock around one, hence the marker.
pub struct AtomicBox<T>(AtomicPtr<T>, PhantomData<Mutex<T>>);

impl<T> Default for AtomicBox<T> {
    fn default() -> AtomicBox<T> {
        AtomicBox::new()
    }
}

impl<T> AtomicBox<T> {
    /// An empty slot.
    pub fn new() -> AtomicBox<T> {
        AtomicBox(AtomicPtr::new(std::ptr::null_mut()), PhantomData)
    }

    /// Puts one value in and takes the other out.
    pub fn swap(&self, value: Option<Box<T>>) -> Option<Box<T>> {
        let new = value.map_or(std::ptr::null_mut(), Box::into_raw);
        let old = self.0.swap(new, Ordering::SeqCst);
        // SAFETY: what is not null came from Box::into_raw above, and the exchange gives it to one
        // caller only.
        (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
    }

    /// Takes the value out, if there is one.
    pub fn take(&self) -> Option<Box<T>> {
        match self.is_empty() {
            true => None,
            false => self.swap(None),
        }
    }

    /// Whether nothing was in it a moment ago.
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::SeqCst).is_null()
    }
}

impl<T> Drop for AtomicBox<T> {
    fn drop(&mut self) {
        drop(self.swap(None));
    }
}

/// Empty, or the owner of a value that stays. No thread ever waits for another one, so a forked
/// child finds nothing half done.
pub(super) struct OnceBox<T>(AtomicBox<T>, PhantomData<OnceLock<T>>);

impl<T> Default for OnceBox<T> {
    fn default() -> OnceBox<T> {
        OnceBox(AtomicBox::new(), PhantomData)
    }
}

impl<T> OnceBox<T> {
    /// The value; if there is none yet, what `make` gives. Of two threads that make one at the same
    /// time, the first one's stays.
    pub(super) fn get_or_make(&self, make: impl FnOnce() -> Option<T>) -> Option<&T> {
        let (order, none) = (Ordering::SeqCst, std::ptr::null_mut());
        let mut value = self.0.0.load(order);
        if value.is_null() {
            let new = Box::into_raw(Box::new(make()?));
            value = match self.0.0.compare_exchange(none, new, order, order) {
                Ok(_) => new,
                Err(first) => {
                    // SAFETY: made above, and nobody has seen it.
                    drop(unsafe { Box::from_raw(new) });
                    first
                }
            };
        }
        // SAFETY: set once: nobody else has the box, and it frees the value when it is dropped.
        Some(unsafe { &*value })
    }
}
