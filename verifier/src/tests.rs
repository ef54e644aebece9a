//! Small texts, judged whole: one per rule, and the ways around the guarded sequence.

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
fn paths_are_the_longest() {
    let bounded =
        |text: &[u8]| judge(text, Profile::Bounded).map(|facts| facts.longest_path.unwrap());
    assert_eq!(bounded(&[0xc3]), Ok(1));
    assert_eq!(bounded(&[0x90, 0x90, 0xc3]), Ok(3));
    // je over two nops: the longer side counts.
    assert_eq!(bounded(&[0x74, 2, 0x90, 0x90, 0xc3]), Ok(4));
    // jmp over two nops: the nops are a path of their own only from their own start.
    assert_eq!(bounded(&[0xeb, 2, 0x90, 0x90, 0xc3]), Ok(3));
    // call over a ret: call, callee (2), ret.
    assert_eq!(bounded(&[0xe8, 1, 0, 0, 0, 0xc3, 0x90, 0xc3]), Ok(4));
    assert_eq!(
        bounded(&[0xeb, 0xfe]).unwrap_err().rule,
        Rule::BoundedBackward
    );
    assert_eq!(
        bounded(&[0x90, 0x74, 0xfd, 0xc3]).unwrap_err().rule,
        Rule::BoundedBackward
    );
}

/// Functions of which each calls the next one twice, and the last one returns.
fn doubling(functions: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..functions {
        text.extend([0xe8, 6, 0, 0, 0, 0xe8, 1, 0, 0, 0, 0xc3]);
    }
    text.push(0xc3);
    text
}

#[test]
fn a_path_that_cannot_be_counted_is_refused() {
    // n functions run 4 * 2^n - 3 instructions.
    for (functions, expected) in [(0, 1), (1, 5), (2, 13), (29, (1 << 31) - 3)] {
        let facts = judge(&doubling(functions), Profile::Bounded).unwrap();
        assert_eq!(facts.longest_path, Some(expected));
        assert_eq!(facts.call_depth, Some(functions as u32));
    }
    // 2^32 - 3 is counted still.
    assert!(judge(&doubling(30), Profile::Bounded).is_ok());
    for functions in [31, 40, 60, 1000] {
        let text = doubling(functions);
        let violation = judge(&text, Profile::Bounded).unwrap_err();
        assert_eq!(violation.rule, Rule::BoundedPath, "{functions}");
        // The second call of the 31st function from the end: 2^32 - 3 instructions, the call, and the return.
        let at = text.len() - 1 - 31 * 11 + 5;
        assert_eq!(violation.offset, LAYOUT.text + at as u32);
    }
    assert!(judge(&doubling(1000), Profile::User).is_ok());
}

#[test]
fn bounds_are_kept_to_the_instruction_and_to_the_call() {
    let within = |text: &[u8], instructions, call_depth| {
        let mut buffer = vec![!0; bounded_buffer_len(text.len())];
        let bounds = Bounds {
            instructions,
            call_depth,
        };
        verify_within(text, &LAYOUT, bounds, &mut buffer).map_err(|violation| violation.rule)
    };
    let text = doubling(3);
    let facts = within(&text, 29, 3).unwrap();
    assert_eq!((facts.longest_path, facts.call_depth), (Some(29), Some(3)));
    assert_eq!(within(&text, 28, 3), Err(Rule::BoundedPath));
    assert_eq!(within(&text, 29, 2), Err(Rule::BoundedDepth));
    assert!(within(&text, u32::MAX, u32::MAX).is_ok());
    let large = doubling(40);
    assert_eq!(within(&large, u32::MAX, u32::MAX), Err(Rule::BoundedPath));
    assert_eq!(within(&[0xc3], 0, 0), Err(Rule::BoundedPath));
    assert!(within(&[0xc3], 1, 0).is_ok());
    // A jump is no call, a call behind a call no deeper one, the deeper side of a branch counts.
    assert!(within(&[0xeb, 0, 0xc3], 2, 0).is_ok());
    let two = [0xe8, 6, 0, 0, 0, 0xe8, 1, 0, 0, 0, 0xc3, 0xc3];
    assert!(within(&two, 5, 1).is_ok());
    let branch = [0x74, 6, 0xe8, 1, 0, 0, 0, 0xc3, 0xc3];
    assert_eq!(within(&branch, 9, 0), Err(Rule::BoundedDepth));
    assert!(within(&branch, 4, 1).is_ok());
    // A gate slot's instructions are the host's, its return address is not.
    let to = slot(0) as i64 - i64::from(LAYOUT.text) - 5;
    let gate = [&[0xe8][..], &(to as i32).to_le_bytes(), &[0xc3]].concat();
    assert_eq!(within(&gate, 2, 0), Err(Rule::BoundedDepth));
    assert!(within(&gate, 2, 1).is_ok());
    // Loops and indirect branches are refused as ever.
    assert_eq!(within(&[0xeb, 0xfe], 9, 9), Err(Rule::BoundedBackward));
}

