//! Small texts, judged whole: one per rule, and the ways around the guarded sequence.

mod bounds;
mod nesting;
mod parts;
mod targets;

use crate::decode::{CHUNK, common, full, word};
use crate::pass::{judged_in_parts, judged_whole};
use crate::window::slot;
use crate::{
    Bounds, Facts, Layout, Links, Profile, Rule, Violation, bounded_buffer_len, verify,
    verify_within, window,
};
use std::vec;
use std::vec::Vec;

const LAYOUT: Layout = Layout::new(2);

fn judge(text: &[u8], profile: Profile) -> Result<Facts, Violation> {
    verify(
        text,
        &LAYOUT,
        profile,
        &mut vec![!0; bounded_buffer_len(text.len())],
    )
}

fn rule(text: &[u8]) -> Option<Rule> {
    judge(text, Profile::User)
        .err()
        .map(|violation| violation.rule)
}

const COMPARE: [u8; 9] = [0x65, 0x67, 0x49, 0x81, 0x3b, 0x0f, 0x1f, 0x84, 0x20];
const OR: [u8; 10] = [0x65, 0x67, 0x4c, 0x0b, 0x1c, 0x25, 0, 0, 1, 0];

/// `mov`, then the rest of a guarded sequence whose `jne` goes to the byte after it, then `int3`.
fn guarded(mov: &[u8], branch: u8) -> Vec<u8> {
    [
        mov,
        &COMPARE,
        &[0x75, 13],
        &OR,
        &[0x41, 0xff, branch],
        &[0xcc],
    ]
    .concat()
}

#[test]
fn guarded_sequences_are_accepted() {
    let facts = judge(&guarded(&[0x41, 0x89, 0xc3], 0xe3), Profile::User).unwrap();
    assert!(facts.indirect && facts.instructions == 6);
    for mov in [
        &[0x45, 0x89, 0xdb][..],
        &[0x44, 0x8b, 0xd8],
        &[0x65, 0x67, 0x44, 0x8b, 0x1c, 0xc7],
    ] {
        assert_eq!(rule(&guarded(mov, 0xd3)), None);
    }
    assert_eq!(
        judge(&guarded(&[0x41, 0x89, 0xc3], 0xe3), Profile::Bounded)
            .unwrap_err()
            .rule,
        Rule::BoundedIndirect
    );
}

#[test]
fn a_closed_sequence_is_no_first_member_of_another() {
    // The second branch would be taken with whatever the called code left in r11.
    let mut text = guarded(&[0x41, 0x89, 0xc3], 0xd3);
    text.pop();
    text.extend([&COMPARE[..], &[0x75, 13], &OR, &[0x41, 0xff, 0xe3], &[0xcc]].concat());
    assert_eq!(rule(&text), Some(Rule::Unguarded));
}

#[test]
fn nothing_branches_into_a_guarded_sequence() {
    let sequence = guarded(&[0x41, 0x89, 0xc3], 0xe3);
    for (target, expected) in [
        (0i8, None),
        (3, Some(())),
        (12, Some(())),
        (14, Some(())),
        (24, Some(())),
        (27, None),
    ] {
        let mut text = sequence.clone();
        let at = text.len() as i8;
        text.extend([0xeb, (target - at - 2) as u8]);
        assert_eq!(
            rule(&text),
            expected.map(|()| Rule::BranchMisplaced),
            "target {target}"
        );
    }
}

#[test]
fn layouts_and_buffers_are_checked() {
    let verdict = |text: &[u8], layout: Layout, words: usize| {
        verify(text, &layout, Profile::User, &mut vec![0; words])
            .map_err(|violation| violation.rule)
    };
    assert_eq!(verdict(&[], LAYOUT, 2), Err(Rule::Empty));
    assert_eq!(verdict(&[0xc3], LAYOUT, 1), Err(Rule::BufferTooSmall));
    assert_eq!(
        verdict(&[0xc3], Layout::new(window::MAX_IMPORTS + 1), 2),
        Err(Rule::Layout)
    );
    assert_eq!(
        verdict(
            &[0xc3],
            Layout {
                text: window::LIMIT,
                ..LAYOUT
            },
            2
        ),
        Err(Rule::Layout)
    );
    assert_eq!(
        verdict(
            &[0xc3],
            Layout {
                text: window::GATES + 32,
                ..LAYOUT
            },
            2
        ),
        Err(Rule::Layout)
    );
    assert!(
        verdict(
            &[0xc3],
            Layout {
                text: window::LIMIT - 1,
                ..LAYOUT
            },
            2
        )
        .is_ok()
    );
}

