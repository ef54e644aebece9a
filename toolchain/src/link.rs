//! From objects to an extension file.
//!
//! Trial links find out what has to be linked and what is left when unused sections are gone
//! ([`needs`]), above all which symbols nobody defines. Those are the imports; each becomes the
//! absolute address of its gate slot. The last link places text behind the slots and adds the
//! notes. Then the verifier judges the text; a file that it refuses does not stay.

mod judge;
mod linker;
mod needs;
mod notes;
mod order;
mod rename;
mod script;
mod signatures;
mod symbols;

use std::path::{Path, PathBuf};

use postern_verifier::window::{MAX_IMPORTS, MAX_SHIFT, PAGE, text_start};

use crate::archive::LibraryError;
use crate::cxx::CxxLibrary;
use crate::features::Features;
use crate::sysroot::Sysroot;
use crate::tools::{Tool, ToolError, printable};
use linker::Linker;
use signatures::DebugInfo;
use symbols::Found;

/// How to link.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// Binary logarithm of the data stack's size in bytes; without a choice a program has 1 MiB,
    /// and a library what is usual.
    pub stack_log2: Option<u32>,
    /// Bytes of heap that the extension wishes for; 0 leaves it to the host.
    pub heap: u64,
    /// Drop sections that nothing refers to.
    pub collect: bool,
    /// Drop symbols and debug information.
    pub strip: bool,
    /// The functions that are exported, besides the runtime's own; empty for all of default
    /// visibility.
    pub exports: Vec<String>,
    /// More symbols to keep (`-u`).
    pub keep: Vec<String>,
    /// Link the C library's few functions that the compiler calls.
    pub library: Option<PathBuf>,
    /// The C library, linked where something asks for it.
    pub libc: Option<CLibrary>,
    /// The C++ library, linked where something asks for it.
    pub cxx: Option<CxxLibrary>,
    /// What becomes of functions that nobody defines, and nobody declares as the host's.
    pub undefined: Undefined,
    /// The result is no program, even if there is a main (`-shared`).
    pub shared: bool,
    /// Functions that are the host's whatever library has one of that name.
    pub imports: Vec<String>,
    /// What the code may use of its processor: what it is told, and what the image says it needs.
    pub features: Features,
    /// Where a map goes.
    pub map: Option<PathBuf>,
    /// The image is for ring 0: callees behind callers, and the verifier judges by that profile.
    pub kernel: bool,
    /// How many pages higher than it needs the code begins, at most [`MAX_SHIFT`]. Without a choice
    /// it follows from the code, so that that of two extensions seldom begins in pages for which a
    /// processor has the same place in its tables.
    pub shift: Option<u32>,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            stack_log2: None,
            heap: 0,
            collect: true,
            strip: false,
            exports: Vec::new(),
            keep: Vec::new(),
            library: None,
            libc: None,
            cxx: None,
            undefined: Undefined::default(),
            shared: false,
            imports: Vec::new(),
            features: Features::default(),
            map: None,
            kernel: false,
            shift: None,
        }
    }
}

/// The C library as the linker needs it: whether it may define a name, and where it is, which may
/// mean building it.
#[derive(Clone, Debug)]
pub struct CLibrary(Sysroot);

impl CLibrary {
    /// The C library of a sysroot.
    pub fn of(sysroot: Sysroot) -> Self {
        Self(sysroot)
    }
}

