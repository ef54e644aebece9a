//! Agents and programs for the tests, and what came of one.

use postern_interpose::Interposer;
use postern_toolchain::{Build, Language};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};
use tempfile::TempDir;

/// Where what is built lies.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| TempDir::new().expect("a folder"))
        .path()
}

/// An agent of `examples/agents`, or of these tests.
pub fn agent(name: &str) -> PathBuf {
    static BUILT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut built = BUILT.lock().expect("no test panicked in here");
    let path = folder().join(name).with_extension("px");
    if !built.contains(&path) {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = match name {
            "faulty" | "families" | "kept" | "refuses-to-say" | "seen" | "wrong" => {
                here.join("tests/programs")
            }
            _ => here.join("../examples/agents"),
        };
        Build::new(Language::C)
            .file(sources.join(name).with_extension("c"))
            .flags(["-O2", "-Wall", "-Werror"])
            .output(&path)
            .run()
            .expect("the agent is built");
        built.push(path.clone());
    }
    path
}

/// What a program wrote and ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub status: Option<i32>,
    pub output: String,
}

/// A command's, as it is.
pub fn native(words: &[&str]) -> Seen {
    let output = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .expect("the program is there");
    Seen {
        status: output.status.code(),
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
    }
}

/// The same under an agent that is told these words, and what the agent said.
pub fn under(name: &str, told: &[&str], words: &[&str]) -> (Seen, String) {
    let output = tempfile::NamedTempFile::new().expect("a file");
    under_into(output.path(), name, told, words)
}

/// The same, with a file for the output.
pub fn under_into(output: &Path, name: &str, told: &[&str], words: &[&str]) -> (Seen, String) {
    let interposer = Interposer::new(agent(name));
    // What is recorded has the time in it.
    let interposer = match name {
        "record" | "replay" => interposer.no_vdso(),
        _ => interposer,
    };
    run_into(output, interposer, told, words)
}

/// The same, of one that is given.
pub fn run(interposer: Interposer, told: &[&str], words: &[&str]) -> (Seen, String) {
    let output = tempfile::NamedTempFile::new().expect("a file");
    run_into(output.path(), interposer, told, words)
}

/// The program's own output goes through a shell into a file, for a test's is the harness's.
fn run_into(
    output: &Path,
    interposer: Interposer,
    told: &[&str],
    words: &[&str],
) -> (Seen, String) {
    let file = || tempfile::tempfile().expect("a file");
    let text = |mut file: File| {
        let mut text = Vec::new();
        file.rewind().expect("a file");
        file.read_to_end(&mut text).expect("a file");
        String::from_utf8_lossy(&text).into_owned()
    };
    let said = file();
    let interposer = interposer.output(said.try_clone().expect("a file"));
    let interposer = told
        .iter()
        .fold(interposer, |all, word| all.argument(*word));
    let script = "exec > \"$0\" 2> /dev/null < /dev/null; exec \"$@\"";
    let start = [OsStr::new("-c"), OsStr::new(script), output.as_os_str()];
    let words = start.into_iter().chain(words.iter().map(OsStr::new));
    let status = interposer
        .run(OsStr::new("sh"), words)
        .expect("the program is run");
    let seen = Seen {
        status: status.code(),
        output: text(File::open(output).expect("a file")),
    };
    (seen, text(said))
}

/// The path of a file in a folder, as programs are told it.
pub fn path_in(folder: &TempDir, name: &str) -> String {
    let path = folder.path().join(name);
    path.to_str().expect("a path").to_owned()
}
