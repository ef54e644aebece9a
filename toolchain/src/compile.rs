//! From a source to confined assembly and on to an object: the compiler with the flags of
//! extensions, then the rewriter.
//!
//! Libraries are compiled by this, too, so that it knows none of them: which headers of libraries a
//! source sees, its caller says.

pub mod flags;
pub mod include;
mod maker;
mod scratch;
pub mod symbols;

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use postern_image::input;

use crate::error::CompileError;
use crate::features::Features;
use crate::llvm;
use crate::rewrite::{Adjustment, Compiler, RewriteOptions, rewrite};
use crate::tools::{Tool, ToolCommand, ToolError};
use crate::wasm;
pub use maker::MAKER;
use scratch::Scratch;

/// The source language of inputs whose name does not tell otherwise, and the library that is
/// linked.
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

    /// The compiler.
    pub fn compiler(self) -> ToolCommand {
        match self {
            Language::C => Tool::Gcc.command(),
            Language::Cxx => Tool::Gxx.command(),
        }
    }

    /// The folder of the headers that are the compiler's own.
    pub fn own_headers(self) -> Result<PathBuf, ToolError> {
        let folder = self.compiler().arg("-print-file-name=include").answer()?;
        Ok(folder.into())
    }
}

/// What can be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file in a language of the compiler's: the one of its name, or the one that is named (as by
    /// `-x`).
    Text(PathBuf, Option<OsString>),
    /// A `.s` file.
    Assembly(PathBuf),
    /// A `.S` file.
    PreprocessedAssembly(PathBuf),
    /// A WebAssembly module, or its text.
    Wasm(PathBuf),
    /// LLVM's bitcode, or its text.
    Bitcode(PathBuf),
}

impl Source {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Source::Text(path, _)
            | Source::Assembly(path)
            | Source::PreprocessedAssembly(path)
            | Source::Wasm(path)
            | Source::Bitcode(path) => path,
        }
    }

    /// The language that the compiler reads it in, in a run for `default`; none if the headers of
    /// libraries are not for it.
    pub fn language(&self, default: Language) -> Option<Language> {
        let cxx = match self {
            Source::Text(_, Some(named)) => named.to_string_lossy().starts_with("c++"),
            Source::Text(path, None) => matches!(
                path.extension().and_then(OsStr::to_str),
                Some("cc" | "cp" | "cxx" | "cpp" | "CPP" | "c++" | "C" | "ii" | "hh" | "hpp")
            ),
            Source::PreprocessedAssembly(_) => return Some(Language::C),
            Source::Assembly(_) | Source::Wasm(_) | Source::Bitcode(_) => return None,
        };
        Some(if cxx { Language::Cxx } else { default })
    }
}

/// How the sources of a run are compiled.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// Options for the compiler.
    pub flags: Vec<OsString>,
    /// Rewriting.
    pub adjustment: Adjustment,
    /// Debug information is wanted.
    pub debug: bool,
    /// What is made is for ring 0: `--kernel`.
    pub kernel: bool,
    /// No symbol of the objects is to be exported (when a library is being built).
    pub hidden: bool,
    /// `-MD` or `-MMD` is among the flags.
    pub dependencies: bool,
    /// Bytes that the linear memory of a WebAssembly module may take at most.
    pub wasm_memory: Option<u64>,
    /// Keep intermediate files.
    pub save_temps: bool,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            flags: Vec::new(),
            adjustment: Adjustment::Callee,
            debug: true,
            kernel: false,
            hidden: false,
            dependencies: false,
            wasm_memory: None,
            save_temps: false,
        }
    }
}

/// The libraries whose headers a source sees, behind the user's; the machine's own are not seen.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// The folders, in the order in which they are searched.
    pub folders: Vec<PathBuf>,
    /// There is a C++ library.
    pub cxx: bool,
}

/// A run of the compiler and the rewriter over some sources.
pub struct Compilation<'a> {
    language: Language,
    options: &'a CompileOptions,
    scratch: Scratch,
    /// The compiler's messages, where they do not go to standard error.
    captured: Option<RefCell<String>>,
}

impl<'a> Compilation<'a> {
    /// A run for `language` with `options`; if `captured`, the compiler's messages are kept for
    /// [`Compilation::messages`].
    pub fn new(
        language: Language,
        options: &'a CompileOptions,
        captured: bool,
    ) -> Result<Self, CompileError> {
        let scratch =
            Scratch::new(options.save_temps).map_err(CompileError::file(&std::env::temp_dir()))?;
        Ok(Self {
            language,
            options,
            scratch,
            captured: captured.then(RefCell::default),
        })
    }

    /// The folder of intermediate files.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A fresh name for an intermediate file, after the source's.
    pub fn scratch_file(&self, source: &Path, extension: &str) -> PathBuf {
        self.scratch.file(source, extension)
    }

    /// What the compiler said so far, where that was captured.
    pub fn messages(self) -> String {
        self.captured.map(RefCell::into_inner).unwrap_or_default()
    }

    /// Runs a compiler; its messages go where those of this run go.
    pub fn run(&self, command: &mut ToolCommand) -> Result<(), ToolError> {
        let Some(captured) = &self.captured else {
            return command.run_visibly();
        };
        captured.borrow_mut().push_str(&command.run_captured()?);
        Ok(())
    }

    /// The compiler with the flags of extensions around the user's. Without `headers` it sees those
    /// of no library, but neither is it kept from the machine's (the user's own flags say where it
    /// looks).
    pub fn compiler(
        &self,
        language: Language,
        headers: Option<&Headers>,
    ) -> Result<ToolCommand, CompileError> {
        self.compiler_with(language, &[], headers)
    }

