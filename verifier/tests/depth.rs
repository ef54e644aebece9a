//! How deep calls of text for the kernel nest, by another decoder: iced reads the instructions and
//! their targets, and a walk of its own over all ways takes the place of the verifier's.
//!
//! Texts are drawn at random: functions of all kinds of instructions, with loops, calls of later
//! functions and of slots, and tail calls; most chains are about as long as they may be.

use std::collections::BTreeMap;

use fastrand::Rng;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use postern_verifier::window::{KERNEL_CALLS, slot};
use postern_verifier::{
    Facts, Layout, Profile, Rule, Segment, Violation, bounded_buffer_len, verify,
};

/// Instructions of all lengths that do not branch.
const PLAIN: [&[u8]; 6] = [
    &[0x90],
    &[0x31, 0xc0],
    &[0x64, 0x67, 0x48, 0x8b, 0x07],
    &[0x64, 0x67, 0xc7, 0x84, 0x8a, 1, 0, 0, 0, 2, 0, 0, 0],
    &[0x48, 0xb8, 0xe8, 0, 0, 0, 0, 0xc3, 0xcc, 0xc3],
    // What looks like a call in the middle.
    &[0x05, 0xe8, 0xfb, 0xff, 0xff],
];

fn layout() -> Layout {
    Layout {
        segment: Segment::Fs,
        ..Layout::new(2)
    }
}

fn judged(text: &[u8]) -> Result<Facts, Violation> {
    let mut buffer = vec![!0; bounded_buffer_len(text.len())];
    verify(text, &layout(), Profile::Kernel, &mut buffer)
}

/// The deepest nesting on any way from any instruction on, as iced reads the text; `None` is above
/// `most`, or a circle.
fn deepest(text: &[u8], most: u32) -> Option<u32> {
    let base = u64::from(layout().text);
    let decoder = Decoder::with_ip(64, text, base, DecoderOptions::NONE);
    let list: Vec<_> = decoder.into_iter().collect();
    let mut depths: BTreeMap<u64, u32> = list.iter().map(|i| (i.ip(), 0)).collect();
    loop {
        let mut changed = false;
        for instruction in list.iter().rev() {
            // What is not in the text is a slot, which calls nothing of it.
            let at = |ip: u64| depths.get(&ip).copied().unwrap_or(0);
            let (target, next) = (
                at(instruction.near_branch_target()),
                at(instruction.next_ip()),
            );
            let now = match instruction.flow_control() {
                FlowControl::Next => next,
                FlowControl::UnconditionalBranch => target,
                FlowControl::ConditionalBranch => target.max(next),
                FlowControl::Call => (target + 1).max(next),
                FlowControl::Return => 0,
                other => panic!("{other:?} was accepted: {instruction:?}"),
            };
            if now > most {
                return None;
            }
            changed |= depths.insert(instruction.ip(), now) != Some(now);
        }
        if !changed {
            return depths.into_values().max();
        }
    }
}

/// So many functions, each of which calls, or ends in a jump to, one of the next few; and whether
/// each of them is called. One that is not counts as a part of the function in front of it.
fn program(random: &mut Rng, functions: usize) -> (Vec<u8>, bool) {
    let (mut text, mut starts) = (Vec::new(), Vec::new());
    // Fields of distances, with the number of the function that they go to.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for number in 0..functions {
        starts.push(text.len());
        let mut branch = |text: &mut Vec<u8>, random: &mut Rng, opcode: &[u8]| {
            let near = if random.u8(..100) == 0 { 3 } else { 1 };
            open.push((text.len() + opcode.len(), number + random.usize(1..=near)));
            text.extend(opcode);
            text.extend([0; 4]);
        };
        let begin = text.len();
        for _ in 0..random.usize(1..4) {
            text.extend(PLAIN[random.usize(..PLAIN.len())]);
        }
        branch(&mut text, random, &[0xe8]);
        match random.u8(..8) {
            0 => branch(&mut text, random, &[0x0f, 0x84]),
            1 => {
                // A loop around the call.
                let back = begin as i64 - text.len() as i64 - 2;
                text.extend([0x75, back as i8 as u8]);
            }
            2 => {
                let to = i64::from(slot(random.u32(..2))) - i64::from(layout().text);
                let distance = to - text.len() as i64 - 5;
                text.push(0xe8);
                text.extend((distance as i32).to_le_bytes());
            }
            _ => {}
        }
        match random.u8(..16) {
            0 => branch(&mut text, random, &[0xe9]),
            1 => {} // goes on in the next one
            _ => text.push(0xc3),
        }
    }
    let end = text.len();
    text.push(0xc3);
    let called = |start: usize| {
        let mut calls = open.iter().filter(|(field, _)| text[field - 1] == 0xe8);
        calls.any(|(_, to)| starts.get(*to) == Some(&start))
    };
    let all_called = starts[1..].iter().all(|start| called(*start));
    for (field, to) in open {
        let target = starts.get(to).copied().unwrap_or(end);
        let distance = target as i32 - field as i32 - 4;
        text[field..field + 4].copy_from_slice(&distance.to_le_bytes());
    }
    (text, all_called)
}

#[test]
fn no_accepted_text_nests_deeper_than_there_may_be() {
    let mut random = Rng::with_seed(3);
    let (mut accepted, mut refused, mut exact) = (0, 0, 0);
    for _ in 0..1500 {
        let functions = random.usize(KERNEL_CALLS as usize - 12..KERNEL_CALLS as usize + 40);
        let (text, all_called) = program(&mut random, functions);
        exact += u32::from(all_called);
        let truth = deepest(&text, 4 * KERNEL_CALLS);
        match judged(&text) {
            Ok(facts) => {
                let (truth, said) = (truth.expect("no circle"), facts.call_depth.unwrap());
                assert!(truth <= said && said <= KERNEL_CALLS, "{truth} {said}");
                assert!(truth == said || !all_called, "{truth} {said}");
                accepted += 1;
            }
            Err(violation) => {
                assert_eq!(violation.rule, Rule::KernelDepth, "{text:02x?}");
                assert!(truth > Some(KERNEL_CALLS) || !all_called, "{truth:?}");
                refused += 1;
            }
        }
    }
    println!("{accepted} accepted, {refused} refused, {exact} without an uncalled function");
    assert!(accepted > 300 && refused > 300 && exact > 300);
}
