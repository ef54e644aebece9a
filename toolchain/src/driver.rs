//! The driver: what `postern cc` and `postern c++` do with their arguments.

pub mod arguments;
mod build;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use build::{Build, BuildError};

use crate::archive::LibraryError;
use crate::compile::{Compilation, Headers, Language, Source, include};
use crate::cxx::CxxLibrary;
use crate::error::CompileError;
use crate::headers::Wanted;
use crate::library::{self, Vectors};
use crate::link::{self, CLibrary, LinkError, LinkInput, Undefined};
use crate::sysroot::Sysroot;
use crate::tools::ToolError;
use arguments::{Input, Invocation, Stage};

/// Why the driver did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The command line.
    #[error("{0}")]
    Usage(String),
    /// A source was not compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A library was not made.
    #[error(transparent)]
    Library(LibraryError),
    /// Linking.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl From<LibraryError> for DriverError {
    fn from(error: LibraryError) -> Self {
        match error {
            LibraryError::Compile(error) => Self::Compile(error),
            error => Self::Library(error),
        }
    }
}

impl From<ToolError> for DriverError {
    fn from(error: ToolError) -> Self {
        Self::Compile(error.into())
    }
}

/// The whole driver: reads `args` (without the program's name), works, prints messages to standard
/// error.
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
                DriverError::Compile(CompileError::Tool(ToolError::Failed { messages }))
                    if messages.is_empty() => {}
                DriverError::Compile(
                    CompileError::Source(_) | CompileError::Tool(ToolError::Failed { .. }),
                )
                | DriverError::Link(
                    LinkError::Refused(_)
                    | LinkError::Order(_)
                    | LinkError::Tool(ToolError::Failed { .. }),
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
    let invocation = arguments::parse(args).map_err(DriverError::Usage)?;
    Driver::new(language, &invocation, false)?.run()
}

/// As [`run`], with the compiler's warnings as the result and its errors in the error: for callers
/// that run several compilers at once.
///
/// # Errors
/// See [`DriverError`].
pub fn run_captured(language: Language, args: &[OsString]) -> Result<String, DriverError> {
    let invocation = arguments::parse(args).map_err(DriverError::Usage)?;
    let driver = Driver::new(language, &invocation, true)?;
    driver.run()?;
    Ok(driver.compilation.messages())
}

struct Driver<'a> {
    language: Language,
    invocation: &'a Invocation,
    compilation: Compilation<'a>,
}

impl<'a> Driver<'a> {
    fn new(
        language: Language,
        invocation: &'a Invocation,
        captured: bool,
    ) -> Result<Self, DriverError> {
        Ok(Self {
            language,
            invocation,
            compilation: Compilation::new(language, &invocation.compile, captured)?,
        })
    }

