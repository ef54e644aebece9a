//! `postern cc` and `postern c++`: the compilers, whose arguments are gcc's and none of ours.

use std::ffi::OsString;
use std::process::ExitCode;

use postern_toolchain::Language;

/// What `--help` alone says; any other argument is gcc's.
pub const HELP: &str = "\
All options of gcc (or g++) are taken, and these besides:
  -fpostern-stack=SIZE              size of the data stack (4K to 64M; default 256K)
  -fpostern-heap=SIZE               heap that the extension would like to have
  -fpostern-shift=PAGES             pages that the code begins higher than it needs (0 to 127; default by its bytes)
  -fpostern-export=NAME,…           export only these functions
  -fpostern-import=NAME,…           functions that are the host's, though the C library has one of that name
  -fpostern-wasm-memory=SIZE        most that a WebAssembly module's memory may take (default 128M)
  -fpostern-rewrite=callee|fixed    who adjusts the data stack (callee is faster, and the default)
  -fpostern-no-memory-gate          the memory functions do long ranges themselves, not by trusted code
  -fpostern-save-temps              keep the assembly before and after rewriting
  --kernel                          make an image for kernels: the Linux module's, or a handler of Aegis
  --native                          compile with plain gcc instead, to compare and to debug

Code that cannot be confined is an error with file and line. The linked extension is judged by the verifier at once.
`gcc --help` shows gcc's own options.

Exit status: that of gcc, or 1 if the code cannot be confined.

Examples:
  postern cc -O2 -o calc.px calc.c
  postern c++ -O2 -c shape.cc && postern c++ -o shape.px shape.o
  postern cc -o module.px module.wasm
  CC='postern cc' ./configure && make";

/// The language that a command compiles, if it is one of the compilers.
pub fn language(command: &OsString) -> Option<Language> {
    match command.to_str() {
        Some("cc") => Some(Language::C),
        Some("c++") => Some(Language::Cxx),
        _ => None,
    }
}

/// Hands all arguments over untouched.
pub fn run(language: Language, arguments: &[OsString]) -> ExitCode {
    postern_toolchain::main(language, arguments)
}
