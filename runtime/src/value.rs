//! Values that cross a gate: types for which every bit pattern is valid, and `bool`, which is cut
//! to its lowest bit.

use postern_image::Type;

/// A pointer of an extension: a 32-bit address inside its window. It is an allegation, not a
/// reference: what it points to is found out by [`crate::Domain::read`] and its kin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Offset(pub u32);

impl Offset {
    /// The null pointer.
    pub const NULL: Offset = Offset(0);

    /// `self + bytes`, or `None` past the end of the window.
    pub fn checked_add(self, bytes: u32) -> Option<Offset> {
        self.0.checked_add(bytes).map(Offset)
    }
}

impl std::fmt::Display for Offset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A type that a parameter or result of an entry or a service may have.
///
/// Implemented for the integers of up to 64 bits, `f32`, `f64`, `bool` and [`Offset`]. It cannot be
/// implemented for other types: a reference or an enum has bit patterns that an extension must not
/// be able to make.
pub trait Value: Copy + sealed::Sealed + 'static {
    /// The C type.
    const TYPE: Type;
    /// The value as the register holds it, extended to 64 bits.
    fn to_bits(self) -> u64;
    /// The value that the register holds; further bits are ignored.
    fn from_bits(bits: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integers {
    ($($t:ty => $type:ident),*) => { $(
        impl sealed::Sealed for $t {}
        impl Value for $t {
            const TYPE: Type = Type::$type;
            #[inline(always)]
            fn to_bits(self) -> u64 { self as u64 }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self { bits as $t }
        }
    )* };
}
integers!(i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64);

impl sealed::Sealed for f32 {}
impl Value for f32 {
    const TYPE: Type = Type::F32;
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(f32::to_bits(self))
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
}

impl sealed::Sealed for f64 {}
impl Value for f64 {
    const TYPE: Type = Type::F64;
    #[inline(always)]
    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
}

impl sealed::Sealed for bool {}
impl Value for bool {
    const TYPE: Type = Type::Bool;
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits & 1 != 0
    }
}

impl sealed::Sealed for Offset {}
impl Value for Offset {
    const TYPE: Type = Type::Pointer;
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(self.0)
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Offset(bits as u32)
    }
}

/// A result: a [`Value`] or nothing.
pub trait Output: sealed_output::Sealed + Sized + 'static {
    /// The C type; `None` is void.
    const TYPE: Option<Type>;
    /// The result in rax or in the low half of xmm0.
    fn from_registers(integer: u64, float: u64) -> Self;
    /// The result as a register holds it.
    fn to_bits(self) -> u64;
}

mod sealed_output {
    pub trait Sealed {}
    impl Sealed for () {}
    impl<T: super::Value> Sealed for T {}
}

impl Output for () {
    const TYPE: Option<Type> = None;
    #[inline(always)]
    fn from_registers(_: u64, _: u64) {}
    #[inline(always)]
    fn to_bits(self) -> u64 {
        0
    }
}

impl<T: Value> Output for T {
    const TYPE: Option<Type> = Some(T::TYPE);
    #[inline(always)]
    fn from_registers(integer: u64, float: u64) -> Self {
        T::from_bits(match T::TYPE {
            Type::F32 | Type::F64 => float,
            _ => integer,
        })
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        Value::to_bits(self)
    }
}
