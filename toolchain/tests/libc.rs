//! Programs of C, confined with the C library and native with the system's: the same output to the
//! byte, and the same end.
//!
//! The policy is `compute`, with the standard streams in memory.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use object::{Object as _, ObjectSymbol as _};
use postern::policy::{Input, Rules, Sink};
use postern::{Access, CallError, Domain, Image, Policy};
use postern_toolchain::{Build, Language};

/// What a run left behind.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    output: String,
    status: i32,
}

/// Runs `main` of a built image.
fn run(image: &Image, input: &[u8], arguments: &[&str]) -> Result<Outcome, CallError> {
    run_with_threads(image, input, arguments, 0)
}

/// The same; the program may start so many threads.
fn run_with_threads(
    image: &Image,
    input: &[u8],
    arguments: &[&str],
    threads: u32,
) -> Result<Outcome, CallError> {
    let output = Arc::new(Mutex::new(Vec::new()));
    let policy = Policy::compute()
        .stdin(Input::bytes(input))
        .stdout(Sink::buffer(&output));
    let domain = Domain::builder(image)
        .policy(policy)
        .deadline(None)
        .own_threads(threads)
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
    let status = domain.run_main(arguments, &[] as &[&str])?;
    let output = String::from_utf8_lossy(&output.lock().unwrap()).into_owned();
    Ok(Outcome { output, status })
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/libc")
        .join(name)
}

fn target(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libc");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

pub fn confined(name: &str, flags: &[&str]) -> Image {
    let path = Build::new(Language::C)
        .file(source(name))
        .flags(["-O2", "-w"])
        .flags(flags)
        .flag("-lm")
        .output(target(&format!("{name}.px")))
        .run()
        .unwrap_or_else(|error| panic!("{error}"));
    Image::load(path).unwrap_or_else(|error| panic!("{error}"))
}

fn native_program(name: &str, flags: &[&str]) -> PathBuf {
    let program = target(&format!("{name}.native"));
    let status = Command::new("gcc")
        .args(["-O2", "-w", "-o"])
        .arg(&program)
        .arg(source(name))
        .args(flags)
        .arg("-lm")
        .status()
        .unwrap();
    assert!(status.success(), "gcc {name}");
    program
}

fn native(name: &str, flags: &[&str], input: &[u8], arguments: &[&str]) -> Outcome {
    let mut child = Command::new(native_program(name, flags))
        .args(&arguments[1..])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read its input may be gone before it is written.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Outcome {
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
        status: output.status.code().unwrap_or(-1),
    }
}

/// Compares the two builds line by line, for a message that can be read.
fn compare(name: &str, input: &str) {
    compare_with_threads(name, input, 0);
}

/// The same; the program may start so many threads.
fn compare_with_threads(name: &str, input: &str, threads: u32) {
    let arguments = ["program", "one", "two words"];
    let image = confined(name, &[]);
    let ours = run_with_threads(&image, input.as_bytes(), &arguments, threads).unwrap();
    let theirs = native(name, &[], input.as_bytes(), &arguments);
    for (number, (ours, theirs)) in ours.output.lines().zip(theirs.output.lines()).enumerate() {
        assert_eq!(ours, theirs, "{name}: line {} of the output", number + 1);
    }
    assert_eq!(ours, theirs, "{name}");
}

#[test]
fn hello() {
    compare("hello.c", "");
}

#[test]
fn formatted_output() {
    compare("printf.c", "");
}

#[test]
fn formatted_input() {
    compare("scanf.c", "1 2 3\n40 50 x rest of it\nlast line");
}

#[test]
fn strings_and_characters() {
    compare("strings.c", "");
}

#[test]
fn numbers_and_their_texts() {
    compare("numbers.c", "");
}

#[test]
fn wide_characters() {
    compare("wide.c", "");
}

#[test]
fn beginning_end_and_what_is_between() {
    compare("life.c", "");
}

#[test]
fn what_compilers_call() {
    compare("helpers.c", "");
}

#[test]
fn posix_beyond_c() {
    compare("posix.c", "");
}

/// `pthread_exit` does what is left to do, in the order of the system's library.
#[test]
fn a_thread_ends() {
    compare("thread_end.c", "");
}

/// Mutexes, conditions, locks, barriers, semaphores, keys, time limits, joins: as natively.
#[test]
fn threads_of_the_program() {
    compare_with_threads("pthreads.c", "", 6);
}

#[test]
fn alarms_are_refused() {
    let image = confined("alarms.c", &[]);
    let outcome = run(&image, b"", &["alarms"]).unwrap();
    assert_eq!((&*outcome.output, outcome.status), ("0 1\n-1 1\n", 0));
}

/// Streams, files and folders, under the policy `files`.
#[test]
fn files_and_folders() {
    let (ours, theirs) = (target("files.confined"), target("files.folder"));
    for folder in [&ours, &theirs] {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).unwrap();
    }
    let rules = Rules::new().grant("/", &ours, Access::ReadWrite).unwrap();
    let output = Arc::new(Mutex::new(Vec::new()));
    let policy = Policy::files(rules).stdout(Sink::buffer(&output));
    let domain = Domain::builder(&confined("files.c", &[]))
        .policy(policy)
        .build()
        .unwrap();
    let status = domain.run_main(&["files"], &[] as &[&str]).unwrap();

    let program = std::path::absolute(native_program("files.c", &[])).unwrap();
    let native = Command::new(program).current_dir(&theirs).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.lock().unwrap()),
        String::from_utf8_lossy(&native.stdout)
    );
    assert_eq!(Some(status), native.status.code());
    assert_eq!(std::fs::read_dir(&ours).unwrap().count(), 0);
}

