//! Inputs of a text and a packet.

/// The text, up to a zero byte if there is one, and what is behind that.
pub fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}
