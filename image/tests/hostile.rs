//! Whatever the bytes: an image or a typed error that names the place, never a panic.

use postern_image::{FileLocation, ImageBuilder, ImageError, ImageFile, Problem, SignatureError};

/// An image with everything: two imports, two exports, rodata, data, bss, thread-local variables.
fn full() -> ImageBuilder {
    let mut builder = ImageBuilder::new(vec![0xc3; 5000]);
    builder.import("log", Some("v(pI)".parse().unwrap()));
    builder.import("fetch", None);
    builder.export("first", 0, Some("l(ii)".parse().unwrap()));
    builder.export("second", 4999, None);
    builder
        .rodata(*b"read-only data")
        .data([7; 100], 9000)
        .thread_locals(*b"values", 40, 16)
        .stack_log2(14)
        .heap_wish(1 << 20);
    builder
}

fn full_file() -> Vec<u8> {
    full().build().expect("legal")
}

/// File offset of field `field` of program header `index` (0 text, 1 read-only, 2 notes, 3 data, 4
/// thread-local).
const fn header(index: usize, field: usize) -> usize {
    64 + 56 * index + field
}
const TYPE: usize = 0;
const FLAGS: usize = 4;
const OFFSET: usize = 8;
const ADDRESS: usize = 16;
const FILE_SIZE: usize = 32;
const MEMORY_SIZE: usize = 40;
const ALIGNMENT: usize = 48;

fn patched(at: usize, bytes: &[u8]) -> Result<(), ImageError> {
    let mut file = full_file();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    ImageFile::parse(&file).map(drop)
}

fn u64_at(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap())
}

/// Position in the file of the first occurrence of `needle`.
fn find(needle: &[u8]) -> usize {
    full_file()
        .windows(needle.len())
        .position(|w| w == needle)
        .expect("is there")
}

#[test]
fn a_built_image_parses_to_what_was_built() {
    let file = full_file();
    let image = ImageFile::parse(&file).unwrap();
    let layout = image.layout();
    assert_eq!(layout, full().layout().unwrap());
    assert_eq!(image.header().stack_log2, 14);
    assert_eq!(image.header().heap_wish, 1 << 20);
    assert!(!image.header().x87 && !image.header().any_stack);
    assert_eq!(
        (image.text().offset, image.text().bytes.len()),
        (0x1_2000, 5000)
    );
    assert_eq!(layout.text_end, 0x1_4000);
    let rodata = image.rodata().unwrap();
    assert!(rodata.offset == layout.text_end && rodata.bytes.starts_with(b"read-only data"));
    assert_eq!(
        (layout.stack, layout.data, layout.stack_size),
        (0x1_8000, 0x1_c000, 0x4000)
    );
    let data = image.data().unwrap();
    assert_eq!(
        (data.offset, data.bytes, data.memory_size),
        (0x1_c000, &[7; 100][..], 9100)
    );
    assert_eq!(
        (layout.data_file_end, layout.bss_end, layout.heap_start),
        (0x1_d000, 0x1_e38c, 0x1_f000)
    );
    assert_eq!(image.imports()[0].name, "log");
    assert_eq!(image.imports()[0].signature.unwrap().to_string(), "v(pI)");
    assert_eq!(
        (image.imports()[1].name, image.imports()[1].signature),
        ("fetch", None)
    );
    assert_eq!(image.export("second").unwrap().offset, 0x1_2000 + 4999);
    assert_eq!(
        image.export("first").unwrap().signature.unwrap().c("first"),
        "int64_t first(int32_t, int32_t)"
    );
    assert_eq!(image.export("third"), None);
    let tables = postern_image::ImageTables::from(&image);
    assert_eq!(tables.export("second").unwrap().offset, 0x1_2000 + 4999);
    assert_eq!(tables.export("third"), None);
}

