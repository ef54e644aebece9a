//! Options of gcc that the driver must know: which have a value, which make no difference, which
//! cannot work. Whoever is in doubt adds none: the rest is passed on.

/// Options that take their value from the next argument.
pub(super) const WITH_VALUE: &[&str] = &[
    "-I",
    "-D",
    "-U",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-isysroot",
    "-MF",
    "-MT",
    "-MQ",
    "--param",
    "-aux-info",
    "-A",
    "-Xpreprocessor",
];

/// Options that make no difference to an extension, which is neither position-independent nor
/// loaded by ld.so.
pub(super) const IGNORED: &[&str] = &[
    "-static",
    "-fPIC",
    "-fpic",
    "-fPIE",
    "-fpie",
    "-pie",
    "-no-pie",
    "-static-pie",
    "-rdynamic",
    "-pthread",
    "-fno-pic",
    "-fno-PIC",
    "-fno-pie",
    "-fno-PIE",
    "-fplt",
    "-fno-plt",
    "-static-libgcc",
    "-static-libstdc++",
    "-shared-libgcc",
    "-nostartfiles",
    "-pipe",
];

/// Beginnings of options that ask for code that cannot run in an extension, and why.
pub(super) const REFUSED: &[(&str, &str)] = &[
    (
        "-fsanitize",
        "sanitizers need a run-time library that an extension does not have; build with --native to use one",
    ),
    (
        "-fprofile-generate",
        "profiling writes files; profile a --native build and use -fprofile-use",
    ),
    (
        "-fprofile-arcs",
        "profiling writes files; profile a --native build and use -fprofile-use",
    ),
    (
        "--coverage",
        "coverage writes files; measure a --native build",
    ),
    (
        "-ftest-coverage",
        "coverage writes files; measure a --native build",
    ),
    (
        "-pg",
        "profiling needs a run-time library; use perf on the host",
    ),
    (
        "-fnon-call-exceptions",
        "an exception can leave a call only, not an instruction that faults: the host sees the fault",
    ),
    ("-fsplit-stack", "the data stack has one piece"),
    (
        "-fopenmp",
        "OpenMP needs a run-time library that an extension does not have",
    ),
    ("-masm=intel", "only AT&T syntax is understood"),
    ("-m32", "an extension is 64-bit code"),
    ("-mx32", "an extension is 64-bit code"),
    ("-m16", "an extension is 64-bit code"),
    (
        "-mavx512",
        "AVX-512 cannot be confined yet; use -march=x86-64-v3",
    ),
    (
        "-march=native",
        "it may choose AVX-512 and ties the extension to this machine; use -march=x86-64-v3",
    ),
    (
        "-march=x86-64-v4",
        "AVX-512 cannot be confined yet; use -march=x86-64-v3",
    ),
    ("-mcmodel=", "extensions use the small code model"),
];

/// Libraries whose functions, where they are used, become imports.
pub(super) const SYSTEM_LIBRARIES: &[&str] = &[
    "c", "m", "gcc", "gcc_s", "pthread", "dl", "rt", "stdc++", "util",
];
