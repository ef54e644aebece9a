//! The functions that the compiler calls on its own (`lib/`) and the headers (`include/`).
//!
//! They are part of this crate as source and are compiled by the driver itself, at first use, into the user's cache
//! folder. The folder's name is a hash of everything that goes into the result, so that it is never stale; it is
//! filled under another name and renamed, so that several drivers at once do not disturb each other.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::driver::tools::Tool;
use crate::driver::{DriverError, Language, run};

const HEADERS: &[(&str, &str)] = &[
    (
        "postern/extension.h",
        include_str!("../include/postern/extension.h"),
    ),
    (
        "postern/policy.h",
        include_str!("../include/postern/policy.h"),
    ),
];

const SOURCES: &[(&str, &str)] = &[
    ("vector.h", include_str!("../lib/vector.h")),
    ("memory.c", include_str!("../lib/memory.c")),
    ("string.c", include_str!("../lib/string.c")),
    ("malloc.c", include_str!("../lib/malloc.c")),
    ("compiler.c", include_str!("../lib/compiler.c")),
    ("complex.c", include_str!("../lib/complex.c")),
    ("quad.c", include_str!("../lib/quad.c")),
    ("abort.c", include_str!("../lib/abort.c")),
    ("setjmp.s", include_str!("../lib/setjmp.s")),
    ("unwind.s", include_str!("../lib/unwind.s")),
    ("unwind.c", include_str!("../lib/unwind.c")),
    ("atexit.c", include_str!("../lib/atexit.c")),
    ("start.c", include_str!("../lib/start.c")),
    ("new.cc", include_str!("../lib/new.cc")),
];

/// What turns the sources into the archive.
pub(crate) const MAKER: &[&str] = &[
    include_str!("assembly.rs"),
    include_str!("assembly/expression.rs"),
    include_str!("assembly/parse.rs"),
    include_str!("assembly/register.rs"),
    include_str!("assembly/scan.rs"),
    include_str!("rewrite.rs"),
    include_str!("rewrite/directive.rs"),
    include_str!("rewrite/emit.rs"),
    include_str!("rewrite/emit/branch.rs"),
    include_str!("rewrite/emit/frame.rs"),
    include_str!("rewrite/emit/plain.rs"),
    include_str!("rewrite/examine.rs"),
    include_str!("rewrite/flags.rs"),
    include_str!("rewrite/flow.rs"),
    include_str!("rewrite/instruction_set.rs"),
    include_str!("rewrite/operand.rs"),
    include_str!("rewrite/program.rs"),
    include_str!("rewrite/stack.rs"),
    include_str!("rewrite/strings.rs"),
    include_str!("rewrite/thread_local.rs"),
    include_str!("driver/flags.rs"),
];

const FLAGS: &[&str] = &[
    "-c",
    "-O2",
    "-fno-builtin",
    "-fno-tree-loop-distribute-patterns",
    "-Wall",
    "-Wextra",
];

/// The folder of everything that is made once and kept.
pub fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .filter(|path| path.is_absolute())
        .unwrap_or_else(std::env::temp_dir);
    base.join("postern")
}

/// Fills the folder `name` of the cache with `fill`, unless it is there.
pub(crate) fn cached(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<(), DriverError>,
) -> Result<PathBuf, DriverError> {
    let folder = cache().join(name);
    if folder.exists() {
        return Ok(folder);
    }
    let error = |path: &Path| {
        let path = path.to_owned();
        |source| DriverError::File { path, source }
    };
    let unfinished = cache().join(format!(
        "{name}.{}.{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let _ = std::fs::remove_dir_all(&unfinished);
    std::fs::create_dir_all(&unfinished).map_err(error(&unfinished))?;
    let result = fill(&unfinished);
    if result.is_ok() && std::fs::rename(&unfinished, &folder).is_err() && !folder.exists() {
        return Err(error(&folder)(std::io::Error::other(
            "the cache folder could not be filled",
        )));
    }
    let _ = std::fs::remove_dir_all(&unfinished);
    result.map(|()| folder)
}

/// A number for a name in the cache.
pub fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// A number that changes with the rewriter and the library.
pub fn fingerprint() -> u64 {
    hash((HEADERS, SOURCES, MAKER, FLAGS))
}

pub(crate) fn write(folder: &Path, files: &[(&str, &str)]) -> Result<(), DriverError> {
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|source| DriverError::File {
                path: path.clone(),
                source,
            })?;
    }
    Ok(())
}

/// The folder to give to the compiler with `-isystem`.
pub fn include_path() -> Result<PathBuf, DriverError> {
    cached(&format!("include-{:016x}", hash(HEADERS)), |folder| {
        write(folder, HEADERS)
    })
}

/// The vectors of the library's copies. An extension cannot ask the processor what it has, so what the user's flags allow the
/// compiler is what the library uses, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// 16 bytes: every x86-64 processor.
    Sse2,
    /// 32 bytes: x86-64-v3.
    Avx2,
}

/// The archive of the library: the C part, and for C++ (which needs its compiler) the operators.
pub fn archive(language: Language, vectors: Vectors) -> Result<PathBuf, DriverError> {
    let key = fingerprint();
    let stem = match (language, vectors) {
        (Language::Cxx, Vectors::Sse2) => "library-cxx",
        (Language::Cxx, Vectors::Avx2) => "library-cxx-avx2",
        (_, Vectors::Sse2) => "library",
        (_, Vectors::Avx2) => "library-avx2",
    };
    let folder = cached(&format!("{stem}-{key:016x}"), |folder| {
        write(folder, SOURCES)?;
        let mut archiver = Tool::Archiver.command();
        archiver
            .arg("rcsD")
            .arg(folder.join("libpostern-extension.a"));
        for (name, _) in SOURCES {
            if name.ends_with(".h") || name.ends_with(".cc") && language == Language::C {
                continue;
            }
            let source = folder.join(name);
            let object = folder.join(format!("{name}.o"));
            let mut arguments: Vec<std::ffi::OsString> = FLAGS.iter().map(Into::into).collect();
            if vectors == Vectors::Avx2 {
                arguments.push("-mavx2".into());
            }
            arguments.extend(["-o".into(), object.clone().into(), source.into()]);
            run(Language::C, &arguments)?;
            archiver.arg(object);
        }
        archiver.run()?;
        Ok(())
    })?;
    Ok(folder.join("libpostern-extension.a"))
}
