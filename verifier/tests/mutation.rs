//! Accepted programs, damaged: whatever the verifier still accepts must also satisfy a second
//! opinion that shares nothing with it but the ABI, and nothing may panic.

mod oracles;

use std::collections::BTreeSet;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, OpKind, Register};
use oracles::Oracles;
use postern_verifier::{
    Layout, Links, Profile, Segment, Starts, bounded_buffer_len, next, verify, window,
};

const LAYOUT: Layout = Layout::new(2);

/// A program with something of everything: loads, stores, SSE, AVX, x87, locks, calls, gates, pads,
/// guarded sequences.
fn program() -> Vec<u8> {
    let mut text = Vec::new();
    text.extend(window::PAD);
    text.extend([0x4d, 0x8d, 0x7f, 0xc8]); // lea -56(%r15), %r15
    text.extend([0x65, 0x67, 0x49, 0x89, 0x5f, 0x28]); // mov %rbx, %gs:40(%r15d)
    text.extend([0x31, 0xc0, 0x85, 0xff, 0x74, 0x10]); // xor; test; je over the next four
    text.extend([0x65, 0x67, 0x42, 0x8b, 0x04, 0xa7]); // mov %gs:(%edi,%r12d,4), %eax
    text.extend([0x66, 0x41, 0x81, 0xc4, 0x34, 0x12]); // add $0x1234, %r12w
    text.extend([0x48, 0xff, 0xc0, 0x90]); // inc %rax; nop
    text.extend([0x65, 0x67, 0xf0, 0x0f, 0xb1, 0x0f]); // lock cmpxchg %ecx, %gs:(%edi)
    text.extend([0x65, 0x67, 0xf2, 0x0f, 0x10, 0x47, 0x08]); // movsd %gs:8(%edi), %xmm0
    text.extend([0x65, 0x67, 0xc5, 0xfc, 0x10, 0x0f, 0xc5, 0xf4, 0x58, 0xc9]); // vmovups; vaddps
    text.extend([
        0xc4, 0xe2, 0xfb, 0xf6, 0xc1, 0xd9, 0xe8, 0x65, 0x67, 0xdd, 0x1f,
    ]); // mulx; fld1; fstp
    text.extend([0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8]); // movabs
    text.extend([0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]); // nop
    let call = |text: &mut Vec<u8>, opcode: u8, target: i64| {
        let end = text.len() as i64 + 5;
        text.push(opcode);
        text.extend(((target - end) as i32).to_le_bytes());
    };
    call(
        &mut text,
        0xe8,
        i64::from(window::slot(1)) - i64::from(LAYOUT.text),
    );
    call(&mut text, 0xe8, 0);
    text.extend([0x65, 0x67, 0x44, 0x8b, 0x5f, 0x08]); // the guarded sequence: mov %gs:8(%edi), %r11d
    text.extend([
        0x65, 0x67, 0x49, 0x81, 0x3b, 0x0f, 0x1f, 0x84, 0x20, 0x75, 0x0f,
    ]);
    text.extend([
        0x65, 0x67, 0x4c, 0x0b, 0x1c, 0x25, 0, 0, 1, 0, 0x41, 0xff, 0xd3,
    ]);
    text.extend([0xeb, 0x01, 0xcc]); // jmp over the int3 of the failed jne
    text.extend([0x0f, 0x85, 0xd0, 0xff, 0xff, 0xff]); // jne backward
    text.extend([0xc3]);
    // That jne goes to some start: find the nearest one.
    let at = text.len() - 7;
    let target = starts(&text)
        .into_iter()
        .filter(|start| *start < at - 60)
        .max()
        .unwrap();
    let displacement = (target as i64 - at as i64 - 6) as i32;
    text[at + 2..at + 6].copy_from_slice(&displacement.to_le_bytes());
    text
}

/// Instruction starts by the verifier's own walk.
fn starts(text: &[u8]) -> Vec<usize> {
    let (mut at, mut starts) = (0, Vec::new());
    while at < text.len() {
        starts.push(at);
        at += next(text, at, Segment::Gs).expect("an instruction").length;
    }
    starts
}

