//! From objects to an extension file.
//!
//! Two links: the first finds out what is left after unused sections are gone, above all which symbols nobody defines.
//! Those are the imports; each becomes the absolute address of its gate slot. The second link places text behind the
//! slots and adds the notes. Then the verifier judges the text; a file that it refuses does not stay.

mod judge;
mod notes;
mod script;
mod signatures;
mod symbols;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use postern_verifier::window::{MAX_IMPORTS, MAX_SHIFT, PAGE, text_start};

use crate::cxx::CxxLibrary;
use crate::driver::DriverError;
use crate::driver::tools::{Tool, ToolError};
use crate::sysroot::Sysroot;

/// The section of an object that names the functions which are the host's, whatever library has one of that name.
pub const SERVICES: &str = ".postern.services";

/// How to link.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// Binary logarithm of the data stack's size in bytes.
    pub stack_log2: u32,
    /// Bytes of heap that the extension wishes for; 0 leaves it to the host.
    pub heap: u64,
    /// Drop sections that nothing refers to.
    pub collect: bool,
    /// Drop symbols and debug information.
    pub strip: bool,
    /// The functions that are exported, besides the runtime's own; empty for all of default visibility.
    pub exports: Vec<String>,
    /// More symbols to keep (`-u`).
    pub keep: Vec<String>,
    /// Link the C library's few functions that the compiler calls.
    pub library: Option<PathBuf>,
    /// The C library, linked where something asks for it.
    pub libc: Option<CLibrary>,
    /// The C++ library, linked where something asks for it.
    pub cxx: Option<CxxLibrary>,
    /// Functions that are the host's whatever library has one of that name.
    pub imports: Vec<String>,
    /// Where a map goes.
    pub map: Option<PathBuf>,
    /// How many pages higher than it needs the code begins, at most [`MAX_SHIFT`]. Without a choice it follows from the code, so that that of
    /// two extensions seldom begins in pages for which a processor has the same place in its tables.
    pub shift: Option<u32>,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            stack_log2: postern_verifier::window::STACK_LOG2.1,
            heap: 0,
            collect: true,
            strip: false,
            exports: Vec::new(),
            keep: Vec::new(),
            library: None,
            libc: None,
            cxx: None,
            imports: Vec::new(),
            map: None,
            shift: None,
        }
    }
}

/// The C library as the linker needs it: whether it may define a name, and where it is, which may mean building it.
#[derive(Clone, Debug)]
pub struct CLibrary(Sysroot);

impl CLibrary {
    /// The C library of a sysroot.
    pub fn of(sysroot: Sysroot) -> Self {
        Self(sysroot)
    }
}

/// Something to link.
#[derive(Clone, Debug)]
pub enum LinkInput {
    /// An object whose functions of default visibility are exported.
    Object(PathBuf),
    /// An archive: its members are linked where something refers to them.
    Archive(PathBuf),
    /// An option for the linker that is about the inputs after it.
    Option(String),
}

/// Why no extension came out.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A tool is missing or failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The linker's output or an input is not what it should be.
    #[error("{}: {reason}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A variable that nobody defines.
    #[error(
        "undefined reference to the variable `{}`: an extension imports functions only; define it in the extension or import a function that returns its value",
        shown(.0)
    )]
    Variable(String),
    /// More imports than there are gate slots.
    #[error("{0} undefined symbols, but at most {MAX_IMPORTS} functions can be imported")]
    TooManyImports(usize),
    /// A symbol's name that the notes cannot hold.
    #[error(
        "undefined reference to `{}`: the name of an import is 1 to 255 bytes of printable ASCII, without quotation marks and \
         backslashes", shown(.0)
    )]
    ImportName(String),
    /// A function that was to be exported is not there.
    #[error(
        "`{}` cannot be exported: no function of this name with external linkage and default visibility is defined", shown(.0)
    )]
    Export(String),
    /// A name that was to be kept and that no symbol can have here.
    #[error("`{}` is no symbol's name: it is 1 to 255 bytes of printable ASCII, without quotation marks and backslashes", shown(.0))]
    Name(String),
    /// The C library could not be built.
    #[error(transparent)]
    Sysroot(Box<DriverError>),
    /// Nothing is left to execute.
    #[error("the extension has no code: no function has external linkage and default visibility")]
    Empty,
    /// The verifier refused the text.
    #[error("{0}")]
    Refused(String),
}

