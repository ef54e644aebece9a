//! The confined side: the toolchain and the runtime, in this process.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postern::policy::Sink;
use postern::{Access, CallError, Domain, FaultKind, Image, InstantiateError, Policy, Rules};
use postern_toolchain::{Build, Language};

use crate::native::first_lines;
use crate::program::{Outcome, Program};

/// What a process has and a domain has to ask for: a stack as large as the usual limit.
const STACK: &str = "-fpostern-stack=8M";

/// Builds `program` into `scratch` and runs it.
pub fn run(program: &Program, scratch: &Path) -> Outcome {
    let mut build = Build::new(if program.is_cxx() {
        Language::Cxx
    } else {
        Language::C
    });
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
        Ok(image) => call(&image, program.seconds, &scratch.join("files")),
        Err(error) => Outcome::NotBuilt(format!("not loaded: {error}")),
    }
}

/// Runs the program in a domain whose files are in `files`, emptied first.
fn call(image: &Image, seconds: u64, files: &Path) -> Outcome {
    let _ = std::fs::remove_dir_all(files);
    let rules = std::fs::create_dir_all(files.join("tmp"))
        .map_err(|error| error.to_string())
        .and_then(|()| {
            let rules = Rules::new().grant("/", files, Access::ReadWrite);
            rules.map_err(|error| error.to_string())
        });
    let rules = match rules {
        Ok(rules) => rules,
        Err(error) => return Outcome::NotBuilt(error),
    };
    let written = Arc::new(Mutex::new(Vec::new()));
    let policy = Policy::files(rules)
        .stdout(Sink::buffer(&written))
        .stderr(Sink::Discard);
    let domain = Domain::builder(image)
        .deadline(Some(Duration::from_secs(seconds)))
        .policy(policy)
        .build();
    let domain = match domain {
        Ok(domain) => domain,
        Err(error) if matches!(error.cause(), InstantiateError::Unresolved(_)) => {
            return Outcome::Unresolved(error.to_string());
        }
        Err(error) => return Outcome::Crashed(error.to_string()),
    };
    let ended = match domain.run_main(&["program"], &[""; 0]) {
        // Linked without a C library.
        Err(CallError::NoMain) => match domain.func_unchecked::<fn(i32, u64) -> i32>("main") {
            Ok(main) => main.call(0, 0),
            Err(error) => return Outcome::NotBuilt(error.to_string()),
        },
        ended => ended,
    };
    let output = written.lock().unwrap_or_else(|e| e.into_inner());
    match ended {
        Ok(status) | Err(CallError::Exited(status)) => Outcome::exited(status, &output),
        Err(error) => match error.fault().map(|fault| fault.kind) {
            Some(FaultKind::Deadline) => Outcome::TimedOut,
            _ => Outcome::Crashed(error.to_string()),
        },
    }
}