#[test]
fn the_smallest_image_has_text_and_notes() {
    let file = ImageBuilder::new([0xc3]).build().unwrap();
    let image = ImageFile::parse(&file).unwrap();
    assert_eq!(image.text().bytes, [0xc3]);
    assert_eq!(image.text().offset, 0x1_1000);
    assert_eq!(image.data(), None);
    assert!(image.imports().is_empty() && image.exports().is_empty());
}

/// Checks that a patch leads to an error at a place, of a kind.
macro_rules! refused {
    ($($at:expr, $bytes:expr => $place:pat, $problem:pat,)*) => {$(
        let result = patched($at, &$bytes[..]);
        let matches = matches!(&result, Err(ImageError { place: $place, problem: $problem, .. }));
        assert!(matches, "{} {:?} gave {result:?}", stringify!($at), $bytes);
    )*};
}

#[test]
fn every_field_of_the_elf_header_that_matters_is_checked() {
    use FileLocation::ElfHeader as Header;
    refused! {
        0, [0x7e] => Header, Problem::NotElf,
        4, [1] => Header, Problem::WrongElf { field: "EI_CLASS", .. },
        5, [2] => Header, Problem::WrongElf { field: "EI_DATA", .. },
        6, [0] => Header, Problem::WrongElf { field: "EI_VERSION", .. },
        16, [3] => Header, Problem::WrongElf { field: "e_type", found: 3, wanted: 2 },
        18, [3] => Header, Problem::WrongElf { field: "e_machine", .. },
        20, [2] => Header, Problem::WrongElf { field: "e_version", .. },
        24, [0, 0x20, 1] => Header, Problem::WrongElf { field: "e_entry", .. },
        32, u64::MAX.to_le_bytes() => Header, Problem::OutsideFile { what: "program headers", .. },
        32, (u64::MAX - 200).to_le_bytes() => Header, Problem::OutsideFile { .. },
        52, [0] => Header, Problem::WrongElf { field: "e_ehsize", .. },
        54, [57] => Header, Problem::WrongElf { field: "e_phentsize", .. },
        56, [0xff, 0xff] => Header, Problem::OutsideFile { what: "program headers", .. },
        56, [0, 0] => FileLocation::File, Problem::Missing("executable segment"),
        56, [1, 0] => FileLocation::File, Problem::Missing("note segment"),
        56, [6, 0] => FileLocation::ProgramHeader(5), Problem::ForeignSegment(0),
    }
}

#[test]
fn program_headers_of_foreign_kinds_and_protections_are_refused() {
    use FileLocation::ProgramHeader as At;
    let gnu_stack = [&0x6474_e551u32.to_le_bytes()[..], &[7]].concat();
    refused! {
        header(3, TYPE), [2] => At(3), Problem::ForeignSegment(2),
        header(3, TYPE), [3] => At(3), Problem::ForeignSegment(3),
        header(3, TYPE), [7] => At(4), Problem::Second("thread-local segment"),
        header(4, TYPE), [8] => At(4), Problem::ForeignSegment(8),
        header(4, FLAGS), [5] => At(4), Problem::ForeignProtection(_),
        header(3, TYPE), 0x6474_e552u32.to_le_bytes() => At(3), Problem::ForeignSegment(0x6474_e552),
        header(3, TYPE), gnu_stack => At(3), Problem::ForeignProtection(_),
        header(0, FLAGS), [7] => At(0), Problem::ForeignProtection(_),
        header(0, FLAGS), [1] => At(0), Problem::ForeignProtection(_),
        header(0, FLAGS), [0] => At(0), Problem::ForeignProtection(_),
        header(3, FLAGS), [2] => At(3), Problem::ForeignProtection(_),
        header(3, FLAGS + 3), [0x80] => At(3), Problem::ForeignProtection(_),
        header(2, FLAGS), [5] => At(2), Problem::ForeignProtection(_),
        header(3, FLAGS), [5] => At(3), Problem::Second("executable segment"),
        header(3, FLAGS), [4] => At(3), Problem::Second("read-only segment"),
        header(3, TYPE), [4] => At(3), Problem::Second("note segment"),
        header(0, FLAGS), [6] => At(0), Problem::Order("writable segment"),
        header(0, FLAGS), [4] => At(0), Problem::Order("read-only segment"),
    }
}

