//! The guarded sequence: the only way to an indirect branch.
//!
//! ```text
//! movl  <r32 or memory>, %r11d        cuts the target to an offset
//! cmpq  $0x20841f0f, %gs:(%r11d)      is there a landing pad?
//! jne   <direct target>               no: away
//! orq   %gs:INFO, %r11                the window's base
//! jmp   *%r11     or   call *%r11
//! ```
//!
//! The invariant: whoever reaches the branch has executed all five in order, since none but the
//! first is a start that anything may branch to; so r11 is the window's base plus an offset at
//! which text (or a gate slot) holds a pad.

use crate::decode::{chunk_at, decode};
use crate::starts::{before, remove};
use crate::window::INFO;

/// `41 FF E3` or `41 FF D3`.
const BRANCH: usize = 3;
/// `cmpq $0x20841f0f, %gs:(%r11d)` after its segment override.
const COMPARE: [u8; 8] = [0x67, 0x49, 0x81, 0x3b, 0x0f, 0x1f, 0x84, 0x20];
/// `orq %gs:INFO, %r11` after its segment override.
const OR: [u8; 9] = {
    let [a, b, c, d] = INFO.to_le_bytes();
    [0x67, 0x4c, 0x0b, 0x1c, 0x25, a, b, c, d]
};

/// Whether the branch at `at`, an instruction start like all those in `starts` below it, ends a
/// guarded sequence. If so, the starts inside the sequence are taken out of `starts`.
pub(crate) fn close(text: &[u8], segment: u8, starts: &mut [u64], at: usize) -> bool {
    match find(text, segment, starts, at) {
        Some(inside) => {
            inside.into_iter().for_each(|at| remove(starts, at));
            true
        }
        None => false,
    }
}

/// The starts inside the sequence that ends with the branch at `at`.
fn find(text: &[u8], segment: u8, starts: &[u64], at: usize) -> Option<[usize; 4]> {
    let branch = text.get(at..at.checked_add(BRANCH)?)?;
    if !matches!(branch, [0x41, 0xff, 0xe3 | 0xd3]) {
        return None;
    }
    let or = before(starts, at)?;
    let jne = before(starts, or)?;
    let compare = before(starts, jne)?;
    let mov = before(starts, compare)?;
    // Consecutive starts, so these are whole instructions as they were decoded (the patterns fix
    // their lengths).
    let good = is(text.get(or..at)?, segment, &OR)
        && matches!(text.get(jne..or)?, [0x75, _] | [0x0f, 0x85, _, _, _, _])
        && is(text.get(compare..jne)?, segment, &COMPARE)
        && writes_r11d(text.get(mov..compare)?, segment)
        // One instruction, not a whole sequence that was closed earlier and has no starts inside.
        && decode(&chunk_at(text, mov), segment)?.length == compare - mov;
    good.then_some([compare, jne, or, at])
}

fn is(instruction: &[u8], segment: u8, rest: &[u8]) -> bool {
    instruction
        .split_first()
        .is_some_and(|(first, tail)| *first == segment && tail == rest)
}

/// `mov` of 32 bits to r11d from a register or a memory operand. The instruction is already
/// accepted, so only the opcode, the width and the destination are left to check.
fn writes_r11d(instruction: &[u8], segment: u8) -> bool {
    let rest = match instruction {
        [first, 0x67, rest @ ..] if *first == segment => rest,
        rest => rest,
    };
    let Some((&[rex, opcode, modrm], _)) = rest.split_first_chunk::<3>() else {
        return false;
    };
    let (w, r, b) = (rex >> 3 & 1, rex >> 2 & 1, rex & 1);
    let load = opcode == 0x8b && r == 1 && modrm >> 3 & 7 == 3;
    let store = opcode == 0x89 && b == 1 && modrm & 0xc7 == 0xc3;
    rex & 0xf0 == 0x40 && w == 0 && (load || store)
}
