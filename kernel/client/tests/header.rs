//! The crate's structures and numbers are those that a C compiler makes of `postern.h`.

use std::fmt::Write;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use postern_kernel::abi;
use postern_kernel_judge as judge;

/// What the header has to say, as pairs of a C expression and this crate's value.
fn expected() -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    macro_rules! structure {
        ($rust:ty, $c:literal: $($field:ident)*) => {
            all.push((format!("sizeof(struct {})", $c), size_of::<$rust>() as u64));
            all.push((format!("alignof(struct {})", $c), align_of::<$rust>() as u64));
            $(
                let at = offset_of!($rust, $field) as u64;
                all.push((format!("offsetof(struct {}, {})", $c, stringify!($field)), at));
            )*
        };
    }
    structure!(judge::Verdict, "postern_verdict": verdict rule place depth at instructions longest_path);
    structure!(abi::Load, "postern_load": file size name segment rights on_fault flags heap limit shared shared_size id reserved verdict);
    structure!(abi::Outcome, "postern_outcome": kind offset address service);
    structure!(abi::Call, "postern_call": id queued function arguments value outcome);
    structure!(abi::Statistics, "postern_statistics": id on_fault rights segment name size memory verdict ended queued lost log_left_out restarts last hooks shared_size);
    structure!(abi::Attach, "postern_attach": id hook function target number priority family capture otherwise attachment reserved);
    structure!(abi::Attachment, "postern_attachment": attachment next calls passed how);
    structure!(abi::Map, "postern_map": id map key_size value_size entries reserved);
    structure!(abi::MapAccess, "postern_map_access": id map operation reserved key value next_key);
    structure!(abi::Text, "postern_text": text size imports verdict);
    let numbers = [
        ("NAME", abi::NAME as u64),
        ("MOST", abi::MOST as u64),
        ("KINDS", abi::KINDS as u64),
        ("MAPS", abi::MAPS.into()),
        ("ACCEPTED", judge::ACCEPTED.into()),
        ("NO_IMAGE", judge::NO_IMAGE.into()),
        ("REFUSED", judge::REFUSED.into()),
        ("EXPORT_MISPLACED", judge::EXPORT_MISPLACED.into()),
        ("OUT_OF_MEMORY", judge::OUT_OF_MEMORY.into()),
        ("NO_SERVICE", abi::NO_SERVICE.into()),
        ("PLACE_FILE", judge::PLACE_FILE.into()),
        ("PLACE_ELF_HEADER", judge::PLACE_ELF_HEADER.into()),
        ("PLACE_PROGRAM_HEADER", judge::PLACE_PROGRAM_HEADER.into()),
        ("PLACE_NOTE", judge::PLACE_NOTE.into()),
        ("PLACE_IMPORT", judge::PLACE_IMPORT.into()),
        ("PLACE_EXPORT", judge::PLACE_EXPORT.into()),
        ("PLACE_TEXT", judge::PLACE_TEXT.into()),
        ("MAY_SEE_PACKETS", abi::MAY_SEE_PACKETS.into()),
        ("MAY_CHANGE_PACKETS", abi::MAY_CHANGE_PACKETS.into()),
        ("MAY_OBSERVE", abi::MAY_OBSERVE.into()),
        ("MAY_LOG", abi::MAY_LOG.into()),
        ("FAULT_KEEPS", abi::FAULT_KEEPS.into()),
        ("FAULT_RESTARTS", abi::FAULT_RESTARTS.into()),
        ("FAULT_ENDS", abi::FAULT_ENDS.into()),
        ("ONE_WINDOW", abi::ONE_WINDOW.into()),
        ("RETURNED", abi::RETURNED.into()),
        ("PAGE_FAULT", abi::PAGE_FAULT.into()),
        ("DIVISION", abi::DIVISION.into()),
        ("TRAP", abi::TRAP.into()),
        ("TIMEOUT", abi::TIMEOUT.into()),
        ("BAD_ARGUMENT", abi::BAD_ARGUMENT.into()),
        ("SKIPPED", abi::SKIPPED.into()),
        ("ENDED", abi::ENDED.into()),
        ("ABSENT", abi::ABSENT.into()),
        ("UNSUITABLE", abi::UNSUITABLE.into()),
        ("NETFILTER", abi::NETFILTER.into()),
        ("TRACEPOINT", abi::TRACEPOINT.into()),
        ("KPROBE", abi::KPROBE.into()),
        ("TIMER", abi::TIMER.into()),
        ("MAP_GET", abi::MAP_GET.into()),
        ("MAP_SET", abi::MAP_SET.into()),
        ("MAP_REMOVE", abi::MAP_REMOVE.into()),
        ("MAP_NEXT", abi::MAP_NEXT.into()),
        ("LOAD", abi::LOAD),
        ("UNLOAD", abi::UNLOAD),
        ("JUDGE_TEXT", abi::JUDGE_TEXT),
        ("CALL", abi::CALL),
        ("STATISTICS", abi::STATISTICS),
        ("ATTACH", abi::ATTACH),
        ("DETACH", abi::DETACH),
        ("ATTACHMENT", abi::ATTACHMENT),
        ("MAP_MAKE", abi::MAP_MAKE),
        ("MAP_ACCESS", abi::MAP_ACCESS),
        ("OPEN", abi::OPEN),
        ("REPLACE", abi::REPLACE),
        ("MAP_SIZES", abi::MAP_SIZES),
    ];
    all.extend(numbers.map(|(name, value)| (format!("POSTERN_{name}"), value)));
    all
}

fn header() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux")
}

#[test]
fn structures_and_numbers_are_the_headers() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("h.c"), folder.path().join("h"));
    let mut text = String::from(
        "#include <stdalign.h>\n#include <stddef.h>\n#include <stdio.h>\n#include \"postern.h\"\nint main(void)\n{\n",
    );
    let expected = expected();
    for (expression, _) in &expected {
        writeln!(
            text,
            "printf(\"%llu\\n\", (unsigned long long)({expression}));"
        )
        .expect("text");
    }
    text += "return 0;\n}\n";
    std::fs::write(&source, text).expect("the source");
    let made = Command::new("gcc")
        .args(["-std=gnu11", "-Wall", "-Werror", "-I"])
        .arg(header())
        .arg("-o")
        .args([&program, &source])
        .status();
    assert!(made.expect("gcc").success());
    let output = Command::new(&program).output().expect("the program");
    let text = String::from_utf8(output.stdout).expect("text");
    let found = text
        .lines()
        .map(|line| line.parse::<u64>().expect("a number"));
    let found: Vec<u64> = found.collect();
    assert_eq!(found.len(), expected.len());
    for ((expression, here), there) in expected.iter().zip(found) {
        assert_eq!(
            *here, there,
            "{expression}: {here} here, {there} in the header"
        );
    }
}

/// Nothing of the header is left out: each structure and each number that it defines is compared.
#[test]
fn all_of_the_header_is_compared() {
    let text = std::fs::read_to_string(header().join("postern.h")).expect("the header");
    let expected = expected();
    let has = |wanted: &str| expected.iter().any(|(expression, _)| expression == wanted);
    let mut found = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["#define", name, _, ..] if name.starts_with("POSTERN_") => {
                assert!(has(name), "{name} is not compared");
                found += 1;
            }
            ["struct", name, "{"] => {
                assert!(
                    has(&format!("sizeof(struct {name})")),
                    "{name} is not compared"
                );
                found += 1;
            }
            _ => {}
        }
    }
    assert!(found > 50, "only {found}");
}