#[test]
fn sizes_and_places_of_segments_are_checked_in_64_bits() {
    use FileLocation::ProgramHeader as At;
    let max = u64::MAX.to_le_bytes();
    let page = 0x1000u64.to_le_bytes();
    refused! {
        header(0, OFFSET), max => At(0), Problem::Unaligned { field: "p_offset", .. },
        header(0, OFFSET), (u64::MAX - 4095).to_le_bytes() => At(0), Problem::OutsideFile { .. },
        header(0, OFFSET), [1] => At(0), Problem::Unaligned { .. },
        header(1, OFFSET), page => At(1), Problem::Order("read-only segment"),
        header(3, OFFSET), page => At(3), Problem::Order("writable segment"),
        header(0, ADDRESS), [1] => At(0), Problem::Unaligned { field: "p_vaddr", .. },
        header(0, ADDRESS), 0x1_1000u64.to_le_bytes() => At(0), Problem::Misplaced { what: "text", .. },
        header(0, ADDRESS), 0x1_0001_2000u64.to_le_bytes() => At(0), Problem::Misplaced { what: "text", .. },
        header(1, ADDRESS), 0x1_5000u64.to_le_bytes() => At(1), Problem::Misplaced { wanted: 0x1_4000, .. },
        header(3, ADDRESS), 0x1_2000u64.to_le_bytes() => At(3), Problem::Misplaced { what: "data", .. },
        header(3, ADDRESS), (u64::MAX - 4095).to_le_bytes() => At(3), Problem::Misplaced { .. },
        header(0, FILE_SIZE), max => At(0), Problem::FileLargerThanMemory { .. },
        header(0, MEMORY_SIZE), max => At(0), Problem::Unfilled { .. },
        header(1, MEMORY_SIZE), max => At(1), Problem::Unfilled { .. },
        header(3, FILE_SIZE), max => At(3), Problem::FileLargerThanMemory { .. },
        header(3, MEMORY_SIZE), max => At(3), Problem::BeyondWindow(_),
        header(3, MEMORY_SIZE), 0xffff_0000u64.to_le_bytes() => At(3), Problem::BeyondWindow(_),
        header(3, MEMORY_SIZE), [99, 0] => At(3), Problem::FileLargerThanMemory { file: 100, memory: 99 },
        header(2, OFFSET), max => At(2), Problem::NotesOutsideReadOnly,
        header(2, OFFSET), page => At(2), Problem::NotesOutsideReadOnly,
        header(2, FILE_SIZE), max => At(2), Problem::NotesOutsideReadOnly,
        header(2, FILE_SIZE), [0, 0] => FileLocation::File, Problem::Missing("header note"),
    }
    // Text of no bytes: both sizes are 0.
    let mut file = full_file();
    file[header(0, FILE_SIZE)..header(0, MEMORY_SIZE) + 8].fill(0);
    assert!(matches!(
        ImageFile::parse(&file),
        Err(ImageError {
            place: At(0),
            problem: Problem::EmptyText
        })
    ));
}

