//! Code for the kernel: accepted by its profile, the same results as the code for processes, and
//! errors with lines for what cannot be.
//!
//! The code differs from a process's by one bit of a prefix, the segment; with that bit turned it
//! runs in a domain.

use std::time::Duration;

use postern::{Domain, Image};
use postern_ecode::{Compiler, LinkError, Object, Options, link_for_kernel};
use postern_image::ImageFile;
use postern_verifier::window::KERNEL_CALLS;
use postern_verifier::{Facts, Profile, Segment, bounded_buffer_len, next, verify};

use crate::support::differential::{ARGUMENTS, confined};
use crate::support::generate;

fn unit(source: &str) -> Result<Object, postern_ecode::Errors> {
    let mut compiler = Compiler::new(Options {
        kernel: true,
        ..Options::default()
    });
    compiler.compile(source)
}

/// The image of sources for the kernel.
fn file(sources: &[&str]) -> Result<Vec<u8>, LinkError> {
    let units: Vec<Object> = sources
        .iter()
        .map(|source| unit(source).unwrap_or_else(|errors| panic!("{errors}")))
        .collect();
    let mut linked = link_for_kernel(&units, 18)?;
    let names = ["a.ec", "b.ec", "c.ec"];
    linked.name_lines(&units, &names[..units.len()]);
    Ok(linked.file)
}

/// What the verifier says of it in the kernel's profile.
fn judged(file: &[u8]) -> Facts {
    let image = ImageFile::parse(file).unwrap();
    assert_eq!(image.header().segment, Segment::Fs);
    let text = image.mapped_text();
    let mut buffer = vec![0; bounded_buffer_len(text.len())];
    let layout = image.verifier_layout();
    let facts = verify(&text, &layout, Profile::Kernel, &mut buffer);
    facts.unwrap_or_else(|violation| panic!("{violation}"))
}

/// The image for a process that has the same code, through gs.
fn through_gs(mut file: Vec<u8>) -> Vec<u8> {
    let (at, text) = {
        let image = ImageFile::parse(&file).unwrap();
        let text = image.text().bytes.to_vec();
        // Segments begin at pages of the file.
        let mut pages = (0..file.len()).step_by(4096);
        let at = pages.rfind(|at| file[*at..].starts_with(&text));
        (at.unwrap(), text)
    };
    let mut place = 0;
    while place < text.len() {
        if text[place] == 0x64 {
            file[at + place] = 0x65;
        }
        place += next(&text, place, Segment::Fs).unwrap().length;
    }
    // The header note: lengths, kind and owner, the ABI's version, then the segment.
    let note = b"\x08\0\0\0\x18\0\0\0\x01\0\0\0Postern\0\x01\0\0\0\x01\0\0\0";
    let found = file.windows(note.len()).position(|part| part == note);
    file[found.unwrap() + note.len() - 4] = 0;
    file
}

fn domain(file: Vec<u8>) -> Domain {
    let image = Image::from_bytes(&through_gs(file)).unwrap();
    let deadline = Some(Duration::from_secs(20));
    Domain::builder(&image).deadline(deadline).build().unwrap()
}

/// The program with whole numbers for floating ones, and calls by name for those by pointer.
fn for_the_kernel(program: &str) -> String {
    let called = program
        .replace("functions[", "by_number(")
        .replace("](", ", ");
    let array = "static int (*const by_number(4])(int) = { twice, negate, third, twice };";
    let named = "static int by_number(int k, int x) { return k & 1 ? negate(x) : twice(x); }";
    assert!(called.contains(array));
    let called = called.replace(array, named);
    let mut whole = String::new();
    let mut rest = &*called;
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    while let Some(first) = rest.chars().next() {
        let mut length = rest.find(|c| !part_of_word(c)).unwrap_or(rest.len());
        let number = first.is_ascii_digit();
        let exponent = number && !rest.starts_with("0x") && rest[..length].contains('e');
        if exponent && rest[..length].ends_with('e') {
            // Its sign, and what follows.
            length += 1 + rest[length + 1..].find(|c| !part_of_word(c)).unwrap_or(0);
        }
        let word = &rest[..length.max(first.len_utf8())];
        whole += match word {
            "double" | "float" => "long",
            _ if number && (exponent || word.contains('.')) => "3",
            _ => word,
        };
        rest = &rest[word.len()..];
    }
    whole
}

