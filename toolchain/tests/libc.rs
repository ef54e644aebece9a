//! Programs of C, confined with the C library and native with the system's: the same output to the byte, and the same end.
//!
//! The service `sys` is a small one of this test: standard streams in memory, and files of a folder for the programs that use them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use postern::{CallError, Caller, Domain, Image, Offset};
use postern_toolchain::{Build, Language};

/// What a run left behind.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    output: String,
    status: i32,
}

/// The standard streams.
#[derive(Default)]
struct Streams {
    input: Vec<u8>,
    read: usize,
    output: Vec<u8>,
}

const EPERM: i64 = 1;
const EBADF: i64 = 9;
const EFAULT: i64 = 14;

fn sys(caller: &Caller<'_>, streams: &mut Streams, number: i64, a: i64, b: i64, c: i64) -> i64 {
    let domain = caller.domain();
    let offset = |value: i64| Offset(value as u32);
    match number {
        0 if a == 0 => {
            let left = &streams.input[streams.read..];
            let n = left.len().min(c as usize);
            if domain.write(offset(b), &left[..n]).is_err() {
                return -EFAULT;
            }
            streams.read += n;
            n as i64
        }
        1 if a == 1 || a == 2 => match domain.read_vec(offset(b), c as usize) {
            Ok(bytes) => {
                if a == 1 {
                    streams.output.extend_from_slice(&bytes);
                }
                c
            }
            Err(_) => -EFAULT,
        },
        0 | 1 | 3 | 5 => -EBADF,
        231 => {
            caller.exit(a as i32);
            0
        }
        _ => -EPERM,
    }
}

/// Runs `main` of a built image.
fn run(image: &Image, input: &[u8], arguments: &[&str]) -> Result<Outcome, CallError> {
    let streams = Arc::new(Mutex::new(Streams {
        input: input.to_vec(),
        ..Streams::default()
    }));
    let shared = Arc::clone(&streams);
    let mut domain = Domain::builder(image);
    if image
        .tables()
        .imports
        .iter()
        .any(|import| import.name == "sys")
    {
        domain = domain.service(
            "sys",
            move |caller: &Caller<'_>, number: i64, a: i64, b: i64, c: i64, _: i64, _: i64| {
                sys(caller, &mut shared.lock().unwrap(), number, a, b, c)
            },
        );
    }
    let domain = domain.build().unwrap_or_else(|error| panic!("{error}"));
    let mut block = Vec::new();
    for argument in arguments {
        let text = domain
            .alloc_from(&[argument.as_bytes(), b"\0"].concat())
            .unwrap();
        block.extend_from_slice(&u64::from(text.0).to_le_bytes());
    }
    block.extend_from_slice(&[0; 16]);
    let block = domain.alloc_from(&block).unwrap();
    let main = domain
        .func::<fn(i32, Offset) -> i32>("__postern_main")
        .unwrap();
    let status = match main.call(arguments.len() as i32, block) {
        Ok(status) => panic!("main returned to the host with {status}"),
        Err(CallError::Exited(status)) => status,
        Err(error) => return Err(error),
    };
    let output = String::from_utf8_lossy(&streams.lock().unwrap().output).into_owned();
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

fn confined(name: &str, flags: &[&str]) -> Image {
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

fn native(name: &str, flags: &[&str], input: &[u8], arguments: &[&str]) -> Outcome {
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
    let mut child = Command::new(&program)
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
    let arguments = ["program", "one", "two words"];
    let ours = run(&confined(name, &[]), input.as_bytes(), &arguments).unwrap();
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