#[test]
fn thread_local_variables_lie_where_they_say_and_fit() {
    use FileLocation::ProgramHeader as At;
    let file = full_file();
    let address = u64_at(&file, header(4, ADDRESS));
    let offset = u64_at(&file, header(4, OFFSET));
    let max = u64::MAX.to_le_bytes();
    refused! {
        header(4, FILE_SIZE), max => At(4), Problem::FileLargerThanMemory { .. },
        header(4, FILE_SIZE), [41] => At(4), Problem::FileLargerThanMemory { file: 41, memory: 40 },
        header(4, MEMORY_SIZE), max => At(4), Problem::ThreadLocalsTooLarge { .. },
        header(4, MEMORY_SIZE), 4096u64.to_le_bytes() => At(4), Problem::ThreadLocalsTooLarge { size: 4096, most: 4096 },
        header(4, MEMORY_SIZE), 4081u64.to_le_bytes() => At(4), Problem::ThreadLocalsTooLarge { .. },
        header(4, MEMORY_SIZE), (u64::MAX - 3).to_le_bytes() => At(4), Problem::ThreadLocalsTooLarge { .. },
        header(4, ALIGNMENT), [3] => At(4), Problem::ThreadLocalAlignment(3),
        header(4, ALIGNMENT), 512u64.to_le_bytes() => At(4), Problem::ThreadLocalAlignment(512),
        header(4, ALIGNMENT), max => At(4), Problem::ThreadLocalAlignment(_),
        header(4, ALIGNMENT), 256u64.to_le_bytes() => At(4), Problem::ThreadLocalsMisaligned { alignment: 256, .. },
        header(4, ADDRESS), (address + 1).to_le_bytes() => At(4), Problem::ThreadLocalsMisaligned { .. },
        header(4, ADDRESS), (address + 16).to_le_bytes() => At(4), Problem::ThreadLocalsOutsideReadOnly,
        header(4, ADDRESS), 0u64.to_le_bytes() => At(4), Problem::ThreadLocalsOutsideReadOnly,
        header(4, OFFSET), (offset + 1).to_le_bytes() => At(4), Problem::ThreadLocalsOutsideReadOnly,
        header(4, OFFSET), 0x1000u64.to_le_bytes() => At(4), Problem::ThreadLocalsOutsideReadOnly,
        header(4, OFFSET), max => At(4), Problem::ThreadLocalsOutsideReadOnly,
    }
    // No alignment is none asked for; without bytes the place in the file means nothing.
    assert_eq!(patched(header(4, ALIGNMENT), &[0]), Ok(()));
    let bss = |edit: &dyn Fn(&mut [u8])| {
        let mut file = full().thread_locals([], 4080, 16).build().unwrap();
        edit(&mut file);
        ImageFile::parse(&file).map(|image| image.thread_locals().unwrap().reserved())
    };
    assert_eq!(bss(&|_| {}), Ok(4080 + 256));
    assert_eq!(bss(&|file| file[header(4, OFFSET)] = 1), Ok(4080 + 256));
    // Read-only bytes beyond the segment's end.
    let long = full().thread_locals([1; 64], 64, 64).build().unwrap();
    let end = u64_at(&long, header(1, FILE_SIZE)) - 1;
    let mut file = long.clone();
    for (field, base) in [(OFFSET, header(1, OFFSET)), (ADDRESS, header(1, ADDRESS))] {
        let moved = u64_at(&long, base) + (end & !63);
        file[header(4, field)..][..8].copy_from_slice(&moved.to_le_bytes());
    }
    let error = ImageFile::parse(&file).map(drop).unwrap_err();
    assert_eq!(error.problem, Problem::ThreadLocalsOutsideReadOnly);
}

#[test]
fn the_top_of_a_data_stack_as_it_is_at_first() {
    let mut builder = full();
    for (bytes, size, alignment, reserved) in [
        (&b"values"[..], 40, 16, 48 + 256),
        (b"", 0, 1, 256),
        (b"x", 1, 1, 272),
        (b"x", 1, 256, 512),
        (b"12345", 5, 4, 272),
    ] {
        let file = builder
            .thread_locals(bytes, size, alignment)
            .build()
            .unwrap();
        let variables = ImageFile::parse(&file).unwrap().thread_locals().unwrap();
        let area = variables.initial(0x1122_3344_5566_7700);
        assert_eq!(
            (variables.reserved(), area.len()),
            (reserved, reserved as usize)
        );
        let thread_pointer = area.len() - 256;
        assert_eq!(
            area[thread_pointer + 40..][..8],
            [0, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]
        );
        let first = thread_pointer - size.next_multiple_of(alignment) as usize;
        assert!(area[first..].starts_with(bytes));
        let zeros = area.iter().filter(|byte| **byte == 0).count();
        assert_eq!(zeros, area.len() - bytes.len() - 7);
    }
}