#[test]
fn random_programs_compute_the_same() {
    for seed in 0..300 {
        let count = 1 + seed as usize % 3;
        let source = for_the_kernel(&generate::program(seed, count));
        let names: Vec<String> = (0..count).map(|n| format!("f{n}")).collect();
        let file = file(&[&source]).unwrap();
        judged(&file);
        let domain = domain(file);
        let expected = confined(&source, &names).unwrap();
        let mut expected = expected.into_iter();
        for name in &names {
            let f = domain.func::<fn(i64) -> i64>(name).unwrap();
            for argument in ARGUMENTS {
                let found = f.call(argument).unwrap();
                assert_eq!(Some(found), expected.next(), "{name}({argument})\n{source}");
            }
        }
    }
}

/// Blocks are copied and cleared without vector registers, in loops and with all registers taken.
#[test]
fn blocks_are_copied_by_general_registers() {
    let source = |size: u32| {
        format!(
            "struct block {{ unsigned char b[{size}]; }};
             static struct block from, to;
             static struct block copy(struct block x) {{ x.b[0] += 1; return x; }}
             long f0(long p) {{
                 long a = p, b = p * 3, c = p * 5, d = p * 7, e = p ^ 9, g = p + 11, h = p * 13, i = p - 15, j = p * 17, k = p + 1, l = p * 2, m = p ^ 5;
                 struct block zero = {{ 0 }};
                 for (int n = 0; n < {size}; n++) from.b[n] = (unsigned char)(p * n + (p >> 5));
                 to = copy(from);
                 long sum = 0;
                 for (int n = 0; n < {size}; n++) sum = sum * 31 + to.b[n] + zero.b[n];
                 to = zero;
                 for (int n = 0; n < {size}; n++) sum += to.b[n];
                 return sum + a + b * c + d + e * g + h + i * j + k * l + m;
             }}"
        )
    };
    for size in [1, 2, 3, 4, 7, 8, 15, 16, 31, 255, 256, 257, 300, 1001] {
        let source = source(size);
        let file = file(&[&source]).unwrap();
        let facts = judged(&file);
        assert!(!facts.xmm, "{size}");
        let domain = domain(file);
        let f = domain.func::<fn(i64) -> i64>("f0").unwrap();
        let expected = confined(&source, &["f0".into()]).unwrap();
        let found = ARGUMENTS.map(|argument| f.call(argument).unwrap());
        assert_eq!(found[..], expected[..], "{size}");
    }
}

/// Callees stand behind their callers over all sources, whatever order these have; static functions
/// of one name stay apart; data is each source's own.
#[test]
fn sources_are_put_together_in_order() {
    let a = "static int part(int x) { return x * 3; }\nstatic int mine = 7;\nint last(int x) { return part(x) + mine; }\nint table[3] = { 1, 2, 3 };\nint *second = &table[1];";
    let b = "int last(int); int more(int);\nstatic int mine = 100;\nstatic int part(int x) { return last(x) + last(x + 1); }\nint middle(int x) { mine++; return part(x) * more(x) + mine; }";
    let c = "int last(int); int middle(int); extern int *second;\nint more(int x) { return x > 4 ? last(x - 4) : 2; }\nint first(int x) { int sum = 0; while (x--) sum += middle(x); return sum + *second; }\nint alone(void) { return 5; }";
    let last = |x: i32| x * 3 + 7;
    let more = |x: i32| if x > 4 { last(x - 4) } else { 2 };
    let middle = |x: i32| (last(x) + last(x + 1)) * more(x);
    // `mine` grows from 100 by one a call.
    let expected: i32 = (0..9).map(middle).sum::<i32>() + (101..110).sum::<i32>() + 2;
    for sources in [[a, b, c], [c, b, a], [b, a, c], [c, a, b]] {
        let file = file(&sources).unwrap();
        let facts = judged(&file);
        assert_eq!(facts.call_depth, Some(4));
        let symbols = postern_image::debug::Symbols::parse(&file);
        let image = ImageFile::parse(&file).unwrap();
        for export in image.exports() {
            let symbol = symbols.at(export.offset).unwrap();
            assert_eq!(symbol.to_string(), export.name.to_string());
        }
        // The line that `first` begins on, in the source that it is from.
        let first = image.exports().iter().find(|e| e.name == "first").unwrap();
        let place = postern_image::debug::describe(&file, first.offset);
        let number = sources.iter().position(|source| *source == c).unwrap();
        let name = ["a.ec", "b.ec", "c.ec"][number];
        assert!(place.contains(&format!("{name}:3")), "{place}");
        let domain = domain(file);
        let first = domain.func::<fn(i32) -> i32>("first").unwrap();
        assert_eq!(first.call(9).unwrap(), expected);
        let alone = domain.func::<fn() -> i32>("alone").unwrap();
        assert_eq!(alone.call().unwrap(), 5);
    }
}

