//! Bitcode as extensions: what clang makes of the sources in `tests/programs` must compute confined
//! what clang's native build computes, at every level; and what is no bitcode is a sentence.

use std::path::{Path, PathBuf};
use std::process::Command;

use postern::{Domain, Image};
use postern_toolchain::{Build, Language, llvm};

const LEVELS: &[(&str, &str)] = &[
    ("-O0", "-O0"),
    ("-O1", "-O1"),
    ("-O2", "-O2"),
    ("-Os", "-O2"),
    ("-O3 -march=x86-64-v3", "-O3 -march=x86-64-v3"),
    ("-O2 -fPIC -fno-omit-frame-pointer", "-O3"),
];

/// clang knows no nested functions, so that `frames.c` is not among them.
const PROGRAMS: &[&str] = &[
    "assembly.c",
    "control.c",
    "extended.c",
    "flags.c",
    "floats.c",
    "integers.c",
    "jumps.c",
    "memory.c",
    "strings.c",
    "thread_locals.c",
];

fn clang(arguments: &[&str], files: [&Path; 2]) {
    let output = Command::new("clang")
        .args(["-w", "-fno-math-errno", "-ffp-contract=off"])
        .args(arguments)
        .arg("-o")
        .args(files)
        .output()
        .unwrap_or_else(|error| panic!("clang: {error} (Debian: apt-get install clang)"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "clang {arguments:?}: {messages}");
}

fn folder(test: &str) -> PathBuf {
    llvm::install().unwrap_or_else(|error| panic!("{error}"));
    crate::folder::fresh("bitcode", test, &[])
}

#[test]
fn programs_compute_the_same() {
    let folder = folder("programs");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = root.join("include").display().to_string();
    let runner = crate::differential::native_runner(&folder);
    let seed = 0x1234_5678u64;
    for name in PROGRAMS {
        let source = root.join("tests/programs").join(name);
        for (number, (flags, generation)) in LEVELS.iter().enumerate() {
            let output = folder.join(format!("{name}-{number}"));
            let mut arguments: Vec<&str> = flags.split_whitespace().collect();
            let shared = output.with_extension("so");
            arguments.extend(["-fPIC", "-shared"]);
            clang(&arguments, [&shared, &source]);
            arguments.truncate(arguments.len() - 2);
            let bitcode = output.with_extension("bc");
            arguments.extend(["-g", "-DCONFINED", "-isystem", &include, "-emit-llvm", "-c"]);
            clang(&arguments, [&bitcode, &source]);
            let ran = Command::new(&runner)
                .arg(&shared)
                .arg(seed.to_string())
                .output()
                .unwrap();
            let expected: u64 = String::from_utf8(ran.stdout)
                .unwrap()
                .trim()
                .parse()
                .unwrap();
            let image = Build::new(Language::C)
                .file(&bitcode)
                .flags(generation.split_whitespace())
                .output(output.with_extension("px"))
                .run()
                .unwrap_or_else(|error| panic!("{name} {flags}: {error}"));
            let domain = Domain::builder(&Image::load(&image).unwrap())
                .deadline(Some(std::time::Duration::from_secs(60)))
                .build()
                .unwrap();
            let run = domain.func::<fn(u64) -> u64>("run").unwrap();
            let got = run
                .call(seed)
                .unwrap_or_else(|error| panic!("{name} {flags}: {error}"));
            assert_eq!(
                got, expected,
                "{name} {flags}: confined, it computes something else"
            );
        }
    }
}

fn refusal(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let file = folder.join(name);
    std::fs::write(&file, bytes).unwrap();
    let build = Build::new(Language::C)
        .file(&file)
        .output(folder.join("x.px"));
    build.run().unwrap_err().to_string()
}

#[test]
fn what_is_no_bitcode_is_a_sentence() {
    let folder = folder("refusals");
    let source = folder.join("a.c");
    std::fs::write(&source, "int one(int a) { return a + 1; }\n").unwrap();
    let bitcode = folder.join("a.bc");
    clang(&["-O1", "-emit-llvm", "-c"], [&bitcode, &source]);
    let whole = std::fs::read(&bitcode).unwrap();
    for length in [3, 4, 40, whole.len() / 2, whole.len() - 4] {
        let message = refusal(&folder, "cut.bc", &whole[..length]);
        assert!(
            message.contains("cut.bc: error: ") && message.lines().count() == 1,
            "{message}"
        );
    }
    for k in (0..whole.len()).step_by(whole.len() / 40) {
        let mut wrong = whole.clone();
        wrong[k] ^= 0x5a;
        std::fs::write(folder.join("wrong.bc"), &wrong).unwrap();
        // Whatever comes of it, it is an image or a message.
        let _ = Build::new(Language::C)
            .file(folder.join("wrong.bc"))
            .output(folder.join("wrong.px"))
            .run();
    }
    for (triple, wanted) in [
        ("aarch64-unknown-linux-gnu", "for another processor"),
        ("x86_64-pc-windows-msvc", "for another system"),
        ("x86_64-apple-macosx", "for another system"),
    ] {
        let text = format!("target triple = \"{triple}\"\ndefine i32 @one() {{ ret i32 1 }}\n");
        let message = refusal(&folder, "other.ll", text.as_bytes());
        assert!(message.contains(wanted), "{triple}: {message}");
    }
}
