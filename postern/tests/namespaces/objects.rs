//! Objects whose headers lie: what is made of a file takes no more memory than the file, and
//! messages show nothing but text.

use crate::empty;
use crate::support;
use postern::CreateError;

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const RELA: u32 = 4;
const NOBITS: u32 = 8;
const INIT_ARRAY: u32 = 14;
const WRITE: u64 = 1;
const ALLOC: u64 = 2;
const EXEC: u64 = 4;
/// Before each function that is called from outside.
const PAD: [u8; 8] = [0x0f, 0x1f, 0x84, 0x20, 0, 0, 0, 0];

#[derive(Clone, Default)]
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    bytes: Vec<u8>,
    /// Where it claims to lie, and how long it claims to be.
    claims: Option<(u64, u64)>,
    link: u32,
    info: u32,
}

fn section(kind: u32, flags: u64, bytes: impl Into<Vec<u8>>) -> Section {
    Section {
        kind,
        flags,
        bytes: bytes.into(),
        ..Section::default()
    }
}

/// A relocatable file: a null section, then these. The last one has the sections' names.
fn file(sections: &[Section]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes[16..20].copy_from_slice(&[1, 0, 62, 0]);
    let mut table = vec![0; 64];
    for section in sections {
        let (offset, size) = section
            .claims
            .unwrap_or((bytes.len() as u64, section.bytes.len() as u64));
        bytes.extend(&section.bytes);
        table.extend(section.name.to_le_bytes());
        table.extend(section.kind.to_le_bytes());
        for word in [section.flags, 0, offset, size] {
            table.extend(word.to_le_bytes());
        }
        table.extend(section.link.to_le_bytes());
        table.extend(section.info.to_le_bytes());
        table.extend([1u64, 0].map(u64::to_le_bytes).concat());
    }
    let start = bytes.len() as u64;
    bytes[40..48].copy_from_slice(&start.to_le_bytes());
    bytes[58..60].copy_from_slice(&64u16.to_le_bytes());
    let count = sections.len() as u16 + 1;
    bytes[60..62].copy_from_slice(&count.to_le_bytes());
    bytes[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    bytes.extend(table);
    bytes
}

/// An entry of a symbol table: a global function.
fn symbol(name: u32, section: u16, value: u64, size: u64) -> Vec<u8> {
    let mut entry = name.to_le_bytes().to_vec();
    entry.extend([0x12, 0]);
    entry.extend(section.to_le_bytes());
    entry.extend([value, size].map(u64::to_le_bytes).concat());
    entry
}

/// A file of text with such a symbol table, whose names are section 3, and more sections.
fn with_symbols(text: &[u8], symbols: Vec<u8>, names: &[u8], more: &[Section]) -> Vec<u8> {
    let mut table = section(SYMTAB, 0, symbols);
    table.link = 3;
    let mut sections = vec![
        section(PROGBITS, ALLOC | EXEC, text),
        table,
        section(STRTAB, 0, names),
    ];
    sections.extend_from_slice(more);
    sections.push(section(STRTAB, 0, *b"\0"));
    file(&sections)
}

fn function() -> Vec<u8> {
    [&PAD[..], &[0xc3]].concat()
}

fn refused(bytes: &[u8]) -> String {
    let space = empty();
    let error = space.create_object("x", bytes, &[]).unwrap_err();
    let text = error.to_string();
    assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
    assert!(text.len() < 1000, "{} bytes", text.len());
    assert!(matches!(error, CreateError::Object(_)), "{text}");
    text
}

#[test]
fn an_object_of_this_form_is_taken() {
    let bytes = with_symbols(&function(), symbol(1, 1, 0, 9), b"\0f\0", &[]);
    let space = empty();
    let made = space.create_object("x", &bytes, &[("f", "v()")]).unwrap();
    assert_eq!(made.new, ["f"]);
    space.func::<fn()>("f").unwrap().call().unwrap();
}

/// The most memory that the process ever had, in bytes.
fn peak() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let number = line.split_whitespace().nth(1).unwrap();
    number.parse::<usize>().unwrap() * 1024
}

