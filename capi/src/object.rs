//! What is behind handles and is used, or changed, by one thread at a time.
//!
//! Invariant: whoever asks is answered. A thread that uses an object and comes back to it, by a
//! function of the host's that was called meanwhile, does not wait for itself; and in a forked
//! child nobody waits for a thread of the parent's, which is not there.

use crate::failure::{Code, Failure};
use crate::fork;
use crate::handle::{Handle, Kind};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// In a child, how long whoever holds an object is given to say in which process it is.
const LONGEST: Duration = Duration::from_secs(1);

/// An object that one thread at a time uses.
#[derive(Default)]
pub struct Object<T> {
    value: Mutex<T>,
    /// The process of whoever has it, or had it last ([`fork::process`]). Written right after the
    /// lock was taken.
    process: AtomicU64,
    /// The thread that has it, or 0.
    owner: AtomicU64,
}

/// An object in use.
pub struct Used<'a, T> {
    value: MutexGuard<'a, T>,
    owner: &'a AtomicU64,
}

/// A number that no other living thread of the process has.
fn me() -> u64 {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place).addr() as u64)
}

impl<T> Object<T> {
    /// An object that nobody uses.
    pub fn new(value: T) -> Object<T> {
        Object {
            value: Mutex::new(value),
            process: 0.into(),
            owner: 0.into(),
        }
    }

    /// The object, once nobody else uses it.
    ///
    /// # Errors
    /// It is never free: this thread uses it already, or a thread of the parent's process did when
    /// this one was forked.
    pub fn lock(&self) -> Result<Used<'_, T>, Failure> {
        let (mine, here) = (me(), fork::process());
        // Only the thread itself writes its number there.
        if self.owner.load(Relaxed) == mine {
            return Err(busy(
                "this thread uses it already, in a function that it called",
            ));
        }
        let value = match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait(here)?,
        };
        self.process.store(here, Relaxed);
        self.owner.store(mine, Relaxed);
        let owner = &self.owner;
        Ok(Used { value, owner })
    }

    #[cold]
    fn wait(&self, here: u64) -> Result<MutexGuard<'_, T>, Failure> {
        let begin = Instant::now();
        while self.process.load(Relaxed) != here {
            match self.value.try_lock() {
                Ok(value) => return Ok(value),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                // Of this process, and about to say so; or of the parent's, for ever.
                Err(TryLockError::WouldBlock) if begin.elapsed() < LONGEST => {
                    std::thread::sleep(Duration::from_micros(100));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(busy("another thread used it when this process was forked"));
                }
            }
        }
        Ok(self.value.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn busy(why: &str) -> Failure {
    Failure::new(Code::Busy, format!("the object is in use for good: {why}"))
}

impl<T> Deref for Used<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Used<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Used<'_, T> {
    fn drop(&mut self) {
        self.owner.store(0, Relaxed);
    }
}

/// A value that is put together step by step. Each step makes another one of it, so that whoever
/// reads it meanwhile, in a forked child too, finds it whole.
pub struct Draft<T> {
    value: Arc<T>,
    turn: Arc<Object<()>>,
}

impl<T> Clone for Draft<T> {
    fn clone(&self) -> Draft<T> {
        Draft {
            value: self.value.clone(),
            turn: self.turn.clone(),
        }
    }
}

impl<T: Clone + Send + Sync, K: Kind<Value = Draft<T>>> Handle<K> {
    /// A new handle of a draft that begins so.
    pub fn draft(value: T) -> Handle<K> {
        Handle::make(Draft {
            value: Arc::new(value),
            turn: Arc::default(),
        })
    }

    /// The draft as it is now.
    ///
    /// # Errors
    /// As [`Handle::get`].
    pub fn as_it_is(self) -> Result<Arc<T>, Failure> {
        Ok(self.get()?.value)
    }

    /// Makes one step, or none if it fails.
    ///
    /// # Errors
    /// As [`Handle::get`] and [`Object::lock`], and the step's own.
    pub fn change(self, step: impl FnOnce(&mut T) -> Result<(), Failure>) -> Result<(), Failure> {
        let turn = self.get()?.turn;
        let _mine = turn.lock()?;
        let mut value = (*self.as_it_is()?).clone();
        step(&mut value)?;
        let (value, turn) = (Arc::new(value), turn.clone());
        let before = self.exchange(Draft { value, turn })?;
        drop(before);
        Ok(())
    }
}