#[test]
fn notes_are_checked_for_form() {
    let file = full_file();
    let notes = u64_at(&file, header(2, OFFSET)) as usize;
    let descriptor = notes + 20;
    let second = descriptor + 24;
    let first = FileLocation::Note(notes as u64);
    let at_first = |result: Result<(), ImageError>| {
        let error = result.expect_err("damaged");
        assert_eq!(error.place, first, "{error}");
        error.problem
    };
    assert_eq!(at_first(patched(notes, &[0xff; 4])), Problem::TruncatedNote);
    assert_eq!(
        at_first(patched(notes + 4, &[0xff; 4])),
        Problem::TruncatedNote
    );
    assert_eq!(at_first(patched(notes + 8, &[9])), Problem::UnknownNote(9));
    assert_eq!(at_first(patched(notes + 4, &[20])), Problem::HeaderSize(20));
    assert_eq!(at_first(patched(descriptor, &[2])), Problem::Abi(2));
    assert_eq!(
        at_first(patched(descriptor + 4, &[2])),
        Problem::SegmentRegister(2)
    );
    assert_eq!(
        at_first(patched(descriptor + 8, &[11])),
        Problem::StackSize(11)
    );
    assert_eq!(
        at_first(patched(descriptor + 8, &[27])),
        Problem::StackSize(27)
    );
    assert_eq!(at_first(patched(descriptor + 12, &[4])), Problem::Flags(4));
    // Bit 15 is behind the shift's.
    let flags = patched(descriptor + 13, &[0x80]);
    assert_eq!(at_first(flags), Problem::Flags(0x8000));
    let twice = patched(second + 8, &[1]).expect_err("two headers");
    assert_eq!(
        (twice.place, twice.problem),
        (
            FileLocation::Note(second as u64),
            Problem::Second("header note")
        )
    );
    // A note of another owner is skipped, so ours is missing then.
    let other = patched(notes + 12, b"Q").expect_err("no header");
    assert_eq!(
        (other.place, other.problem),
        (FileLocation::File, Problem::Missing("header note"))
    );
}

#[test]
fn needs_are_names() {
    let with = |names: &[&str]| {
        let mut builder = ImageBuilder::new([0xc3]);
        for name in names {
            builder.need(*name);
        }
        builder.build()
    };
    let file = with(&["aes", "frobnicate"]).unwrap();
    assert_eq!(
        ImageFile::parse(&file).unwrap().needs(),
        ["aes", "frobnicate"]
    );
    assert!(with(&[]).is_ok_and(|file| ImageFile::parse(&file).unwrap().needs().is_empty()));
    assert_eq!(with(&["a b"]).unwrap_err().problem, Problem::Name);
    assert_eq!(with(&[""]).unwrap_err().problem, Problem::Name);
    assert_eq!(with(&["x"; 65]).unwrap_err().problem, Problem::TooMany(64));
    // Without the last NUL, and twice.
    let at = file.windows(10).position(|w| w == b"frobnicate").unwrap();
    let mut cut = file.clone();
    cut[at + 10] = b'x';
    assert_eq!(
        ImageFile::parse(&cut).unwrap_err().problem,
        Problem::TruncatedEntry
    );
}

