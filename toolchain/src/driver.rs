//! The driver: what `postern cc` and `postern c++` do with their arguments.

pub mod arguments;
mod build;
mod compile;
mod flags;
mod scratch;
mod symbols;
pub mod tools;

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use build::{Build, BuildError};

use crate::cxx::CxxError;
use crate::diagnostic::Diagnostic;
use crate::library;
use crate::link::{self, CLibrary, LinkError, LinkInput};
use crate::sysroot::{Sysroot, SysrootError};
use arguments::{Input, Invocation, Stage};
use scratch::Scratch;
use tools::ToolError;

/// The source language of inputs whose name does not tell otherwise, and the library that is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `postern cc`
    C,
    /// `postern c++`
    Cxx,
}

impl Language {
    /// The language of a source, by its name.
    pub fn of(path: &Path) -> Option<Language> {
        match path.extension()?.to_str()? {
            "c" => Some(Language::C),
            "cc" | "cpp" | "cxx" => Some(Language::Cxx),
            _ => None,
        }
    }
}

/// Why the driver did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The command line.
    #[error("{0}")]
    Usage(String),
    /// A tool.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The source.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Source(Vec<Diagnostic>),
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Linking.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The C library.
    #[error(transparent)]
    Sysroot(#[from] SysrootError),
    /// The C++ library.
    #[error(transparent)]
    Cxx(#[from] CxxError),
    /// Files of a library that could not be compiled.
    #[error("{count} files of {what} could not be compiled; the first is {first}: {message}")]
    Library {
        /// Which library.
        what: &'static str,
        /// How many files.
        count: usize,
        /// The first one's name.
        first: String,
        /// What was said about it.
        message: String,
    },
}

impl DriverError {
    /// For `map_err`: what is wrong with the file at `path`.
    pub(crate) fn file(path: &Path) -> impl Fn(std::io::Error) -> DriverError + use<> {
        let path = path.to_owned();
        move |source| DriverError::File {
            path: path.clone(),
            source,
        }
    }
}

/// The whole driver: reads `args` (without the program's name), works, prints messages to standard error.
pub fn main(language: Language, args: &[OsString]) -> ExitCode {
    match run(language, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let name = match language {
                Language::C => "postern cc",
                Language::Cxx => "postern c++",
            };
            match &error {
                // Its messages were printed already or say themselves where they come from.
                DriverError::Tool(ToolError::Failed { messages }) if messages.is_empty() => {}
                DriverError::Source(_)
                | DriverError::Tool(ToolError::Failed { .. })
                | DriverError::Link(
                    LinkError::Refused(_) | LinkError::Tool(ToolError::Failed { .. }),
                ) => eprintln!("{error}"),
                _ => eprintln!("{name}: error: {error}"),
            }
            ExitCode::FAILURE
        }
    }
}

/// As [`main`], without printing the error.
///
/// # Errors
/// See [`DriverError`]. Messages of gcc itself are on standard error.
pub fn run(language: Language, args: &[OsString]) -> Result<(), DriverError> {
    Driver::new(language, args)?.run()
}

/// As [`run`], with the compiler's warnings as the result and its errors in the error: for callers that run several
/// compilers at once.
///
/// # Errors
/// See [`DriverError`].
pub fn run_captured(language: Language, args: &[OsString]) -> Result<String, DriverError> {
    let mut driver = Driver::new(language, args)?;
    driver.captured = Some(RefCell::default());
    driver.run()?;
    Ok(driver.captured.map(RefCell::into_inner).unwrap_or_default())
}

struct Driver {
    language: Language,
    invocation: Invocation,
    scratch: Scratch,
    /// The compiler's messages, where they do not go to standard error.
    captured: Option<RefCell<String>>,
}

impl Driver {
    fn new(language: Language, args: &[OsString]) -> Result<Self, DriverError> {
        let invocation = arguments::parse(args).map_err(DriverError::Usage)?;
        let scratch = Scratch::new(invocation.save_temps)
            .map_err(DriverError::file(&std::env::temp_dir()))?;
        Ok(Self {
            language,
            invocation,
            scratch,
            captured: None,
        })
    }

    fn run(&self) -> Result<(), DriverError> {
        let i = &self.invocation;
        if i.stage == Stage::Ask {
            self.gcc(self.language).args(&i.compile).run_visibly()?;
            return Ok(());
        }
        if i.inputs
            .iter()
            .all(|input| matches!(input, Input::Library(_) | Input::Linker(_)))
        {
            if i.verbose {
                self.gcc(self.language).arg("-v").run_visibly()?;
                return Ok(());
            }
            return Err(DriverError::Usage("no input files".to_owned()));
        }
        for input in &i.inputs {
            if let Input::Source(path, _)
            | Input::Assembly(path)
            | Input::PreprocessedAssembly(path)
            | Input::Wasm(path)
            | Input::Object(path)
            | Input::Archive(path) = input
                && path.as_os_str() != "-"
                && !path.exists()
            {
                return Err(DriverError::Usage(format!(
                    "{}: no such file",
                    path.display()
                )));
            }
        }
        if i.native {
            return self.native();
        }
        match i.stage {
            Stage::Preprocess => self.preprocess(),
            Stage::Assembly | Stage::Object => self.each(),
            Stage::Link | Stage::Ask => self.link(),
        }
    }

