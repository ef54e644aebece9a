//! Names and lines: what gcc writes is read as addr2line reads it; what is damaged is survived.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use postern_image::debug::{Function, Kept, LineRow, LineTable, Lines, Listing, Symbols, describe};
use postern_image::{ImageBuilder, ImageFile};

const SOURCE: &str = r#"
static inline __attribute__((always_inline)) int square(int x) {
    return x * x;
}
static inline __attribute__((always_inline)) int sum(const int *values, int count) {
    int total = 0;
    for (int i = 0; i < count; i++)
        total += square(values[i]);
    return total;
}
__attribute__((noinline)) int norm(const int *values, int count) {
    return sum(values, count) + sum(values, count / 2);
}
int twice(int x) {
    return 2 * norm(&x, 1);
}
"#;

/// A program with debug information at the places of an extension, made by gcc.
struct Program {
    path: PathBuf,
    bytes: Vec<u8>,
    text: std::ops::Range<u32>,
}

fn build(name: &str, options: &[&str]) -> Program {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, path) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let status = Command::new("gcc")
        .current_dir(folder)
        .args([
            "-g",
            "-O2",
            "-nostdlib",
            "-static",
            "-no-pie",
            "-fno-pie",
            "-Wl,-e,0,-Ttext=0x11000",
        ])
        .args(options)
        .arg(source.file_name().unwrap())
        .arg("-o")
        .arg(&path)
        .status()
        .expect("gcc runs");
    assert!(status.success());
    let bytes = std::fs::read(&path).unwrap();
    let functions: Vec<_> = Symbols::parse(&bytes).iter().collect();
    let start = functions.iter().map(|f| f.start).min().unwrap();
    let end = functions.iter().map(|f| f.end).max().unwrap();
    Program {
        path,
        bytes,
        text: start..end,
    }
}

static PROGRAM: LazyLock<Program> = LazyLock::new(|| build("plain", &[]));

/// `function` and `file:line` of each frame, as addr2line prints them.
fn oracle(program: &Program, offsets: std::ops::Range<u32>) -> Vec<Vec<(String, String)>> {
    let addresses: Vec<String> = offsets.map(|o| format!("{o:#x}")).collect();
    let output = Command::new("addr2line")
        .args(["-a", "-f", "-i", "-e"])
        .arg(&program.path)
        .args(&addresses)
        .output();
    let output = String::from_utf8(output.expect("addr2line runs").stdout).unwrap();
    let mut all: Vec<Vec<(String, String)>> = Vec::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
        } else {
            let place = lines
                .next()
                .unwrap()
                .split(" (disc")
                .next()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap();
            all.last_mut()
                .unwrap()
                .push((line.to_owned(), place.to_owned()));
        }
    }
    all
}

fn agrees_with_addr2line(program: &Program) {
    let lines = Lines::parse(&program.bytes).expect("has debug information");
    let symbols = Symbols::parse(&program.bytes);
    let mut deepest = 0;
    for (offset, wanted) in program
        .text
        .clone()
        .zip(oracle(program, program.text.clone()))
    {
        // Between functions addr2line names the one before.
        if symbols.at(offset).is_none() {
            continue;
        }
        let found: Vec<(String, String)> = lines
            .at(offset)
            .into_iter()
            .map(|f| {
                (
                    f.function.unwrap_or("??".into()),
                    format!("{}:{}", f.file.rsplit('/').next().unwrap(), f.line),
                )
            })
            .collect();
        assert_eq!(found, wanted, "at {offset:#x}");
        deepest = deepest.max(found.len());
    }
    assert_eq!(deepest, 3, "square inside sum inside norm");
}

#[test]
fn lines_and_inlined_calls_agree_with_addr2line() {
    agrees_with_addr2line(&PROGRAM);
}

#[test]
fn so_do_the_older_and_the_split_forms() {
    agrees_with_addr2line(&build("dwarf4", &["-gdwarf-4"]));
    agrees_with_addr2line(&build(
        "sections",
        &["-ffunction-sections", "-gno-as-loc-support"],
    ));
}

#[test]
fn the_64_bit_form_says_the_same() {
    // Not compared with addr2line, which cannot read its line programs.
    let program = build("dwarf64", &["-gdwarf64"]);
    assert_eq!(program.text, PROGRAM.text);
    let (long, short) = (
        Lines::parse(&program.bytes).unwrap(),
        Lines::parse(&PROGRAM.bytes).unwrap(),
    );
    for offset in program.text {
        let places = |lines: &Lines<'_>| -> Vec<_> {
            lines
                .at(offset)
                .into_iter()
                .map(|f| (f.function, f.line, f.column))
                .collect()
        };
        assert_eq!(places(&long), places(&short));
    }
}