#[test]
fn tables_are_checked_for_form() {
    let import = |name: Option<&str>| FileLocation::Import(0, name.map(String::from));
    let check = |at, bytes: &[u8], place, problem| {
        assert_eq!(patched(at, bytes), Err(ImageError { place, problem }));
    };
    check(find(b"log\0"), b" ", import(None), Problem::Name);
    check(find(b"log\0"), &[0x80], import(None), Problem::Name);
    check(find(b"log\0"), &[0], import(None), Problem::Name);
    let unknown = SignatureError::UnknownType {
        letter: 'q',
        position: 2,
    };
    check(
        find(b"v(pI)"),
        b"v(q",
        import(Some("log")),
        Problem::Signature(unknown),
    );
    check(
        find(b"v(pI)"),
        b"v)",
        import(Some("log")),
        Problem::Signature(SignatureError::Form),
    );
    check(
        find(b"fetch\0\0") + 6,
        b"i",
        FileLocation::Import(1, Some("fetch".into())),
        Problem::TruncatedEntry,
    );
    check(
        find(b"fetch\0\0") + 5,
        b"i",
        FileLocation::Import(1, Some("fetchi".into())),
        Problem::TruncatedEntry,
    );

    let second = find(b"second\0");
    let place = |name: &str| FileLocation::Export(1, Some(name.into()));
    for outside in [0u32, 0x1_1fff, 0x1_2000 + 5000, u32::MAX] {
        check(
            second - 4,
            &outside.to_le_bytes(),
            place("second"),
            Problem::ExportOutsideText(outside),
        );
    }
}

#[test]
fn names_are_unique_and_counts_bounded() {
    let build = |edit: &dyn Fn(&mut ImageBuilder)| {
        let mut builder = ImageBuilder::new([0xc3]);
        edit(&mut builder);
        builder.build().map(drop).map_err(|e| e.problem)
    };
    let duplicate = Err(Problem::DuplicateName);
    assert_eq!(
        build(&|b| _ = b.export("f", 0, None).export("f", 0, None)),
        duplicate
    );
    assert_eq!(
        build(&|b| _ = (b.import("f", None), b.import("f", None))),
        duplicate
    );
    // The same name may be imported and exported, and two names may share an offset.
    assert_eq!(
        build(&|b| _ = (
            b.import("f", None),
            b.export("f", 0, None).export("g", 0, None).build()
        )),
        Ok(())
    );
    assert_eq!(build(&|b| _ = b.export("", 0, None)), Err(Problem::Name));
    assert_eq!(
        build(&|b| _ = b.export("a\0b", 0, None)),
        Err(Problem::Name)
    );
    assert_eq!(
        build(&|b| _ = b.export("x".repeat(256), 0, None)),
        Err(Problem::Name)
    );
    assert_eq!(build(&|b| _ = b.export("x".repeat(255), 0, None)), Ok(()));
    assert_eq!(
        build(&|b| _ = b.export("f", 1, None)),
        Err(Problem::ExportOutsideText(0x1_1001))
    );
    assert!(matches!(
        build(&|b| _ = b.export("f", u32::MAX, None)),
        Err(Problem::ExportOutsideText(_))
    ));
    let imports = |n: u32| build(&move |b| (0..n).for_each(|i| _ = b.import(i.to_string(), None)));
    assert_eq!(imports(4096), Ok(()));
    assert_eq!(imports(4097), Err(Problem::TooMany(4096)));
    let exports =
        |n: u32| build(&move |b| (0..n).for_each(|i| _ = b.export(i.to_string(), 0, None)));
    assert_eq!(exports(65536), Ok(()));
    assert_eq!(exports(65537), Err(Problem::TooMany(65536)));
    assert_eq!(
        build(&|b| _ = b.data([], 0xfff8_0000)),
        Err(Problem::BeyondWindow(0x1_0000_0000))
    );
    assert!(build(&|b| _ = b.data([], u64::MAX)).is_err());
    assert_eq!(
        build(&|b| _ = b.stack_log2(27)),
        Err(Problem::StackSize(27))
    );
    assert_eq!(build(&|b| _ = b.text([])), Err(Problem::EmptyText));
}

#[test]
fn errors_name_place_problem_and_remedy() {
    let error = patched(find(b"second\0") - 4, &[0; 4]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "export 1 `second`: offset 0x0 lies outside text (export functions only, each under one plain name)"
    );
    let error = patched(header(0, FLAGS), &[7]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("program header 0: protection rwx has no place in an extension (")
    );
}