/// Everything that the ABI asks of a text, worked out by iced-x86.
fn second_opinion(text: &[u8], layout: &Layout, oracles: &mut Oracles) -> Result<(), String> {
    let base = u64::from(layout.text);
    let decoded: Vec<_> = Decoder::with_ip(64, text, base, DecoderOptions::NONE)
        .into_iter()
        .collect();
    let mut targetable: BTreeSet<u64> =
        decoded.iter().map(|instruction| instruction.ip()).collect();
    let end = base + text.len() as u64;
    for (i, instruction) in decoded.iter().enumerate() {
        let at = (instruction.ip() - base) as usize;
        let seen =
            next(text, at, layout.segment).map_err(|rule| format!("{at:#x}: {}", rule.name()))?;
        oracles
            .check(&text[at..], &seen)
            .map_err(|what| format!("{at:#x}: {what}"))?;
        if !matches!(
            instruction.flow_control(),
            FlowControl::IndirectBranch | FlowControl::IndirectCall
        ) {
            continue;
        }
        let Some([mov, compare, jne, or]) = i
            .checked_sub(4)
            .and_then(|from| decoded[from..i].first_chunk())
        else {
            return Err("an indirect branch without a sequence".into());
        };
        let absolute = or.memory_base() == Register::None && or.memory_index() == Register::None;
        let good = instruction.op0_register() == Register::R11
            && instruction.op0_kind() == OpKind::Register
            && mov.op0_kind() == OpKind::Register
            && mov.op0_register() == Register::R11D
            && matches!(mov.code(), Code::Mov_r32_rm32 | Code::Mov_rm32_r32)
            && compare.code() == Code::Cmp_rm64_imm32
            && (compare.memory_base(), compare.memory_index()) == (Register::R11D, Register::None)
            && compare.memory_displacement64() == 0
            && compare.immediate32to64() == 0x2084_1f0f
            && matches!(jne.code(), Code::Jne_rel8_64 | Code::Jne_rel32_64)
            && or.code() == Code::Or_r64_rm64
            && or.op0_register() == Register::R11
            && absolute
            && or.memory_displacement64() == u64::from(window::INFO);
        if !good {
            return Err(format!("{at:#x}: not the guarded sequence"));
        }
        for inside in [compare, jne, or, instruction] {
            targetable.remove(&inside.ip());
        }
    }
    for instruction in &decoded {
        let direct = [
            FlowControl::ConditionalBranch,
            FlowControl::UnconditionalBranch,
            FlowControl::Call,
        ];
        if direct.contains(&instruction.flow_control()) {
            let target = instruction.near_branch_target();
            let slot = (0..layout.imports).any(|k| u64::from(window::slot(k)) == target);
            if !slot && !targetable.contains(&target) {
                return Err(format!("{:#x}: a branch to {target:#x}", instruction.ip()));
            }
        }
    }
    for (at, bytes) in text.windows(8).enumerate() {
        if bytes == window::PAD && !targetable.contains(&(base + at as u64)) {
            return Err(format!("{at:#x}: a stray pad"));
        }
    }
    let last = decoded.last().ok_or("empty")?;
    let ends = [
        FlowControl::UnconditionalBranch,
        FlowControl::Return,
        FlowControl::IndirectBranch,
    ];
    let traps = [FlowControl::Interrupt, FlowControl::Exception];
    if last.next_ip() != end
        || !(ends.contains(&last.flow_control()) || traps.contains(&last.flow_control()))
    {
        return Err("the end".into());
    }
    Ok(())
}

/// Judges, and asks for the second opinion of what is accepted. Returns whether it was.
fn judge(text: &[u8], oracles: &mut Oracles) -> bool {
    let mut buffer = vec![!0; bounded_buffer_len(text.len())];
    // Must not panic, whatever it says.
    let _ = verify(text, &LAYOUT, Profile::Bounded, &mut buffer);
    match verify(text, &LAYOUT, Profile::User, &mut buffer) {
        Ok(facts) => {
            if let Err(what) = second_opinion(text, &LAYOUT, oracles) {
                panic!("accepted, but {what}: {text:02x?}");
            }
            let view = Starts::new(&buffer, text.len(), LAYOUT.text);
            assert!(view.contains(LAYOUT.text) && !view.contains(LAYOUT.text + text.len() as u32));
            assert!(view.iter().count() as u32 <= facts.instructions);
            true
        }
        Err(violation) => {
            let at = violation.offset.wrapping_sub(LAYOUT.text) as usize;
            assert!(at < text.len().max(1), "{violation}: outside of text");
            false
        }
    }
}

