//! Landing pads stand only at instruction starts, so that no indirect branch lands inside an
//! instruction.

use crate::starts::contains;
use crate::window::PAD;

/// The first occurrence of the pad that is not an instruction of its own, outside guarded
/// sequences.
pub(crate) fn stray(text: &[u8], starts: &[u64]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = find(text, from) {
        if !contains(starts, at) {
            return Some(at);
        }
        from = at + PAD.len();
    }
    None
}

/// The first pad at or after `from`. Pads cannot overlap each other.
pub(crate) fn find(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(block) = text.get(at..).and_then(|rest| rest.first_chunk::<SIGHT>()) {
        if may_hold(block) {
            let pad = block.windows(PAD.len()).position(|window| window == PAD);
            if let Some(position) = pad {
                return Some(at + position);
            }
        }
        at += BLOCK;
    }
    text.get(at..)?
        .windows(PAD.len())
        .position(|window| window == PAD)
        .map(|position| at + position)
}

/// Bytes that are looked at together.
const BLOCK: usize = 64;
/// Those, and what a pad that begins at the last of them reaches.
const SIGHT: usize = BLOCK + PAD.len();

/// Whether the pad's third and fourth byte, which are rare together, may stand where a pad would
/// begin in the first [`BLOCK`] bytes. Eight positions at a time: where both bytes agree, a byte of
/// `differs` is zero, and subtracting one from each byte borrows from its top bit.
fn may_hold(block: &[u8; SIGHT]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    let mut zero = 0;
    for at in (0..BLOCK).step_by(8) {
        let differs = (word(block, at + 2) ^ (ONES * PAD[2] as u64))
            | (word(block, at + 3) ^ (ONES * PAD[3] as u64));
        zero |= differs.wrapping_sub(ONES) & !differs;
    }
    zero & ONES << 7 != 0
}

#[inline(always)]
fn word(block: &[u8; SIGHT], at: usize) -> u64 {
    block
        .get(at..)
        .and_then(|rest| rest.first_chunk::<8>())
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_are_found_at_every_position() {
        let mut text = [0x90u8; 300];
        for at in 0..=text.len() - PAD.len() {
            text[at..at + 8].copy_from_slice(&PAD);
            assert_eq!(find(&text, 0), Some(at));
            assert_eq!(find(&text, at), Some(at));
            assert_eq!(find(&text, at + 1), None);
            text[at..at + 8].fill(0x90);
        }
    }
}
