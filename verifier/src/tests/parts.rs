//! The quick ways of judging, which must answer as the plain one: in parts, and by the common
//! forms.

use super::*;

/// Text that is long enough to be judged in parts.
fn long() -> Vec<u8> {
    let mut text = Vec::new();
    for i in 0..3_000u32 {
        if i % 100 == 0 {
            text.extend(window::PAD);
        }
        text.extend([0x65, 0x67, 0x8b, 0x47, 0x08, 0x85, 0xc0, 0x75, 0xf7]);
        if i % 50 == 0 {
            text.extend(&guarded(&[0x41, 0x89, 0xc3], 0xe3));
        }
    }
    text.push(0xc3);
    text
}

#[test]
fn long_text_is_judged_in_parts() {
    let text = long();
    let facts = judge(&text, Profile::User).unwrap();
    assert_eq!(facts.instructions, 3 * 3_000 + 30 + 60 * 6 + 1);
    assert!(judged_in_parts(&text, &LAYOUT).is_some_and(|verdict| verdict.is_ok()));
}

#[test]
fn a_bad_cut_is_harmless() {
    // What looks like fill lies inside constants, so every cut is inside an instruction.
    let mut text = Vec::new();
    for _ in 0..3_000 {
        text.extend([
            0x48, 0xb8, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0x0f, 0x05, 0x90, 0x31, 0xc0,
        ]);
    }
    text.push(0xc3);
    assert!(judged_in_parts(&text, &LAYOUT).is_some_and(|verdict| verdict.is_err()));
    assert_eq!(judge(&text, Profile::User).unwrap().instructions, 6_001);
}

#[test]
fn parts_judge_as_the_whole() {
    let text = long();
    let mut random = fastrand::Rng::with_seed(7);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let mut damaged = text.clone();
        for _ in 0..2 {
            // Half of the damage near the middle, where the parts meet.
            let at = random.usize(..text.len());
            let at = if random.bool() {
                text.len() / 2 + at % 512
            } else {
                at
            };
            damaged[at] ^= 1 << random.u32(..8);
        }
        let whole = judged_whole(&damaged, &LAYOUT);
        match judged_in_parts(&damaged, &LAYOUT) {
            Some(Ok(found)) => {
                assert_eq!(whole, Ok(found));
                accepted += 1;
            }
            _ => refused += 1,
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} {refused}");
}

#[test]
fn common_decoding_agrees_with_the_full_grammar() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut both = 0;
    for round in 0..3_000_000u32 {
        let mut chunk = [0x11; CHUNK];
        chunk[..8].copy_from_slice(&random.u64(..).to_le_bytes());
        if round % 2 == 0 {
            chunk[..2].copy_from_slice(&[0x65, 0x67]);
        }
        let Some(quick) = common(word(&chunk, 0), 0x65) else {
            continue;
        };
        let slow = full(&chunk, 0x65).expect("what common decoding accepts");
        assert_eq!(
            (quick.length, quick.entry),
            (slow.length, slow.entry),
            "{chunk:02x?}"
        );
        both += 1;
    }
    assert!(both > 300_000, "{both}");
}
