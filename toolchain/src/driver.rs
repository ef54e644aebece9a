//! The driver: what `postern cc` and `postern c++` do with their arguments.

pub mod arguments;
mod build;
mod flags;
mod scratch;
pub mod tools;

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use build::{Build, BuildError};

use crate::cxx::{CxxError, CxxLibrary};
use crate::diagnostic::Diagnostic;
use crate::library;
use crate::link::{self, CLibrary, LinkError, LinkInput};
use crate::rewrite::{RewriteOptions, rewrite};
use crate::sysroot::{Sysroot, SysrootError};
use crate::wasm;
use arguments::{Input, Invocation, Stage};
use scratch::Scratch;
use tools::{Tool, ToolError};

/// The source language of inputs whose name does not tell otherwise, and the library that is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `postern cc`
    C,
    /// `postern c++`
    Cxx,
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
}

/// Where the compiler looks for headers after the user's folders.
#[derive(Default)]
struct Headers {
    folders: Vec<PathBuf>,
    /// There is a C++ library.
    cxx: bool,
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
        let scratch = Scratch::new(invocation.save_temps).map_err(|source| DriverError::File {
            path: std::env::temp_dir(),
            source,
        })?;
        Ok(Self {
            language,
            invocation,
            scratch,
            captured: None,
        })
    }

    /// Runs a compiler; its messages go where those of this run go.
    fn compile(&self, command: &mut tools::ToolCommand) -> Result<(), ToolError> {
        let Some(captured) = &self.captured else {
            return command.run_visibly();
        };
        captured.borrow_mut().push_str(&command.run_captured()?);
        Ok(())
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

    fn gcc(&self, language: Language) -> tools::ToolCommand {
        match language {
            Language::C => Tool::Gcc.command(),
            Language::Cxx => Tool::Gxx.command(),
        }
    }

    /// The language of a source file.
    fn language_of(&self, path: &Path, explicit: Option<&OsStr>) -> Language {
        let cxx = match explicit {
            Some(language) => language.to_string_lossy().starts_with("c++"),
            None => matches!(
                path.extension().and_then(OsStr::to_str),
                Some("cc" | "cp" | "cxx" | "cpp" | "CPP" | "c++" | "C" | "ii" | "hh" | "hpp")
            ),
        };
        if cxx || self.language == Language::Cxx {
            Language::Cxx
        } else {
            Language::C
        }
    }

    /// gcc with the flags of extensions around the user's.
    fn compiler(&self, language: Language) -> Result<tools::ToolCommand, DriverError> {
        self.compiler_with(language, &[], true)
    }

    /// As [`Self::compiler`], with `defaults` that the user's flags may change, and perhaps without any library's headers.
    fn compiler_with(
        &self,
        language: Language,
        defaults: &[&str],
        hosted: bool,
    ) -> Result<tools::ToolCommand, DriverError> {
        let i = &self.invocation;
        let mut command = self.gcc(language);
        command.args(flags::DEFAULTS).args(defaults);
        let hosted = hosted && !i.no_headers;
        let headers = if hosted {
            self.headers(language)?
        } else {
            Headers::default()
        };
        if language == Language::Cxx && !headers.cxx {
            command.args(flags::WITHOUT_CXX_LIBRARY);
        }
        command.arg("-isystem").arg(library::include_path()?);
        command.args(&i.compile);
        if hosted {
            command.args(["-nostdinc"]);
            for folder in headers.folders {
                command.arg("-idirafter").arg(folder);
            }
            command.args(flags::NOT_LINUX);
        }
        command.args(flags::REQUIRED).args(self.no_gather());
        if language == Language::Cxx {
            command.args(flags::REQUIRED_CXX);
        }
        Ok(command)
    }

    /// The C++ library's headers, the compiler's own, then the sysroot's, behind the user's; the host's are not seen.
    fn headers(&self, language: Language) -> Result<Headers, DriverError> {
        let i = &self.invocation;
        let own = PathBuf::from(
            self.gcc(language)
                .arg("-print-file-name=include")
                .answer()?,
        );
        if let Some((c, cxx)) = i.headers.split_last() {
            return Ok(Headers {
                folders: cxx.iter().chain([&own, c]).cloned().collect(),
                cxx: !cxx.is_empty(),
            });
        }
        let mut headers = Headers::default();
        let sysroot = match Sysroot::headers() {
            Ok(sysroot) => Some(sysroot),
            Err(DriverError::Sysroot(SysrootError::NoSource))
                if i.freestanding || language == Language::Cxx =>
            {
                None
            }
            Err(error) => return Err(error),
        };
        if language == Language::Cxx
            && let Some(sysroot) = &sysroot
            && let Some(library) = CxxLibrary::find(&own, sysroot)?
        {
            headers.cxx = true;
            if !i.no_cxx_headers {
                headers.folders.extend(library.include());
            }
        }
        headers.folders.push(own);
        headers
            .folders
            .extend(sysroot.map(|sysroot| sysroot.include()));
        Ok(headers)
    }

    /// The C++ library to link where something asks for it.
    fn cxx_library(&self, sysroot: &Sysroot) -> Result<Option<CxxLibrary>, DriverError> {
        let mut gcc = self.gcc(Language::Cxx);
        let own = gcc.arg("-print-file-name=include").answer()?;
        CxxLibrary::find(Path::new(&own), sysroot)
    }

    /// Whether an option is there that may allow AVX2.
    fn perhaps_avx2(&self) -> bool {
        self.invocation.compile.iter().any(|argument| {
            let argument = argument.to_string_lossy();
            flags::ALLOWS_AVX2
                .iter()
                .any(|start| argument.starts_with(start))
        })
    }

    /// What the library may use: AVX2 where the compiler, with the flags of this command, uses it.
    fn vectors(&self) -> library::Vectors {
        let macros = self.scratch.path().join("macros.h");
        let mut probe = self.gcc(Language::C);
        probe
            .args(&self.invocation.compile)
            .args(["-w", "-E", "-dM", "-x", "c", "/dev/null", "-o"])
            .arg(&macros);
        let avx2 = self.perhaps_avx2()
            && probe.succeeds()
            && std::fs::read_to_string(&macros).is_ok_and(|text| text.contains("__AVX2__"));
        if avx2 {
            library::Vectors::Avx2
        } else {
            library::Vectors::Sse2
        }
    }

    /// The option that keeps this compiler from making gathers, where it could.
    fn no_gather(&self) -> Option<&'static str> {
        if !self.perhaps_avx2() {
            return None;
        }
        flags::NO_GATHER.iter().copied().find(|option| {
            let mut probe = self.gcc(self.language);
            probe
                .args([option, "-E", "-x", "c", "/dev/null", "-o", "/dev/null"])
                .succeeds()
        })
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

    /// The confined assembly of a source. `object` is what it will be, for dependency files.
    fn confined(&self, input: &Input, object: &Path) -> Result<String, DriverError> {
        let path = path_of(input);
        let compiled = self.scratch.file(path, "gcc.s");
        match input {
            Input::Source(_, explicit) => {
                let mut command = self.compiler(self.language_of(path, explicit.as_deref()))?;
                self.dependency_options(&mut command, object);
                if let Some(language) = explicit {
                    command.arg("-x").arg(language);
                }
                command.arg("-S").arg("-o").arg(&compiled).arg(path);
                self.compile(&mut command)?;
            }
            Input::PreprocessedAssembly(_) => {
                let mut command = self.compiler(Language::C)?;
                self.dependency_options(&mut command, object);
                command
                    .args(["-x", "assembler-with-cpp", "-E", "-o"])
                    .arg(&compiled)
                    .arg(path);
                self.compile(&mut command)?;
            }
            Input::Wasm(_) => {
                let folder = self.scratch.folder(path)?;
                let source = wasm::translate(path, &folder, self.invocation.wasm_memory)?;
                let mut command = self.compiler_with(Language::C, wasm::DEFAULTS, false)?;
                command.arg("-I").arg(&folder).args(wasm::REQUIRED);
                command.arg("-S").arg("-o").arg(&compiled).arg(source);
                command.run_visibly()?;
            }
            _ => {}
        }
        let read = if matches!(input, Input::Assembly(_)) {
            path
        } else {
            &compiled
        };
        let source = read_text(read)?;
        let options = RewriteOptions {
            adjustment: self.invocation.adjustment,
            debug: self.invocation.debug,
        };
        let mut text =
            rewrite(&source, &path.to_string_lossy(), &options).map_err(DriverError::Source)?;
        if self.invocation.hidden {
            hide(&mut text);
        }
        Ok(text)
    }

    fn dependency_options(&self, command: &mut tools::ToolCommand, object: &Path) {
        let given = |option: &str| {
            self.invocation
                .compile
                .iter()
                .any(|argument| argument.to_string_lossy().starts_with(option))
        };
        if self.invocation.dependencies.is_some() {
            if !given("-MF") {
                command.arg("-MF").arg(object.with_extension("d"));
            }
            if !given("-MT") && !given("-MQ") {
                command.arg("-MQ").arg(object);
            }
        }
    }

    fn assemble(&self, text: &str, input: &Input, object: &Path) -> Result<(), DriverError> {
        let confined = self.scratch.file(path_of(input), "s");
        write(&confined, &note_services(text))?;
        let mut command = Tool::Assembler.command();
        command
            .args(["--64", "-mindex-reg", "-o"])
            .arg(object)
            .arg(&confined)
            .run()?;
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

/// Turns the visibility by which POSTERN_IMPORT marks a function of the host (protected, and not defined here) into a section
/// that the link reads and drops: ld has no use for a protected symbol that nobody defines.
fn note_services(text: &str) -> std::borrow::Cow<'_, str> {
    const MARK: &str = "\t.protected\t";
    if !text.contains(MARK) {
        return text.into();
    }
    let defined: std::collections::HashSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_suffix(':'))
        .collect();
    let mut out = String::with_capacity(text.len() + 100);
    for line in text.lines() {
        match line.strip_prefix(MARK) {
            Some(name) if !defined.contains(name) => {
                let section = link::SERVICES;
                out.push_str(&format!(
                    "\t.pushsection {section},\"e\",@progbits\n\t.asciz \"{name}\"\n\t.popsection\n"
                ));
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out.into()
}

/// Gives every symbol that is defined here hidden visibility, whatever the source says.
fn hide(text: &mut String) {
    let labels: HashSet<&str> = text.lines().filter_map(|l| l.strip_suffix(':')).collect();
    let mut directives = String::new();
    for line in text.lines() {
        let symbol = [".globl", ".weak"]
            .iter()
            .find_map(|d| line.trim().strip_prefix(d));
        if let Some(symbol) = symbol.map(str::trim)
            && labels.contains(symbol)
        {
            directives.push_str("\t.hidden\t");
            directives.push_str(symbol);
            directives.push('\n');
        }
    }
    text.push_str(&directives);
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

fn read_text(path: &Path) -> Result<String, DriverError> {
    let bytes = std::fs::read(path).map_err(|source| DriverError::File {
        path: path.to_owned(),
        source,
    })?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn write(path: &Path, text: &str) -> Result<(), DriverError> {
    std::fs::write(path, text).map_err(|source| DriverError::File {
        path: path.to_owned(),
        source,
    })
}
