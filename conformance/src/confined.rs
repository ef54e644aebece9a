//! The confined side: the toolchain and the runtime, in this process.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postern::{CallError, Caller, Domain, FaultKind, Image, InstantiateError, Offset};
use postern_toolchain::{Build, Language};

use crate::native::first_lines;
use crate::program::{Outcome, Program};

/// What a process has and a domain has to ask for: a stack as large as the usual limit.
const STACK: &str = "-fpostern-stack=8M";

/// Linux's numbers.
const WRITE: i64 = 1;
const EXIT_GROUP: i64 = 231;
const EPERM: i64 = 1;
const EFAULT: i64 = 14;

/// Builds `program` into `scratch` and runs it.
pub fn run(program: &Program, scratch: &Path) -> Outcome {
    let mut build = Build::new(Language::C);
    for source in &program.sources {
        build = build.file(source);
    }
    let built = build
        .flags(&program.flags)
        .flags(&program.confined)
        .flag(STACK)
        .output(scratch.join("program.px"))
        .run();
    let image = match built {
        Ok(path) => path,
        Err(error) => return Outcome::NotBuilt(first_lines(&error.to_string())),
    };
    match Image::load(&image) {
        Ok(image) => call(&image, program.seconds),
        Err(error) => Outcome::NotBuilt(format!("not loaded: {error}")),
    }
}

fn call(image: &Image, seconds: u64) -> Outcome {
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = written.clone();
    let sys =
        move |caller: &Caller<'_>, number: i64, a: i64, b: i64, c: i64, _: i64, _: i64| -> i64 {
            match (number, a) {
                (WRITE, 1 | 2) => match caller.domain().read_vec(Offset(b as u32), c as usize) {
                    Ok(bytes) => {
                        if a == 1 {
                            sink.lock().unwrap_or_else(|e| e.into_inner()).extend(bytes);
                        }
                        c
                    }
                    Err(_) => -EFAULT,
                },
                (EXIT_GROUP, _) => {
                    caller.exit(a as i32);
                    0
                }
                _ => -EPERM,
            }
        };
    let domain = Domain::builder(image)
        .deadline(Some(Duration::from_secs(seconds)))
        .service("sys", sys)
        .build();
    let domain = match domain {
        Ok(domain) => domain,
        Err(error @ InstantiateError::Unresolved(_)) => {
            return Outcome::Unresolved(error.to_string());
        }
        Err(error) => return Outcome::Crashed(error.to_string()),
    };
    let main = match domain.func_unchecked::<fn(i32, u64) -> i32>("main") {
        Ok(main) => main,
        Err(error) => return Outcome::NotBuilt(error.to_string()),
    };
    let ended = main.call(0, 0);
    let output = written.lock().unwrap_or_else(|e| e.into_inner());
    match ended {
        Ok(status) | Err(CallError::Exited(status)) => Outcome::exited(status, &output),
        Err(error) => match error.fault().map(|fault| fault.kind) {
            Some(FaultKind::Deadline) => Outcome::TimedOut,
            _ => Outcome::Crashed(error.to_string()),
        },
    }
}
