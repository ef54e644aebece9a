//! `exos-cc`: a compiler for programs of ExOS that is called as gcc is. It is gcc, with newlib's
//! headers and ExOS' own in place of the machine's, and a link that puts the libraries together.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use postern_aegis_machine::build::BuildError;
use postern_toolchain::sysroot::Sysroot;
use postern_toolchain::tools::{Tool, ToolCommand, ToolError};
use postern_toolchain::{Language, LibraryError};
use thiserror::Error;

use crate::place;

/// Why there is no program.
#[derive(Debug, Error)]
pub enum CcError {
    /// Nothing to compile.
    #[error("no input files: name C sources or objects, or see exos-cc --help")]
    NoInput,
    /// An option that cannot hold here.
    #[error("{0}: {1}")]
    Option(String, &'static str),
    /// An option of this driver has a value that it does not know.
    #[error("{option}={value}: it is {known}")]
    Value {
        /// The option.
        option: &'static str,
        /// What was given.
        value: String,
        /// What there is.
        known: &'static str,
    },
    /// There is no C library; why, in words, which may go to another thread.
    #[error("{0}")]
    Library(String),
    /// There is no `libexos.a`.
    #[error(transparent)]
    Exos(#[from] BuildError),
    /// The compiler, which has said why.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

impl From<LibraryError> for CcError {
    fn from(error: LibraryError) -> CcError {
        CcError::Library(error.to_string())
    }
}

/// The structure of a program's page table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PageTable {
    /// As a tree by address.
    #[default]
    Linear,
    /// As one table, hashed by address.
    Inverted,
}

impl PageTable {
    /// By its name on the command line.
    pub fn of(name: &str) -> Option<PageTable> {
        match name {
            "linear" => Some(PageTable::Linear),
            "inverted" => Some(PageTable::Inverted),
            _ => None,
        }
    }

    /// The symbol that the link defines, with the piece that it is.
    fn definition(self) -> Option<&'static str> {
        match self {
            PageTable::Linear => None,
            PageTable::Inverted => Some("-Wl,--defsym=exos_page_table=exos_page_table_inverted"),
        }
    }
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// How it is called.
    Help,
    /// Its version.
    Version,
    /// Where newlib's headers and archives are.
    PrintSysroot,
    /// A run of gcc.
    Compile(Compile),
}

/// A run of gcc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compile {
    /// Its words, but for those of this driver.
    pub words: Vec<OsString>,
    /// Whether it ends with a program.
    pub links: bool,
    /// The page table of that.
    pub page_table: PageTable,
}

/// Options that say which kind of code is made, and why it cannot be had.
const REFUSED: &[(&str, &str)] = &[
    (
        "-shared",
        "programs of ExOS are linked statically; leave it out",
    ),
    (
        "-pie",
        "programs of ExOS lie at fixed addresses; leave it out",
    ),
    (
        "-static-pie",
        "programs of ExOS lie at fixed addresses; leave it out",
    ),
    ("-m32", "programs of ExOS have 64 bits; leave it out"),
    ("-mx32", "programs of ExOS have 64 bits; leave it out"),
    (
        "-mcmodel=large",
        "programs of ExOS lie below 2 GiB; leave it out",
    ),
    (
        "-pthread",
        "processes of ExOS have one thread; leave it out",
    ),
    (
        "-lpthread",
        "processes of ExOS have one thread; leave it out",
    ),
    ("-fsanitize=address", "its library is Linux's; leave it out"),
];

/// Options after which no program is linked.
const NO_LINK: &[&str] = &["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];

/// Options whose value is the next word.
const WITH_VALUE: &[&str] = &[
    "-o",
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-x",
    "-include",
    "-isystem",
    "-idirafter",
    "-iquote",
    "-MF",
    "-MT",
    "-MQ",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-T",
    "-u",
    "-z",
    "-imacros",
];

/// Reads a command line.
pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Request, CcError> {
    let mut compile = Compile {
        links: true,
        ..Compile::default()
    };
    let mut inputs = 0;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        match &*text {
            "--help" | "-h" => return Ok(Request::Help),
            "--version" => return Ok(Request::Version),
            "--print-sysroot" | "-print-sysroot" => return Ok(Request::PrintSysroot),
            _ => {}
        }
        if let Some(name) = text.strip_prefix("--page-table=") {
            compile.page_table = PageTable::of(name).ok_or_else(|| CcError::Value {
                option: "--page-table",
                value: name.to_owned(),
                known: "linear or inverted",
            })?;
            continue;
        }
        if let Some((_, why)) = REFUSED.iter().find(|(option, _)| *option == text) {
            return Err(CcError::Option(text, why));
        }
        compile.links &= !NO_LINK.contains(&&*text);
        let takes = WITH_VALUE.contains(&&*text);
        inputs += usize::from(!text.starts_with('-') || text == "-");
        compile.words.push(word);
        if takes {
            let value = words.next().ok_or(CcError::Option(
                text,
                "a value belongs behind it; see exos-cc --help",
            ))?;
            compile.words.push(value);
        }
    }
    match inputs {
        0 => Err(CcError::NoInput),
        _ => Ok(Request::Compile(compile)),
    }
}

