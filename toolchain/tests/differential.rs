//! The same sources, native and confined, must compute the same: every program of `tests/programs`
//! at every level of optimisation. This is what finds a wrong rewriting; the verifier only finds an
//! unsafe one.

use std::path::{Path, PathBuf};
use std::process::Command;

use postern::{Domain, Image};
use postern_toolchain::{Build, Language};

const SEEDS: [u64; 2] = [1, 0x1234_5678_9abc_def0];

/// Level by level; the first of each line is for both builds, the rest for the confined one only.
const VARIANTS: &[(&str, &str)] = &[
    ("-O0", ""),
    ("-O1", ""),
    ("-O2", ""),
    ("-O3", ""),
    ("-Os", ""),
    ("-O3 -march=x86-64-v3 -ffp-contract=off", ""),
    ("-O3 -march=haswell -ffp-contract=off", ""),
    ("-O2 -fno-omit-frame-pointer", ""),
    ("-O0", "-fpostern-rewrite=fixed"),
    ("-O2", "-fpostern-rewrite=fixed"),
];

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What runs a shared object's `run`, made in a folder.
pub fn native_runner(folder: &Path) -> PathBuf {
    let runner = folder.join(format!("native-{:?}", std::thread::current().id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native.c");
    let status = Command::new("gcc")
        .arg("-O1")
        .arg("-o")
        .arg(&runner)
        .arg(source)
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(status.success());
    runner
}

fn compare(name: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    let language = if name.ends_with(".cc") {
        Language::Cxx
    } else {
        Language::C
    };
    let runner = native_runner(&folder());
    for (number, (flags, confined)) in VARIANTS.iter().enumerate() {
        let output = folder().join(format!("{name}-{number}"));
        let build = Build::new(language)
            .file(&source)
            .flags(["-w", "-fno-math-errno"])
            .flags(flags.split_whitespace());
        let native = build
            .clone()
            .native()
            .output(output.with_extension("so"))
            .run()
            .unwrap();
        let image = build
            .flag("-DCONFINED")
            .flags(confined.split_whitespace())
            .output(output.with_extension("px"))
            .run()
            .unwrap_or_else(|error| panic!("{name} {flags} {confined}: {error}"));
        let image = Image::load(&image)
            .unwrap_or_else(|error| panic!("{name} {flags} {confined}: {error}"));
        for seed in SEEDS {
            let ran = Command::new(&runner)
                .arg(&native)
                .arg(seed.to_string())
                .output()
                .unwrap();
            let expected: u64 = String::from_utf8(ran.stdout)
                .unwrap()
                .trim()
                .parse()
                .unwrap();
            // Far above what a program takes, and still an end.
            let domain = Domain::builder(&image)
                .deadline(Some(std::time::Duration::from_secs(60)))
                .build()
                .unwrap();
            let run = domain.func::<fn(u64) -> u64>("run").unwrap();
            let got = run
                .call(seed)
                .unwrap_or_else(|error| panic!("{name} {flags} {confined}: {error}"));
            assert_eq!(
                got, expected,
                "{name} {flags} {confined}: the confined build computes something else"
            );
        }
    }
}

macro_rules! programs {
    ($($test:ident $file:literal)*) => { $(#[test] fn $test() { compare($file); })* };
}

programs! {
    control "control.c"
    flags "flags.c"
    frames "frames.c"
    integers "integers.c"
    floats "floats.c"
    extended "extended.c"
    memory "memory.c"
    strings "strings.c"
    inline_assembly "assembly.c"
    objects "objects.cc"
    jumps "jumps.c"
    thread_locals "thread_locals.c"
}
