//! Which bits of registers the values of C types fill.

use postern_image::Type;

/// Bits of an integer register that a value of this type fills. Of a `_Bool` that is its truth
/// value in bit 0 (psABI): who lies in the others is not heard, whichever way the value goes.
pub fn integer_mask(t: Type) -> u64 {
    match (t.is_float(), t) {
        (true, _) => 0,
        (_, Type::Bool) => 1,
        _ => u64::MAX >> (64 - 8 * t.size()),
    }
}

/// Bits of the low half of a vector register that a value of this type fills.
pub fn float_mask(t: Type) -> u64 {
    match t {
        Type::F32 => u64::from(u32::MAX),
        Type::F64 => u64::MAX,
        _ => 0,
    }
}