/// The beginning of a name as a message can show it.
fn shown(name: &str) -> String {
    const MOST: usize = 64;
    name.escape_debug().take(MOST).collect()
}

/// Whether the inputs are a program.
pub fn has_main(inputs: &[LinkInput]) -> Result<bool, LinkError> {
    Ok(symbols::exported_functions(inputs)?
        .iter()
        .any(|name| name == "main"))
}

/// Links `inputs` into the extension file `output`; `scratch` is a folder for intermediate files.
pub fn link(
    inputs: &[LinkInput],
    output: &Path,
    scratch: &Path,
    options: &LinkOptions,
) -> Result<(), LinkError> {
    let exports_wanted = if options.exports.is_empty() {
        symbols::exported_functions(inputs)?
    } else {
        options.exports.clone()
    };
    let mut keep: Vec<String> = options.keep.clone();
    if options.library.is_some() {
        keep.extend(symbols::ALLOCATOR.iter().map(|name| (*name).to_owned()));
    }
    if options.libc.is_some() && exports_wanted.iter().any(|name| name == "main") {
        keep.push(symbols::MAIN.to_owned());
    }
    keep.extend(exports_wanted);
    // They go into a script of the linker's.
    if let Some(name) = keep.iter().find(|name| !notes::is_name(name)) {
        return Err(LinkError::Name(name.clone()));
    }

    let mut linker = Linker {
        inputs,
        scratch,
        options,
        keep,
        libc: None,
        cxx: None,
        imports: Vec::new(),
    };
    let mut trial = scratch.join("trial.elf");
    let mut plan = script::Plan::trial(options.stack_log2);
    linker.run(&plan, &[], &trial, None)?;
    let mut found = symbols::read(&trial)?;
    if let Some(cxx) = &options.cxx
        && found
            .undefined
            .iter()
            .any(|name| CxxLibrary::may_define(name))
    {
        linker.cxx = Some(
            cxx.archive()
                .map_err(|error| LinkError::Sysroot(Box::new(error)))?,
        );
        // What the tables of frames refer to may ask for more of the C library.
        plan.frames = true;
        linker.run(&plan, &[], &trial, None)?;
        found = symbols::read(&trial)?;
        if !found.throws {
            plan.frames = false;
            linker.run(&plan, &[], &trial, None)?;
            found = symbols::read(&trial)?;
        }
    }
    if let Some(libc) = &options.libc {
        let sysroot = &libc.0;
        // A service of the host goes before a function of the library.
        let mut imports = options.imports.clone();
        imports.extend(symbols::services(inputs)?);
        let undefined: HashSet<&String> = found.undefined.iter().collect();
        imports.retain(|name| undefined.contains(name) && notes::is_name(name));
        let left = found.undefined.iter().map(String::as_str);
        let left: HashSet<&str> = left
            .filter(|name| !imports.iter().any(|import| import == name))
            .collect();
        if left.contains(symbols::MAIN) || sysroot.declares_one_of(&left) {
            let folder = sysroot
                .library()
                .map_err(|error| LinkError::Sysroot(Box::new(error)))?;
            linker.libc = Some(folder);
            linker.imports = imports;
            trial = scratch.join("trial1.elf");
            linker.run(&plan, &[], &trial, None)?;
            found = symbols::read(&trial)?;
            found.undefined.extend(linker.imports.iter().cloned());
            found.undefined.sort_unstable();
            found.undefined.dedup();
        }
    }
    let constructors = found.has_constructors && options.library.is_some();
    let pure = found.pure && options.library.is_some();
    if constructors || found.throws || pure {
        // The function that runs them, and what the tables of frames refer to, are linked only now.
        if constructors {
            linker.keep.push(symbols::INIT.to_owned());
        }
        if pure {
            linker.keep.push(symbols::PURE.to_owned());
        }
        plan.frames = found.throws;
        trial = scratch.join("trial2.elf");
        linker.run(&plan, &[], &trial, None)?;
        found = symbols::read(&trial)?;
        found.undefined.extend(linker.imports.iter().cloned());
        found.undefined.sort_unstable();
        found.undefined.dedup();
    }
    if !found.has_text {
        return Err(LinkError::Empty);
    }
    found.choose_exports(&options.exports)?;
    let debug = signatures::read(&trial, &found);
    if let Some(name) = found
        .undefined
        .iter()
        .find(|name| debug.variables.contains(*name))
    {
        return Err(LinkError::Variable(name.clone()));
    }
    if found.undefined.len() > MAX_IMPORTS as usize {
        return Err(LinkError::TooManyImports(found.undefined.len()));
    }
    if let Some(name) = found.undefined.iter().find(|name| !notes::is_name(name)) {
        return Err(LinkError::ImportName(name.clone()));
    }

    let notes_source = scratch.join("notes.s");
    let notes_object = scratch.join("notes.o");
    let chosen = options.shift.map(|shift| shift.min(MAX_SHIFT));
    let shift = chosen.unwrap_or((found.code % (u64::from(MAX_SHIFT) + 1)) as u32);
    let source = notes::assembly(&found, &debug, options.stack_log2, options.heap, shift);
    write(&notes_source, &source)?;
    Tool::Assembler
        .command()
        .args(["--64", "-o"])
        .arg(&notes_object)
        .arg(&notes_source)
        .run()?;
    let imports = found.undefined.len() as u32;
    plan.text = text_start(imports) + shift * PAGE;
    plan.data = found.has_data;
    plan.thread_locals = found
        .thread_locals
        .or(found.wants_thread_pointer.then_some(1));
    linker.run(&plan, &[&notes_object], output, options.map.as_deref())?;
    let judged = judge::judge(output, imports, shift);
    if judged.is_err() {
        let _ = std::fs::remove_file(output);
    }
    judged?;
    if options.strip {
        Tool::Strip.command().arg("--strip-all").arg(output).run()?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), LinkError> {
    std::fs::write(path, text).map_err(|source| LinkError::File {
        path: path.to_owned(),
        source,
    })
}

struct Linker<'a> {
    inputs: &'a [LinkInput],
    scratch: &'a Path,
    options: &'a LinkOptions,
    keep: Vec<String>,
    /// The folder of the C library, if it is linked.
    libc: Option<PathBuf>,
    /// The archive of the C++ library, if it is linked.
    cxx: Option<PathBuf>,
    /// The host's functions that no archive is to be searched for.
    imports: Vec<String>,
}