#[test]
fn names_and_bytes_that_many_share_cost_no_memory() {
    support::succeeds_in_child(
        "objects::names_and_bytes_that_many_share_cost_no_memory",
        || {
            let long = [&[b'x'; 250_000][..], b"\0"].concat();
            let space = empty();
            let before = peak();
            let mut hostile: Vec<Vec<u8>> = Vec::new();
            // Four thousand sections of one name.
            let mut shared = vec![section(PROGBITS, 0, []); 4000];
            shared.push(section(STRTAB, 0, long.clone()));
            hostile.push(file(&shared));
            // Four thousand sections of the same bytes.
            for flags in [ALLOC, ALLOC | WRITE, ALLOC | EXEC] {
                let mut piece = section(PROGBITS, flags, []);
                piece.claims = Some((64, 250_000));
                let mut overlapping = vec![section(PROGBITS, 0, long.clone())];
                overlapping.extend(vec![piece; 4000]);
                overlapping.push(section(STRTAB, 0, *b"\0"));
                hostile.push(file(&overlapping));
            }
            // Ten thousand symbols of one name, and of one imported name.
            for index in [0, 1] {
                let symbols = symbol(0, index, 0, 0).repeat(10_000);
                hostile.push(with_symbols(&function(), symbols, &long, &[]));
            }
            for bytes in &hostile {
                assert!(space.create_object("x", bytes, &[]).is_err());
            }
            let grown = peak() - before;
            // The files themselves are 6 MB.
            assert!(grown < 24 << 20, "{grown} bytes");
        },
    );
    let twice = vec![
        Section {
            claims: Some((64, 2)),
            ..section(PROGBITS, ALLOC, [1, 2])
        },
        Section {
            claims: Some((65, 1)),
            ..section(PROGBITS, 0, [])
        },
        section(STRTAB, 0, *b"\0"),
    ];
    assert!(refused(&file(&twice)).contains("two of its sections overlap"));
    let names = with_symbols(
        &function(),
        symbol(0, 1, 0, 0).repeat(9),
        &[b'x'; 1000],
        &[],
    );
    assert!(refused(&names).contains("a name does not end"));
    let names = [&[b'x'; 1000][..], b"\0"].concat();
    let names = with_symbols(&function(), symbol(0, 1, 0, 0).repeat(9), &names, &[]);
    assert!(refused(&names).contains("together longer than the file"));
}

#[test]
fn symbols_and_relocations_lie_in_their_sections() {
    let outside = "outside of its section";
    for (value, size) in [
        (10, 0),
        (9, 1),
        (0, 10),
        (0xffff_ffff, 0),
        (0xffff_fff0, 9),
        (0xffff_fff0, 0xffff_ffff),
        (u64::MAX, 0),
        (u64::MAX, 0xffff_ffff),
        (1 << 32, 0),
    ] {
        let bytes = with_symbols(&function(), symbol(1, 1, value, size), b"\0f\0", &[]);
        assert!(refused(&bytes).contains(outside), "{value:#x} {size:#x}");
        // Variables, too, and those without bytes.
        let mut zeros = section(NOBITS, ALLOC | WRITE, []);
        zeros.claims = Some((0, 9));
        let bytes = with_symbols(&function(), symbol(1, 4, value, size), b"\0f\0", &[zeros]);
        assert!(refused(&bytes).contains(outside), "{value:#x} {size:#x}");
    }
    // The very end is a place, of nothing.
    let last = [symbol(1, 1, 0, 9), symbol(3, 1, 9, 0)].concat();
    let bytes = with_symbols(&function(), last, b"\0f\0g\0", &[]);
    // What follows text is a trap.
    empty().create_object("x", &bytes, &[]).unwrap();
    for at in [9u64, 6, 0xffff_fffc, u64::MAX] {
        let entry = [at, 10, 0].map(u64::to_le_bytes).concat();
        let mut table = section(RELA, 0, entry);
        (table.link, table.info) = (2, 1);
        let bytes = with_symbols(&function(), symbol(1, 1, 0, 9), b"\0f\0", &[table]);
        assert!(refused(&bytes).contains(outside), "{at:#x}");
    }
}

