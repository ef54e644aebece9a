//! How long code runs and how deep it calls: bounds are those of its longest path.

use super::*;

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
        // The second call of the 31st function from the end: 2^32 - 3 instructions, the call, and
        // the return.
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
