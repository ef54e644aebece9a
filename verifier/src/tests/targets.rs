//! Where code may go: gate slots and links, by the layout.

use super::*;

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
