//! The native side: gcc and a process. Outcomes are kept in the cache, since they depend on nothing
//! but what is hashed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::place::{PlaceError, cache};
use crate::program::{Outcome, Program};

/// What gcc says about itself.
fn compiler() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let output = Command::new("gcc").arg("-v").output();
        output.map_or_else(
            |_| "none".to_owned(),
            |o| String::from_utf8_lossy(&o.stderr).into_owned(),
        )
    })
}

fn key(program: &Program) -> Result<String, PlaceError> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(compiler().as_bytes());
    for flag in &program.flags {
        hasher.update(flag.as_bytes()).update(&[0]);
    }
    for source in &program.sources {
        let bytes = std::fs::read(source).map_err(PlaceError::file(source))?;
        hasher
            .update(&(bytes.len() as u64).to_le_bytes())
            .update(&bytes);
        // The tests include each other.
        hasher.update(source.to_string_lossy().as_bytes());
    }
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

/// Builds and runs `program`, unless the cache knows how it ends.
///
/// # Errors
/// Files that cannot be read or written.
pub fn run(program: &Program) -> Result<Outcome, PlaceError> {
    let known = cache().join("native").join(key(program)?);
    if let Ok(text) = std::fs::read(&known)
        && let Ok(outcome) = serde_json::from_slice(&text)
    {
        return Ok(outcome);
    }
    let outcome = build_and_run(program)?;
    let folder = cache().join("native");
    std::fs::create_dir_all(&folder).map_err(PlaceError::file(&folder))?;
    let text = serde_json::to_vec(&outcome).unwrap_or_default();
    let unfinished = tempfile::NamedTempFile::new_in(&folder).map_err(PlaceError::file(&folder))?;
    std::fs::write(unfinished.path(), text).map_err(PlaceError::file(&known))?;
    unfinished
        .persist(&known)
        .map_err(|error| PlaceError::file(&known)(error.error))?;
    Ok(outcome)
}

/// Builds and runs `program`, whatever the cache says.
///
/// # Errors
/// Files that cannot be read or written.
pub fn build_and_run(program: &Program) -> Result<Outcome, PlaceError> {
    let scratch =
        tempfile::tempdir().map_err(PlaceError::file(Path::new("the temporary folder")))?;
    let binary: PathBuf = scratch.path().join("program");
    let compiler = if program.is_cxx() { "g++" } else { "gcc" };
    let output = Command::new(compiler)
        .args(&program.flags)
        .args(&program.sources)
        .arg("-o")
        .arg(&binary)
        .arg("-lm")
        .output()
        .map_err(|_| PlaceError::Missing {
            what: "the compiler",
            path: "the path".to_owned(),
            package: compiler,
        })?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr);
        return Ok(Outcome::NotBuilt(first_lines(&messages)));
    }
    execute(
        Command::new(&binary).current_dir(scratch.path()),
        Duration::from_secs(program.seconds),
    )
    .map_err(PlaceError::file(&binary))
}

/// The first lines of a compiler's messages.
pub fn first_lines(messages: &str) -> String {
    messages.lines().take(6).collect::<Vec<_>>().join("\n")
}

/// Runs a command to its end or for so long.
fn execute(command: &mut Command, limit: Duration) -> std::io::Result<Outcome> {
    use std::os::unix::process::ExitStatusExt;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut from = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(from) = &mut from {
            let _ = from.read_to_end(&mut bytes);
        }
        bytes
    });
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let bytes = reader.join().unwrap_or_default();
    Ok(match status {
        None => Outcome::TimedOut,
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Outcome::exited(code, &bytes),
            (None, signal) => Outcome::Crashed(format!("signal {}", signal.unwrap_or(0))),
        },
    })
}
