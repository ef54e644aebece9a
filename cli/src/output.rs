//! What goes to the terminal: results on stdout, complaints on stderr, colour only where a person
//! looks.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// Exit code of a command that did what it was asked for.
pub const SUCCESS: u8 = 0;
/// Exit code of a judgement that went against what was judged.
pub const REFUSED: u8 = 1;
/// Exit code for arguments or files that cannot be used.
pub const UNUSABLE: u8 = 2;
/// Exit code of `run` when the extension faulted.
pub const FAULT: u8 = 3;
/// Exit code of `run` when a program faulted: the one that shells give for an abort, so that it is
/// not the program's own.
pub const PROGRAM_FAULT: u8 = 134;

/// Why a command ends early: an exit code and a sentence with the remedy.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// A failure with its exit code.
    pub fn new(code: u8, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
        }
    }

    /// Arguments or files that cannot be used.
    pub fn unusable(message: impl Into<String>) -> Failure {
        Failure::new(UNUSABLE, message)
    }

    /// Says so on stderr and gives the exit code.
    pub fn report(&self) -> ExitCode {
        complain(&self.message);
        ExitCode::from(self.code)
    }
}

/// What a command returns: its exit code, or why it ended early.
pub type Outcome = Result<u8, Failure>;

/// Writes a complaint in the form of the GNU tools.
pub fn complain(message: &str) {
    let style = Style::stderr();
    // If stderr is gone nobody can be told.
    let _ = writeln!(io::stderr(), "{} {message}", style.red("postern:"));
}

/// Writes a result to stdout. A reader that went away (`| head`) is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// As [`print()`], for bytes.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::unusable(format!(
            "cannot write to stdout: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Writes a value as JSON.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&(text + "\n")),
        Err(error) => Err(Failure::unusable(format!(
            "cannot express the result as JSON: {error}"
        ))),
    }
}

/// Reads a whole file, a regular one of a bearable length.
pub fn read(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    postern_image::input::read(path, postern_image::input::MAX_FILE)
        .map_err(|e| Failure::unusable(format!("cannot read {}: {e}", path.display())))
}

/// Colours of a stream, if it is a terminal and `NO_COLOR` is not set.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    on: bool,
}

impl Style {
    /// For stdout.
    pub fn stdout() -> Style {
        Style::new(io::stdout().is_terminal())
    }

    /// For stderr.
    pub fn stderr() -> Style {
        Style::new(io::stderr().is_terminal())
    }

    fn new(terminal: bool) -> Style {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Style {
            on: terminal && !refused,
        }
    }

    /// Whether there are colours.
    pub fn is_on(self) -> bool {
        self.on
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// For headings.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// For what is well.
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// For what is not.
    pub fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// For what matters less.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }
}
