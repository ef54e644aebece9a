//! Handles: numbers that look like pointers to C and are never followed.
//!
//! A number is given out once, so a handle that was closed is refused for good; the high byte says
//! the kind and makes the number an address that no process can map, so that following one by
//! mistake faults at once.

use crate::failure::{self, CAUSE, Code, Failure};
use crate::fork::{self, Registration};
use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

/// What C holds: `pt_image *` and its kin. `K` is the kind.
#[repr(transparent)]
pub struct Handle<K>(pub usize, PhantomData<K>);

impl<K> Handle<K> {
    /// The null pointer.
    pub const NULL: Handle<K> = Handle(0, PhantomData);
}

impl<K> Clone for Handle<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Handle<K> {}

/// A kind of handle.
pub trait Kind: Sized + 'static {
    /// What the handles stand for.
    type Value: Clone + Send + Sync;
    /// The letter that the numbers begin with.
    const LETTER: u8;
    /// The C type, for messages.
    const NAME: &'static str;
    /// Where the values are.
    fn table() -> &'static Table<Self::Value>;
}

/// A kind of handle: its type, the values, the letter and the C type.
macro_rules! kind {
    ($kind:ident: $value:ty, $letter:literal, $name:literal) => {
        #[doc = concat!("The kind `", $name, "`.")]
        pub struct $kind;

        impl $crate::handle::Kind for $kind {
            type Value = $value;
            const LETTER: u8 = $letter;
            const NAME: &'static str = $name;
            fn table() -> &'static $crate::handle::Table<$value> {
                static TABLE: $crate::handle::Table<$value> = $crate::handle::Table::new();
                &TABLE
            }
        }
    };
}
pub(crate) use kind;

/// The values of a kind by their numbers.
pub struct Table<T> {
    values: RwLock<BTreeMap<usize, T>>,
    next: AtomicUsize,
    registration: Registration,
}

impl<T> Table<T> {
    /// No values.
    pub const fn new() -> Table<T> {
        Table {
            values: RwLock::new(BTreeMap::new()),
            next: AtomicUsize::new(1),
            registration: Registration::new(),
        }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table::new()
    }
}

impl<T> Table<T> {
    fn write(&'static self) -> RwLockWriteGuard<'static, BTreeMap<usize, T>> {
        self.values.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + Sync + 'static> fork::Table for Table<T> {
    fn hold(&'static self) -> Box<dyn Any> {
        Box::new(self.write())
    }
}

impl<K: Kind> Handle<K> {
    /// A new handle for `value`.
    pub fn make(value: K::Value) -> Handle<K> {
        let table = K::table();
        table.registration.ensure(table);
        let serial = table.next.fetch_add(1, Ordering::Relaxed);
        let number = usize::from(K::LETTER) << 56 | serial << 4;
        table.write().insert(number, value);
        Handle(number, PhantomData)
    }

    /// The value.
    ///
    /// # Errors
    /// Null, closed, or never given out.
    pub fn get(self) -> Result<K::Value, Failure> {
        let values = K::table()
            .values
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        values.get(&self.0).cloned().ok_or_else(|| self.unknown())
    }

    /// Takes the value out: the handle is closed.
    ///
    /// # Errors
    /// As [`Handle::get`].
    pub fn take(self) -> Result<K::Value, Failure> {
        K::table()
            .write()
            .remove(&self.0)
            .ok_or_else(|| self.unknown())
    }

    /// Puts another value in place of the present one, and returns that.
    ///
    /// # Errors
    /// As [`Handle::get`].
    pub fn exchange(self, value: K::Value) -> Result<K::Value, Failure> {
        match K::table().write().get_mut(&self.0) {
            Some(place) => Ok(std::mem::replace(place, value)),
            None => Err(self.unknown()),
        }
    }

    fn unknown(self) -> Failure {
        let name = K::NAME;
        Failure::new(
            Code::Handle,
            match (self.0, failure::root()) {
                (0, Some(cause)) => format!("the {name} is NULL{CAUSE}{cause}"),
                (0, None) => format!("the {name} is NULL"),
                _ => format!("no such {name}: it was given back already, or is something else"),
            },
        )
    }
}