/// An instruction of [`random_text`]; targets are numbers of later ones.
#[derive(Clone, Copy)]
enum Step {
    Nop,
    Return,
    Trap,
    Jump(usize),
    Branch(usize),
    Call(usize),
    Gate,
}

/// What runs from a step on, found by going there: instructions, and calls inside each other.
fn walk(steps: &[Step], at: usize) -> (u32, u32) {
    let longer = |a: (u32, u32), b: (u32, u32)| (a.0.max(b.0), a.1.max(b.1));
    let called = |(count, depth): (u32, u32)| {
        let rest = walk(steps, at + 1);
        (count + rest.0, rest.1.max(depth + 1))
    };
    let (count, depth) = match steps[at] {
        Step::Return | Step::Trap => (0, 0),
        Step::Nop => walk(steps, at + 1),
        Step::Jump(to) => walk(steps, to),
        Step::Branch(to) => longer(walk(steps, to), walk(steps, at + 1)),
        Step::Call(to) => called(walk(steps, to)),
        Step::Gate => called((0, 0)),
    };
    (count + 1, depth)
}

#[test]
fn bounds_are_what_a_walk_of_every_path_finds() {
    const STEPS: usize = 18;
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..3000 {
        let steps: Vec<Step> = (0..STEPS)
            .map(|at| match random.u8(..8) {
                _ if at + 1 == STEPS => Step::Return,
                0 => Step::Nop,
                1 => Step::Return,
                2 => Step::Trap,
                3 => Step::Jump(random.usize(at + 1..STEPS)),
                4 | 5 => Step::Branch(random.usize(at + 1..STEPS)),
                6 => Step::Call(random.usize(at + 1..STEPS)),
                _ => Step::Gate,
            })
            .collect();
        let length = |step: &Step| match step {
            Step::Nop | Step::Return => 1,
            Step::Trap => 2,
            Step::Branch(_) => 6,
            _ => 5,
        };
        let place = |n: usize| steps[..n].iter().map(length).sum::<i64>();
        let mut text = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let (opcode, to): (&[u8], _) = match *step {
                Step::Nop => (&[0x90], None),
                Step::Return => (&[0xc3], None),
                Step::Trap => (&[0x0f, 0x0b], None),
                Step::Jump(to) => (&[0xe9], Some(place(to))),
                Step::Branch(to) => (&[0x0f, 0x84], Some(place(to))),
                Step::Call(to) => (&[0xe8], Some(place(to))),
                Step::Gate => (&[0xe8], Some(slot(0) as i64 - i64::from(LAYOUT.text))),
            };
            text.extend(opcode);
            if let Some(to) = to {
                text.extend(((to - place(at + 1)) as i32).to_le_bytes());
            }
        }
        let paths: Vec<(u32, u32)> = (0..STEPS).map(|at| walk(&steps, at)).collect();
        let most = paths.iter().map(|path| path.0).max().unwrap();
        let deepest = paths.iter().map(|path| path.1).max().unwrap();
        let facts = judge(&text, Profile::Bounded).unwrap();
        let found = (facts.longest_path, facts.call_depth);
        assert_eq!(found, (Some(most), Some(deepest)), "{text:02x?}");
        // One less of either is refused where the walk says, from the end.
        let mut buffer = vec![!0; bounded_buffer_len(text.len())];
        for (instructions, call_depth) in [(most - 1, deepest), (most, deepest.wrapping_sub(1))] {
            if call_depth == u32::MAX {
                continue;
            }
            let bounds = Bounds {
                instructions,
                call_depth,
            };
            let above = |path: &(u32, u32)| path.0 > instructions || path.1 > call_depth;
            let last = paths.iter().rposition(above).unwrap();
            let refused = verify_within(&text, &LAYOUT, bounds, &mut buffer).unwrap_err();
            assert_eq!(refused.offset, LAYOUT.text + place(last) as u32);
        }
    }
}

