//! The programs of `postern bench programs`, with what each needs as a module: Debian's C library
//! for WebAssembly and its likes.

use crate::module::{Program, compile, translate};
use postern_bench::programs::{self as works, PROGRAMS};
use postern_figures::kernels::SOURCES;
use std::ffi::OsString;
use std::path::Path;

/// LZ4 takes its matches by hashes of a machine word, so that a module, whose word has 32 bits,
/// compresses to another stream (its length and its bytes differ; both decompress to the same).
/// What a module must compute is therefore computed by a native build with such words, and not by
/// the one with 64: as strict a comparison as for all others, whose results do not depend on the
/// word.
const WORDS_OF_32_BITS: &str = "#include <limits.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n\
    #undef __x86_64__\n#define size_t unsigned\n";

/// Lua ends a script's error by longjmp, which modules do not have; the script has no error.
const NO_ERRORS: [&str; 5] = [
    "-DLUAI_THROW(L,c)=__builtin_trap()",
    "-DLUAI_TRY(L,c,a)={a}",
    "-Dluai_jmpbuf=int",
    "-D_WASI_EMULATED_SIGNAL",
    "-D_WASI_EMULATED_PROCESS_CLOCKS",
];

/// Lua's libraries for files, processes and loading of code. The script opens none of them.
const OUTSIDE: [&str; 4] = ["liolib.c", "loslib.c", "loadlib.c", "linit.c"];

/// Options for a module with Debian's C library.
const WASI: [&str; 3] = [
    "--target=wasm32-wasi",
    "-mexec-model=reactor",
    "-Wl,-z,stack-size=1048576",
];

/// Whether a program is among those that are named; all are if none is.
pub fn is_wanted(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|wanted| wanted == name)
}

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

/// The programs, those that are found in the cache and those that have to be built.
pub fn programs(directory: &Path, only: &[String]) -> Result<Vec<Program>, String> {
    let build = |(name, files): &(&'static str, &[(&str, &str)])| {
        let (project, built) = works::build(name, files, &[])?;
        let units = project.units(&mut |_| ()).map_err(|e| e.to_string())?;
        let file = |name: &str, text: &str| {
            let path = directory.join(name);
            let written =
                std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, text));
            written.map(|()| path).map_err(|e| e.to_string())
        };
        let mut common = units.first().map_or(Vec::new(), |unit| unit.flags.clone());
        let mut module = words(WASI);
        if *name == "lua" {
            file("setjmp.h", "typedef int jmp_buf[1];\n")?;
            module.extend(words(NO_ERRORS));
            module.extend([
                "-isystem".into(),
                directory.into(),
                "-lwasi-emulated-process-clocks".into(),
            ]);
        }
        let sources = units.iter().map(|unit| &unit.path);
        let outside = |path: &Path| OUTSIDE.iter().any(|name| path.ends_with(name));
        common.extend(sources.filter(|path| !outside(path)).map(Into::into));
        let mut reference = None;
        if *name == "lz4" {
            let header = file("words.h", WORDS_OF_32_BITS)?;
            let path = directory.join("lz4.reference.so");
            let shared = [words(["-shared", "-fPIC", "-include"]), vec![header.into()]].concat();
            compile("gcc", &path, &[shared, common.clone()].concat())?;
            reference = Some(path);
        }
        Ok(Program {
            name,
            function: "work",
            gcc: built.native.ok_or("there is no native build")?,
            extension: built.extension,
            translated: translate(directory, name, "work", &common, &module)?,
            reference,
        })
    };
    let wanted = PROGRAMS.iter().filter(|(name, _)| is_wanted(name, only));
    wanted.map(build).collect()
}

/// The kernels, which need no library. `unsigned long` has 64 bits in modules, too: the word `long`
/// is compiled as `long long`.
pub fn kernels(
    directory: &Path,
    only: &[String],
) -> Result<Vec<(Program, postern_figures::kernels::Kernel)>, String> {
    let mut programs = Vec::new();
    for kernel in postern_figures::kernels::build(directory)? {
        let (name, function) = (kernel.name, kernel.function);
        if !is_wanted(name, only) {
            continue;
        }
        let source = SOURCES.iter().find(|(source, ..)| *source == name);
        let (.., source) = source.ok_or("a kernel without source")?;
        let file = directory.join(format!("{name}.clang.c"));
        std::fs::write(&file, source).map_err(|e| e.to_string())?;
        let module = words([
            "--target=wasm32",
            "-nostdlib",
            "-Wl,--no-entry",
            "-ffreestanding",
            "-fno-builtin",
            "-Dlong=long long",
        ]);
        let first = kernel.builds.first().ok_or("a kernel without build")?;
        let program = Program {
            name,
            function,
            gcc: first.native.clone(),
            extension: first.extension.clone(),
            translated: translate(directory, name, function, &[file.into()], &module)?,
            reference: None,
        };
        programs.push((program, kernel));
    }
    Ok(programs)
}