#[test]
fn places_are_described_with_symbol_and_line() {
    let program = &*PROGRAM;
    let symbols = Symbols::parse(&program.bytes);
    let twice = symbols.iter().find(|f| f.name == "twice").unwrap();
    assert_eq!(
        describe(&program.bytes, twice.start),
        "twice (plain.c:14:18)"
    );
    assert!(describe(&program.bytes, twice.start + 4).starts_with("twice+0x4 (plain.c:1"));
    assert_eq!(describe(&program.bytes, 0xdead_0000), "0xdead0000");
    assert!(
        twice.start % 16 == 0 && symbols.at(twice.start - 1).is_none(),
        "padding"
    );
}

#[test]
fn an_image_without_symbols_has_its_exports() {
    let mut builder = ImageBuilder::new(vec![0xc3; 100]);
    let file = builder
        .export("b", 50, None)
        .export("a", 10, None)
        .build()
        .unwrap();
    let symbols = Symbols::parse(&file);
    assert_eq!(symbols.at(0x1_1009), None);
    assert_eq!(symbols.at(0x1_1031).unwrap().to_string(), "a+0x27");
    assert_eq!(describe(&file, 0x1_1032), "b");
    assert_eq!(symbols.at(0x1_1064), None);
    assert!(Lines::parse(&file).is_none());
    assert_eq!(describe(&file, 0x1_1064), "0x11064");
}

#[test]
fn names_cannot_command_a_terminal() {
    let mut program = PROGRAM.bytes.clone();
    let at = program.windows(6).position(|w| w == b"twice\0").unwrap();
    let places: Vec<usize> = (at..program.len() - 6)
        .filter(|&i| program[i..].starts_with(b"twice\0"))
        .collect();
    places.iter().for_each(|&i| program[i] = 0x1b);
    let symbols = Symbols::parse(&program);
    let start = symbols
        .iter()
        .find(|f| f.name.starts_with('\x1b'))
        .expect("renamed")
        .start;
    assert!(describe(&program, start).starts_with("\\u{1b}wice "));
}

/// Two functions of two files, of which the second has no lines for its first instruction.
fn listing() -> (Vec<Function<'static>>, LineTable) {
    let function = |start, end, name| Function { start, end, name };
    let row = |offset, file, line| LineRow { offset, file, line };
    let lines = LineTable {
        files: vec!["a.ec".into(), "folder/b.ec".into()],
        rows: vec![
            row(0x1_1000, 0, 700),
            row(0x1_1001, 0, 3),
            row(0x1_1003, 1, 0),
            row(0x1_1004, 1, 9),
        ],
    };
    let functions = vec![
        function(0x1_1000, 0x1_1002, "hidden"),
        function(0x1_1003, 0x1_1005, "shown"),
    ];
    (functions, lines)
}

#[test]
fn lines_may_be_added_to_a_file() {
    let mut builder = ImageBuilder::new([0x90, 0xc3, 0xcc, 0x90, 0xc3]);
    builder.export("shown", 3, None);
    let mut file = builder.build().unwrap();
    let (functions, lines) = listing();
    let listing = Listing {
        name: "a.ec",
        base: 0,
        text: (0x1_1000, 0x1_1005),
        functions: &functions,
        lines: &lines,
    };
    listing.append(&mut file);
    assert_eq!(ImageFile::parse(&file).unwrap().exports().len(), 1);
    for bytes in [&file, &listing.object()] {
        assert_eq!(describe(bytes, 0x1_1000), "hidden (a.ec:700)");
        assert_eq!(describe(bytes, 0x1_1001), "hidden+0x1 (a.ec:3)");
        assert_eq!(describe(bytes, 0x1_1004), "shown+0x1 (folder/b.ec:9)");
        let found: Vec<_> = Symbols::parse(bytes).iter().collect();
        assert_eq!(found, functions);
        assert_eq!(Lines::parse(bytes).unwrap().table().rows, lines.rows);
    }
}

#[test]
fn a_listing_of_nonsense_is_survived() {
    let functions = [Function {
        start: 9,
        end: 3,
        name: "a\0b",
    }];
    let row = LineRow {
        offset: u32::MAX,
        file: u32::MAX,
        line: u32::MAX,
    };
    let lines = LineTable {
        files: vec![String::new()],
        rows: vec![row, row],
    };
    let listing = Listing {
        name: "",
        base: u64::MAX,
        text: (7, 2),
        functions: &functions,
        lines: &lines,
    };
    let mut short = vec![1, 2, 3];
    listing.append(&mut short);
    assert_eq!(short, [1, 2, 3]);
    describe(&listing.object(), 8);
}