#[test]
fn gates_are_entered_at_imported_slots_only() {
    let call = |offset: i64| {
        let mut text = vec![0xe8];
        text.extend(((offset - i64::from(LAYOUT.text) - 5) as i32).to_le_bytes());
        text.push(0xc3);
        rule(&text)
    };
    let slot = |k| i64::from(window::slot(k));
    assert_eq!(call(slot(0)), None);
    assert_eq!(call(slot(1)), None);
    assert_eq!(call(slot(2)), Some(Rule::BranchToGate));
    assert_eq!(call(slot(1) + 8), Some(Rule::BranchToGate));
    assert_eq!(call(i64::from(window::INFO)), Some(Rule::BranchOutside));
    assert_eq!(call(i64::from(LAYOUT.text) - 1), Some(Rule::BranchToGate));
    assert_eq!(call(i64::from(LAYOUT.text) + 6), Some(Rule::BranchOutside));
}

#[test]
fn links_are_entered_at_their_starts_only() {
    // Above text and below it.
    for (text_at, start) in [(LAYOUT.text, 0x80_0000), (0x90_0000, 0x80_0000)] {
        let layout = Layout {
            text: text_at,
            links: Links { start, count: 3 },
            ..LAYOUT
        };
        let branch = |opcode: &[u8], target: i64| {
            let mut text = opcode.to_vec();
            let end = i64::from(text_at) + opcode.len() as i64 + 4;
            text.extend(((target - end) as i32).to_le_bytes());
            text.push(0xc3);
            verify(&text, &layout, Profile::User, &mut [0; 2]).map_err(|violation| violation.rule)
        };
        let start = i64::from(start);
        for opcode in [&[0xe8][..], &[0xe9], &[0x0f, 0x84]] {
            for k in 0..3 {
                let facts = branch(opcode, start + 32 * k).unwrap();
                assert!(facts.links && !facts.gates && !facts.indirect);
            }
            for into in [1, 8, 16, 31, 33, 95] {
                assert_eq!(branch(opcode, start + into), Err(Rule::BranchToLink));
            }
            assert_eq!(branch(opcode, start - 1), Err(Rule::BranchOutside));
            assert_eq!(branch(opcode, start + 96), Err(Rule::BranchOutside));
        }
        assert!(branch(&[0xe8], i64::from(window::slot(1))).is_ok_and(|f| f.gates && !f.links));
        assert_eq!(
            branch(&[0xe8], i64::from(window::slot(2))),
            Err(Rule::BranchToGate)
        );
    }
}

