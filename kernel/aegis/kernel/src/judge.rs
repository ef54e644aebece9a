//! Postern's judge: images that environments ask about are judged in the kernel, by the code that
//! judges them everywhere. One is judged at a time, in memory that is set apart for it.

use postern_aegis_abi::Error;
use postern_aegis_books::Hardware;
use postern_kernel_judge::{OUT_OF_MEMORY, Verdict, image};

use crate::hardware::arena;
use crate::machine::{Here, books};

/// The call: copies the image, judges it, stores the verdict's words; 0 if it is accepted.
pub fn judge(caller: u16, address: u64, length: u64, verdict_at: u64) -> Result<u64, Error> {
    let mut room = arena::hold(|| Here.poll());
    let file = usize::try_from(length)
        .ok()
        .and_then(|length| room.image(length));
    let file = file.ok_or(Error::Argument)?;
    books().read_bytes(caller, address, file)?;
    let verdict = image(file);
    books().write_words(caller, verdict_at, &words(&verdict))?;
    match verdict.verdict {
        OUT_OF_MEMORY => Err(Error::Exhausted),
        verdict => Ok(u64::from(verdict != postern_kernel_judge::ACCEPTED)),
    }
}

/// A verdict as it is stored: its fields, two to a word.
fn words(verdict: &Verdict) -> [u64; 4] {
    let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    [
        two(verdict.verdict, verdict.rule),
        two(verdict.place, verdict.depth),
        verdict.at,
        two(verdict.instructions, verdict.longest_path),
    ]
}
