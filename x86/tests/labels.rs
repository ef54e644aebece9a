//! Labels, jumps and references.

use postern_x86::{
    Assembler, Cond, Gpr, Label, LinkError, Mem, Reach, Reference, ReferenceKind, Symbol, Width,
};

#[test]
fn jumps_of_both_sizes_lead_to_their_labels() {
    let mut asm = Assembler::new();
    let (back, ahead) = (Label(3), Label(0));
    asm.bind(back);
    asm.jmp(ahead, Reach::Short);
    asm.jmp(ahead, Reach::Near);
    asm.jcc(Cond::Above, back, Reach::Short);
    asm.jcc(Cond::Parity, back, Reach::Near);
    asm.call(ahead);
    assert_eq!(asm.position_of(ahead), None);
    let distances: Vec<Option<i64>> = asm.distances().collect();
    assert_eq!(distances, [None, None, Some(-9), Some(-15), None]);
    asm.bind(ahead);
    asm.link().unwrap();
    let expected = [
        &[0xeb, 18][..],
        &[0xe9, 13, 0, 0, 0],
        &[0x77, 0xf7],
        &[0x0f, 0x8a, 0xf1, 0xff, 0xff, 0xff],
        &[0xe8, 0, 0, 0, 0],
    ];
    assert_eq!(asm.code(), expected.concat());
    assert_eq!(
        (asm.position_of(back), asm.position_of(ahead)),
        (Some(0), Some(20))
    );
}

#[test]
fn conditions_are_part_of_jumps() {
    for (cond, _) in Cond::TABLE {
        let mut asm = Assembler::new();
        asm.bind(Label(0));
        asm.jcc(cond, Label(0), Reach::Short);
        asm.jcc(cond, Label(0), Reach::Near);
        assert_eq!(asm.code()[0], 0x70 | cond.code());
        assert_eq!(asm.code()[2..4], [0x0f, 0x80 | cond.code()]);
        assert_eq!(cond.negated().negated(), cond);
        assert_ne!(cond.negated(), cond);
        assert_eq!(cond.swapped().swapped(), cond);
        assert_eq!(Cond::TABLE[usize::from(cond.code())].0, cond);
    }
}

#[test]
fn a_short_jump_has_its_limits() {
    for (bytes, reaches) in [(127, true), (128, false)] {
        let mut asm = Assembler::new();
        asm.jmp(Label(0), Reach::Short);
        asm.bytes(&vec![0xcc; bytes]);
        asm.bind(Label(0));
        let expected = if reaches {
            Ok(())
        } else {
            Err(LinkError::TooFar(1))
        };
        assert_eq!(asm.link(), expected);
    }
    for (bytes, reaches) in [(126, true), (127, false)] {
        let mut asm = Assembler::new();
        asm.bind(Label(0));
        asm.bytes(&vec![0xcc; bytes]);
        asm.jmp(Label(0), Reach::Short);
        assert_eq!(asm.link().is_ok(), reaches);
    }
}

#[test]
fn a_label_must_be_somewhere() {
    let mut asm = Assembler::new();
    asm.bind(Label(2));
    asm.jmp(Label(1), Reach::Near);
    assert_eq!(asm.link(), Err(LinkError::Unbound(Label(1))));
    asm.clear_labels();
    assert_eq!(asm.position_of(Label(2)), None);
    assert_eq!(asm.link(), Ok(()));
}

#[test]
fn references_say_where_symbols_go() {
    let symbol = Symbol::new(9).unwrap();
    assert_eq!(Symbol::new(0), None);
    let mut asm = Assembler::new();
    asm.ret();
    let mem = Mem::base(Gpr::Rdi)
        .disp(4)
        .symbol(Some(symbol))
        .gs()
        .addr32();
    asm.mov_mi(Width::Dword, mem, -1);
    let mark = asm.mark();
    asm.mov_symbol(Gpr::Rax, symbol, -5);
    asm.mov_symbol(Gpr::R8, symbol, 0);
    asm.call_symbol(symbol);
    let reference = |at, addend, kind| Reference {
        at,
        symbol,
        addend,
        kind,
    };
    let absolute = |at, addend| reference(at, addend, ReferenceKind::Absolute);
    let relative = reference(25, 0, ReferenceKind::Relative);
    let expected = [absolute(5, 4), absolute(14, -5), absolute(20, 0), relative];
    assert_eq!(asm.references(), expected);
    for reference in expected {
        let at = reference.at as usize;
        assert_eq!(asm.code()[at..at + 4], reference.addend.to_le_bytes());
    }
    asm.rewind(mark);
    assert_eq!(asm.references(), &expected[..1]);
    assert_eq!(asm.position(), 13);
    asm.clear();
    assert_eq!((asm.position(), asm.references().len()), (0, 0));
}

#[test]
fn code_is_aligned() {
    let mut asm = Assembler::new();
    asm.align(16, 0xcc);
    assert_eq!(asm.position(), 0);
    asm.ret();
    asm.align(16, 0xcc);
    assert_eq!(asm.position(), 16);
    assert_eq!(asm.take_code()[..2], [0xc3, 0xcc]);
    assert_eq!(asm.position(), 0);
}