    /// As [`Self::compiler`], with `defaults` that the user's flags may change.
    fn compiler_with(
        &self,
        language: Language,
        defaults: &[&str],
        headers: Option<&Headers>,
    ) -> Result<ToolCommand, CompileError> {
        let mut command = language.compiler();
        command.args(flags::DEFAULTS).args(defaults);
        if self.options.kernel {
            command.args(flags::DEFAULTS_KERNEL);
        }
        if language == Language::Cxx && !headers.is_some_and(|headers| headers.cxx) {
            command.args(flags::WITHOUT_CXX_LIBRARY);
        }
        command.arg("-isystem").arg(include::path()?);
        command.args(&self.options.flags);
        if let Some(headers) = headers {
            command.args(["-nostdinc"]);
            for folder in &headers.folders {
                command.arg("-idirafter").arg(folder);
            }
            command.args(flags::NOT_LINUX);
        }
        command.args(flags::REQUIRED).args(self.no_gather(language));
        if language == Language::Cxx {
            command.args(flags::REQUIRED_CXX);
        }
        if self.options.kernel {
            command.args(flags::REQUIRED_KERNEL);
        }
        Ok(command)
    }

    /// Whether an option is there that may allow AVX2.
    fn perhaps_avx2(&self) -> bool {
        self.options.flags.iter().any(|argument| {
            let argument = argument.to_string_lossy();
            flags::ALLOWS_AVX2
                .iter()
                .any(|start| argument.starts_with(start))
        })
    }

    /// What the compiler, with the flags of this run, may use of a processor.
    pub fn features(&self) -> Features {
        let flags = &self.options.flags;
        let about_processors = |flag: &OsString| flag.to_string_lossy().starts_with("-m");
        match flags.iter().any(about_processors) {
            true => {
                let kernel = self.options.kernel.then_some("-mgeneral-regs-only");
                Features::of(Language::C.compiler().args(flags).args(kernel))
            }
            false => Features::default(),
        }
    }

    /// The option that keeps this compiler from making gathers, where it could.
    fn no_gather(&self, language: Language) -> Option<&'static str> {
        if !self.perhaps_avx2() {
            return None;
        }
        flags::NO_GATHER.iter().copied().find(|option| {
            let mut probe = language.compiler();
            probe
                .args([option, "-E", "-x", "c", "/dev/null", "-o", "/dev/null"])
                .succeeds()
        })
    }

    /// The confined assembly of a source that sees `headers`. `object` is what it will be, for
    /// dependency files.
    pub fn confined(
        &self,
        source: &Source,
        headers: Option<&Headers>,
        object: &Path,
    ) -> Result<String, CompileError> {
        let path = source.path();
        let language = source.language(self.language).unwrap_or(Language::C);
        let compiled = self.scratch.file(path, "gcc.s");
        match source {
            Source::Text(_, named) => {
                let mut command = self.compiler(language, headers)?;
                self.dependency_options(&mut command, object);
                if let Some(named) = named {
                    command.arg("-x").arg(named);
                }
                command.arg("-S").arg("-o").arg(&compiled).arg(path);
                self.run(&mut command)?;
            }
            Source::PreprocessedAssembly(_) => {
                let mut command = self.compiler(language, headers)?;
                self.dependency_options(&mut command, object);
                command
                    .args(["-x", "assembler-with-cpp", "-E", "-o"])
                    .arg(&compiled)
                    .arg(path);
                self.run(&mut command)?;
            }
            Source::Wasm(_) => {
                let folder = self.scratch.folder(path)?;
                let source = wasm::translate(path, &folder, self.options.wasm_memory)?;
                let mut command = self.compiler_with(Language::C, wasm::DEFAULTS, None)?;
                command.arg("-I").arg(&folder).args(wasm::REQUIRED);
                command.arg("-S").arg("-o").arg(&compiled).arg(source);
                command.run_visibly()?;
            }
            Source::Bitcode(_) => llvm::compile(path, &compiled, &self.options.flags)?,
            Source::Assembly(_) => {}
        }
        let read = if matches!(source, Source::Assembly(_)) {
            path
        } else {
            &compiled
        };
        let text = read_text(read)?;
        let options = RewriteOptions {
            adjustment: self.options.adjustment,
            debug: self.options.debug,
            kernel: self.options.kernel,
            compiler: match source {
                Source::Bitcode(_) => Compiler::Llvm,
                _ => Compiler::Gcc,
            },
        };
        let mut text =
            rewrite(&text, &path.to_string_lossy(), &options).map_err(CompileError::Source)?;
        if self.options.hidden {
            symbols::hide(&mut text);
        }
        Ok(text)
    }

    fn dependency_options(&self, command: &mut ToolCommand, object: &Path) {
        let given = |option: &str| {
            self.options
                .flags
                .iter()
                .any(|argument| argument.to_string_lossy().starts_with(option))
        };
        if self.options.dependencies {
            if !given("-MF") {
                command.arg("-MF").arg(object.with_extension("d"));
            }
            if !given("-MT") && !given("-MQ") {
                command.arg("-MQ").arg(object);
            }
        }
    }

    /// Makes `object` of the confined assembly `text` of `source`.
    pub fn assemble(&self, text: &str, source: &Source, object: &Path) -> Result<(), CompileError> {
        let confined = self.scratch.file(source.path(), "s");
        std::fs::write(&confined, &*symbols::note_services(text))
            .map_err(CompileError::file(&confined))?;
        let mut command = Tool::Assembler.command();
        command
            .args(["--64", "-mindex-reg", "-o"])
            .arg(object)
            .arg(&confined)
            .run()?;
        Ok(())
    }
}

fn read_text(path: &Path) -> Result<String, CompileError> {
    let bytes = input::read(path, input::MAX_FILE);
    let bytes = bytes.map_err(|error| CompileError::file(path)(error.into()))?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}
