//! From a source to confined assembly and on to an object: the compiler with the flags of extensions, then the rewriter.

use super::arguments::Input;
use super::tools::{self, Tool, ToolError};
use super::{Driver, DriverError, Language, flags, path_of, symbols, write};
use crate::cxx::CxxLibrary;
use crate::library;
use crate::rewrite::{RewriteOptions, rewrite};
use crate::sysroot::{Sysroot, SysrootError};
use crate::wasm;
use postern_image::input;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where the compiler looks for headers after the user's folders.
#[derive(Default)]
struct Headers {
    folders: Vec<PathBuf>,
    /// There is a C++ library.
    cxx: bool,
}

impl Driver {
    /// Runs a compiler; its messages go where those of this run go.
    pub(super) fn compile(&self, command: &mut tools::ToolCommand) -> Result<(), ToolError> {
        let Some(captured) = &self.captured else {
            return command.run_visibly();
        };
        captured.borrow_mut().push_str(&command.run_captured()?);
        Ok(())
    }

    pub(super) fn gcc(&self, language: Language) -> tools::ToolCommand {
        match language {
            Language::C => Tool::Gcc.command(),
            Language::Cxx => Tool::Gxx.command(),
        }
    }

    /// The language of a source file.
    pub(super) fn language_of(&self, path: &Path, explicit: Option<&OsStr>) -> Language {
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
    pub(super) fn compiler(&self, language: Language) -> Result<tools::ToolCommand, DriverError> {
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
    pub(super) fn cxx_library(&self, sysroot: &Sysroot) -> Result<Option<CxxLibrary>, DriverError> {
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
    pub(super) fn vectors(&self) -> library::Vectors {
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

    /// The confined assembly of a source. `object` is what it will be, for dependency files.
    pub(super) fn confined(&self, input: &Input, object: &Path) -> Result<String, DriverError> {
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
            symbols::hide(&mut text);
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

    pub(super) fn assemble(
        &self,
        text: &str,
        input: &Input,
        object: &Path,
    ) -> Result<(), DriverError> {
        let confined = self.scratch.file(path_of(input), "s");
        write(&confined, &symbols::note_services(text))?;
        let mut command = Tool::Assembler.command();
        command
            .args(["--64", "-mindex-reg", "-o"])
            .arg(object)
            .arg(&confined)
            .run()?;
        Ok(())
    }
}

fn read_text(path: &Path) -> Result<String, DriverError> {
    let bytes = input::read(path, input::MAX_FILE);
    let bytes = bytes.map_err(|error| DriverError::file(path)(error.into()))?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}
