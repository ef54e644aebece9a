//! What the state machines ask of an atomic word: the processor's words have it, and a model's,
//! which tries every order in which threads may see what others wrote.

use super::pause::Pause;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// An atomic word.
pub trait Atomic<T> {
    /// As of `std`'s atomics.
    fn load(&self, order: Ordering) -> T;
    /// As of `std`'s atomics.
    fn store(&self, value: T, order: Ordering);
    /// Stores, and what the thread loads afterwards is loaded when others can see that: a
    /// sequentially consistent store, where all that is loaded so is sequentially consistent, too.
    /// (The model's are only acquired and released, so it needs a fence.)
    fn store_ahead(&self, value: T);
    /// As of `std`'s atomics. (In the model a plain store may come before exchanges that it did not
    /// see.)
    fn swap(&self, value: T, order: Ordering) -> T;
    /// As of `std`'s atomics; a failure orders as a success.
    fn compare_exchange(&self, from: T, to: T, order: Ordering) -> Result<T, T>;
    /// A fence between what the thread did before and what it does after.
    fn fence(order: Ordering);
    /// Lets others go on, after `pause` was used already for the same wait.
    fn wait(pause: &mut Pause);
}

macro_rules! processor {
    ($atomic:ty, $value:ty) => {
        impl Atomic<$value> for $atomic {
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }
            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }
            #[inline(always)]
            fn store_ahead(&self, value: $value) {
                self.store(value, Ordering::SeqCst);
            }
            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.swap(value, order)
            }
            #[inline(always)]
            fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                order: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(from, to, order, order)
            }
            #[inline(always)]
            fn fence(order: Ordering) {
                core::sync::atomic::fence(order);
            }
            fn wait(pause: &mut Pause) {
                pause.again();
            }
        }
    };
}
processor!(AtomicU32, u32);
processor!(AtomicU64, u64);
