//! The command line: gcc's, read only as far as the driver needs it. What it does not know is
//! passed on to gcc.

mod known;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use postern_image::input;
use postern_verifier::window::MAX_SHIFT;

use crate::compile::{CompileOptions, Source};
use crate::link::{LinkOptions, Undefined};
use crate::rewrite::Adjustment;
use known::{IGNORED, REFUSED, SYSTEM_LIBRARIES, WITH_VALUE};

/// Where the driver stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// `-E`, `-M`: gcc's own work.
    Preprocess,
    /// `-S`
    Assembly,
    /// `-c`
    Object,
    /// An extension.
    Link,
    /// A question that gcc answers (`--version`, `-dumpmachine`).
    Ask,
}

/// An input on the command line, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// What is compiled, in the language of `-x` that was in force.
    Source(Source),
    /// An object.
    Object(PathBuf),
    /// An archive.
    Archive(PathBuf),
    /// `-lname`
    Library(String),
    /// An option for the linker.
    Linker(String),
}

/// A command line that was understood.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Where to stop.
    pub stage: Stage,
    /// `-o`
    pub output: Option<PathBuf>,
    /// What is compiled and linked.
    pub inputs: Vec<Input>,
    /// Compiling, with the options for gcc.
    pub compile: CompileOptions,
    /// `-L`
    pub library_paths: Vec<PathBuf>,
    /// Linking.
    pub link: LinkOptions,
    /// Link our library: what the compiler calls on its own.
    pub library: bool,
    /// The library's functions give long ranges to the runtime's memory gate.
    pub memory_gate: bool,
    /// Link the C library where something asks for it.
    pub libc: bool,
    /// `-ffreestanding`: there may be no C library at all.
    pub freestanding: bool,
    /// `-nostdinc`: only the user's own folders of headers.
    pub no_headers: bool,
    /// `-nostdinc++`: without the C++ library's headers.
    pub no_cxx_headers: bool,
    /// `-lstdc++`: link the C++ library where something asks for it.
    pub cxx: bool,
    /// Build an ordinary shared object.
    pub native: bool,
    /// Print the commands (`-v`).
    pub verbose: bool,
}

/// Reads a command line.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse(arguments: &[OsString]) -> Result<Invocation, String> {
    let mut left = input::MAX_TEXT;
    let arguments = expand(arguments, 0, &mut left)?;
    let mut invocation = Invocation {
        stage: Stage::Link,
        output: None,
        inputs: Vec::new(),
        compile: CompileOptions::default(),
        library_paths: Vec::new(),
        link: LinkOptions::default(),
        library: true,
        memory_gate: true,
        libc: true,
        freestanding: false,
        no_headers: false,
        no_cxx_headers: false,
        cxx: false,
        native: arguments.iter().any(|argument| argument == "--native"),
        verbose: false,
    };
    let mut language: Option<OsString> = None;
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy().into_owned();
        let mut value = |what: &str| {
            rest.next()
                .ok_or_else(|| format!("a value is missing after `{what}`"))
        };
        if text == "-" || !text.starts_with('-') {
            let input = input(Path::new(&argument), language.as_ref());
            invocation.inputs.push(input);
            continue;
        }
        if invocation.option(&text, &argument, &mut value, &mut language)? {
            continue;
        }
        if WITH_VALUE.contains(&text.as_str()) {
            let value = value(&text)?;
            invocation.note_dependency_option(&text);
            invocation.compile.flags.extend([argument, value]);
            continue;
        }
        if !invocation.native {
            if IGNORED.contains(&text.as_str())
                || text.starts_with("-flto")
                || text.starts_with("-fuse-ld")
            {
                continue;
            }
            if let Some((_, why)) = REFUSED.iter().find(|(start, _)| text.starts_with(start)) {
                return Err(format!(
                    "the option `{text}` cannot be used for an extension: {why}"
                ));
            }
            if text == "-mcmodel=small" {
                continue;
            }
        }
        invocation.note_dependency_option(&text);
        invocation.compile.flags.push(argument);
    }
    Ok(invocation)
}

impl Invocation {
    fn note_dependency_option(&mut self, option: &str) {
        self.compile.dependencies |= matches!(option, "-MD" | "-MMD");
    }