/// What programs are compiled with: the library is built, if need be.
#[derive(Clone, Debug)]
pub struct Tools {
    include: Vec<PathBuf>,
    lib: PathBuf,
}

/// Options before the user's.
const DEFAULTS: &[&str] = &[
    "-nostdinc",
    "-static",
    "-fno-pic",
    "-fno-pie",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-ffunction-sections",
    "-fdata-sections",
    "-U__linux__",
    "-U__linux",
    "-Ulinux",
    "-U__gnu_linux__",
    "-D__exos__=1",
];

/// Options of a link.
const LINK: &[&str] = &[
    "-nostdlib",
    "-no-pie",
    "-Wl,--gc-sections",
    "-Wl,-zmax-page-size=4096",
    "-Wl,-znoexecstack",
    "-Wl,--build-id=none",
];

impl Tools {
    /// Headers and archives, made if need be; `libexos.a` is not built by this.
    pub fn find() -> Result<Tools, CcError> {
        let sysroot = Sysroot::exos()?;
        let include = vec![
            place::sources().join("include"),
            Language::C.own_headers()?,
            sysroot.include(),
        ];
        let lib = sysroot.library()?;
        Ok(Tools { include, lib })
    }

    /// gcc, as it makes objects and programs of ExOS of its words.
    pub fn command(&self, compile: &Compile) -> ToolCommand {
        let mut gcc = Tool::Gcc.command();
        gcc.args(DEFAULTS);
        for folder in &self.include {
            gcc.arg("-isystem").arg(folder);
        }
        gcc.args(&compile.words);
        if compile.links {
            gcc.args(LINK).args(compile.page_table.definition());
            gcc.arg("-T").arg(script()).arg("-L").arg(&self.lib);
            // gcc's functions of the compiler before those that come with Rust's.
            gcc.args(["-x", "none", "-Wl,--start-group", "-lc", "-lm", "-lgcc"]);
            gcc.arg(place::library()).arg("-Wl,--end-group");
        }
        gcc
    }

    /// Compiles one program of sources, with its messages in the error.
    pub fn program(
        &self,
        sources: &[impl AsRef<OsStr>],
        flags: &[&str],
        page_table: PageTable,
        to: &Path,
    ) -> Result<(), CcError> {
        let words = flags.iter().map(OsString::from);
        let sources = sources.iter().map(|source| source.as_ref().to_owned());
        let compile = Compile {
            words: words
                .chain(sources)
                .chain(["-o".into(), to.into()])
                .collect(),
            links: true,
            page_table,
        };
        self.command(&compile).run_captured()?;
        Ok(())
    }
}

/// The script of all links.
pub fn script() -> PathBuf {
    place::sources().join("library/link/exos.ld")
}

/// How it is called.
pub const HELP: &str = "\
exos-cc: C programs for ExOS, the library operating system on Aegis

Usage: exos-cc [OPTIONS] FILES…

It is called as gcc is, and all other options go to gcc: -O2, -g, -I, -D, -W…, -MD…
  -c, -S, -E                       do not link
  -o FILE                          where to write
  -lNAME, -LFOLDER                 libraries; the C library, libm and libexos.a are always linked
  --page-table=linear|inverted     the structure of the program's page table
  --print-sysroot                  where newlib's headers and archives are
  --version, --help

Programs see newlib's headers and kernel/exos/include; `__exos__` is defined, `__linux__` is not.
POSTERN_GCC names another compiler, POSTERN_NEWLIB newlib's source.

Exit status: 0 if all went well, 1 if gcc says otherwise, 2 for wrong options or what is missing.

Examples:
  exos-cc -O2 hello.c -o hello         and then: exos-machine boot hello -f hello=hello
  exos-cc -c part.c && exos-cc part.o main.c -lm -o program";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn compile(line: &str) -> Compile {
        match read(words(line)) {
            Ok(Request::Compile(compile)) => compile,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn words_are_gccs_but_for_our_own() {
        let one = compile("-O2 --page-table=inverted a.c -o a");
        assert_eq!(one.words, words("-O2 a.c -o a"));
        assert_eq!((one.page_table, one.links), (PageTable::Inverted, true));
        assert!(!compile("-c a.c").links);
        assert!(compile("-o -c a.c").links, "-c is a file there");
        assert_eq!(read(words("a.c --help")).ok(), Some(Request::Help));
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = |line| read(words(line)).expect_err("an error").to_string();
        assert!(error("-O2").contains("--help"));
        assert!(error("a.c -shared").contains("leave it out"));
        assert!(error("a.c -o").contains("a value belongs behind it"));
        assert!(error("a.c --page-table=hashed").contains("linear or inverted"));
        // The value of an option is no file.
        assert!(error("-o a").contains("no input files"));
    }
}
