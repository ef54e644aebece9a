//! Programs with random changes: each gives errors, or code that the verifier accepts; nothing
//! panics.
//!
//! `ECODE_MUTATIONS=N` tries N of them.

use crate::support::generate;
use fastrand::Rng;
use postern_ecode::{Compiler, Limits, Object, Options};
use postern_verifier::{Layout, Profile, Rule, buffer_len, verify, window};

/// What the verifier says to the unit's text, placed as an image of its own would be.
fn judged(unit: &Object) -> Result<(), Rule> {
    let layout = Layout::new(unit.imports.len() as u32);
    let places = postern_ecode::Places {
        text: layout.text,
        rodata: 0x200_0000,
        data: 0x300_0000,
        bss: 0x400_0000,
    };
    let placed = unit.place(&places, |import| {
        let index = unit.imports.iter().position(|other| other == import)?;
        Some(window::slot(index as u32))
    });
    let text = placed.expect("every import is there").text;
    let mut buffer = vec![0; buffer_len(text.len())];
    verify(&text, &layout, Profile::User, &mut buffer)
        .map(drop)
        .map_err(|violation| violation.rule)
}

fn mutate(random: &mut Rng, source: &[u8]) -> Vec<u8> {
    const PIECES: &[&str] = &[
        "int",
        "*",
        "&",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ";",
        ",",
        "=",
        "+",
        "-",
        "->",
        ".",
        "1",
        "0",
        "x",
        "struct",
        "sizeof",
        "return",
        "if",
        "for",
        "while",
        "switch",
        "case",
        "goto",
        "break",
        "static",
        "const",
        "double",
        "char",
        "unsigned",
        "long",
        "0x20841f0f",
        "9223372036854775808u",
        "\"s\"",
        "'c'",
        "?",
        ":",
        "<<",
        "%",
        "/",
        "!",
        "~",
        "++",
        "union",
        "enum",
        "void",
        "typedef",
        "extern",
        "float",
        "volatile",
        "1.5",
        "-1",
        "[3]",
        "{0}",
        "#define a",
        "\n",
    ];
    let mut text = source.to_vec();
    for _ in 0..1 + random.usize(..4) {
        let at = random.usize(..text.len());
        let to = (at + 1 + random.usize(..12)).min(text.len());
        match random.usize(..5) {
            0 => drop(text.drain(at..to)),
            1 => {
                let copy: Vec<u8> = text[at..to].to_vec();
                let target = random.usize(..text.len());
                text.splice(target..target, copy);
            }
            2 => text[at] = random.u8(..0x80),
            _ => {
                let piece = format!(" {} ", PIECES[random.usize(..PIECES.len())]);
                let end = if random.bool() { at } else { to };
                text.splice(at..end, piece.into_bytes());
            }
        }
        if text.is_empty() {
            text.push(b';');
        }
    }
    text
}

#[test]
fn changed_programs_do_no_harm() {
    let count: u64 = std::env::var("ECODE_MUTATIONS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(6000);
    let mut sources: Vec<Vec<u8>> =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels"))
            .unwrap()
            .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
            .collect();
    sources.extend((0..6).map(|seed| generate::program(seed, 3).into_bytes()));
    let errors = include_str!("files/errors.txt");
    sources.extend(errors.split("----\n").map(|case| {
        case.lines()
            .filter(|l| !l.starts_with("error "))
            .collect::<Vec<_>>()
            .join("\n")
            .into_bytes()
    }));
    let limits = Limits {
        data: 1 << 20,
        bss: 1 << 24,
        ..Limits::default()
    };
    let mut compiler = Compiler::new(Options {
        limits,
        ..Options::default()
    });
    let (mut good, mut random) = (0, Rng::with_seed(count));
    for _ in 0..count {
        let chosen = random.usize(..sources.len());
        let source = mutate(&mut random, &sources[chosen]);
        let Ok(source) = String::from_utf8(source) else {
            continue;
        };
        match compiler.compile(&source) {
            Err(errors) => {
                assert!(!errors.list.is_empty());
                let _ = errors.to_string();
            }
            Ok(unit) => {
                good += 1;
                match judged(&unit) {
                    // A constant that is the landing pad's is refused, not dangerous.
                    Ok(()) | Err(Rule::StrayPad) => {}
                    Err(rule) => panic!("{rule:?} in what was made of\n{source}"),
                }
            }
        }
    }
    assert!(good > 0);
}
