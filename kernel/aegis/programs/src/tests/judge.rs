//! Postern's judge in the kernel says what it says on the host, which put images and verdicts into
//! the archive.

use postern_aegis::{Error, archive, calls};

use crate::scenario::{Named, Outcome, Why, check, refused, same};

crate::scenarios! {
    "judge.same" verdicts;
    "judge.long" long;
}

const IMAGES: [(&str, &str); 5] = [
    ("judge.accepted", "judge.accepted.verdict"),
    ("judge.long", "judge.long.verdict"),
    ("judge.refused", "judge.refused.verdict"),
    ("judge.broken", "judge.broken.verdict"),
    ("judge.empty", "judge.empty.verdict"),
];

fn file(name: &'static str) -> Result<&'static [u8], Why> {
    archive::own().file(name).ok_or(Why::Not(name))
}

fn verdicts() -> Outcome {
    for (image, verdict) in IMAGES {
        let mut said = [u64::MAX; 4];
        let accepted = calls::judge(file(image)?, &mut said).named(image)?;
        let expected = file(verdict)?.as_chunks().0;
        same(verdict, expected.len() as u64, 4)?;
        for (said, expected) in said.iter().zip(expected) {
            same(image, *said, u64::from_le_bytes(*expected))?;
        }
        check(accepted == (said[0] as u32 == 0), "the result is another")?;
    }
    Ok(())
}

/// No image has more than 64 KiB.
fn long() -> Outcome {
    static LONG: [u8; (64 << 10) + 1] = [0; _];
    let mut verdict = [0; 4];
    let got = calls::judge(&LONG, &mut verdict).map(u64::from);
    refused("a byte too many", got, Error::Argument)?;
    let got = calls::judge(&LONG[1..], &mut verdict).named("as many as there may be")?;
    check(!got, "zeros are an image")
}
