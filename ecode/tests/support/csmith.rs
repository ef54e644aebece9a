//! Random programs of csmith through E-code: the checksum that they print is the one of gcc's
//! builds.
//!
//! csmith's headers are given to E-code as they are, so that its preprocessor is tested, too; those
//! of the C library that they include are replaced by a few lines.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postern::{Caller, Domain, Image};
use postern_conformance::csmith::{HEADERS, generate, natively};
use postern_conformance::program::Outcome;
use postern_ecode::{Compiler, Limits, Options, link};

/// What stands in for headers of the C library. All that programs print is a number with a word
/// before it.
const LIBRARY: &[(&str, &str)] = &[
    ("assert.h", "#pragma once\n#define assert(x)\n"),
    (
        "float.h",
        "#pragma once\n#define FLT_MAX 0x1.fffffep127f\n#define DBL_MAX 0x1.fffffffffffffp1023\n",
    ),
    (
        "math.h",
        "#pragma once
         static float fabsf(float x) { return x < 0 ? -x : x; }
         static double fabs(double x) { return x < 0 ? -x : x; }\n",
    ),
    (
        "stdio.h",
        "#pragma once
         extern void checksum(unsigned);
         static int printf(const char *format, ...)
         {
             __builtin_va_list list;
             __builtin_va_start(list, format);
             checksum(__builtin_va_arg(list, unsigned));
             __builtin_va_end(list);
             return 0;
         }\n",
    ),
    (
        "string.h",
        "#pragma once
         static int strcmp(const char *a, const char *b)
         {
             while (*a && *a == *b) a++, b++;
             return *a - *b;
         }
         static void *memset(void *to, int c, unsigned long n)
         {
             for (char *p = to; n--; p++) *p = c;
             return to;
         }\n",
    ),
];

/// csmith compares pointers to differently qualified pointers, which is no C, though gcc only warns
/// of it: programs that do are compiled without qualifiers.
const UNQUALIFIED: &[u8] = b"#define const\n#define volatile\n#line 1\n";

/// What came of some seeds.
#[derive(Debug, Default)]
pub struct Report {
    /// The checksum was gcc's.
    pub passed: u64,
    /// They run too long natively, or gcc's builds disagree.
    pub skipped: u64,
    /// They mix pointers to `float` and to `int`, of which gcc only warns, too.
    pub outside: u64,
    /// Seed, and what was wrong.
    pub failed: Vec<(u64, String)>,
}

/// Compiles and runs the programs of these seeds by gcc and by E-code.
pub fn run(seeds: Range<u64>) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let mut compiler = Compiler::new(Options {
        limits: Limits {
            function: 4 << 20,
            liveness: 1 << 30,
            frame: 1 << 20,
            ..Limits::default()
        },
        ..Options::default()
    });
    for (name, text) in LIBRARY {
        compiler.header(name, *text);
    }
    for name in [
        "csmith.h",
        "random_inc.h",
        "platform_generic.h",
        "safe_math.h",
    ] {
        let text = std::fs::read_to_string(Path::new(HEADERS).join(name)).unwrap();
        // It is called with pointers to other types.
        let text = text
            .replace(
                "char *ptr, int nbytes",
                "const volatile void *of, int nbytes",
            )
            .replace("crc32_byte(ptr[i])", "crc32_byte(((volatile char *)of)[i])");
        compiler.header(name, text);
    }
    let mut report = Report::default();
    for seed in seeds {
        let source = folder.path().join(format!("seed-{seed}.c"));
        generate(seed, &source).unwrap_or_else(|error| panic!("{error}"));
        let text = std::fs::read(&source).unwrap();
        match natively(&source).unwrap_or_else(|error| panic!("{error}")) {
            None => report.skipped += 1,
            Some(expected) => match confined(&mut compiler, &text) {
                Ok(found) if found == expected => report.passed += 1,
                Ok(found) => report
                    .failed
                    .push((seed, format!("{found}; natively {expected}"))),
                Err(why) if why.contains("`float *`") => report.outside += 1,
                Err(why) => report.failed.push((seed, why)),
            },
        }
    }
    report
}

/// How the program ends by E-code.
fn confined(compiler: &mut Compiler, text: &[u8]) -> Result<Outcome, String> {
    let unit = compiler
        .compile(text)
        .or_else(|_| compiler.compile([UNQUALIFIED, text].concat()))
        .map_err(|errors| errors.to_string())?;
    let file = link(&[unit], 22).map_err(|error| error.to_string())?.file;
    let image = Image::from_bytes(&file).map_err(|error| error.to_string())?;
    let printed = Arc::new(Mutex::new(String::new()));
    let output = printed.clone();
    let domain = Domain::builder(&image)
        .deadline(Some(Duration::from_secs(60)))
        .data_stack(2 << 20)
        .service("checksum", move |_: &Caller<'_>, sum: u32| {
            *output.lock().unwrap() += &format!("checksum = {sum:X}\n");
        })
        .build()
        .map_err(|error| error.to_string())?;
    let main = domain.func_unchecked::<fn(i32, u64) -> i32>("main");
    let status = main.map_err(|error| error.to_string())?.call(0, 0);
    let status = status.map_err(|error| error.to_string())?;
    let output = printed.lock().unwrap();
    Ok(Outcome::exited(status, output.as_bytes()))
}
