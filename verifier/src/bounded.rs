//! The longest path through text whose branches and calls all go forward.

use crate::decode::{chunk_at, decode};
use crate::starts::before;
use crate::table::*;
use crate::verify::{Layout, displacement};

/// Instructions on the longest path from any start in `starts` to a return or trap, saturating; a call counts as its whole
/// callee, a gate slot as nothing. `paths` has a `u32` for each byte of text.
///
/// Every branch of `text` goes forward, so the walk from the end knows the paths of all targets.
pub(crate) fn longest_path(text: &[u8], layout: &Layout, starts: &[u64], paths: &mut [u64]) -> u32 {
    let segment = layout.segment.prefix();
    let (mut longest, mut next, mut end) = (0, 0, text.len());
    while let Some(at) = before(starts, end) {
        let chunk = chunk_at(text, at);
        let Some(decoded) = decode(&chunk, segment) else {
            break;
        };
        let target = || {
            let target =
                at as i64 + decoded.length as i64 + i64::from(displacement(text, at, &decoded));
            usize::try_from(target).map_or(0, |target| get(paths, target))
        };
        let after: u32 = match decoded.entry >> CLASS & 7 {
            CLASS_RETURN | CLASS_TRAP => 0,
            CLASS_JUMP => target(),
            CLASS_CONDITIONAL => target().max(next),
            CLASS_CALL => target().saturating_add(next),
            _ => next,
        };
        next = after.saturating_add(1);
        set(paths, at, next);
        longest = longest.max(next);
        end = at;
    }
    longest
}

fn get(paths: &[u64], at: usize) -> u32 {
    paths
        .get(at / 2)
        .map_or(0, |pair| (pair >> (at % 2 * 32)) as u32)
}

fn set(paths: &mut [u64], at: usize, path: u32) {
    if let Some(pair) = paths.get_mut(at / 2) {
        let shift = at % 2 * 32;
        *pair = *pair & !(0xffff_ffff << shift) | u64::from(path) << shift;
    }
}