/// What becomes of functions that nobody defines, and nobody declares as the host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Undefined {
    /// As everywhere: an error in a program; in what is loaded by others they are imports.
    #[default]
    ByKind,
    /// Imports (`--allow-undefined`).
    Imported,
    /// Errors (`-Wl,--no-undefined`).
    Refused,
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
    /// Functions that nobody defines, each with the input that refers to it.
    #[error(
        "{}define them; a service of the host is declared with POSTERN_IMPORT of <postern/extension.h> or named by -fpostern-import=, and \
         --allow-undefined makes an import of each", references(.0)
    )]
    Undefined(Vec<(String, String)>),
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
    /// A library could not be built.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// Nothing is left to execute.
    #[error("the extension has no code: no function has external linkage and default visibility")]
    Empty,
    /// What the code of an image for the kernel cannot be put in order for: functions that call
    /// each other in a circle, or too deep.
    #[error("{0}")]
    Order(String),
    /// Something of a user-level extension that an image for the kernel does not have.
    #[error("{0}")]
    Kernel(&'static str),
    /// The verifier refused the text.
    #[error("{0}")]
    Refused(String),
}

/// The beginning of a name as a message can show it.
fn shown(name: &str) -> String {
    const MOST: usize = 64;
    name.escape_debug().take(MOST).collect()
}

/// A line for each name, and how many more there are.
fn references(names: &[(String, String)]) -> String {
    const MOST: usize = 20;
    let lines = names.iter().take(MOST);
    let mut text: String = lines
        .map(|(name, input)| {
            let place = if input.is_empty() {
                String::new()
            } else {
                format!("{}: ", printable(input))
            };
            format!("{place}undefined reference to `{}`\n", shown(name))
        })
        .collect();
    if let Some(more) = names.len().checked_sub(MOST).filter(|more| *more > 0) {
        text += &format!("and {more} more\n");
    }
    text
}

/// Whether the inputs are a program.
pub fn has_main(inputs: &[LinkInput]) -> Result<bool, LinkError> {
    symbols::define_main(inputs)
}

/// Links `inputs` into the extension file `output`; `scratch` is a folder for intermediate files.
pub fn link(
    inputs: &[LinkInput],
    output: &Path,
    scratch: &Path,
    options: &LinkOptions,
) -> Result<(), LinkError> {
    const PROGRAM_STACK: u32 = 20;
    // As much as the kernel gives its own code; each window of each processor has one.
    const KERNEL_STACK: u32 = 14;
    let named = |name: &str| options.exports.iter().any(|export| export == name);
    let program =
        !options.shared && (options.exports.is_empty() || named("main")) && has_main(inputs)?;
    let usual = match program && options.libc.is_some() {
        true => PROGRAM_STACK,
        false if options.kernel => KERNEL_STACK,
        false => postern_verifier::window::STACK_LOG2.1,
    };
    let stack_log2 = options.stack_log2.unwrap_or(usual);
    let keep = kept(inputs, options, program)?;
    let arranged = match options.kernel {
        true => vec![LinkInput::Object(order::arrange(
            inputs,
            &keep,
            options.collect,
            scratch,
        )?)],
        false => Vec::new(),
    };
    let linker = Linker {
        inputs: if options.kernel { &arranged } else { inputs },
        scratch,
        options,
        stack_log2,
        keep: &keep,
    };
    let (needs, mut found) = needs::find(&linker)?;
    if !found.has_text {
        return Err(LinkError::Empty);
    }
    found.choose_exports(&options.exports)?;
    if options.kernel {
        check_kernel(&found)?;
    }
    let debug = signatures::read(&linker.trial(), &found);
    let refused = match options.undefined {
        // Nobody offers what is not declared to be offered.
        Undefined::ByKind if options.kernel => true,
        Undefined::ByKind => program && options.libc.is_some(),
        Undefined::Imported => false,
        Undefined::Refused => true,
    };
    check_imports(&found, &debug)?;
    if refused {
        check_declared(&found, inputs, options)?;
    }

    let chosen = options.shift.map(|shift| shift.min(MAX_SHIFT));
    let shift = chosen.unwrap_or((found.code % (u64::from(MAX_SHIFT) + 1)) as u32);
    let source = notes::assembly(
        &found,
        &debug,
        &notes::Header {
            segment: u32::from(options.kernel),
            stack_log2,
            heap: options.heap,
            shift,
        },
        &options.features,
    );
    let notes = assemble(scratch, &source)?;
    let imports = found.undefined.len() as u32;
    let plan = script::Plan {
        text: text_start(imports) + shift * PAGE,
        data: found.has_data,
        thread_locals: found
            .thread_locals
            .or(found.wants_thread_pointer.then_some(1)),
        ..linker.plan(&needs)
    };
    linker.link(&plan, &needs, &notes, output)?;
    let judged = judge::judge(output, imports, shift, options.kernel);
    if judged.is_err() {
        let _ = std::fs::remove_file(output);
    }
    judged?;
    if options.strip {
        Tool::Strip.command().arg("--strip-all").arg(output).run()?;
    }
    Ok(())
}

