//! The functions that the compiler calls on its own (`lib/`) and the headers (`include/`).
//!
//! They are part of this crate as source and are compiled by the driver itself, at first use, into the user's cache
//! folder.

use std::path::PathBuf;

use crate::archive;
use crate::cache::{cached, hash, write};
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
    (
        "postern/packet.h",
        include_str!("../include/postern/packet.h"),
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
    include_str!("assembly/macros.rs"),
    include_str!("assembly/macros/condition.rs"),
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

/// A number that changes with the rewriter and the library.
pub fn fingerprint() -> u64 {
    hash((HEADERS, SOURCES, MAKER, FLAGS))
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
        let mut objects = Vec::new();
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
            objects.push(object);
        }
        archive::make(&folder.join("libpostern-extension.a"), &objects)
    })?;
    Ok(folder.join("libpostern-extension.a"))
}
