//! The reference page of accepted instructions and rules is printed from the verifier's own data.
//!
//! `POSTERN_UPDATE=1 cargo test -p postern-verifier --test reference` writes it anew.

use std::fmt::Write;
use std::path::Path;

use postern_verifier::{
    InstructionKind, Rule, Segment, Violation, fixed, next, row::Row, rules, sets,
};

const PAGE: &str = "../docs/src/reference/rules.md";

const INTRODUCTION: &str = "\
# What the verifier accepts

<!-- Printed from the verifier's allow list by `POSTERN_UPDATE=1 cargo test -p postern-verifier --test reference`. Do not edit. -->

Text is a sequence of the instructions below, one behind the other, that keeps the [rules](#rules). Everything else is refused.

An instruction is, in this order:

1. the image's segment override (65h for gs, 64h for fs) and 67h, both if the instruction accesses memory, neither if not;
   `lea`, which computes an address without accessing it, may have 67h alone;
2. 66h where the operands have a size that it changes (`v`, `z` below) or the encoding names it;
3. F0h (`lock`) where the encoding says LOCK and the destination is memory, or F3h or F2h where it names them;
4. REX, or VEX in place of 66h, F3h, F2h and REX;
5. opcode, ModRM, SIB, displacement, immediate.

A memory operand is any that ModRM and SIB can express except those relative to the instruction pointer, those with base rsp, and
those with a vector as index. No operand may be rsp, esp, sp or spl.

Encodings are written as in the processor manuals; a choice of prefixes goes in the order of the mnemonics. Operands use the letters
of the opcode maps in volume 2, appendix A of Intel's manual:

| letter | operand | size | bits |
|---|---|---|---|
| G | general register in ModRM.reg | b | 8 |
| E | general register or memory | w | 16 |
| R | general register in ModRM.rm | d | 32 |
| M | memory | q | 64 |
| B | general register in VEX.vvvv | v | 16 (with 66h), 32, or 64 (with REX.W) |
| Z | general register in the opcode | y | 32, or 64 (with W) |
| V | vector register in ModRM.reg | z | 16 (with 66h) or 32 |
| W | vector register or memory | | |
| U | vector register in ModRM.rm | | |
| H | vector register in VEX.vvvv | | |
| L | vector register in an immediate | | |
| S | x87 register | | |
| I, J, O | immediate, branch displacement, absolute address | | |
| X | address that is not accessed | | |

`al`, `av`, `cl`, `1`, `xmm0` are implied operands. `VEX` without a length stands for 128 and 256 bits. Without W0, W1 or WIG, REX.W or VEX.W
may be set only where an operand has size v or y.
";

fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    for (title, rows) in sets() {
        write!(
            page,
            "\n## {title}\n\n| instruction | encoding | operands |\n|---|---|---|\n"
        )
        .unwrap();
        for row in rows {
            let note = match row.kind {
                InstructionKind::IndirectCall | InstructionKind::IndirectJump => {
                    " (only at the end of a guarded sequence)"
                }
                _ => "",
            };
            writeln!(
                page,
                "| {}{note} | `{}` | {} |",
                row.name, row.code, row.operands
            )
            .unwrap();
        }
    }
    page.push_str("\n## Fixed strings of bytes\n\n| instruction | bytes |\n|---|---|\n");
    for fixed in fixed() {
        let bytes: Vec<String> = fixed
            .bytes
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        writeln!(page, "| {} | `{}` |", fixed.name, bytes.join(" ")).unwrap();
    }
    page.push_str(
        "\n## Rules\n\nA refusal names one of these and the offset of the instruction.\n",
    );
    for rule in Rule::ALL {
        write!(page, "\n### {}\n\n{}\n", rule.name(), rule.sentence()).unwrap();
    }
    page
}

#[test]
fn page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let fresh = page();
    if std::env::var_os("POSTERN_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &fresh).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    let line = fresh.lines().zip(present.lines()).position(|(a, b)| a != b);
    assert!(
        fresh == present,
        "{} differs at line {line:?}: run with POSTERN_UPDATE=1",
        path.display()
    );
}

/// One encoding of the row, with a memory operand or without.
fn encode(row: &Row, memory: bool, prefix: u8, opcode: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let accessed = memory && !matches!(row.kind, InstructionKind::Address | InstructionKind::Nop);
    if accessed {
        bytes.extend([0x65, 0x67]);
    }
    let wl = row.wl.trailing_zeros() as u8;
    if row.vex {
        let pp = [0, 1, 2, 0, 3][usize::from(prefix)];
        let unused = if row.vvvv == postern_verifier::row::Operand::None {
            15
        } else {
            9
        };
        bytes.extend([
            0xc4,
            0xe0 | row.map,
            wl >> 1 << 7 | unused << 3 | (wl & 1) << 2 | pp,
        ]);
    } else {
        bytes.extend((prefix & 1 == 1).then_some(0x66));
        bytes.extend([None, Some(0xf3), Some(0xf2), Some(0xf0)][usize::from(prefix >> 1)]);
        // Extended registers, so that number 4 is r12.
        bytes.push(0x45 | wl >> 1 << 3);
        bytes.extend([&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]][usize::from(row.map)]);
    }
    bytes.push(opcode);
    if row.second.0 != 0 {
        bytes.push(row.second.0);
    } else if row.modrm {
        bytes.push(if memory { 0 } else { 0xc0 } | (row.digits.trailing_zeros() as u8) << 3);
    }
    bytes.extend([0; 8]);
    bytes
}

#[test]
fn every_row_is_accepted() {
    let mut count = 0;
    for row in rules() {
        for memory in [false, true] {
            if row.modrm && !(if memory { row.memory } else { row.register })
                || !row.modrm && memory != row.memory
            {
                continue;
            }
            for prefix in (0..8).filter(|prefix| row.prefixes >> prefix & 1 == 1) {
                for opcode in row.first..=row.last {
                    let bytes = encode(row, memory, prefix, opcode);
                    let seen = next(&bytes, 0, Segment::Gs);
                    assert!(seen.is_ok(), "{row:?}: {bytes:02x?}: {seen:?}");
                    count += 1;
                }
            }
        }
    }
    println!("{count} encodings of {} rows", rules().count());
}

#[test]
fn violations_read_as_sentences() {
    let text = Violation {
        offset: 0x12003,
        rule: Rule::StackPointer,
    }
    .to_string();
    assert!(
        text.starts_with("at offset 0x12003: The instruction names rsp"),
        "{text}"
    );
    assert!(text.ends_with("(stack-pointer)"));
}