    fn native(&self) -> Result<(), DriverError> {
        let i = &self.invocation;
        let mut command = self.gcc(self.language);
        command.args(["-g", "-fPIC", "-shared"]);
        command.arg("-isystem").arg(library::include_path()?);
        command.args(&i.compile);
        match i.stage {
            Stage::Object => drop(command.arg("-c")),
            Stage::Assembly => drop(command.arg("-S")),
            _ => {}
        }
        let output = i
            .output
            .clone()
            .or((i.stage == Stage::Link).then(|| "a.so".into()));
        if let Some(output) = output {
            command.arg("-o").arg(output);
        }
        for path in &i.library_paths {
            command.arg("-L").arg(path);
        }
        for input in &i.inputs {
            match input {
                Input::Source(path, Some(language)) => drop(
                    command
                        .arg("-x")
                        .arg(language)
                        .arg(path)
                        .args(["-x", "none"]),
                ),
                Input::Source(path, None)
                | Input::Assembly(path)
                | Input::PreprocessedAssembly(path)
                | Input::Object(path)
                | Input::Archive(path) => drop(command.arg(path)),
                Input::Wasm(path) => {
                    return Err(DriverError::Usage(format!(
                        "{}: a WebAssembly module has no native build; use wasm2c itself",
                        path.display()
                    )));
                }
                Input::Library(name) => drop(command.arg(format!("-l{name}"))),
                Input::Linker(option) => drop(command.arg(format!("-Wl,{option}"))),
            }
        }
        self.compile(&mut command)?;
        Ok(())
    }

    fn preprocess(&self) -> Result<(), DriverError> {
        for input in &self.invocation.inputs {
            let (path, explicit) = match input {
                Input::Source(path, language) => (path, language.as_deref()),
                Input::PreprocessedAssembly(path) => (path, Some(OsStr::new("assembler-with-cpp"))),
                _ => continue,
            };
            let mut command = self.compiler(self.language_of(path, explicit))?;
            if let Some(output) = &self.invocation.output {
                command.arg("-o").arg(output);
            }
            if let Some(language) = explicit {
                command.arg("-x").arg(language);
            }
            command.arg(path).run_visibly()?;
        }
        Ok(())
    }

    /// `-c` and `-S`: one output for each source.
    fn each(&self) -> Result<(), DriverError> {
        let i = &self.invocation;
        let sources: Vec<&Input> = i.inputs.iter().filter(|input| is_source(input)).collect();
        if sources.is_empty() {
            return Err(DriverError::Usage("no source files".to_owned()));
        }
        if sources.len() > 1 && i.output.is_some() {
            return Err(DriverError::Usage(
                "-o with -c or -S and several files has no meaning".to_owned(),
            ));
        }
        let extension = if i.stage == Stage::Object { "o" } else { "s" };
        for input in sources {
            let output = match &i.output {
                Some(output) => output.clone(),
                None => Path::new(path_of(input).file_name().unwrap_or_default())
                    .with_extension(extension),
            };
            let text = self.confined(input, &output)?;
            if i.stage == Stage::Assembly {
                if output.as_os_str() == "-" {
                    print!("{text}");
                } else {
                    write(&output, &text)?;
                }
            } else {
                self.assemble(&text, input, &output)?;
            }
        }
        Ok(())
    }

    fn link(&self) -> Result<(), DriverError> {
        let i = &self.invocation;
        let mut inputs = Vec::new();
        let output = i.output.clone().unwrap_or_else(|| "a.px".into());
        for input in &i.inputs {
            inputs.push(match input {
                Input::Object(path) => LinkInput::Object(path.clone()),
                Input::Archive(path) => LinkInput::Archive(path.clone()),
                Input::Library(name) => LinkInput::Archive(self.find_library(name)?),
                Input::Linker(option) => LinkInput::Option(option.clone()),
                source => {
                    let object = self.scratch.file(path_of(source), "o");
                    let text = self.confined(source, &output)?;
                    self.assemble(&text, source, &object)?;
                    LinkInput::Object(object)
                }
            });
        }
        let mut options = i.link.clone();
        if i.library {
            options.library = Some(library::archive(self.language, self.vectors())?);
        }
        // A module brings its own library; the names of its imports are not those of C's.
        if i.libc && !i.inputs.iter().all(|input| matches!(input, Input::Wasm(_))) {
            match Sysroot::headers() {
                Ok(sysroot) => {
                    if self.language == Language::Cxx || i.cxx {
                        options.cxx = self.cxx_library(&sysroot)?;
                    }
                    options.libc = Some(CLibrary::of(sysroot));
                }
                Err(DriverError::Sysroot(SysrootError::NoSource))
                    if self.language == Language::Cxx => {}
                Err(error) => return Err(error),
            }
        }
        // The name by which configure scripts know that a compiler made a program.
        let output = if i.output.is_none() && link::has_main(&inputs)? {
            "a.out".into()
        } else {
            output
        };
        link::link(&inputs, &output, self.scratch.path(), &options)?;
        Ok(())
    }

    fn find_library(&self, name: &str) -> Result<PathBuf, DriverError> {
        let file = format!("lib{name}.a");
        let found = self
            .invocation
            .library_paths
            .iter()
            .map(|path| path.join(&file))
            .find(|path| path.exists());
        found.ok_or_else(|| {
            DriverError::Usage(format!(
                "cannot find -l{name}: there is no {file} in the -L paths (the system's libraries are native code, which cannot \
                 be linked into an extension; build the library with `postern cc`)"
            ))
        })
    }
}

fn is_source(input: &Input) -> bool {
    matches!(
        input,
        Input::Source(..) | Input::Assembly(_) | Input::PreprocessedAssembly(_) | Input::Wasm(_)
    )
}

fn path_of(input: &Input) -> &Path {
    match input {
        Input::Source(path, _)
        | Input::Assembly(path)
        | Input::PreprocessedAssembly(path)
        | Input::Wasm(path)
        | Input::Object(path)
        | Input::Archive(path) => path,
        Input::Library(_) | Input::Linker(_) => Path::new(""),
    }
}

fn write(path: &Path, text: &str) -> Result<(), DriverError> {
    std::fs::write(path, text).map_err(DriverError::file(path))
}
