//! Why a call was not done. A result in rax below zero is one of these.

macro_rules! errors {
    ($($(#[doc = $what:literal])+ $number:literal $name:ident),+ $(,)?) => {
        /// Why a call was not done. Nothing has changed then, but where [`Error::Again`] says so.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i64)]
        pub enum Error { $($(#[doc = $what])+ $name = -$number),+ }

        impl Error {
            /// All errors, in the order of their numbers.
            pub const ALL: &'static [Error] = &[$(Error::$name),+];

            /// What the error says of the call and its maker, as its documentation does.
            pub const fn what(self) -> &'static str {
                match self { $(Error::$name => concat!($($what),+)),+ }
            }
        }
    };
}

errors! {
    /// There is no call of this number.
    1 NoCall,
    /// An argument is out of its range: an address, a page number, a position, a level, a count.
    2 Argument,
    /// The caller does not own the thing, and presented no capability for it.
    3 Denied,
    /// No environment has this number.
    4 NoEnvironment,
    /// The environment runs on another processor, or is not ready to be entered.
    5 Busy,
    /// Somebody has this page or this slice, or would lose frames.
    6 Taken,
    /// The caller's quota, or the receiver's, does not allow it.
    7 Quota,
    /// There is no page table for this address yet: the caller gives one first.
    8 NoTable,
    /// Something is bound there already.
    9 Mapped,
    /// Nothing is bound there, or what an argument points to cannot be read.
    10 Unmapped,
    /// A page of this kind cannot be used so.
    11 Kind,
    /// The page is bound or pinned.
    12 InUse,
    /// A part is done, or others were asked to give something back: the caller calls again.
    13 Again,
    /// There is none left, and nobody who could be asked for one.
    14 Exhausted,
    /// The machine has no such device.
    15 NoDevice,
    /// The device could not do it.
    16 Failed,
}

impl Error {
    /// The error of a result, which is below zero then.
    pub fn of(result: i64) -> Option<Error> {
        Error::ALL
            .iter()
            .copied()
            .find(|error| *error as i64 == result)
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(self.what().trim())
    }
}

impl core::error::Error for Error {}
