//! A place for one boxed value that threads exchange without a lock.

use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Empty, or the owner of a value. As safe to share as a lock around one, hence the marker.
pub struct Slot<T>(AtomicPtr<T>, PhantomData<Mutex<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot::new()
    }
}

impl<T> Slot<T> {
    /// An empty slot.
    pub fn new() -> Slot<T> {
        Slot(AtomicPtr::new(std::ptr::null_mut()), PhantomData)
    }

    /// Puts one value in and takes the other out.
    pub fn swap(&self, value: Option<Box<T>>) -> Option<Box<T>> {
        let new = value.map_or(std::ptr::null_mut(), Box::into_raw);
        let old = self.0.swap(new, Ordering::SeqCst);
        // SAFETY: what is not null came from Box::into_raw above, and the exchange gives it to one caller only.
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

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        drop(self.swap(None));
    }
}