#[test]
fn every_flipped_bit_is_judged_soundly() {
    let mut oracles = Oracles::new();
    let text = program();
    assert!(judge(&text, &mut oracles), "the program itself");
    let (mut accepted, mut tried) = (0, 0);
    for first in 0..text.len() * 8 {
        let mut damaged = text.clone();
        damaged[first / 8] ^= 1 << (first % 8);
        tried += 1;
        accepted += u32::from(judge(&damaged, &mut oracles));
        // And a second one nearby.
        for second in first + 1..(first + 24).min(text.len() * 8) {
            damaged[second / 8] ^= 1 << (second % 8);
            tried += 1;
            accepted += u32::from(judge(&damaged, &mut oracles));
            damaged[second / 8] ^= 1 << (second % 8);
        }
    }
    println!("{tried} damaged programs, {accepted} still accepted");
    assert!(
        accepted > 1000,
        "damage that is always refused tests nothing"
    );
}

#[test]
fn shuffled_bytes_are_judged_soundly() {
    let factor = std::env::var("POSTERN_SWEEP")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1u64);
    let mut oracles = Oracles::new();
    let mut random = fastrand::Rng::with_seed(0x0123_4567_89ab_cdef);
    let text = program();
    let mut accepted = 0u64;
    for _ in 0..factor * 60_000 {
        let mut damaged = text.clone();
        for _ in 0..1 + random.u64(..) % 3 {
            let (at, length) = (
                random.u64(..) as usize % damaged.len(),
                1 + random.u64(..) as usize % 8,
            );
            let end = (at + length).min(damaged.len());
            match random.u64(..) % 4 {
                0 => drop(damaged.drain(at..end)),
                1 => damaged[at..end].fill_with(|| random.u64(..) as u8),
                2 => {
                    let copy = damaged[at..end].to_vec();
                    let to = random.u64(..) as usize % damaged.len();
                    damaged.splice(to..to, copy);
                }
                _ => damaged.truncate(end),
            }
            if damaged.is_empty() {
                damaged.push(0xcc);
            }
        }
        accepted += u64::from(judge(&damaged, &mut oracles));
    }
    println!(
        "{} shuffled programs, {accepted} still accepted",
        factor * 60_000
    );
    assert!(
        accepted > 100,
        "damage that is always refused tests nothing"
    );
}

#[test]
fn random_bytes_never_panic() {
    let factor = std::env::var("POSTERN_SWEEP")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1u64);
    let mut random = fastrand::Rng::with_seed(0xfeed_beef_0bad_cafe);
    let mut oracles = Oracles::new();
    for _ in 0..factor * 200_000 {
        let length = random.u64(..) as usize % 40;
        let text: Vec<u8> = (0..length).map(|_| random.u64(..) as u8).collect();
        judge(&text, &mut oracles);
        // Any position, too, inside or outside.
        for at in [0, length / 2, length, length + 100, usize::MAX] {
            let _ = next(&text, at, Segment::Fs);
        }
    }
}

#[test]
fn any_layout_and_buffer_is_answered() {
    let mut random = fastrand::Rng::with_seed(0x1111_2222_3333_4444);
    let text = program();
    let offsets = [
        0,
        1,
        window::GATES,
        window::text_start(0),
        LAYOUT.text,
        window::LIMIT - 1,
        window::LIMIT,
        u32::MAX,
    ];
    for text_offset in offsets {
        for imports in [
            0,
            1,
            2,
            128,
            129,
            window::MAX_IMPORTS,
            window::MAX_IMPORTS + 1,
            u32::MAX,
        ] {
            for words in [0, 1, 2, 5, 1000] {
                let layout = Layout {
                    text: text_offset,
                    gates: window::GATES,
                    imports,
                    links: Links::NONE,
                    segment: Segment::Gs,
                };
                let length = random.u64(..) as usize % text.len();
                for profile in [Profile::User, Profile::Bounded] {
                    let _ = verify(&text[..length], &layout, profile, &mut vec![0; words]);
                }
            }
        }
    }
}