#[test]
fn pads_stand_alone() {
    let pad = window::PAD;
    assert_eq!(rule(&[&pad[..], &[0xc3]].concat()), None);
    // movabs with the pad as its constant; and a 16-bit nop around the pad.
    let violation = judge(
        &[&[0x90, 0x48, 0xb8][..], &pad, &[0xc3]].concat(),
        Profile::User,
    )
    .unwrap_err();
    assert_eq!(
        violation,
        Violation {
            offset: LAYOUT.text + 1,
            rule: Rule::StrayPad
        }
    );
    assert_eq!(
        rule(&[&[0x66][..], &pad, &[0xc3]].concat()),
        Some(Rule::StrayPad)
    );
}

#[test]
fn facts_say_what_is_touched() {
    let facts = |code: &[u8]| judge(&[code, &[0xc3]].concat(), Profile::User).unwrap();
    let integer = facts(&[0x65, 0x67, 0x8b, 0x07]);
    assert!(!integer.xmm && !integer.ymm && !integer.x87 && !integer.gates && !integer.indirect);
    assert!(facts(&[0x0f, 0x58, 0xc1]).xmm && !facts(&[0x0f, 0x58, 0xc1]).ymm);
    assert!(facts(&[0xc5, 0xf4, 0x58, 0xc2]).ymm && facts(&[0xc5, 0xfc, 0x77]).ymm);
    assert!(!facts(&[0xc5, 0xf8, 0x77]).ymm && facts(&[0xc5, 0xf8, 0x77]).xmm);
    assert!(
        !facts(&[0xc4, 0xe2, 0x78, 0xf2, 0xc1]).xmm,
        "andn is general"
    );
    assert!(facts(&[0xd9, 0xe8]).x87);
}

/// The processor's word on it is in `soundness/tests/float.rs`.
#[test]
fn floating_point_is_told_from_bits() {
    let float = |code: &[u8]| {
        judge(&[code, &[0xc3]].concat(), Profile::User)
            .unwrap()
            .float
    };
    let computing: [&[u8]; 8] = [
        &[0x0f, 0x58, 0xc1],                   // addps
        &[0xf2, 0x0f, 0x2a, 0xc0],             // cvtsi2sd
        &[0x66, 0x0f, 0x2e, 0xc1],             // ucomisd
        &[0x0f, 0xc2, 0xc1, 0x00],             // cmpps
        &[0x66, 0x0f, 0x3a, 0x0b, 0xc1, 0x00], // roundsd
        &[0xc5, 0xf4, 0x58, 0xc2],             // vaddps
        &[0xc4, 0xe2, 0x75, 0x98, 0xc2],       // vfmadd132ps
        &[0xc4, 0xe3, 0x79, 0x1d, 0xc1, 0x00], // vcvtps2ph
    ];
    for code in computing {
        assert!(float(code), "{code:02x?}");
    }
    let bits: [&[u8]; 9] = [
        &[0x89, 0xc1],                         // mov
        &[0x0f, 0x28, 0xc1],                   // movaps
        &[0xf2, 0x0f, 0x10, 0xc1],             // movsd
        &[0x66, 0x0f, 0x57, 0xc1],             // xorpd
        &[0x66, 0x0f, 0x3a, 0x0c, 0xc1, 0x00], // blendps
        &[0x66, 0x0f, 0x3a, 0x42, 0xc1, 0x00], // mpsadbw
        &[0xc5, 0xf8, 0x77],                   // vzeroupper
        &[0xc4, 0xe2, 0x78, 0xf2, 0xc1],       // andn
        &[0xd8, 0xc1],                         // fadd
    ];
    for code in bits {
        assert!(!float(code), "{code:02x?}");
    }
}

/// Long text is judged by many instructions at once, and what is told is the same.
#[test]
fn the_first_violation_is_told() {
    let mut text = vec![0x90; 3000];
    // A jump out of text, and behind it no instruction at all.
    text[2..7].copy_from_slice(&[0xe9, 0, 0, 0, 0x60]);
    text[7..9].copy_from_slice(&[0x0f, 0x05]);
    let violation = judge(&text, Profile::User).unwrap_err();
    let short = judge(&text[..100], Profile::User).unwrap_err();
    assert_eq!(violation, short);
    assert_eq!(violation.rule, Rule::BranchOutside);
}