/// The symbols from which everything else must be reachable.
fn kept(
    inputs: &[LinkInput],
    options: &LinkOptions,
    program: bool,
) -> Result<Vec<String>, LinkError> {
    let exports = if options.exports.is_empty() {
        symbols::exported_functions(inputs)?
    } else {
        options.exports.clone()
    };
    let mut keep = options.keep.clone();
    if options.library.is_some() {
        keep.extend(symbols::ALLOCATOR.iter().map(|name| (*name).to_owned()));
    }
    if options.libc.is_some() && program {
        keep.push(symbols::MAIN.to_owned());
    }
    keep.extend(exports);
    // They go into a script of the linker's.
    match keep.iter().find(|name| !notes::is_name(name)) {
        Some(name) => Err(LinkError::Name(name.clone())),
        None => Ok(keep),
    }
}

/// Whether the image asks for nothing that only user level has.
fn check_kernel(found: &Found) -> Result<(), LinkError> {
    if found.thread_locals.is_some() || found.wants_thread_pointer {
        return Err(LinkError::Kernel(
            "an image for the kernel has no thread-local variables: make them global",
        ));
    }
    if found.has_constructors {
        return Err(LinkError::Kernel(
            "an image for the kernel has no constructors: let a function that the host calls first do their work",
        ));
    }
    Ok(())
}

/// Whether what nobody defines can be imported.
fn check_imports(found: &Found, debug: &DebugInfo) -> Result<(), LinkError> {
    let find = |wrong: &dyn Fn(&String) -> bool| found.undefined.iter().find(|name| wrong(name));
    if let Some(name) = find(&|name| debug.variables.contains(name)) {
        return Err(LinkError::Variable(name.clone()));
    }
    if found.undefined.len() > MAX_IMPORTS as usize {
        return Err(LinkError::TooManyImports(found.undefined.len()));
    }
    match find(&|name| !notes::is_name(name)) {
        Some(name) => Err(LinkError::ImportName(name.clone())),
        None => Ok(()),
    }
}

/// Whether what nobody defines is declared as the host's.
fn check_declared(
    found: &Found,
    inputs: &[LinkInput],
    options: &LinkOptions,
) -> Result<(), LinkError> {
    let services = symbols::services(inputs)?;
    let declared = |name: &String| {
        name == "sys"
            || name.starts_with("__postern_")
            || services.contains(name)
            || options.imports.contains(name)
    };
    let names: Vec<&String> = found.undefined.iter().filter(|n| !declared(n)).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(LinkError::Undefined(symbols::places(inputs, &names)?))
}

/// Makes an object of the notes.
fn assemble(scratch: &Path, source: &str) -> Result<PathBuf, LinkError> {
    let [text, object] = ["notes.s", "notes.o"].map(|name| scratch.join(name));
    write(&text, source)?;
    Tool::Assembler
        .command()
        .args(["--64", "-o"])
        .arg(&object)
        .arg(&text)
        .run()?;
    Ok(object)
}

fn write(path: &Path, text: &str) -> Result<(), LinkError> {
    std::fs::write(path, text).map_err(|source| LinkError::File {
        path: path.to_owned(),
        source,
    })
}