    /// Options that the driver itself understands; false if `text` is none.
    fn option(
        &mut self,
        text: &str,
        argument: &OsStr,
        value: &mut dyn FnMut(&str) -> Result<OsString, String>,
        language: &mut Option<OsString>,
    ) -> Result<bool, String> {
        let tail = |start: &str| OsString::from_vec(argument.as_bytes()[start.len()..].to_vec());
        match text {
            "-c" => self.stage = Stage::Object,
            "-S" => self.stage = Stage::Assembly,
            "-E" | "-M" | "-MM" => {
                self.stage = Stage::Preprocess;
                self.compile.flags.push(argument.to_owned());
            }
            "--version" | "-dumpmachine" | "-dumpversion" | "-dumpfullversion" | "-dumpspecs"
            | "--help" => {
                self.stage = Stage::Ask;
                self.compile.flags.push(argument.to_owned());
            }
            "-o" => self.output = Some(value("-o")?.into()),
            "-x" => *language = Some(value("-x")?).filter(|language| language != "none"),
            "-L" => self.library_paths.push(value("-L")?.into()),
            "-l" => self.library(&value("-l")?.to_string_lossy()),
            "-u" => self
                .link
                .keep
                .push(value("-u")?.to_string_lossy().into_owned()),
            "-T" | "-z" | "-Xlinker" | "-e" | "-Xassembler" if self.native => {
                let value = value(text)?;
                self.compile.flags.extend([argument.to_owned(), value]);
            }
            "-z" => {
                let keyword = value("-z")?;
                self.linker_option(&format!("-z={}", keyword.to_string_lossy()))?;
            }
            "--allow-undefined" if !self.native => self.link.undefined = Undefined::Imported,
            "-e" | "-T" | "-Xassembler" => {
                return Err(format!(
                    "the option `{text}` cannot be used for an extension: the layout of its window is fixed"
                ));
            }
            "-Xlinker" => {
                let option = value("-Xlinker")?;
                self.linker_option(&option.to_string_lossy())?;
            }
            "-s" => self.link.strip = true,
            "-v" => {
                self.verbose = true;
                self.compile.flags.push(argument.to_owned());
            }
            "-g0" => self.compile.debug = false,
            "-nostdlib" | "-nodefaultlibs" => {
                self.library = false;
                self.libc = false;
            }
            "-nolibc" => self.libc = false,
            "-ffreestanding" | "-fno-hosted" => {
                self.libc = false;
                self.freestanding = true;
                self.compile.flags.push(argument.to_owned());
            }
            "-nostdinc++" => self.no_cxx_headers = true,
            "-fpostern-memory-gate" => self.memory_gate = true,
            "-fpostern-no-memory-gate" => self.memory_gate = false,
            "-nostdinc" => {
                self.no_headers = true;
                self.compile.flags.push(argument.to_owned());
            }
            "-shared" if !self.native => self.link.shared = true,
            "--native" => {}
            "--kernel" if !self.native => {
                (self.compile.kernel, self.link.kernel) = (true, true);
                (self.libc, self.freestanding) = (false, true);
            }
            "-save-temps" | "--save-temps" | "-fpostern-save-temps" => {
                self.compile.save_temps = true
            }
            "-fpostern-rewrite=callee" => self.compile.adjustment = Adjustment::Callee,
            "-fpostern-rewrite=fixed" => self.compile.adjustment = Adjustment::Fixed,
            _ if text.starts_with("-fpostern-stack=") => {
                self.link.stack_log2 = Some(stack_log2(&text[16..])?)
            }
            _ if text.starts_with("-fpostern-heap=") => {
                self.link.heap = size(&text[15..]).ok_or_else(|| {
                    format!("`{text}`: the size is a number of bytes, or one with K, M or G")
                })?;
            }
            _ if text.starts_with("-fpostern-shift=") => {
                let pages = text[16..].parse().ok().filter(|pages| *pages <= MAX_SHIFT);
                self.link.shift = Some(pages.ok_or_else(|| {
                    format!("`{text}`: code can begin 0 to {MAX_SHIFT} pages higher")
                })?);
            }
            _ if text.starts_with("-fpostern-export=") => {
                let names = text[17..].split(',').filter(|name| !name.is_empty());
                self.link.exports.extend(names.map(str::to_owned));
            }
            _ if text.starts_with("-fpostern-import=") => {
                let names = text[17..].split(',').filter(|name| !name.is_empty());
                self.link.imports.extend(names.map(str::to_owned));
            }
            _ if text.starts_with("-fpostern-wasm-memory=") => {
                let bytes = size(&text[22..]).ok_or_else(|| {
                    format!("`{text}`: the size is a number of bytes, or one with K, M or G")
                })?;
                self.compile.wasm_memory = Some(bytes);
            }
            _ if text.starts_with("-fpostern-") => {
                return Err(format!(
                    "unknown option `{text}`; there are -fpostern-stack=SIZE, -fpostern-heap=SIZE, -fpostern-shift=PAGES, \
                     -fpostern-export=NAME,…, -fpostern-import=NAME,…, -fpostern-wasm-memory=SIZE, \
                     -fpostern-rewrite=callee|fixed, -fpostern-no-memory-gate and -fpostern-save-temps"
                ));
            }
            _ if text.starts_with("-Wl,") && !self.native => {
                let options: Vec<&str> = text[4..].split(',').collect();
                let mut k = 0;
                while k < options.len() {
                    let takes_value = matches!(
                        options[k],
                        "-u" | "-Map" | "-soname" | "-h" | "-rpath" | "-z" | "-rpath-link" | "-O"
                    );
                    let joined = match options.get(k + 1).filter(|_| takes_value) {
                        Some(value) => {
                            k += 1;
                            format!("{}={value}", options[k - 1])
                        }
                        None => options[k].to_owned(),
                    };
                    self.linker_option(&joined)?;
                    k += 1;
                }
            }
            // What is so in any case.
            "-Wa,--noexecstack" | "-Wa,--64" if !self.native => (),
            _ if text.starts_with("-Wa,") && !self.native => {
                return Err(format!(
                    "`{text}`: the assembler's options are chosen by the rewriter"
                ));
            }
            _ if text.starts_with("-print-") => {
                self.stage = Stage::Ask;
                self.compile.flags.push(argument.to_owned());
            }
            _ if text.starts_with("-o") => self.output = Some(tail("-o").into()),
            _ if text.starts_with("-x") => {
                *language = Some(tail("-x")).filter(|language| language != "none")
            }
            _ if text.starts_with("-L") => self.library_paths.push(tail("-L").into()),
            _ if text.starts_with("-l") => self.library(&text[2..]),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn library(&mut self, name: &str) {
        self.cxx |= name == "stdc++";
        if self.native || !SYSTEM_LIBRARIES.contains(&name) {
            self.inputs.push(Input::Library(name.to_owned()));
        }
    }

    /// An option of `-Wl,`.
    fn linker_option(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name
            .strip_prefix("--")
            .map_or(name.to_owned(), |n| format!("-{n}"))
            .as_str()
        {
            "-gc-sections" => self.link.collect = true,
            "-no-gc-sections" => self.link.collect = false,
            "-s" | "-strip-all" | "-S" | "-strip-debug" => self.link.strip = true,
            "-u" | "-undefined" if !value.is_empty() => self.link.keep.push(value.to_owned()),
            // How build systems ask which linker there is.
            "-version" | "-v" => {
                self.stage = Stage::Ask;
                self.compile.flags.push(format!("-Wl,{option}").into());
            }
            "-no-undefined" => self.link.undefined = Undefined::Refused,
            "-allow-undefined" => self.link.undefined = Undefined::Imported,
            "-z" if value == "defs" => self.link.undefined = Undefined::Refused,
            "-z" if value == "undefs" => self.link.undefined = Undefined::Imported,
            "-unresolved-symbols" => {
                self.link.undefined = match value {
                    "report-all" => Undefined::Refused,
                    _ => Undefined::Imported,
                };
            }
            "-Map" => self.link.map = Some(value.into()),
            "-whole-archive" | "-no-whole-archive" | "-start-group" | "-end-group" => {
                if name.contains("whole") {
                    self.inputs.push(Input::Linker(option.to_owned()));
                }
            }
            "-soname"
            | "-h"
            | "-rpath"
            | "-rpath-link"
            | "-z"
            | "-O"
            | "-O1"
            | "-as-needed"
            | "-no-as-needed"
            | "-export-dynamic"
            | "-E"
            | "-Bsymbolic"
            | "-Bsymbolic-functions"
            | "-hash-style"
            | "-build-id"
            | "-Bstatic"
            | "-Bdynamic"
            | "-allow-shlib-undefined"
            | "-warn-common"
            | "-relax"
            | "-sort-common" => {}
            _ => {
                return Err(format!(
                    "the linker's option `{option}` cannot be used for an extension"
                ));
            }
        }
        Ok(())
    }
}

fn input(path: &Path, language: Option<&OsString>) -> Input {
    let owned = path.to_owned();
    match language
        .map(|language| language.to_string_lossy().into_owned())
        .as_deref()
    {
        Some("assembler") => return Input::Source(Source::Assembly(owned)),
        Some("ir") => return Input::Source(Source::Bitcode(owned)),
        Some("assembler-with-cpp") => return Input::Source(Source::PreprocessedAssembly(owned)),
        Some(_) => return Input::Source(Source::Text(owned, language.cloned())),
        None => {}
    }
    match path.extension().and_then(OsStr::to_str) {
        Some("s") => Input::Source(Source::Assembly(owned)),
        Some("S" | "sx") => Input::Source(Source::PreprocessedAssembly(owned)),
        Some("o" | "pto" | "lo" | "obj") => Input::Object(owned),
        Some("a") => Input::Archive(owned),
        Some("bc" | "ll") => Input::Source(Source::Bitcode(owned)),
        Some("wasm" | "wat") => Input::Source(Source::Wasm(owned)),
        Some(
            "c" | "h" | "i" | "cc" | "cp" | "cxx" | "cpp" | "CPP" | "c++" | "C" | "ii" | "hh"
            | "hpp",
        ) => Input::Source(Source::Text(owned, None)),
        _ if path.as_os_str() == "-" => Input::Source(Source::Text(owned, None)),
        // As gcc does: what has no known ending is the linker's.
        _ => Input::Object(owned),
    }
}

/// A size in bytes: `65536`, `64K`, `1M`, `2G`.
fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn stack_log2(text: &str) -> Result<u32, String> {
    let (low, _, high) = postern_verifier::window::STACK_LOG2;
    let bytes = size(text).filter(|bytes| *bytes > 0 && *bytes <= 1 << high);
    let log2 = bytes.map(|bytes| bytes.next_power_of_two().trailing_zeros().max(low));
    log2.ok_or_else(|| {
        format!(
            "`-fpostern-stack={text}`: the data stack has {} bytes to {} MiB",
            1 << low,
            (1 << high) >> 20
        )
    })
}

/// Replaces `@file` by the arguments in the file, which are separated by white space and may be
/// quoted. `left` is how many bytes of such files are still read: they may name each other many
/// times.
fn expand(arguments: &[OsString], depth: u32, left: &mut u64) -> Result<Vec<OsString>, String> {
    let mut out = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let Some(name) = argument.as_bytes().strip_prefix(b"@") else {
            out.push(argument.clone());
            continue;
        };
        let path = Path::new(OsStr::from_bytes(name));
        if !path.exists() {
            out.push(argument.clone());
            continue;
        }
        let text = input::read_text(path, *left)
            .map_err(|error| format!("@{}: {error}", path.display()))?;
        if depth > 16 {
            return Err(format!("@{} includes itself", path.display()));
        }
        *left -= text.len() as u64;
        out.extend(expand(&words(&text), depth + 1, left)?);
    }
    Ok(out)
}

fn words(text: &str) -> Vec<OsString> {
    let (mut out, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (_, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(q), c) if q == c => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => out.extend(word.take().map(OsString::from)),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    out.extend(word.map(OsString::from));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Invocation, String> {
        parse(&words(line))
    }

    #[test]
    fn usual_lines() {
        let i = read("-c -O2 -Iinc -DX='a b' -o out.o a.c").unwrap();
        assert_eq!((i.stage, i.output), (Stage::Object, Some("out.o".into())));
        assert_eq!(i.compile.flags, ["-O2", "-Iinc", "-DX=a b"]);
        assert_eq!(i.inputs, [Input::Source(Source::Text("a.c".into(), None))]);
        let i =
            read("-shared -fPIC a.o libz.a -Lx -ly -lm -Wl,-Map,m.txt,-u,f -ox.px -x c b").unwrap();
        assert_eq!(i.inputs.len(), 4);
        assert_eq!(i.link.map, Some("m.txt".into()));
        assert_eq!(i.link.keep, ["f"]);
        assert!(i.compile.flags.is_empty());
    }

    #[test]
    fn sizes() {
        assert_eq!(
            read("-fpostern-stack=1M").unwrap().link.stack_log2,
            Some(20)
        );
        assert_eq!(
            read("-fpostern-stack=100000").unwrap().link.stack_log2,
            Some(17)
        );
        assert_eq!(read("-fpostern-stack=1").unwrap().link.stack_log2, Some(12));
        assert_eq!(read("-fpostern-heap=3M").unwrap().link.heap, 3 << 20);
        for line in [
            "-fpostern-stack=1G",
            "-fpostern-stack=x",
            "-fpostern-heap=",
            "-fpostern-foo",
            "-o",
            "-fsanitize=address",
            "-Wl,--wrap=x",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
