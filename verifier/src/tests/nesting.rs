//! Calls nest as deep as is said: a machine that takes every way, against the verdict.

use super::*;
use crate::{Segment, buffer_len};

/// Text in the kernel's place.
fn kernel(text: &[u8]) -> Result<Facts, Violation> {
    let layout = Layout {
        segment: Segment::Fs,
        ..LAYOUT
    };
    let mut buffer = vec![!0; bounded_buffer_len(text.len())];
    verify(text, &layout, Profile::Kernel, &mut buffer)
}

fn nested(text: &[u8]) -> Result<u32, (u32, Rule)> {
    match kernel(text) {
        Ok(facts) => Ok(facts.call_depth.unwrap()),
        Err(violation) => Err((violation.offset - LAYOUT.text, violation.rule)),
    }
}

fn call(from: usize, to: usize) -> [u8; 5] {
    let [a, b, c, d] = (to as i32 - from as i32 - 5).to_le_bytes();
    [0xe8, a, b, c, d]
}

#[test]
fn depth_is_that_of_the_deepest_chain() {
    assert_eq!(nested(&[0xc3]), Ok(0));
    // call over a ret.
    let one = [&call(0, 6)[..], &[0xc3, 0xc3]].concat();
    assert_eq!(nested(&one), Ok(1));
    // A chain of three, and a shorter one beside it.
    let chain = [
        &call(0, 11)[..],
        &call(5, 23),
        &[0xc3],
        &call(11, 17),
        &[0xc3],
    ]
    .concat();
    let chain = [&chain[..], &call(17, 23), &[0xc3, 0xc3]].concat();
    assert_eq!(nested(&chain), Ok(3));
    // What falls through into a later function goes as deep as that one.
    let falls = [&call(0, 5)[..], &call(5, 11), &[0xc3, 0xc3]].concat();
    assert_eq!(nested(&falls), Ok(2));
    // A gate slot is a call; a jump to one is none.
    let slot = (window::slot(1) as i32 - LAYOUT.text as i32 - 5).to_le_bytes();
    assert_eq!(nested(&[&[0xe8][..], &slot, &[0xc3]].concat()), Ok(1));
    assert_eq!(nested(&[&[0xe9][..], &slot].concat()), Ok(0));
}

#[test]
fn circles_are_refused_where_they_close() {
    assert_eq!(nested(&call(0, 0)), Err((0, Rule::FallsThrough)));
    let itself = [&call(0, 0)[..], &[0xc3]].concat();
    assert_eq!(nested(&itself), Err((0, Rule::KernelCall)));
    // The callee jumps back to the call.
    let around = [&call(0, 6)[..], &[0xc3], &[0xeb, 0xf8]].concat();
    assert_eq!(nested(&around), Err((6, Rule::KernelJump)));
    // A loop around a call is none.
    let round = [&call(0, 8)[..], &[0x75, 0xf9, 0xc3, 0xc3]].concat();
    assert_eq!(nested(&round), Ok(1));
}

/// A chain of so many calls.
fn chain(calls: usize) -> Vec<u8> {
    let one = |k| [&call(6 * k, 6 * (k + 1))[..], &[0xc3]].concat();
    (0..calls).flat_map(one).chain([0xc3]).collect()
}

#[test]
fn calls_nest_as_deep_as_the_stack_allows() {
    let most = window::KERNEL_CALLS as usize;
    assert_eq!(nested(&chain(most)), Ok(window::KERNEL_CALLS));
    // The first of them is the one too many, since the walk comes from the end.
    assert_eq!(nested(&chain(most + 1)), Err((0, Rule::KernelDepth)));
    assert_eq!(nested(&chain(most + 3)), Err((12, Rule::KernelDepth)));
}

#[test]
fn only_text_without_loops_has_a_longest_path() {
    assert_eq!(kernel(&[0x90, 0xc3]).unwrap().longest_path, Some(2));
    assert_eq!(kernel(&[0x75, 0xfe, 0xc3]).unwrap().longest_path, None);
}

