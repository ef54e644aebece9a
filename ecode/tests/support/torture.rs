//! GCC's execution tests through E-code: as gcc's preprocessor leaves them, with a library of eight
//! functions.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use postern::{Domain, Image};
use postern_conformance::{native, suite};
use postern_ecode::{Object, compile, link};

/// What came of a program.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// It ended as it should.
    Passed,
    /// It calls a library, or does not end well natively: nothing is to be learnt from it.
    Library,
    /// It is not C as it has been since 1999: gcc warns of it, and E-code names it.
    Old,
    /// E-code does not have something in it: the first error.
    Outside(String),
    /// It was compiled wrongly.
    Failed(String),
}

/// What compilers ask for even where there is no library, and two ways to end: declaration and
/// definition.
const LIBRARY: &[(&str, &str, &str)] = &[
    (
        "abort",
        "void abort(void);",
        "extern void __postern_abort(char *); void abort(void) { __postern_abort(\"abort\"); }",
    ),
    (
        "exit",
        "void exit(int);",
        "extern void __postern_exit(int); void exit(int s) { __postern_exit(s); }",
    ),
    (
        "memcpy",
        "void *memcpy(void *, const void *, unsigned long);",
        "void *memcpy(void *d, const void *s, unsigned long n) { char *a = d; const char *b = s; while (n--) *a++ = *b++; return d; }",
    ),
    (
        "memmove",
        "void *memmove(void *, const void *, unsigned long);",
        "void *memmove(void *d, const void *s, unsigned long n) { char *a = d; const char *b = s; if (a < b) while (n--) *a++ = *b++; else while (n--) a[n] = b[n]; return d; }",
    ),
    (
        "memset",
        "void *memset(void *, int, unsigned long);",
        "void *memset(void *d, int c, unsigned long n) { char *a = d; while (n--) *a++ = c; return d; }",
    ),
    (
        "memcmp",
        "int memcmp(const void *, const void *, unsigned long);",
        "int memcmp(const void *x, const void *y, unsigned long n) { const unsigned char *a = x, *b = y; for (; n; n--, a++, b++) if (*a != *b) return *a - *b; return 0; }",
    ),
    (
        "strcpy",
        "char *strcpy(char *, const char *);",
        "char *strcpy(char *d, const char *s) { char *a = d; while ((*a++ = *s++)); return d; }",
    ),
    (
        "copysign",
        "double copysign(double, double);",
        "double copysign(double x, double y) { union { double d; unsigned long u; } a = { x }, b = { y }; a.u = a.u << 1 >> 1 | b.u >> 63 << 63; return a.d; }",
    ),
];

fn output(command: &mut Command) -> (bool, Vec<u8>, String) {
    let output = command.output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), output.stdout, messages)
}

/// Whether a program calls nothing but what [`LIBRARY`] has, as gcc compiles it.
fn stands_alone(path: &Path, flags: &[String]) -> bool {
    let object = tempfile::NamedTempFile::new().unwrap();
    let (good, ..) = output(
        Command::new("gcc")
            .args(flags)
            .args(["-O0", "-w", "-fno-builtin", "-c", "-o"])
            .arg(object.path())
            .arg(path),
    );
    let (named, names, _) = output(Command::new("nm").arg("-u").arg(object.path()));
    good && named
        && String::from_utf8_lossy(&names)
            .split_whitespace()
            .filter(|word| word.len() > 1)
            .all(|name| LIBRARY.iter().any(|(known, ..)| *known == name))
}

/// Whether gcc finds types or parameters in it that are written as they were before C99.
fn is_old(path: &Path) -> bool {
    let (_, _, warnings) = output(
        Command::new("gcc")
            .args(["-std=gnu11", "-Wold-style-definition", "-fsyntax-only"])
            .arg(path),
    );
    warnings.contains("[-Wimplicit-int]") || warnings.contains("[-Wold-style-definition]")
}