#[test]
fn services_are_called() {
    let file = file(&["long service(long); long f(long x) { return service(x) + 1; }"]).unwrap();
    let facts = judged(&file);
    assert!(facts.gates && facts.call_depth == Some(1) && facts.longest_path.is_some());
    let image = Image::from_bytes(&through_gs(file)).unwrap();
    let domain = Domain::builder(&image)
        .service("service", |_: &postern::Caller<'_>, x: i64| x * 2)
        .build()
        .unwrap();
    let f = domain.func::<fn(i64) -> i64>("f").unwrap();
    assert_eq!(f.call(20).unwrap(), 41);
}

#[test]
fn what_cannot_be_is_named() {
    let errors = |source: &str| unit(source).unwrap_err().to_string();
    let cases: &[(&str, &str)] = &[
        (
            "double x;\ndouble f(void)\n{\n\treturn x * 2;\n}",
            "4:2: error: floating point in code for the kernel",
        ),
        (
            "int f(double x)\n{\n\treturn 1;\n}",
            "a floating-point parameter",
        ),
        ("int g(float);\nint f(int x)\n{\n\treturn g(x);\n}", "4:"),
        ("float a, b;\nvoid f(void)\n{\n\ta = b;\n}", "4:"),
        (
            "int (*hook)(int);\nint f(int x)\n{\n\treturn hook(x);\n}",
            "4:13: error: a call through a pointer in code for the kernel",
        ),
    ];
    for (source, wanted) in cases {
        let said = errors(source);
        assert!(said.contains(wanted) && said.contains("help: "), "{said}");
    }
    // What is known before code is made is no floating point, nor is an address a call.
    let fine = "static int g(int x) { return x; }\nint (*hook)(int) = g;\nint f(void) { return (int)(2.5 * 4); }";
    judged(&file(&[fine]).unwrap());

    let circle = |sources: &[&str]| match file(sources) {
        Err(error) => error.show(&["a.ec", "b.ec"]),
        Ok(_) => panic!("{sources:?}"),
    };
    let itself = circle(&["int f(int n)\n{\n\treturn n < 2 ? 1 : n + f(n - 1);\n}"]);
    assert!(itself.starts_with("a.ec:3: `f` calls itself\n"), "{itself}");
    assert!(itself.contains("make it a loop"), "{itself}");
    let two = circle(&[
        "int g(int);\nint f(int n)\n{\n\treturn n ? g(n - 1) : 0;\n}",
        "int f(int);\nint other(int n) { return f(n); }\nint g(int n) { return n ? f(n - 1) : 0; }",
    ]);
    assert!(two.contains("a.ec:4: `f` calls `g`"), "{two}");
    assert!(two.contains("b.ec:3: `g` calls `f`"), "{two}");
    assert!(two.contains(" again\n") && !two.contains("other"), "{two}");

    let chain = |length: u32| -> String {
        let declared: String = (0..=length).map(|k| format!("int f{k}(int);")).collect();
        let one = |k: u32| format!("\nint f{k}(int x) {{ return f{}(x) + 1; }}", k + 1);
        let all: String = (0..length).map(one).collect();
        format!("{declared}{all}\nint f{length}(int x) {{ return x; }}")
    };
    let deep = circle(&[&chain(KERNEL_CALLS + 1)]);
    assert!(
        deep.starts_with("a.ec:2: `f0` calls `f1`, and so on to `f129`, 129 calls deep"),
        "{deep}"
    );
    let facts = judged(&file(&[&chain(KERNEL_CALLS)]).unwrap());
    assert_eq!(facts.call_depth, Some(KERNEL_CALLS));
}