    fn run(&self) -> Result<(), DriverError> {
        let i = self.invocation;
        if i.stage == Stage::Ask {
            self.language
                .compiler()
                .args(&i.compile.flags)
                .run_visibly()?;
            return Ok(());
        }
        if i.inputs
            .iter()
            .all(|input| matches!(input, Input::Library(_) | Input::Linker(_)))
        {
            if i.verbose {
                self.language.compiler().arg("-v").run_visibly()?;
                return Ok(());
            }
            return Err(DriverError::Usage("no input files".to_owned()));
        }
        for input in &i.inputs {
            if let Some(path) = path_of(input)
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
        let is_cxx = |input: &Input| matches!(input, Input::Source(source) if source.language(self.language) == Some(Language::Cxx));
        if i.compile.kernel && i.inputs.iter().any(|input| is_wasm(input) || is_cxx(input)) {
            return Err(DriverError::Usage(
                "images for the kernel are made of C and assembly: C++ and WebAssembly call through tables of functions".to_owned(),
            ));
        }
        match i.stage {
            Stage::Preprocess => self.preprocess(),
            Stage::Assembly | Stage::Object => self.each(),
            Stage::Link | Stage::Ask => self.link(),
        }
    }

    fn native(&self) -> Result<(), DriverError> {
        let i = self.invocation;
        let mut command = self.language.compiler();
        command.args(["-g", "-fPIC", "-shared"]);
        command.arg("-isystem").arg(include::path()?);
        command.args(&i.compile.flags);
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
                Input::Source(Source::Wasm(path)) => {
                    return Err(DriverError::Usage(format!(
                        "{}: a WebAssembly module has no native build; use wasm2c itself",
                        path.display()
                    )));
                }
                Input::Source(Source::Text(path, Some(language))) => drop(
                    command
                        .arg("-x")
                        .arg(language)
                        .arg(path)
                        .args(["-x", "none"]),
                ),
                Input::Source(source) => drop(command.arg(source.path())),
                Input::Object(path) | Input::Archive(path) => drop(command.arg(path)),
                Input::Library(name) => drop(command.arg(format!("-l{name}"))),
                Input::Linker(option) => drop(command.arg(format!("-Wl,{option}"))),
            }
        }
        self.compilation.run(&mut command)?;
        Ok(())
    }

    fn preprocess(&self) -> Result<(), DriverError> {
        for input in &self.invocation.inputs {
            let Input::Source(source) = input else {
                continue;
            };
            let language = match source {
                Source::Text(_, language) => language.as_deref(),
                Source::PreprocessedAssembly(_) => Some(OsStr::new("assembler-with-cpp")),
                Source::Assembly(_) | Source::Wasm(_) | Source::Bitcode(_) => continue,
            };
            let headers = self.headers(source)?;
            let reads = source.language(self.language).unwrap_or(self.language);
            let mut command = self.compilation.compiler(reads, headers.as_ref())?;
            if let Some(output) = &self.invocation.output {
                command.arg("-o").arg(output);
            }
            if let Some(language) = language {
                command.arg("-x").arg(language);
            }
            command.arg(source.path()).run_visibly()?;
        }
        Ok(())
    }

    /// `-c` and `-S`: one output for each source.
    fn each(&self) -> Result<(), DriverError> {
        let i = self.invocation;
        let source = |input: &'a Input| match input {
            Input::Source(source) => Some(source),
            _ => None,
        };
        let sources: Vec<&Source> = i.inputs.iter().filter_map(source).collect();
        if sources.is_empty() {
            return Err(DriverError::Usage("no source files".to_owned()));
        }
        if sources.len() > 1 && i.output.is_some() {
            return Err(DriverError::Usage(
                "-o with -c or -S and several files has no meaning".to_owned(),
            ));
        }
        let extension = if i.stage == Stage::Object { "o" } else { "s" };
        for source in sources {
            let output = match &i.output {
                Some(output) => output.clone(),
                None => Path::new(source.path().file_name().unwrap_or_default())
                    .with_extension(extension),
            };
            let text = self.confined(source, &output)?;
            if i.stage == Stage::Assembly {
                if output.as_os_str() == "-" {
                    print!("{text}");
                } else {
                    std::fs::write(&output, &text).map_err(CompileError::file(&output))?;
                }
            } else {
                self.compilation.assemble(&text, source, &output)?;
            }
        }
        Ok(())
    }

    fn link(&self) -> Result<(), DriverError> {
        let i = self.invocation;
        let mut inputs = Vec::new();
        let output = i.output.clone().unwrap_or_else(|| "a.out".into());
        for input in &i.inputs {
            inputs.push(match input {
                Input::Object(path) => LinkInput::Object(path.clone()),
                Input::Archive(path) => LinkInput::Archive(path.clone()),
                Input::Library(name) => LinkInput::Archive(self.find_library(name)?),
                Input::Linker(option) => LinkInput::Option(option.clone()),
                Input::Source(source) => {
                    let object = self.compilation.scratch_file(source.path(), "o");
                    let text = self.confined(source, &output)?;
                    self.compilation.assemble(&text, source, &object)?;
                    LinkInput::Object(object)
                }
            });
        }
        let mut options = i.link.clone();
        options.features = self.compilation.features();
        if i.library && i.link.kernel {
            inputs.push(LinkInput::Archive(library::kernel()?));
        } else if i.library {
            let vectors = match options.features.has("avx2") {
                true => Vectors::Avx2,
                false => Vectors::Sse2,
            };
            let kind = library::Kind {
                vectors,
                memory_gate: i.memory_gate,
            };
            options.library = Some(library::archive(self.language, kind)?);
        }
        let wasm = i.inputs.iter().any(is_wasm);
        if wasm && options.undefined == Undefined::ByKind {
            // A module declares its imports itself.
            options.undefined = Undefined::Imported;
        }
        // A module brings its own library; the names of its imports are not those of C's.
        if i.libc && !i.inputs.iter().all(is_wasm) {
            match Sysroot::headers() {
                Ok(sysroot) => {
                    if self.language == Language::Cxx || i.cxx {
                        options.cxx = CxxLibrary::find(&Language::Cxx.own_headers()?, &sysroot)?;
                    }
                    options.libc = Some(CLibrary::of(sysroot));
                }
                Err(LibraryError::NoSource) if self.language == Language::Cxx => {}
                Err(error) => return Err(error.into()),
            }
        }
        link::link(&inputs, &output, self.compilation.scratch(), &options)?;
        Ok(())
    }

    /// The headers of libraries that a source sees, if any.
    fn headers(&self, source: &Source) -> Result<Option<Headers>, DriverError> {
        let language = source.language(self.language);
        let Some(language) = language.filter(|_| !self.invocation.no_headers) else {
            return Ok(None);
        };
        let wanted = Wanted {
            language,
            freestanding: self.invocation.freestanding,
            no_cxx_headers: self.invocation.no_cxx_headers,
        };
        Ok(Some(wanted.find()?))
    }

    /// The confined assembly of a source. `object` is what it will be, for dependency files.
    fn confined(&self, source: &Source, object: &Path) -> Result<String, DriverError> {
        let headers = self.headers(source)?;
        Ok(self
            .compilation
            .confined(source, headers.as_ref(), object)?)
    }

    fn find_library(&self, name: &str) -> Result<PathBuf, DriverError> {
        let file = match name.strip_prefix(':') {
            Some(file) => file.to_owned(),
            None => format!("lib{name}.a"),
        };
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

fn is_wasm(input: &Input) -> bool {
    matches!(input, Input::Source(Source::Wasm(_)))
}

/// The file that an input names itself.
fn path_of(input: &Input) -> Option<&Path> {
    match input {
        Input::Source(source) => Some(source.path()),
        Input::Object(path) | Input::Archive(path) => Some(path),
        Input::Library(_) | Input::Linker(_) => None,
    }
}
