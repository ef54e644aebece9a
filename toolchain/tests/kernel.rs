//! `postern cc --kernel`: what is accepted, what is refused and in which words, and that the code
//! computes what the compiler's own does.
//!
//! No kernel is needed for that (the module's own tests boot some): the code differs from a
//! process's by one bit of a prefix, the segment; with that bit turned it runs in a domain.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::differential::native_runner;
use iced_x86::{Decoder, DecoderOptions, Register};
use postern::{Domain, Image, LoadError};
use postern_image::ImageFile;
use postern_toolchain::Language;
use postern_verifier::window::KERNEL_CALLS;
use postern_verifier::{Facts, Profile, Segment, Starts, bounded_buffer_len, verify};

fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    crate::folder::fresh("kernel", test, files)
}

/// Runs a command line in which `@/` stands for the folder and `%/` for the repository.
fn cc(folder: &Path, line: &str) -> Result<(), String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../");
    let replaced = |word: &str| -> OsString {
        let word = word.replace("@/", &format!("{}/", folder.display()));
        word.replace("%/", root).into()
    };
    let args: Vec<OsString> = line.split_whitespace().map(replaced).collect();
    // Its messages are in the error, then, and not on the terminal.
    postern_toolchain::driver::run_captured(Language::C, &args)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// The verifier's judgement of an image for the kernel, as `postern verify --kernel` asks for it.
fn judged(image: &Path) -> Facts {
    let bytes = std::fs::read(image).unwrap();
    let file = ImageFile::parse(&bytes).unwrap();
    assert_eq!(file.header().segment, Segment::Fs);
    let text = file.mapped_text();
    let mut buffer = vec![0; bounded_buffer_len(text.len())];
    let layout = file.verifier_layout();
    let facts = verify(&text, &layout, Profile::Kernel, &mut buffer).unwrap();
    let starts = Starts::new(&buffer, text.len(), layout.text);
    let exports = file.exports();
    assert!(exports.iter().all(|export| starts.contains(export.offset)));
    facts
}

/// The image for a process that has the same code, through gs.
fn through_gs(image: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(image).unwrap();
    let (at, text) = {
        let file = ImageFile::parse(&bytes).unwrap();
        let text = file.text().bytes.to_vec();
        // Segments begin at pages of the file.
        let mut pages = (0..bytes.len()).step_by(4096);
        let at = pages.rfind(|at| bytes[*at..].starts_with(&text));
        (at.unwrap(), text)
    };
    let mut decoder = Decoder::new(64, &text, DecoderOptions::NONE);
    let mut turned = 0;
    while decoder.can_decode() {
        let place = at + decoder.position();
        let instruction = decoder.decode();
        if instruction.segment_prefix() == Register::FS {
            assert_eq!(bytes[place], 0x64, "{instruction:?}");
            bytes[place] = 0x65;
            turned += 1;
        }
    }
    assert!(turned > 0);
    of_a_process(bytes)
}

/// The same of code that has no memory operands.
fn without_memory(image: &Path) -> Vec<u8> {
    of_a_process(std::fs::read(image).unwrap())
}

/// The file with the segment of a process in its header.
fn of_a_process(mut bytes: Vec<u8>) -> Vec<u8> {
    // The header note: lengths, kind and owner, the ABI's version, then the segment.
    let note = b"\x08\0\0\0\x18\0\0\0\x01\0\0\0Postern\0\x01\0\0\0\x01\0\0\0";
    let found = bytes.windows(note.len()).position(|part| part == note);
    bytes[found.unwrap() + note.len() - 4] = 0;
    bytes
}