#[test]
fn damaged_debug_information_neither_panics_nor_hangs() {
    let original = &PROGRAM.bytes;
    let mut bytes = original.clone();
    let mut random = fastrand::Rng::with_seed(1);
    let mut answers = 0;
    for _ in 0..20_000 {
        let touched: Vec<usize> = (0..1 + random.u32(..3))
            .map(|_| random.usize(..bytes.len()))
            .collect();
        for &at in &touched {
            bytes[at] = if random.u32(..2) == 0 {
                random.u8(..)
            } else {
                bytes[at] ^ (1 << random.u32(..8))
            };
        }
        let symbols = Symbols::parse(&bytes);
        if let Some(lines) = Lines::parse(&bytes) {
            for _ in 0..4 {
                let offset = random.u32(PROGRAM.text.clone());
                answers +=
                    usize::from(symbols.at(offset).is_some() && !lines.at(offset).is_empty());
            }
        }
        for at in touched {
            bytes[at] = original[at];
        }
    }
    assert!(
        answers > 10_000,
        "{answers}: most damage leaves most answers"
    );
}

/// An ELF file that has nothing but sections.
fn sections(list: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    let mut names = vec![0];
    let mut headers = vec![0; 64];
    let mut section = |name: &str, bytes: &[u8], file: &mut Vec<u8>| {
        let at = names.len() as u32;
        names.extend(name.bytes().chain([0]));
        headers.extend(at.to_le_bytes());
        headers.extend(1u32.to_le_bytes());
        headers.extend([0; 16]);
        headers.extend((file.len() as u64).to_le_bytes());
        let bytes = if bytes.is_empty() { &names[..] } else { bytes };
        headers.extend((bytes.len() as u64).to_le_bytes());
        headers.extend([0; 24]);
        file.extend(bytes);
    };
    for (name, bytes) in list {
        section(name, bytes, &mut file);
    }
    section(".shstrtab", &[], &mut file);
    let table = file.len() as u64;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    file[58..60].copy_from_slice(&64u16.to_le_bytes());
    file[60..62].copy_from_slice(&(list.len() as u16 + 2).to_le_bytes());
    file[62..64].copy_from_slice(&(list.len() as u16 + 1).to_le_bytes());
    file.extend(headers);
    file
}

/// The classic of its kind: each of very many units refers to the same very long table.
#[test]
fn tables_that_multiply_are_given_up() {
    // Abbreviations: code 1 is a compile unit with DW_AT_ranges and DW_AT_stmt_list; then a million
    // bytes more.
    let mut abbreviations = vec![1, 0x11, 0, 0x55, 0x17, 0x10, 0x17, 0, 0];
    for code in 0..200_000u32 {
        abbreviations.extend([
            0x80 | (code as u8 & 0x7f),
            0x80 | (code >> 7) as u8 & 0x7f | 0x80,
            (code >> 14) as u8 + 1,
        ]);
        abbreviations.extend([0x2e, 0, 0, 0]);
    }
    // A unit of version 4: length, version, abbreviations, address size, code 1, ranges 0, line
    // program 0.
    let unit = [
        &16u32.to_le_bytes()[..],
        &[4, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    // Half a million ranges that cover nothing.
    let ranges: Vec<u8> = (0..500_000u64)
        .flat_map(|i| [i + 1, i + 2].map(u64::to_le_bytes))
        .flatten()
        .collect();
    let file = sections(&[
        (".debug_info", &unit.repeat(100_000)),
        (".debug_abbrev", &abbreviations),
        (".debug_ranges", &ranges),
        (".debug_line", &[0xff; 64]),
    ]);
    let lines = Lines::parse(&file).expect("found");
    assert_eq!(lines.at(0x4000_0000), []);
    assert_eq!(lines.at(0x1000), []);
}

#[test]
fn what_is_kept_of_a_file_names_the_same_places() {
    let program = &*PROGRAM;
    let kept = Kept::new(&program.bytes, []);
    assert!(kept.size() < program.bytes.len());
    let file = kept.file(|_, _| panic!("nothing is loaded"));
    for offset in program.text.clone() {
        assert_eq!(describe(&file, offset), describe(&program.bytes, offset));
    }
    // Whatever part of a file there is.
    for length in (0..program.bytes.len()).step_by(97) {
        let part = &program.bytes[..length];
        let file = Kept::new(part, []).file(|_, _| ());
        let offset = program.text.start;
        assert_eq!(describe(&file, offset), describe(part, offset), "{length}");
    }
}

#[test]
fn what_is_loaded_of_a_file_is_read_where_it_is() {
    let mut builder = ImageBuilder::new(vec![0x31, 0xc0, 0xc3]);
    let signature = "i()".parse().ok();
    let bytes = builder.export("answer", 0, signature).build().unwrap();
    let image = postern_image::ImageFile::parse(&bytes).unwrap();
    let parts = [Some(image.text()), image.rodata(), image.data()];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let kept = Kept::new(&bytes, parts.iter().copied());
    assert!(kept.size() < 1024, "{}", kept.size());
    let file = kept.file(|offset, to| {
        let part = parts.iter().find(|part| part.offset == offset).unwrap();
        to.copy_from_slice(part.bytes);
    });
    let text = image.text().offset;
    assert_eq!(describe(&file, text), "answer");
    assert_eq!(describe(&bytes, text), "answer");
}