#[test]
fn no_name_of_a_file_commands_a_terminal() {
    let mut section_name = section(INIT_ARRAY, ALLOC, [0; 8]);
    section_name.name = 1;
    let names = b"\0\x1b[2J\x07\xc2\x9b31m\xe2\x80\xae\xff\r\nx\0";
    let bytes = file(&[section_name, section(STRTAB, 0, *names)]);
    let text = refused(&bytes);
    assert!(
        text.contains("\\u{1b}[2J") && text.contains("constructors"),
        "{text}"
    );
    for index in [0, 1] {
        let text = refused(&with_symbols(
            &function(),
            symbol(1, index, 0, 0),
            names,
            &[],
        ));
        assert!(text.contains("\\u{1b}[2J"), "{text}");
    }
    let text = refused(&with_symbols(&function(), symbol(0, 1, 0, 0), names, &[]));
    assert!(text.contains("is no name"), "{text}");
    // Letters of other alphabets are names.
    let bytes = with_symbols(&function(), symbol(1, 1, 0, 9), "\0größe\0".as_bytes(), &[]);
    assert_eq!(
        empty().create_object("x", &bytes, &[]).unwrap().new,
        ["größe"]
    );
}

#[test]
fn any_bytes_of_a_header_are_an_error_or_an_object() {
    let mut table = section(RELA, 0, [0, 10, 0u64].map(u64::to_le_bytes).concat());
    (table.link, table.info) = (2, 4);
    let more = [section(PROGBITS, ALLOC | WRITE, [0; 8]), table];
    let whole = with_symbols(&function(), symbol(1, 1, 0, 9), b"\0f\0", &more);
    let space = empty();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            bytes[at] = *random.choice(&[0, 1, 2, 4, 0x7f, 0x80, 0xff]).unwrap();
        }
        bytes.truncate(
            random
                .usize(bytes.len() / 2..=bytes.len() * 3 / 2)
                .min(bytes.len()),
        );
        if let Err(error) = space.create_object("x", &bytes, &[]) {
            let text = error.to_string();
            assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
        }
    }
}

#[test]
fn a_name_is_defined_once() {
    let space = empty();
    let text = [function(), vec![0xcc; 7], function()].concat();
    let two = |second: u32| [symbol(1, 1, 0, 9), symbol(second, 1, 16, 9)].concat();
    let file = |second| with_symbols(&text, two(second), b"\0f\0g\0", &[]);
    let mut variable = symbol(1, 4, 0, 1);
    variable[4] = 0x11;
    let data = section(PROGBITS, ALLOC | WRITE, [1; 8]);
    let both = [symbol(1, 1, 0, 9), variable].concat();
    let both = with_symbols(&text, both, b"\0f\0", &[data]);
    let types = [("f", "v()")];
    let refuse = || {
        for bytes in [file(1), both.clone()] {
            let error = space.create_object("x", &bytes, &types).unwrap_err();
            assert!(matches!(&error, CreateError::Twice(name) if name == "f"));
        }
    };
    refuse();
    space.create_object("x", &file(3), &types).unwrap();
    // Nor where it takes the place of what is there: that was freed while names led to it.
    refuse();
    space.create_object("y", &file(3), &types).unwrap();
    let one = with_symbols(&text, symbol(1, 1, 0, 9), b"\0f\0", &[]);
    space.create_object("z", &one, &types).unwrap();
    let before = space.counters();
    assert_eq!((before.units, before.freed), (2, 1));
    space.func::<fn()>("f").unwrap().call().unwrap();
}