/// What the shared object computes of `seed`; none if that takes more than a few seconds.
fn native(runner: &Path, object: &Path, seed: u64) -> Option<u64> {
    let mut command = Command::new("timeout");
    command.arg("5").arg(runner).arg(object);
    let output = command.arg(seed.to_string()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    output
        .status
        .success()
        .then(|| text.trim().parse().unwrap())
}

/// What the code of an image for the kernel computes of `seed`.
fn confined(image: &Path, seed: u64) -> u64 {
    let image = Image::from_bytes(&through_gs(image)).unwrap();
    let domain = Domain::builder(&image)
        .deadline(Some(std::time::Duration::from_secs(60)))
        .build()
        .unwrap();
    let run = domain.func::<fn(u64) -> u64>("run").unwrap();
    run.call(seed).unwrap()
}

#[test]
fn ordinary_c_is_accepted_and_computes_the_same() {
    let at = folder("same", &[]);
    let source = "%/toolchain/tests/kernel/filter.c";
    let runner = native_runner(&at);
    cc(&at, &format!("--native -O2 {source} -o @/n.so")).unwrap();
    for options in [
        "-O0",
        "-O1",
        "-O2",
        "-O3",
        "-Os",
        "-O2 -fno-inline -march=x86-64-v3",
        "-O2 -fno-function-sections -freorder-blocks-and-partition",
        "-O1 -fpostern-rewrite=fixed",
    ] {
        cc(&at, &format!("--kernel {options} {source} -o @/k.pst")).unwrap();
        let facts = judged(&at.join("k.pst"));
        assert!(!facts.indirect && !facts.xmm && !facts.x87, "{options}");
        assert!(facts.call_depth.unwrap() < 16, "{options}: {facts:?}");
        for seed in [1, 2, 0x1234_5678_9abc_def0] {
            let expected = native(&runner, &at.join("n.so"), seed);
            assert_eq!(
                Some(confined(&at.join("k.pst"), seed)),
                expected,
                "{options} {seed}"
            );
        }
    }
}

/// Programs of csmith's: a hundred functions each, structures, pointers to pointers, all in one
/// file.
#[test]
fn random_programs_are_accepted_and_compute_the_same() {
    let at = folder("random", &[]);
    let runner = native_runner(&at);
    let mut compared = 0;
    for seed in 1..=8 {
        let level = ["-O1", "-O2", "-O3", "-Os"][seed % 4];
        let mut csmith = Command::new("csmith");
        csmith.args(["--seed", &seed.to_string(), "--concise", "--output"]);
        csmith.arg(at.join("random.c")).current_dir(&at);
        assert!(
            csmith
                .status()
                .expect("csmith is installed by `make`")
                .success()
        );
        let sources = format!(
            "-w {level} -I%/toolchain/tests/kernel/csmith -I/usr/include/csmith @/random.c %/toolchain/tests/kernel/csmith/result.c"
        );
        cc(&at, &format!("--kernel {sources} -o @/k.pst")).unwrap();
        cc(&at, &format!("--native {sources} -o @/n.so")).unwrap();
        judged(&at.join("k.pst"));
        if let Some(expected) = native(&runner, &at.join("n.so"), 7) {
            assert_eq!(
                confined(&at.join("k.pst"), 7),
                expected,
                "seed {seed}, {level}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 4, "{compared} programs ended in time");
}

#[test]
fn a_process_does_not_load_one() {
    let at = folder("process", &[("f.c", "int x; int f(void) { return x; }")]);
    cc(&at, "--kernel -O2 @/f.c -o @/f.pst").unwrap();
    let error = Image::load(at.join("f.pst")).unwrap_err();
    assert!(matches!(error.cause(), LoadError::Segment), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("f.pst") && text.contains("--kernel"),
        "{text}"
    );
}

/// Functions of several objects and of an archive, static ones of the same name among them, in the
/// wrong order; and one that nothing calls, which recurs, and is not linked.
#[test]
fn callees_come_behind_callers_over_all_objects() {
    let at = folder(
        "order",
        &[
            (
                "a.c",
                "static __attribute__((noinline)) int help(int x) { return x * 3; }\nint last(int x) { return help(x) + 1; }\n\
                 __attribute__((visibility(\"hidden\"))) int unused(int x) { return x ? unused(x - 1) * x : 1; }",
            ),
            (
                "b.c",
                "int last(int); int more(int);\nstatic __attribute__((noinline)) int help(int x) { return last(x) + last(x + 1); }\n\
                 int middle(int x) { return help(x) * more(x); }",
            ),
            (
                "c.c",
                "#include <postern/extension.h>\nint middle(int); POSTERN_IMPORT int service(int);\n\
                 int first(int x) { int sum = 0; while (x--) sum += middle(x); return sum + service(sum); }\n\
                 int tail(int x) { return middle(x + 1); }",
            ),
            (
                "d.c",
                "int last(int);\nint more(int x) { return x > 4 ? last(x - 4) : 2; }",
            ),
            (
                "e.s",
                "\t.globl by_hand\n\t.type by_hand, @function\nby_hand:\n\tcall 1f\n\taddl $1, %eax\n\tret\n1:\tmovl %edi, %eax\n\tret\n",
            ),
        ],
    );
    for name in ["a.c", "b.c", "c.c", "d.c", "e.s"] {
        cc(&at, &format!("--kernel -O2 -c @/{name} -o @/{name}.o")).unwrap();
    }
    let mut ar = Command::new("ar");
    ar.arg("rcs").arg(at.join("libd.a")).arg(at.join("d.c.o"));
    assert!(ar.status().unwrap().success());
    cc(
        &at,
        "--kernel @/a.c.o @/b.c.o @/c.c.o @/e.s.o -L@/ -ld -o @/out.pst",
    )
    .unwrap();
    let facts = judged(&at.join("out.pst"));
    assert!(facts.gates && facts.call_depth.unwrap() >= 4, "{facts:?}");
    let image = Image::from_bytes(&through_gs(&at.join("out.pst"))).unwrap();
    let domain = Domain::builder(&image)
        .service("service", |_: &postern::Caller<'_>, x: i32| x)
        .build()
        .unwrap();
    let first = domain.func::<fn(i32) -> i32>("first").unwrap();
    let last = |x: i32| x * 3 + 1;
    let middle = |x: i32| (last(x) + last(x + 1)) * if x > 4 { last(x - 4) } else { 2 };
    assert_eq!(first.call(9).unwrap(), 2 * (0..9).map(middle).sum::<i32>());
    let by_hand = domain.func_unchecked::<fn(i32) -> i32>("by_hand").unwrap();
    assert_eq!(by_hand.call(5).unwrap(), 6);
    // Debug information goes with its function.
    assert!(cc(&at, "--kernel -O2 @/a.c @/b.c @/c.c @/d.c -o @/o.pst").is_ok());
}

/// What cannot be in an image for the kernel, and what is said of it: the functions, file and line,
/// and what to do.
#[test]
fn what_cannot_be_is_named() {
    let chain = |length: u32| -> String {
        let one = |k: u32| {
            let callee = k + 1;
            format!("int f{callee}(int); int f{k}(int x)\n{{ return f{callee}(x) + {k}; }}\n")
        };
        let all: String = (0..length).map(one).collect();
        format!("{all}int f{length}(int x) {{ return x; }}\n")
    };
    let (deep, deepest) = (chain(KERNEL_CALLS + 1), chain(KERNEL_CALLS));
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "itself.c",
            "int f(int n)\n{\n\treturn n < 2 ? 1 : n + f(n - 1) * n;\n}",
            &["itself.c:3: error: `f` calls itself", "make it a loop"],
        ),
        (
            "static.c",
            "static int g(int n)\n{\n\treturn n < 2 ? 1 : n + g(n - 1) * n;\n}\nint f(int n) { return g(n) + 1; }",
            &["static.c:3: error: `g` calls itself", "make it a loop"],
        ),
        (
            "circle.c",
            "int g(int);\nint f(int n)\n{\n\treturn n ? g(n - 1) + 1 : 0;\n}\nint g(int n)\n{\n\treturn n ? f(n - 1) + 2 : 0;\n}",
            &[
                "circle.c:4: ",
                "`f` calls `g`",
                "circle.c:8: ",
                "`g` calls `f`",
                "error: ",
                "note: ",
                "make it a loop",
            ],
        ),
        (
            "pointer.c",
            "int (*hook)(int);\nint f(int n)\n{\n\treturn hook(n) + 1;\n}",
            &[
                "pointer.c:4: error: `f` makes an indirect call",
                "call functions by name",
            ],
        ),
        (
            "goto.c",
            "int f(int n)\n{\n\tstatic void *at[] = { &&a, &&b };\n\tgoto *at[n & 1];\na:\treturn n;\nb:\treturn n * 2;\n}",
            &["goto.c:4: error: `f` makes an indirect jump"],
        ),
        (
            "frame.c",
            "void fill(char *c) { for (int k = 0; k < 2000; k++) c[k] = (char)k; }\nint f(int n)\n{\n\tchar b[2000];\n\tfill(b);\n\treturn b[n];\n}",
            &["frame.c:", "error: `f` takes 20", "at most 1024", "static"],
        ),
        (
            "deep.c",
            &deep,
            &[
                "deep.c:2: error: calls nest 129 deep: `f0` calls `f1`",
                "`f129`",
                "128",
            ],
        ),
        (
            "float.c",
            "double f(double x) { return x * 2; }",
            &["float.c:1:8: error: SSE register return with SSE disabled"],
        ),
        (
            "vector.c",
            "int f(int x)\n{\n\t__asm__(\"pxor %xmm0, %xmm0\");\n\treturn x;\n}",
            &["vector.c:3: error: ", "kernel-vector", "`f`"],
        ),
        (
            "thread.c",
            "__thread int x;\nint f(void)\n{\n\treturn x++;\n}",
            &[
                "thread.c:4: error: `f` uses a thread-local variable",
                "global",
            ],
        ),
        (
            "begins.c",
            "int x; __attribute__((constructor)) static void g(void) { x = 1; }\nint f(void) { return x; }",
            &["no constructors"],
        ),
        (
            "undefined.c",
            "int printk(const char *);\nint f(void) { return printk(\"\") + 1; }",
            &["undefined reference to `printk`", "POSTERN_IMPORT"],
        ),
        (
            "weak.c",
            "__attribute__((weak)) int g(int);\nint f(int x)\n{\n\treturn g ? g(x) + 1 : 0;\n}",
            &["weak.c:4: error: `f` branches to `g`, which may be undefined"],
        ),
        (
            "backward.s",
            "\t.text\n\t.globl g\n\t.type g, @function\ng:\n\tret\n\t.globl f\n\t.type f, @function\nf:\n\tcall .Lg\n\tret\n\t.set .Lg, g\n",
            &["`f` calls `g`, which stands before it in the same section"],
        ),
        (
            "c++.cc",
            "int f() { return 1; }",
            &["images for the kernel are made of C"],
        ),
    ];
    for (name, text, wanted) in cases {
        let at = folder(&format!("refused-{name}"), &[(name, text)]);
        let error = cc(
            &at,
            &format!("--kernel -O1 -fno-inline @/{name} -o @/out.pst"),
        )
        .expect_err(name);
        for part in *wanted {
            assert!(error.contains(part), "{name}: {part:?} is not in:\n{error}");
        }
        assert!(!at.join("out.pst").exists(), "{name}");
    }
    let at = folder("deepest", &[("deepest.c", &deepest)]);
    cc(&at, "--kernel -O1 -fno-inline @/deepest.c -o @/out.pst").unwrap();
    assert_eq!(judged(&at.join("out.pst")).call_depth, Some(KERNEL_CALLS));
    std::fs::write(at.join("module.wat"), "(module)").unwrap();
    let error = cc(&at, "--kernel @/module.wat -o @/out.pst").unwrap_err();
    assert!(error.contains("images for the kernel"), "{error}");
}

/// Sections by hand: what a compiler would not write, and the linker can.
#[test]
fn sections_by_hand_are_put_in_order() {
    let function = |name: &str| format!("\t.globl {name}\n\t.type {name}, @function\n{name}:\n");
    let f = function("f");
    let text = |name: &str| format!("\t.section .text.{name},\"ax\",@progbits\n");
    let comdat = "\t.section .text.one,\"axG\",@progbits,one,comdat\n\t.globl one\n\t.type one, @function\none:\taddl $1, %edi\n\tleal (%rdi,%rdi), %eax\n\tret\n";
    // Each makes `f(int)`, of which the results for 3 and 9 are told.
    let cases: Vec<(&str, Vec<String>, [i32; 2])> = vec![
        (
            "a jump into the middle of a function that stands before",
            vec![format!(
                "{}{}\taddl $1, %edi\nb2:\tleal 2(%rdi), %eax\n\tret\n{}{f}\tcmpl $5, %edi\n\tja b2\n\tjmp b\n",
                text("b"),
                function("b"),
                text("a")
            )],
            [6, 11],
        ),
        (
            "an alias of a function that stands before",
            vec![format!(
                "{}{}\tleal 1(%rdi), %eax\n\tret\n\t.set w, g\n{}{f}\tcall w\n\taddl %edi, %eax\n\tret\n",
                text("g"),
                function("g"),
                text("f")
            )],
            [7, 19],
        ),
        (
            "a group in two objects",
            vec![
                format!("{comdat}{}{f}\tcall one\n\tcall other\n\tret\n", text("f")),
                format!(
                    "{comdat}{}{}\tmovl %eax, %edi\n\tjmp one\n",
                    text("o"),
                    function("other")
                ),
            ],
            [18, 42],
        ),
        (
            "numeric labels over sections",
            vec![format!(
                "{}{f}\tcall 1f\n\tjmp 2f\n\t.pushsection .text.far,\"ax\",@progbits\n1:\tleal 5(%rdi), %eax\n\tret\n\t.popsection\n2:\taddl $1, %eax\n\tret\n",
                text("f")
            )],
            [9, 15],
        ),
        (
            "subsections and alignment",
            vec![format!(
                "{}\t.subsection 1\n\t.p2align 6, 0x90\n1:\tleal 7(%rdi), %eax\n\tret\n\t.subsection 0\n\t.balign 32, 0x90\n{f}\tcall 1b\n\tret\n",
                text("f")
            )],
            [10, 16],
        ),
        (
            "a section of another name, called from both sides",
            vec![
                format!(
                    "\t.section .fixup,\"ax\",@progbits\n{}\tleal 3(%rdi), %eax\n\tret\n{}{f}\tcall low\n\tmovl %eax, %edi\n\tcall high\n\tret\n",
                    function("low"),
                    text("f")
                ),
                format!(
                    "{}{}\tcall low\n\taddl $100, %eax\n\tret\n",
                    text("h"),
                    function("high")
                ),
            ],
            [109, 115],
        ),
    ];
    for (name, sources, expected) in cases {
        let files: Vec<String> = (0..sources.len()).map(|k| format!("{k}.s")).collect();
        let pairs: Vec<(&str, &str)> = files
            .iter()
            .map(|name| &**name)
            .zip(sources.iter().map(|text| &**text))
            .collect();
        let at = folder("by-hand", &pairs);
        let words: Vec<String> = files.iter().map(|name| format!("@/{name}")).collect();
        cc(&at, &format!("--kernel {} -o @/out.pst", words.join(" ")))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        judged(&at.join("out.pst"));
        let image = Image::from_bytes(&without_memory(&at.join("out.pst"))).unwrap();
        let domain = Domain::builder(&image).build().unwrap();
        let f = domain.func_unchecked::<fn(i32) -> i32>("f").unwrap();
        let found = [3, 9].map(|x| f.call(x).unwrap());
        assert_eq!(found, expected, "{name}");
    }
}

/// What makes no sense is refused or linked, and never more than that: no panic, and nothing that
/// the verifier refuses.
#[test]
fn sections_that_make_no_sense_are_errors() {
    let cases = [
        "\t.section .text.w,\"awx\",@progbits\n\t.globl f\nf:\tret\n",
        "\t.text\n\t.globl f\nf:\tret\n\t.reloc 0x1000, R_X86_64_PLT32, f\n",
        "\t.text\n\t.globl f\nf:\tret\n\t.reloc 0, R_X86_64_PLT32, f - 0x7fffffff\n",
        "\t.section .text.a,\"ax\"\n\t.globl f\nf:\t.long g - .\n\tret\n\t.section .text.b,\"ax\"\ng:\t.long f - .\n\tret\n",
        "\t.section .text.a,\"ax\"\n\t.globl f\nf:\tcall g + 0x10000000\n\tret\n\t.section .text.b,\"ax\"\ng:\tret\n",
        "\t.section .text.a,\"ax\"\n\t.globl f\nf:\tjmp g\n\t.section .text.b,\"ax\"\ng:\tjmp f\n",
        "\t.section .text.a,\"ax\"\n\t.globl f\nf:\tcall g\n\t.section .text.b,\"ax\"\ng:\tnop\n",
        "\t.section .text.a,\"ax\"\n\t.globl f\nf:\tcall 0x1234\n\tret\n",
        "\t.section .text.a,\"ax\"\n\t.globl f\n\t.set f, 0x5000\n\tret\n",
        "\t.section \".text.a b\\n;\",\"ax\"\n\t.globl f\nf:\tcall f\n\tret\n",
        "\t.section .text.a,\"ax\",@nobits\n\t.globl f\nf:\t.skip 16\n",
        "\t.section .text.a,\"axS\",@progbits\n\t.globl f\nf:\tret\n",
        "\t.section .text.a,\"axo\",@progbits,.text.b\n\t.globl f\nf:\tret\n\t.section .text.b,\"ax\"\n\tret\n",
        "\t.globl f\n\t.comm f, 64, 16\n",
    ];
    for (number, text) in cases.iter().enumerate() {
        let at = folder(&format!("nonsense-{number}"), &[("a.s", text)]);
        match cc(&at, "--kernel @/a.s -o @/out.pst") {
            Ok(()) => drop(judged(&at.join("out.pst"))),
            Err(error) => assert!(!error.is_empty() && !at.join("out.pst").exists()),
        }
    }
}

/// An object that was made for a process does not become part of an image for the kernel, nor the
/// other way about.
#[test]
fn objects_for_processes_are_refused() {
    let at = folder(
        "mixed",
        &[("f.c", "int x[4]; int f(int k) { return x[k]; }")],
    );
    for (compile, link) in [("", "--kernel"), ("--kernel", "")] {
        cc(&at, &format!("{compile} -O2 -c @/f.c -o @/f.o")).unwrap();
        let error = cc(&at, &format!("{link} -nolibc @/f.o -o @/out.pst")).unwrap_err();
        assert!(
            error.contains("f.c:1: error: ") && error.contains("--kernel"),
            "{error}"
        );
    }
}

/// The repository's own C, all of it accepted or refused for a reason that is in its nature.
#[test]
fn a_corpus_is_accepted_or_refused_for_a_named_reason() {
    const FLOATS: &str = "with SSE disabled";
    const X87: &str = "with x87 disabled";
    const CIRCLE: &str = "calls itself";
    const INDIRECT: &str = "makes an indirect ";
    const LIBRARY: &str = "undefined reference to `";
    let folders = [
        "examples/kernels",
        "ecode/kernels",
        "examples/extensions",
        "toolchain/tests/programs",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let at = folder("corpus", &[]);
    let (mut accepted, mut refused) = (0, 0);
    for sources in folders {
        let mut files: Vec<PathBuf> = std::fs::read_dir(root.join(sources))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
            .collect();
        files.sort();
        for file in files {
            let line = format!("--kernel -w -O2 -DCONFINED {} -o @/out.pst", file.display());
            match cc(&at, &line) {
                Ok(()) => {
                    judged(&at.join("out.pst"));
                    accepted += 1;
                }
                Err(error) => {
                    let reasons = [FLOATS, X87, CIRCLE, INDIRECT, LIBRARY];
                    let named = reasons.iter().any(|reason| error.contains(reason));
                    assert!(named, "{}:\n{error}", file.display());
                    refused += 1;
                }
            }
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(
        accepted >= 12 && refused >= 12,
        "{accepted} accepted, {refused} refused"
    );
}