#[test]
fn slots_are_where_the_layout_has_them() {
    let call = |layout: Layout, target: u32| {
        let mut text = vec![0xe8];
        text.extend(target.wrapping_sub(layout.text + 5).to_le_bytes());
        text.push(0xc3);
        let verdict = verify(&text, &layout, Profile::User, &mut [0; 2]);
        verdict.map(|_| ()).map_err(|violation| violation.rule)
    };
    for pages in [1, 5, window::MAX_SHIFT] {
        let layout = LAYOUT.shifted(pages);
        let up = pages * window::PAGE;
        assert_eq!(
            (layout.text, layout.gates),
            (LAYOUT.text + up, window::GATES + up)
        );
        for k in 0..2 {
            assert_eq!(call(layout, window::slot(k) + up), Ok(()));
            // Where it would be without the shift, nothing can be run.
            assert_eq!(call(layout, window::slot(k)), Err(Rule::BranchOutside));
        }
        assert_eq!(call(layout, window::slot(2) + up), Err(Rule::BranchToGate));
        assert_eq!(
            call(layout, window::slot(1) + up + 8),
            Err(Rule::BranchToGate)
        );
        assert_eq!(
            call(layout, window::GATES + up - 32),
            Err(Rule::BranchOutside)
        );
    }
    let text = LAYOUT.text + 2 * window::PAGE;
    for gates in [
        0,
        window::GATES - window::PAGE,
        window::GATES + 32,
        text,
        u32::MAX,
    ] {
        let layout = Layout {
            text,
            gates,
            ..LAYOUT
        };
        assert_eq!(
            call(layout, window::slot(0)),
            Err(Rule::Layout),
            "{gates:#x}"
        );
    }
    for pages in [window::MAX_SHIFT + 1, u32::MAX] {
        assert_eq!(
            call(LAYOUT.shifted(pages), window::slot(0)),
            Err(Rule::Layout)
        );
    }
}

#[test]
fn links_must_lie_apart() {
    let verdict = |start, count, profile| {
        let layout = Layout {
            text: 0x80_0000,
            links: Links { start, count },
            ..LAYOUT
        };
        let verdict = verify(&[0xc3; 64], &layout, profile, &mut [0; 66]);
        verdict.map(|_| ()).map_err(|violation| violation.rule)
    };
    let user = |start, count| verdict(start, count, Profile::User);
    assert_eq!(user(0x80_0000 - 64, 2), Ok(()));
    assert_eq!(user(0x80_0000 + 64, 2), Ok(()));
    assert_eq!(user(window::LIMIT - 64, 2), Ok(()));
    for (start, count) in [
        (0x80_0000 - 64, 3),
        (0x80_0000, 1),
        (0x80_0000 + 32, 1),
        (0x80_0000 + 72, 1),
        (window::LIMIT - 64, 3),
        (window::slot(1), 1),
        (0x90_0000, window::MAX_LINKS + 1),
        (!31, u32::MAX),
    ] {
        assert_eq!(user(start, count), Err(Rule::Layout), "{start:#x} {count}");
    }
    // Without links, nothing is asked of where they would be.
    assert_eq!(user(0x80_0001, 0), Ok(()));
    // What lies behind a link may come back.
    assert_eq!(verdict(0x90_0000, 0, Profile::Bounded), Ok(()));
    assert_eq!(verdict(0x90_0000, 1, Profile::Bounded), Err(Rule::Layout));
}

#[test]
fn targets_are_not_taken_modulo_the_window() {
    // A text near the end of the window, and a branch past 4 GiB that would wrap to a slot.
    let layout = Layout {
        text: 0xf000_0000,
        ..LAYOUT
    };
    let wrapped = (0x1_0000_0000 + i64::from(window::slot(0)) - 0xf000_0000 - 5) as i32;
    let mut text = vec![0xe9];
    text.extend(wrapped.to_le_bytes());
    let violation = verify(&text, &layout, Profile::User, &mut [0; 2]).unwrap_err();
    assert_eq!(
        violation,
        Violation {
            offset: 0xf000_0000,
            rule: Rule::BranchOutside
        }
    );
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