impl Linker<'_> {
    fn run(
        &self,
        plan: &script::Plan,
        first: &[&Path],
        output: &Path,
        map: Option<&Path>,
    ) -> Result<(), LinkError> {
        let script = self.scratch.join("link.ld");
        write(&script, &plan.script(&self.keep))?;
        let mut command = Tool::Linker.command();
        command
            .args([
                "-m",
                "elf_x86_64",
                "-nostdlib",
                "--build-id=none",
                "-e",
                "0",
                "-z",
                "noexecstack",
                "-z",
                "max-page-size=4096",
            ])
            .args([
                "-z",
                "norelro",
                "--eh-frame-hdr",
                "--no-warn-rwx-segments",
                "--no-warn-mismatch",
                "-T",
            ])
            .arg(&script);
        if self.options.collect {
            command.arg("--gc-sections");
        }
        if first.is_empty() {
            command.arg("--unresolved-symbols=ignore-all");
            for name in &self.imports {
                command.arg(format!("--defsym={name}=0"));
            }
        }
        if let Some(map) = map {
            command.arg("-Map").arg(map);
        }
        command.arg("-o").arg(output).args(first);
        command.arg("--start-group");
        for input in self.inputs {
            match input {
                LinkInput::Object(path) | LinkInput::Archive(path) => command.arg(path),
                LinkInput::Option(option) => command.arg(option),
            };
        }
        command.arg("--end-group");
        // The C++ library goes before ours, which has a simple `operator new`, and so does the C library, which can run what is
        // left for a program's exit.
        command.arg("--start-group");
        command.args(&self.cxx);
        if let Some(folder) = &self.libc {
            command
                .arg(folder.join("libc.a"))
                .arg(folder.join("libm.a"));
        }
        if let Some(library) = &self.options.library {
            command.arg(library);
        }
        command.arg("--end-group");
        command.run()?;
        Ok(())
    }
}