/// The program's text, compiled; if it uses what it does not declare, with the declarations before
/// it.
fn compiled(text: &[u8]) -> Result<Object, String> {
    let mut source = text.to_vec();
    for _ in 0..2 {
        let errors = match compile(&source) {
            Ok(unit) => return Ok(unit),
            Err(errors) => errors,
        };
        let missing = |name: &str| {
            let says = format!("`{name}` is not declared");
            errors.list.iter().any(|error| error.message == says)
        };
        let declared: String = LIBRARY
            .iter()
            .filter(|(name, ..)| missing(name))
            .map(|(_, declaration, _)| *declaration)
            .collect();
        if declared.is_empty() {
            return Err(errors.list[0].message.clone());
        }
        // A line of its own: what follows begins with a directive.
        source = [declared.as_bytes(), b"\n", text].concat();
    }
    compile(&source).map_err(|errors| errors.list[0].message.clone())
}

/// Compiles and runs one of GCC's tests.
pub fn run(test: &suite::Test) -> Outcome {
    let program = test.program(&["-O0", "-g0"], &[]);
    let [path] = &program.sources[..] else {
        return Outcome::Library;
    };
    let native = native::run(&program).unwrap();
    if !native.succeeded() || !stands_alone(path, &program.flags) {
        return Outcome::Library;
    }
    let (_, text, _) = output(
        Command::new("gcc")
            .args(["-E", "-w"])
            .args(&program.flags)
            .arg(path),
    );
    match compiled(&text) {
        Ok(unit) => end(unit),
        Err(why) if why.contains("implicit int") || why.contains("outside the parentheses") => {
            match is_old(path) {
                true => Outcome::Old,
                false => Outcome::Failed(format!("refused: {why}")),
            }
        }
        Err(why) => Outcome::Outside(why),
    }
}

/// What a program that was compiled comes to.
fn end(unit: Object) -> Outcome {
    let library: Vec<Object> = LIBRARY
        .iter()
        .filter(|(name, ..)| unit.imports.iter().any(|import| import.name == *name))
        .map(|(_, _, definition)| {
            let mut unit = compile(definition).unwrap();
            // Programs declare them in many ways.
            unit.symbols
                .iter_mut()
                .for_each(|symbol| symbol.signature.clear());
            unit
        })
        .collect();
    let units: Vec<Object> = [unit].into_iter().chain(library).collect();
    let file = match link(&units, 23) {
        Ok(linked) => linked.file,
        Err(error) => return Outcome::Outside(error.to_string()),
    };
    let image = match Image::from_bytes(&file) {
        Ok(image) => image,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let domain = match Domain::builder(&image)
        .deadline(Some(Duration::from_secs(20)))
        .build()
    {
        Ok(domain) => domain,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let main = match domain.func_unchecked::<fn(i32, u64) -> i32>("main") {
        Ok(main) => main,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    match main.call(0, 0) {
        Ok(0) => Outcome::Passed,
        Ok(status) => Outcome::Failed(format!("status {status}")),
        Err(error)
            if error
                .to_string()
                .starts_with("the extension exited with status 0") =>
        {
            Outcome::Passed
        }
        Err(error) => Outcome::Failed(error.to_string().lines().next().unwrap_or("").to_owned()),
    }
}

/// C leaves it to compilers.
const WIDE: &str = "computes with bit-fields wider than int in as many bits as they have, which clang and E-code do in the declared type";

/// Programs that pass nowhere else than with gcc, and why.
pub const EXCLUDED: &[(&str, &str)] = &[
    (
        "20031003-1",
        "converts floats out of range, where gcc's constants saturate",
    ),
    ("bitfld-3", WIDE),
    ("bitfld-5", WIDE),
    ("pr32244-1", WIDE),
    ("pr34971", WIDE),
    ("20021127-1", "wants its own llabs not to be called"),
    (
        "eeprof-1",
        "wants calls at the begin and end of each function, by -finstrument-functions",
    ),
];