#[test]
fn vectors_and_other_places_are_refused() {
    assert_eq!(
        nested(&[0x90, 0x0f, 0x57, 0xc0, 0xc3]),
        Err((1, Rule::KernelVector))
    );
    let verdict = |layout: Layout, words| {
        verify(&[0xc3], &layout, Profile::Kernel, &mut vec![0; words]).map_err(|v| v.rule)
    };
    let fs = Layout {
        segment: Segment::Fs,
        ..LAYOUT
    };
    assert_eq!(verdict(LAYOUT, 3), Err(Rule::Layout));
    let links = Links {
        start: LAYOUT.text + window::PAGE,
        count: 1,
    };
    assert_eq!(verdict(Layout { links, ..fs }, 3), Err(Rule::Layout));
    assert_eq!(verdict(fs, buffer_len(1)), Err(Rule::BufferTooSmall));
    assert!(verdict(fs, 3).is_ok());
}

/// Instructions of the machine: what is behind them, and their targets by number.
#[derive(Clone, Copy)]
enum Step {
    On,
    Jump(usize),
    Either(usize),
    Call(usize),
    Return,
}

/// The deepest nesting on any way from any instruction; `None` is above `most`.
fn deepest(steps: &[Step], most: u32) -> Option<u32> {
    // How deep what begins at each instruction goes, raised until nothing changes.
    let mut depth = vec![0u32; steps.len() + 1];
    loop {
        let mut changed = false;
        for (at, step) in steps.iter().enumerate() {
            let now = match *step {
                Step::On => depth[at + 1],
                Step::Jump(to) => depth[to],
                Step::Either(to) => depth[to].max(depth[at + 1]),
                Step::Call(to) => (depth[to] + 1).max(depth[at + 1]),
                Step::Return => 0,
            };
            if now > most {
                return None;
            }
            changed |= now > depth[at];
            depth[at] = depth[at].max(now);
        }
        if !changed {
            return depth.into_iter().max();
        }
    }
}

/// All instructions of five bytes, so that their numbers are their places.
fn assembled(steps: &[Step]) -> Vec<u8> {
    let mut text = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let to = |opcode: u8, target: usize| {
            let [a, b, c, d] = (5 * (target as i32 - at as i32 - 1)).to_le_bytes();
            vec![opcode, a, b, c, d]
        };
        text.extend(match *step {
            Step::On => vec![0x90; 5],
            Step::Jump(target) => to(0xe9, target),
            Step::Either(target) => {
                // Two bytes, and three of nothing.
                let near = 5 * (target as i32 - at as i32) - 2;
                vec![0x75, near as i8 as u8, 0x90, 0x90, 0x90]
            }
            Step::Call(target) => to(0xe8, target),
            Step::Return => vec![0xc3; 5],
        });
    }
    text
}

#[test]
fn random_programs_nest_no_deeper_than_is_said() {
    let mut random = fastrand::Rng::with_seed(7);
    let (mut accepted, mut deep) = (0, 0);
    for _ in 0..200_000 {
        let length = random.usize(2..20);
        let mut steps: Vec<Step> = (0..length)
            .map(|at| {
                // Mostly ahead, or most programs would be refused.
                let target = match random.u32(..4) {
                    0 => random.usize(..length),
                    _ => random.usize(at..length),
                };
                match random.u32(..8) {
                    0 | 1 => Step::Call(target),
                    2 => Step::Jump(target),
                    3 | 4 => Step::Either(target),
                    5 | 6 => Step::On,
                    _ => Step::Return,
                }
            })
            .collect();
        steps.push(Step::Return);
        let truth = deepest(&steps, 64);
        match nested(&assembled(&steps)) {
            Ok(depth) => {
                let truth = truth.expect("accepted text does not nest without end");
                assert!(truth <= depth, "{truth} {depth}");
                accepted += 1;
                deep += u32::from(depth > 2);
            }
            Err((_, rule)) => assert!(matches!(rule, Rule::KernelCall | Rule::KernelJump)),
        }
    }
    assert!(accepted > 10_000 && deep > 500, "{accepted} {deep}");
}
