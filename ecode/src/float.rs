//! Floating constants, as the bits of `f64`, and what is computed with them while compiling.
//!
//! Without the feature `float` nothing here is more than bits, for programs on processors whose
//! floating point is not to be used: sources then have none, which the parser sees to.

use crate::tree::{Arithmetic, Comparison};

/// Whether sources may have floating point.
pub(crate) const KNOWN: bool = cfg!(feature = "float");

#[cfg(feature = "float")]
mod known {
    use super::{Arithmetic, Comparison};

    /// A whole number, of a `float` or a `double`.
    pub(crate) fn of_unsigned(value: u64, single: bool) -> u64 {
        let value = match single {
            true => f64::from(value as f32),
            false => value as f64,
        };
        value.to_bits()
    }

    /// The same of a number with a sign.
    pub(crate) fn of_signed(value: i64, single: bool) -> u64 {
        let value = match single {
            true => f64::from(value as f32),
            false => value as f64,
        };
        value.to_bits()
    }

    /// The value as a `float` has it, still as the bits of `f64`.
    pub(crate) fn rounded(bits: u64) -> u64 {
        f64::from(f64::from_bits(bits) as f32).to_bits()
    }

    /// The bits of a `float`.
    pub(crate) fn single(bits: u64) -> u32 {
        (f64::from_bits(bits) as f32).to_bits()
    }

    /// The whole number to which it is cut, if that fits.
    pub(crate) fn whole(bits: u64, unsigned: bool) -> Option<u64> {
        let value = f64::from_bits(bits);
        let in_range = value > -2147483649.0 && value < 2147483648.0;
        let fits = in_range || unsigned && (0.0..18446744073709551616.0).contains(&value);
        fits.then_some(match value < 0.0 {
            true => value as i64 as u64,
            false => value as u64,
        })
    }

    /// An operation, unless its result is no number.
    pub(crate) fn compute(kind: Arithmetic, single: bool, x: u64, y: u64) -> Option<u64> {
        use Arithmetic::{Add, Mul, Sub};
        let (x, y) = (f64::from_bits(x), f64::from_bits(y));
        let (x32, y32) = (x as f32, y as f32);
        let value = match (kind, single) {
            (Add, false) => x + y,
            (Sub, false) => x - y,
            (Mul, false) => x * y,
            (_, false) => x / y,
            (Add, true) => (x32 + y32).into(),
            (Sub, true) => (x32 - y32).into(),
            (Mul, true) => (x32 * y32).into(),
            (_, true) => (x32 / y32).into(),
        };
        (!value.is_nan()).then(|| value.to_bits())
    }

    pub(crate) fn compare(kind: Comparison, x: u64, y: u64) -> bool {
        use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        let (x, y) = (f64::from_bits(x), f64::from_bits(y));
        match kind {
            Less => x < y,
            Greater => x > y,
            LessEqual => x <= y,
            GreaterEqual => x >= y,
            Equal => x == y,
            NotEqual => x != y,
        }
    }

    /// A constant of decimal digits.
    pub(crate) fn decimal(digits: &str, single: bool) -> Option<u64> {
        // A float is rounded once, from its digits.
        let value = match single {
            true => digits.parse::<f32>().ok().map(f64::from),
            false => digits.parse::<f64>().ok(),
        };
        value.map(f64::to_bits)
    }

    /// A mantissa with an exponent of two.
    pub(crate) fn binary(mantissa: u64, exponent: i64, single: bool) -> u64 {
        // Exactly, as far as it goes: the mantissa is rounded once, then only its exponent changes.
        let mut value = if single {
            f64::from(mantissa as f32)
        } else {
            mantissa as f64
        };
        for _ in 0..exponent.unsigned_abs().min(3000) {
            value *= if exponent < 0 { 0.5 } else { 2.0 };
        }
        match single {
            true => rounded(value.to_bits()),
            false => value.to_bits(),
        }
    }
}

/// The same without floating point: what no source can come to.
#[cfg(not(feature = "float"))]
mod known {
    use super::{Arithmetic, Comparison};

    pub(crate) fn of_unsigned(_: u64, _: bool) -> u64 {
        0
    }

    pub(crate) fn of_signed(_: i64, _: bool) -> u64 {
        0
    }

    pub(crate) fn rounded(bits: u64) -> u64 {
        bits
    }

    pub(crate) fn single(_: u64) -> u32 {
        0
    }

    pub(crate) fn whole(_: u64, _: bool) -> Option<u64> {
        None
    }

    pub(crate) fn compute(_: Arithmetic, _: bool, _: u64, _: u64) -> Option<u64> {
        None
    }

    pub(crate) fn compare(_: Comparison, _: u64, _: u64) -> bool {
        false
    }

    pub(crate) fn decimal(_: &str, _: bool) -> Option<u64> {
        Some(0)
    }

    pub(crate) fn binary(_: u64, _: i64, _: bool) -> u64 {
        0
    }
}

pub(crate) use known::*;

/// Whether it is another value than zero.
pub(crate) fn truth(bits: u64) -> bool {
    bits << 1 != 0
}

/// With the other sign.
pub(crate) fn negated(bits: u64) -> u64 {
    bits ^ 1 << 63
}
