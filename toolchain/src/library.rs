//! The functions that the compiler calls on its own (`lib/`).
//!
//! They are part of this crate as source and are compiled as any source of an extension, at first
//! use, into the user's cache folder.

use std::path::{Path, PathBuf};

use crate::archive::{self, Job, LibraryError};
use crate::cache::{cached, hash, write};
use crate::compile::include::HEADERS;
use crate::compile::{CompileOptions, Language, MAKER};
use crate::headers::Wanted;

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
    ("cpuid.s", include_str!("../lib/cpuid.s")),
    ("unwind.s", include_str!("../lib/unwind.s")),
    ("unwind.c", include_str!("../lib/unwind.c")),
    ("atexit.c", include_str!("../lib/atexit.c")),
    ("start.c", include_str!("../lib/start.c")),
    ("new.cc", include_str!("../lib/new.cc")),
];

const FLAGS: &[&str] = &[
    "-O2",
    "-fno-builtin",
    "-fno-tree-loop-distribute-patterns",
    "-Wall",
    "-Wextra",
];

/// What images for the kernel have of it.
const KERNEL_SOURCES: &[(&str, &str)] = &[("kernel.c", include_str!("../lib/kernel.c"))];

/// The archive's name.
const ARCHIVE: &str = "libpostern-extension.a";

/// A number that changes with the rewriter and the library.
pub fn fingerprint() -> u64 {
    hash((HEADERS, SOURCES, KERNEL_SOURCES, MAKER, FLAGS))
}

/// The vectors of the library's copies. An extension cannot ask the processor what it has, so what
/// the user's flags allow the compiler is what the library uses, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// 16 bytes: every x86-64 processor.
    Sse2,
    /// 32 bytes: x86-64-v3.
    Avx2,
}

/// Which of the library's archives is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The vectors of its own code.
    pub vectors: Vectors,
    /// Whether long ranges go to the runtime's memory gate.
    pub memory_gate: bool,
}

/// The archive of the library: the C part, and for C++ (which needs its compiler) the operators.
pub fn archive(language: Language, kind: Kind) -> Result<PathBuf, LibraryError> {
    let key = fingerprint();
    let stem = match (language, kind.vectors) {
        (Language::Cxx, Vectors::Sse2) => "library-cxx",
        (Language::Cxx, Vectors::Avx2) => "library-cxx-avx2",
        (_, Vectors::Sse2) => "library",
        (_, Vectors::Avx2) => "library-avx2",
    };
    let gate = if kind.memory_gate { "" } else { "-no-gate" };
    let folder = cached(&format!("{stem}{gate}-{key:016x}"), |folder| {
        build(folder, language, kind)
    })?;
    Ok(folder.join(ARCHIVE))
}

/// The archive of what images for the kernel have: the memory functions, in general registers.
pub fn kernel() -> Result<PathBuf, LibraryError> {
    let key = fingerprint();
    let folder = cached(&format!("library-kernel-{key:016x}"), |folder| {
        let options = CompileOptions {
            flags: FLAGS.iter().map(Into::into).collect(),
            kernel: true,
            ..CompileOptions::default()
        };
        // All is C, without a C library.
        let headers = |_: &Job| {
            Some(Wanted {
                freestanding: true,
                ..Wanted::of(Language::C)
            })
        };
        compile(folder, KERNEL_SOURCES, &options, Language::C, headers)
    })?;
    Ok(folder.join(ARCHIVE))
}

/// Makes the archive in `folder`.
fn build(folder: &Path, language: Language, kind: Kind) -> Result<(), LibraryError> {
    let mut options = CompileOptions::default();
    options.flags.extend(FLAGS.iter().map(Into::into));
    if kind.vectors == Vectors::Avx2 {
        options.flags.push("-mavx2".into());
    }
    if !kind.memory_gate {
        options.flags.push("-DNO_MEMORY_GATE".into());
    }
    compile(folder, SOURCES, &options, language, |job| {
        job.headers_for().map(Wanted::of)
    })
}

/// Writes `sources` to `folder`, and makes the archive of those that `language` has.
fn compile(
    folder: &Path,
    sources: &[(&str, &str)],
    options: &CompileOptions,
    language: Language,
    headers: impl Fn(&Job) -> Option<Wanted>,
) -> Result<(), LibraryError> {
    write(folder, sources)?;
    let mut objects = Vec::new();
    for (name, _) in sources {
        if name.ends_with(".h") || name.ends_with(".cc") && language == Language::C {
            continue;
        }
        let job = Job {
            language: Language::C,
            archive: ARCHIVE,
            source: folder.join(name),
            object: folder.join(format!("{name}.o")),
            options: options.clone(),
            plain: false,
        };
        let headers = headers(&job).map(|wanted| wanted.find());
        job.run(headers.transpose()?.as_ref())?;
        objects.push(job.object);
    }
    archive::make(&folder.join(ARCHIVE), &objects)?;
    Ok(())
}