/// Several threads in one domain have a heap in common, and an errno and buffers each.
#[test]
fn threads_of_the_host() {
    let image = confined("threads.c", &[]);
    let domain = Domain::builder(&image).deadline(None).build().unwrap();
    let work = domain.func::<fn(u32) -> u64>("work").unwrap();
    let alone: Vec<u64> = (1..=8).map(|seed| work.call(seed).unwrap()).collect();
    assert!(!alone.contains(&0), "{alone:?}");
    let together: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=8)
            .map(|seed| {
                let work = domain.func::<fn(u32) -> u64>("work").unwrap();
                scope.spawn(move || work.call(seed).unwrap())
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
}

/// Units of the last place between two results' bits; `None` if they are of different kinds.
fn distance(ours: &str, theirs: &str) -> Option<u64> {
    let ordered = |text: &str| -> Option<i128> {
        let bits = u64::from_str_radix(text, 16).ok()?;
        let (magnitude, negative) = if text.len() == 8 {
            (bits & 0x7fff_ffff, bits >> 31 == 1)
        } else {
            (bits & (u64::MAX >> 1), bits >> 63 == 1)
        };
        let infinite = if text.len() == 8 {
            0x7f80_0000
        } else {
            0x7ff0_0000_0000_0000
        };
        (magnitude <= infinite).then_some(if negative {
            -i128::from(magnitude)
        } else {
            i128::from(magnitude)
        })
    };
    match (ordered(ours), ordered(theirs)) {
        (None, None) => Some(0),
        (Some(ours), Some(theirs)) => u64::try_from((ours - theirs).unsigned_abs()).ok(),
        _ => None,
    }
}

#[test]
fn mathematics_within_units_of_the_last_place() {
    let arguments = ["program"];
    let ours = run(&confined("math.c", &["-fno-builtin"]), b"", &arguments).unwrap();
    let theirs = native("math.c", &["-fno-builtin"], b"", &arguments);
    assert_eq!(ours.output.lines().count(), theirs.output.lines().count());
    let mut wrong = Vec::new();
    for (ours, theirs) in ours.output.lines().zip(theirs.output.lines()) {
        if ours == theirs {
            continue;
        }
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (a, b) = (words(ours), words(theirs));
        let allowed = match a[0].trim_end_matches('f') {
            // Their error grows near zeros of the function.
            "lgamma" | "complex" => 64,
            "tgamma" => 1024,
            "floor" | "ceil" | "sqrt" | "fma" | "fmod" | "rint" | "round" | "trunc" => 0,
            _ => 4,
        };
        let near = a.len() == 3
            && a[0] == b[0]
            && a[1] == b[1]
            && distance(&a[2], &b[2]).is_some_and(|distance| distance <= allowed);
        if !near {
            wrong.push(format!("{ours}, native {theirs}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} results:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    // What the processor does in an instruction is not done bit by bit.
    let file = std::fs::read(target("math.c.px")).unwrap();
    let file = object::File::parse(&*file).unwrap();
    for name in ["__ieee754_sqrt", "__ieee754_sqrtf"] {
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
        assert!((1..32).contains(&symbol.unwrap().size()), "{name}");
    }
}

/// What is wrong harms the program itself only, and says why.
#[test]
fn wrong_programs_end_alone() {
    let cases = [
        (
            "failed_assertion",
            "#include <assert.h>\nint main(int argc, char **argv) { assert(argc == 7 && \"seven\"); return 0; }",
            "failed_assertion.c:2: main: assertion failed: argc == 7 && \"seven\"",
        ),
        (
            "abort",
            "#include <stdlib.h>\nint main(void) { abort(); }",
            "abort() was called",
        ),
        (
            "raise",
            "#include <signal.h>\nint main(void) { raise(SIGTERM); return 0; }",
            "ended by signal 15",
        ),
        (
            "own_heap",
            "#include <stdlib.h>\n#include <string.h>\nint main(void) { char *p = malloc(40), *q = malloc(40); memset(p, 0xff, 200); free(q); free(p); \
             for (int i = 0; i < 100; i++) free(malloc(i * 10)); return 0; }",
            "",
        ),
        (
            "closed_twice",
            "#include <stdio.h>\nint main(void) { puts(\"x\"); FILE *out = stdout; fclose(out); fclose(out); return 5; }",
            "",
        ),
    ];
    for (name, text, message) in cases {
        let source = target(&format!("{name}.c"));
        std::fs::write(&source, text).unwrap();
        let path = Build::new(Language::C)
            .file(&source)
            .flags(["-O2", "-w"])
            .output(target(&format!("{name}.px")))
            .run()
            .unwrap_or_else(|error| panic!("{error}"));
        let image = Image::load(path).unwrap_or_else(|error| panic!("{error}"));
        match run(&image, b"", &["program"]) {
            Err(CallError::Fault(fault)) => {
                let said = fault.to_string();
                assert!(said.contains(message), "{name}: {said}");
            }
            Ok(outcome) if message.is_empty() => drop(outcome),
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// The library is linked where something asks for it, and services of the host go before it.
#[test]
fn services_before_the_library() {
    let build = |name: &str, text: &str, flags: &[&str]| {
        let source = target(&format!("{name}.c"));
        std::fs::write(&source, text).unwrap();
        let path = Build::new(Language::C)
            .file(&source)
            .flags(["-O2", "-w", "-fno-builtin"])
            .flags(flags)
            .output(target(&format!("{name}.px")))
            .run()
            .unwrap_or_else(|error| panic!("{error}"));
        let image = Image::load(path).unwrap();
        let mut names: Vec<String> = image
            .tables()
            .imports
            .iter()
            .map(|import| import.name.to_string())
            // The library's own imports are granted to everybody.
            .filter(|name| !name.starts_with("__postern_"))
            .collect();
        names.sort();
        names
    };
    let plain = "double log(double); double f(double x) { return log(x); }";
    assert!(build("log_library", plain, &[]).is_empty());
    assert_eq!(
        build("log_option", plain, &["-fpostern-import=log"]),
        ["log"]
    );
    assert_eq!(build("log_nolibc", plain, &["-nolibc"]), ["log"]);
    let marked = "#include <postern/extension.h>\nPOSTERN_IMPORT double log(double); double f(double x) { return log(x); }";
    assert_eq!(build("log_marked", marked, &[]), ["log"]);
    let unknown = "int nobody_has_this(int); int f(int x) { return nobody_has_this(x); }";
    assert_eq!(build("unknown", unknown, &[]), ["nobody_has_this"]);
    assert!(
        build(
            "silent",
            "#include <string.h>\n#include <stdlib.h>\nlong f(char *s) { return strtol(s, 0, 10) + strcspn(s, \"x\"); }",
            &[]
        )
        .is_empty()
    );
}

#[test]
fn mathematics_of_long_double() {
    let arguments = ["program"];
    let ours = run(
        &confined("long_double.c", &["-fno-builtin"]),
        b"",
        &arguments,
    )
    .unwrap();
    let theirs = native("long_double.c", &["-fno-builtin"], b"", &arguments);
    assert_eq!(ours.output.lines().count(), theirs.output.lines().count());
    // The place in the order of all long doubles.
    let place = |line: &str| -> Option<i128> {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, top, significand] = words[..] else {
            return None;
        };
        let top = i128::from(u16::from_str_radix(top, 16).ok()?);
        let significand = i128::from(u64::from_str_radix(significand, 16).ok()? & (u64::MAX >> 1));
        let place = ((top & 0x7fff) << 63) + significand;
        Some(if top > 0x7fff { -place } else { place })
    };
    for (ours, theirs) in ours.output.lines().zip(theirs.output.lines()) {
        let allowed = match ours.split(' ').next() {
            Some("pow") => 4096,
            Some("sin" | "cos" | "tan") => 1 << 16,
            _ => 4,
        };
        let near = ours == theirs
            || place(ours)
                .zip(place(theirs))
                .is_some_and(|(a, b)| (a - b).abs() <= allowed);
        assert!(near, "{ours}, native {theirs}");
    }
}
