//! Sequence numbers, which go round (RFC 9293, section 3.4).

/// Whether a number comes before another.
pub fn before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

/// How far one is behind another; 0 if it is not.
pub fn from(one: u32, to: u32) -> u32 {
    match before(to, one) {
        true => 0,
        false => to.wrapping_sub(one),
    }
}
