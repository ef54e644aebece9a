//! The programs underneath: gcc, g++, as, ld, strip, wasm2c, llc.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

/// A program that the driver runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The C compiler; `POSTERN_GCC` names another one.
    Gcc,
    /// The C++ compiler; `POSTERN_GXX` names another one.
    Gxx,
    /// GNU as.
    Assembler,
    /// GNU ld.
    Linker,
    /// Strip.
    Strip,
    /// Source lines of offsets.
    Lines,
    /// ar.
    Archiver,
    /// tar, with xz.
    Unpacker,
    /// From WebAssembly to C.
    Wasm2c,
    /// From WebAssembly's text to WebAssembly.
    Wat2wasm,
    /// From LLVM's bitcode to assembly.
    Llc,
    /// Python, with pip.
    Python,
}

/// Why a tool's work was not done.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is not there.
    #[error("`{program}` was not found; install it with: apt-get install {package}")]
    Missing {
        /// Its name.
        program: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// It could not be started.
    #[error("`{program}` could not be run: {source}")]
    Start {
        /// Its name.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// wasm2c is of another version: what it writes differs between them.
    #[error("wasm2c {wanted} is needed to compile WebAssembly, and {installed} is installed")]
    Version {
        /// The one that is known.
        wanted: &'static str,
        /// The one that is there.
        installed: String,
    },
    /// It said no. Its own messages are in `messages`, or were already printed.
    #[error("{messages}")]
    Failed {
        /// What it wrote to standard error, where that was captured.
        messages: String,
    },
}

/// Text with names of files and symbols that may be anybody's, without what commands a terminal.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.extend(c.escape_debug()),
            c => out.push(c),
        }
    }
    out
}

impl Tool {
    fn program(self) -> OsString {
        let from =
            |variable: &str, name: &str| std::env::var_os(variable).unwrap_or_else(|| name.into());
        match self {
            Self::Gcc => from("POSTERN_GCC", "gcc"),
            Self::Gxx => from("POSTERN_GXX", "g++"),
            Self::Assembler => "as".into(),
            Self::Linker => "ld".into(),
            Self::Strip => "strip".into(),
            Self::Lines => "addr2line".into(),
            Self::Archiver => "ar".into(),
            Self::Unpacker => "tar".into(),
            Self::Wasm2c => "wasm2c".into(),
            Self::Wat2wasm => "wat2wasm".into(),
            Self::Llc => "llc".into(),
            Self::Python => "python3".into(),
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Gcc => "gcc",
            Self::Gxx => "g++",
            Self::Unpacker => "tar xz-utils",
            Self::Wasm2c | Self::Wat2wasm => "wabt",
            Self::Llc => "llvm",
            Self::Python => "python3-pip",
            _ => "binutils",
        }
    }

    /// A command that runs the tool.
    pub fn command(self) -> ToolCommand {
        ToolCommand {
            tool: self,
            command: Command::new(self.program()),
        }
    }
}

/// A run of a tool.
pub struct ToolCommand {
    tool: Tool,
    command: Command,
}

impl ToolCommand {
    /// A command that runs `program` as the tool.
    pub fn of(tool: Tool, program: &OsStr) -> Self {
        Self {
            tool,
            command: Command::new(program),
        }
    }

    /// Adds an argument.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(&mut self, arguments: impl IntoIterator<Item = A>) -> &mut Self {
        self.command.args(arguments);
        self
    }

    /// Runs it with its messages captured into the error; warnings of a run that succeeds are
    /// printed.
    pub fn run(&mut self) -> Result<(), ToolError> {
        let messages = self.run_captured()?;
        if !messages.is_empty() {
            eprint!("{messages}");
        }
        Ok(())
    }

    /// Runs it with its messages captured: into the error, or as the result (each with the end of
    /// its line).
    pub fn run_captured(&mut self) -> Result<String, ToolError> {
        self.command.stdin(Stdio::null());
        let output = self
            .command
            .output()
            .map_err(|source| self.start_error(source))?;
        let messages = printable(String::from_utf8_lossy(&output.stderr).trim_end());
        if !output.status.success() {
            return Err(ToolError::Failed { messages });
        }
        Ok(if messages.is_empty() {
            messages
        } else {
            messages + "\n"
        })
    }

    /// What it prints, or nothing if it fails.
    pub fn text(&mut self) -> String {
        let output = self.command.stdin(Stdio::null()).output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Runs it and reads the line that it prints.
    pub fn answer(&mut self) -> Result<String, ToolError> {
        self.command.stdin(Stdio::null());
        let output = self
            .command
            .output()
            .map_err(|source| self.start_error(source))?;
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned())
    }

    /// Runs it without a word: whether it succeeds.
    pub fn succeeds(&mut self) -> bool {
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.command.status().is_ok_and(|status| status.success())
    }

    /// Runs it on the terminal of the user: input, output and messages are its own.
    pub fn run_visibly(&mut self) -> Result<(), ToolError> {
        let status = self
            .command
            .status()
            .map_err(|source| self.start_error(source))?;
        if status.success() {
            Ok(())
        } else {
            Err(ToolError::Failed {
                messages: String::new(),
            })
        }
    }

    /// As [`Self::run_visibly`], with its output among the messages, for there is an output of
    /// ours.
    pub fn run_beside(&mut self) -> Result<(), ToolError> {
        self.command.stdout(std::io::stderr());
        self.run_visibly()
    }

    fn start_error(&self, source: std::io::Error) -> ToolError {
        let program = self.command.get_program().to_string_lossy().into_owned();
        if source.kind() == std::io::ErrorKind::NotFound {
            let package = self.tool.package();
            ToolError::Missing { program, package }
        } else {
            ToolError::Start { program, source }
        }
    }
}