#[test]
fn every_truncation_is_refused() {
    let file = full_file();
    for length in 0..file.len() {
        assert!(
            ImageFile::parse(&file[..length]).is_err(),
            "{length} bytes of {}",
            file.len()
        );
    }
}

#[test]
fn no_flipped_bit_panics_and_those_of_headers_and_notes_keep_the_promises() {
    let mut file = full_file();
    let mut accepted = 0;
    for bit in 0..file.len() * 8 {
        file[bit / 8] ^= 1 << (bit % 8);
        if let Ok(image) = ImageFile::parse(&file) {
            accepted += 1;
            keeps_its_promises(&image, &file);
        }
        file[bit / 8] ^= 1 << (bit % 8);
    }
    // Bits of text, data and padding are free; the run must have seen them.
    assert!(accepted > 5000 * 8, "{accepted}");
}

#[test]
fn random_damage_keeps_the_promises() {
    let original = full_file();
    let notes = u64_at(&original, header(2, OFFSET)) as usize;
    let interesting: Vec<usize> = (0..64 + 5 * 56).chain(notes..notes + 160).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut file = original.clone();
    for _ in 0..300_000 {
        let mut touched = Vec::new();
        for _ in 0..1 + random.u32(..4) {
            let at = interesting[random.usize(..interesting.len())];
            file[at] = match random.u32(..4) {
                0 => 0,
                1 => 0xff,
                2 => 1 << random.u32(..8),
                _ => random.u8(..),
            };
            touched.push(at);
        }
        if let Ok(image) = ImageFile::parse(&file) {
            keeps_its_promises(&image, &file);
        }
        for at in touched {
            file[at] = original[at];
        }
    }
}

/// What [`ImageFile`] promises, checked from outside.
fn keeps_its_promises(image: &ImageFile<'_>, file: &[u8]) {
    let l = image.layout();
    let order = [
        0x1_1000,
        l.gates,
        l.text,
        l.text_end,
        l.readonly_end,
        l.stack,
        l.data,
    ];
    assert!(order.is_sorted() && l.text < l.text_end);
    assert!([l.data, l.data_file_end, l.heap_start, 0xffff_0000].is_sorted());
    assert!(l.bss_end <= l.heap_start && l.heap_start - l.bss_end < 4096);
    assert!(l.stack % l.stack_size == 0 && l.stack + l.stack_size == l.data);
    assert!(l.text as usize >= 0x1_1000 + 32 * image.imports().len());
    let parts = [Some(image.text()), image.rodata(), image.data()];
    let limits = [l.text_end, l.stack, l.heap_start];
    let file = file.as_ptr_range();
    for (part, limit) in parts.into_iter().zip(limits) {
        let Some(part) = part else { continue };
        assert!(part.bytes.len() <= part.memory_size as usize);
        assert!(
            part.offset
                .checked_add(part.memory_size)
                .is_some_and(|end| end <= limit)
        );
        let bytes = part.bytes.as_ptr_range();
        assert!(part.bytes.is_empty() || (bytes.start >= file.start && bytes.end <= file.end));
    }
    if let Some(variables) = image.thread_locals() {
        let bytes = variables.bytes.as_ptr_range();
        assert!(variables.bytes.is_empty() || (bytes.start >= file.start && bytes.end <= file.end));
        assert!(variables.bytes.len() <= variables.memory_size as usize);
        assert!(variables.size() < l.stack_size / 4 && variables.alignment.is_power_of_two());
        assert!(variables.reserved() % 16 == 0 && variables.reserved() < l.stack_size / 2);
        assert_eq!(variables.initial(7).len(), variables.reserved() as usize);
    }
    for export in image.exports() {
        assert!((l.text..l.text_end).contains(&export.offset));
        assert_eq!(image.export(export.name), Some(export));
    }
}
