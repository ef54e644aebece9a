//! The longest path through text whose branches and calls all go forward, and how deep its calls
//! nest.

use crate::decode::{self, chunk_at, decode};
use crate::layout::Layout;
use crate::rule::Rule;
use crate::starts::before;
use crate::table::*;

/// What a call of text of [`crate::Profile::Bounded`] may take at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Instructions that run.
    pub instructions: u32,
    /// Calls inside each other, those of gate slots among them; none is a function that calls
    /// nothing.
    pub call_depth: u32,
}

impl Bounds {
    /// The highest: what can be counted at all.
    pub const MAX: Bounds = Bounds {
        instructions: u32::MAX - 1,
        call_depth: u32::MAX - 1,
    };
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds::MAX
    }
}

/// What runs from an instruction on, until its function returns or traps.
#[derive(Clone, Copy, Default)]
pub(crate) struct Path {
    pub instructions: u32,
    pub depth: u32,
}

impl Path {
    /// The greater of both, each by itself.
    fn or(self, other: Path) -> Path {
        Path {
            instructions: self.instructions.max(other.instructions),
            depth: self.depth.max(other.depth),
        }
    }
}

/// The longest path from any start in `starts` to a return or trap, and the deepest; a call counts
/// as its whole callee, a gate slot as no instruction. Refused, with its place, is the last start
/// from which either is above `bounds`: as a number that can no longer be counted is above all
/// bounds, none is ever less than the truth. `paths` has a word for each byte of text.
///
/// Every branch of `text` goes forward, so the walk from the end knows the paths of all targets.
pub(crate) fn longest_path(
    text: &[u8],
    layout: &Layout,
    starts: &[u64],
    paths: &mut [u64],
    bounds: Bounds,
) -> Result<Path, (usize, Rule)> {
    let segment = layout.segment.prefix();
    let (mut longest, mut next) = (Path::default(), Path::default());
    let mut end = text.len();
    let most = Bounds {
        instructions: bounds.instructions.min(Bounds::MAX.instructions),
        call_depth: bounds.call_depth.min(Bounds::MAX.call_depth),
    };
    while let Some(at) = before(starts, end) {
        let chunk = chunk_at(text, at);
        let Some(decoded) = decode(&chunk, segment) else {
            break;
        };
        let target = || {
            let target = decode::target(text, at, &decoded);
            usize::try_from(target).map_or(Path::default(), |target| get(paths, target))
        };
        let mut here = match decoded.entry >> CLASS & 7 {
            CLASS_RETURN | CLASS_TRAP => Path::default(),
            CLASS_JUMP => target(),
            CLASS_CONDITIONAL => target().or(next),
            CLASS_CALL => {
                let callee = target();
                Path {
                    instructions: callee.instructions.saturating_add(next.instructions),
                    depth: callee.depth.saturating_add(1).max(next.depth),
                }
            }
            _ => next,
        };
        here.instructions = here.instructions.saturating_add(1);
        if here.instructions > most.instructions {
            return Err((at, Rule::BoundedPath));
        }
        if here.depth > most.call_depth {
            return Err((at, Rule::BoundedDepth));
        }
        set(paths, at, here);
        longest = longest.or(here);
        next = here;
        end = at;
    }
    Ok(longest)
}

fn get(paths: &[u64], at: usize) -> Path {
    paths.get(at).map_or(Path::default(), |word| Path {
        instructions: *word as u32,
        depth: (word >> 32) as u32,
    })
}

fn set(paths: &mut [u64], at: usize, path: Path) {
    if let Some(word) = paths.get_mut(at) {
        *word = u64::from(path.depth) << 32 | u64::from(path.instructions);
    }
}
