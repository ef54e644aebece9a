//! Any bytes as text: whatever is accepted is read by iced-x86 as the same instructions, each legal
//! by a second opinion.
//!
//! The first byte chooses profile, segment register, and how many imports and links there are; the
//! rest is text.
#![no_main]

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};
use libfuzzer_sys::fuzz_target;
use postern_verifier::window::{PAD, SLOT_SIZE, slot, text_start};
use postern_verifier::{Layout, Links, Profile, Segment, Starts, bounded_buffer_len, verify};

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, text)) = bytes.split_first() else {
        return;
    };
    let profile = if choice & 1 == 0 {
        Profile::User
    } else {
        Profile::Bounded
    };
    let segment = if choice & 2 == 0 {
        Segment::Gs
    } else {
        Segment::Fs
    };
    let imports = u32::from(choice >> 2);
    let text_at = text_start(imports);
    let links = Links {
        start: (text_at + text.len() as u32).next_multiple_of(SLOT_SIZE),
        count: if profile == Profile::User { imports } else { 0 },
    };
    let layout = Layout {
        text: text_at,
        gates: slot(0),
        imports,
        links,
        segment,
    };
    let mut buffer = vec![0; bounded_buffer_len(text.len())];
    let facts = match verify(text, &layout, profile, &mut buffer) {
        Ok(facts) => facts,
        Err(violation) => {
            let at = violation
                .offset
                .checked_sub(layout.text)
                .expect("not before text");
            assert!(at as usize <= text.len(), "{violation}");
            return;
        }
    };
    assert_eq!(facts.longest_path.is_some(), profile == Profile::Bounded);
    assert_eq!(facts.call_depth.is_some(), profile == Profile::Bounded);
    let starts = Starts::new(&buffer, text.len(), layout.text);
    let mut decoder = Decoder::with_ip(64, text, layout.text.into(), DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let (mut count, mut boundaries, mut branches) = (0, vec![false; text.len() + 1], Vec::new());
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let at = (instruction.ip() - u64::from(layout.text)) as usize;
        assert!(
            !instruction.is_invalid(),
            "iced-x86 sees no instruction at {at:#x} of {text:02x?}"
        );
        boundaries[at] = true;
        count += 1;
        check(&instruction, segment);
        if instruction.op0_kind() == OpKind::NearBranch64 {
            branches.push(instruction.near_branch64());
        }
    }
    assert_eq!(count, facts.instructions, "{text:02x?}");
    // Starts are boundaries; branches go to starts or slots; pads are nowhere else.
    for (at, &boundary) in boundaries.iter().enumerate().take(text.len()) {
        assert!(
            boundary || !starts.contains(layout.text + at as u32),
            "start at {at:#x} of {text:02x?}"
        );
    }
    for target in branches {
        let target = u32::try_from(target).expect("inside the window");
        let is_link = (0..links.count).any(|k| links.start + SLOT_SIZE * k == target);
        let is_slot = is_link || (0..imports).any(|k| slot(k) == target);
        assert!(
            is_slot || starts.contains(target),
            "branch to {target:#x} of {text:02x?}"
        );
    }
    for (at, window) in text.windows(PAD.len()).enumerate() {
        assert!(window != PAD || boundaries[at], "stray pad at {at:#x}");
    }
});

/// What every accepted instruction must be by what iced-x86 says of its operands.
fn check(instruction: &Instruction, segment: Segment) {
    let wanted = match segment {
        Segment::Gs => Register::GS,
        Segment::Fs => Register::FS,
    };
    let touches_nothing = matches!(
        instruction.mnemonic(),
        iced_x86::Mnemonic::Lea | iced_x86::Mnemonic::Nop
    );
    for operand in 0..instruction.op_count() {
        match instruction.op_kind(operand) {
            OpKind::Memory if touches_nothing => {}
            OpKind::Memory => {
                assert_eq!(instruction.segment_prefix(), wanted, "{instruction:?}");
                let narrow = |r: Register| r == Register::None || r.is_gpr32();
                assert!(
                    narrow(instruction.memory_base()) && narrow(instruction.memory_index()),
                    "{instruction:?}"
                );
            }
            OpKind::Register => {
                let full = instruction.op_register(operand).full_register();
                assert_ne!(full, Register::RSP, "{instruction:?}");
                assert!(
                    !instruction.op_register(operand).is_segment_register(),
                    "{instruction:?}"
                );
            }
            OpKind::NearBranch64
            | OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => {}
            // String operands, far branches, 16-bit branches.
            other => panic!("{other:?} in {instruction:?}"),
        }
    }
}
