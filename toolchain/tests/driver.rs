//! The driver from outside: command lines, what they leave, and what they say when they refuse.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use postern::{Domain, Image};
use postern_toolchain::{Language, run};

fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    crate::folder::fresh("driver", test, files)
}

/// Runs a command line in which `@/` stands for the folder.
fn drive(folder: &Path, line: &str) -> Result<(), String> {
    drive_as(Language::C, folder, line)
}

fn drive_as(language: Language, folder: &Path, line: &str) -> Result<(), String> {
    let args: Vec<OsString> = line
        .split_whitespace()
        .map(|word| word.replace("@/", &format!("{}/", folder.display())).into())
        .collect();
    run(language, &args).map_err(|error| error.to_string())
}

fn load(folder: &Path, name: &str) -> Image {
    Image::load(folder.join(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Whether an import is a service of the host's: the library's own are granted to everybody.
fn is_hosts(import: &postern_image::ImportOwned) -> bool {
    !import.name.starts_with("__postern_")
}

#[test]
fn long_ranges_go_to_the_memory_gate_where_they_are_to() {
    let source = "#include <string.h>\nstatic char a[5000], b[5000];\nint f(int n) { memset(b, 7, n); memcpy(a, b, n); \
                  return (int)strlen(a) + memcmp(a, b, n) + (memchr(a, 0, sizeof a) == a + n); }";
    let at = folder("memory-gate", &[("a.c", source)]);
    for (options, gate) in [("", true), ("-fpostern-no-memory-gate", false)] {
        drive(&at, &format!("-O2 {options} @/a.c -o @/out.px")).unwrap();
        let image = load(&at, "out.px");
        let imports = &image.tables().imports;
        let has = |name: &str| imports.iter().any(|import| &*import.name == name);
        let names = ["memmove", "memset", "memcmp", "strlen", "memchr"];
        let names = names.map(|name| format!("__postern_{name}"));
        assert!(names.iter().all(|name| has(name) == gate), "{imports:?}");
        // What is granted to everybody stands behind the host's services.
        assert!(imports.is_sorted_by_key(|import| import.name.starts_with("__postern_")));
        let domain = Domain::builder(&image).build().unwrap();
        let f = domain.func::<fn(i32) -> i32>("f").unwrap();
        assert_eq!(f.call(100).unwrap(), 101);
        assert_eq!(f.call(4000).unwrap(), 4001);
        for name in names.iter().filter(|_| gate) {
            assert!(domain.counters().services[name] >= 1, "{name}");
        }
    }
}

#[test]
fn objects_archives_and_imports() {
    let at = folder(
        "objects",
        &[
            (
                "a.c",
                "long log_it(int, const char *); int helper(int); int f(int x) { log_it(x, \"x\"); return helper(x) + 1; }\n\
             long tail(int x) { return log_it(x, \"y\"); }\n\
             long through(int x) { long (*volatile p)(int, const char *) = log_it; return p(x, \"z\") + 1; }\n\
             long (*table[2])(int, const char *) = { log_it, log_it };\nlong from_data(int x) { return table[x & 1](x, \"\"); }",
            ),
            (
                "b.c",
                "int helper(int x) { return x * 2; } int unused(int x); int dead(int x) { return unused(x); }",
            ),
            (
                "c.s",
                "\t.globl by_hand\n\t.type by_hand, @function\nby_hand:\n\tleal 1(%rdi), %eax\n\tret\n",
            ),
            (
                "d.S",
                "#define ONE 1\n\t.globl with_cpp\n\t.type with_cpp, @function\nwith_cpp:\n\tmovl $ONE, %eax\n\tret\n",
            ),
        ],
    );
    for name in ["a.c", "b.c", "c.s", "d.S"] {
        drive(&at, &format!("-O2 -c @/{name} -o @/{name}.o")).unwrap();
    }
    let archive = at.join("libb.a");
    let ar = std::process::Command::new("ar")
        .arg("rcs")
        .arg(&archive)
        .arg(at.join("b.c.o"))
        .status()
        .unwrap();
    assert!(ar.success());
    drive(&at, "@/a.c.o -L@/ -lb @/c.s.o @/d.S.o -o @/out.px").unwrap();
    let image = load(&at, "out.px");
    let imports: Vec<(String, String)> = image
        .tables()
        .imports
        .iter()
        .filter(|&import| is_hosts(import))
        .map(|import| {
            (
                import.name.to_string(),
                import.signature.map(|s| s.to_string()).unwrap_or_default(),
            )
        })
        .collect();
    // `unused` is gone with the function that called it.
    assert_eq!(imports, [("log_it".to_owned(), "l(ip)".to_owned())]);
    let domain = Domain::builder(&image)
        .service(
            "log_it",
            |_: &postern::Caller<'_>, x: i32, _: postern::Offset| -> i64 { i64::from(x) },
        )
        .build()
        .unwrap();
    assert_eq!(
        domain
            .func::<fn(i32) -> i32>("f")
            .unwrap()
            .call(20)
            .unwrap(),
        41
    );
    // A tail call of a service, one through a pointer, one through a table in data.
    for (name, result) in [("tail", 20), ("through", 21), ("from_data", 20)] {
        let function = domain.func::<fn(i32) -> i64>(name).unwrap();
        assert_eq!(function.call(20).unwrap(), result, "{name}");
    }
    assert_eq!(
        domain
            .func_unchecked::<fn(i32) -> i32>("by_hand")
            .unwrap()
            .call(20)
            .unwrap(),
        21
    );
    assert_eq!(
        domain
            .func_unchecked::<fn() -> i32>("with_cpp")
            .unwrap()
            .call()
            .unwrap(),
        1
    );
}

#[test]
fn signatures_say_what_the_source_says() {
    let at = folder(
        "signatures",
        &[(
            "s.c",
            "#include <stdint.h>\n#include <stdbool.h>\ntypedef unsigned short word; enum e { A, B }; struct s { int x; };\n\
             int8_t f1(uint8_t a, bool b, word c, int16_t d) { return a + b + c + d; }\n\
             float f2(double a, const char *b, unsigned c, long long d, unsigned long e) { return a + *b + c + d + e; }\n\
             void f3(enum e a) { (void)a; }\n struct s f4(int a) { return (struct s){ a }; }\n int f5(const char *f, ...) { return *f; }\n\
             long double f6(void) { return 1; }\n void *f7(int (*f)(int)) { return f; }\n\
             long s1(char); void s2(const char *, ...); int s3();\n long use(void) { s2(\"\", 1); return s1(1) + s3(); }\n",
        )],
    );
    drive(&at, "-O1 @/s.c -o @/s.px").unwrap();
    let image = load(&at, "s.px");
    let find = |name: &str| {
        let export = image
            .tables()
            .exports
            .iter()
            .find(|export| &*export.name == name)
            .unwrap();
        export.signature.map(|s| s.to_string()).unwrap_or_default()
    };
    let expected = [
        ("f1", "b(BzHh)"),
        ("f2", "f(dpIlL)"),
        ("f3", "v(I)"),
        ("f4", ""),
        ("f5", ""),
        ("f6", ""),
        ("f7", "p(p)"),
        ("use", "l()"),
        ("malloc", "p(L)"),
    ];
    for (name, signature) in expected {
        assert_eq!(find(name), signature, "{name}");
    }
    let imports: Vec<String> = image
        .tables()
        .imports
        .iter()
        .filter(|&import| is_hosts(import))
        .map(|import| import.signature.map(|s| s.to_string()).unwrap_or_default())
        .collect();
    assert_eq!(imports, ["l(b)", "", ""]);
}

#[test]
fn options() {
    let at = folder(
        "options",
        &[
            ("a.c", "#include \"a.h\"\nint f(void) { return A; }\n"),
            ("a.h", "#define A 7\n"),
        ],
    );
    drive(&at, "-O2 -MMD -c @/a.c -o @/a.o").unwrap();
    let dependencies = std::fs::read_to_string(at.join("a.d")).unwrap();
    assert!(
        dependencies.starts_with(&at.join("a.o").display().to_string())
            && dependencies.contains("a.h"),
        "{dependencies}"
    );
    drive(&at, "-S @/a.c -o @/a.s").unwrap();
    let text = std::fs::read_to_string(at.join("a.s")).unwrap();
    assert!(
        text.contains("0x0f,0x1f,0x84,0x20") && text.contains(".loc") && !text.contains(".cfi"),
        "{text}"
    );
    drive(&at, "-g0 -S @/a.c -o @/a.s").unwrap();
    let text = std::fs::read_to_string(at.join("a.s")).unwrap();
    assert!(!text.contains(".loc") && !text.contains(".debug"), "{text}");
    std::fs::write(
        at.join("line"),
        format!(
            "-O1 '{}'\n -o {}",
            at.join("a.c").display(),
            at.join("b.px").display()
        ),
    )
    .unwrap();
    drive(&at, "@@/line").unwrap();
    drive(&at, "-s -fpostern-stack=64K -fpostern-heap=1M -Wa,--noexecstack -shared -fPIC -Wl,--gc-sections,-Map,@/map @/a.c -o @/c.px").unwrap();
    assert!(
        std::fs::read_to_string(at.join("map"))
            .unwrap()
            .contains(".text")
    );
    let header = load(&at, "c.px").tables().header;
    assert_eq!((header.stack_log2, header.heap_wish), (16, 1 << 20));
}

/// A link that nothing can run is an error, as configure scripts expect; what is declared as the
/// host's is not.
#[test]
fn a_program_defines_what_it_calls() {
    let at = folder(
        "undefined",
        &[
            (
                "p.c",
                "int nowhere(int);\nint main(int c, char **v) { return c > 1 ? nowhere(c) : 3; }\n",
            ),
            (
                "l.c",
                "int nowhere(int);\nint f(int c) { return nowhere(c); }\n",
            ),
            (
                "declared.c",
                "#include <postern/extension.h>\nPOSTERN_IMPORT int nowhere(int);\nint main(int c, char **v) { return nowhere(c); }\n",
            ),
            (
                "hidden.c",
                "__attribute__((visibility(\"hidden\"))) int main(void) { return 7; }\n",
            ),
        ],
    );
    let imports = |name: &str| load(&at, name).tables().imports.len();
    for line in [
        "@/p.c -o @/p.px",
        "@/l.c -Wl,--no-undefined -o @/p.px",
        "@/l.c -Wl,-z,defs -o @/p.px",
    ] {
        let message = drive(&at, line).expect_err(line);
        let object = if line.contains("p.c") {
            "p.o: "
        } else {
            "l.o: "
        };
        for part in [
            object,
            "undefined reference to `nowhere`",
            "POSTERN_IMPORT",
            "--allow-undefined",
        ] {
            assert!(message.contains(part), "{line}: {message}");
        }
        assert!(!at.join("p.px").exists());
    }
    for line in [
        "@/p.c --allow-undefined -o @/p.px",
        "@/p.c -Wl,--allow-undefined -o @/p.px",
        "@/p.c -fpostern-import=nowhere -o @/p.px",
        "@/p.c -shared -o @/p.px",
        "@/l.c -o @/p.px",
        "@/declared.c -o @/p.px",
    ] {
        drive(&at, line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(imports("p.px") >= 1, "{line}");
    }
    // It runs until the first call of what is missing.
    drive(&at, "@/p.c --allow-undefined -o @/p.px").unwrap();
    let image = load(&at, "p.px");
    assert!(Domain::builder(&image).build().is_err());
    assert_eq!(Domain::builder(&image).missing(), ["nowhere"]);
    let domain = Domain::builder(&image)
        .stand_in_for_missing()
        .build()
        .unwrap();
    assert_eq!(domain.run_main(&["p"], &[] as &[&str]).unwrap(), 3);
    let error = domain.run_main(&["p", "x"], &[] as &[&str]).unwrap_err();
    assert!(
        error.to_string().contains("`nowhere` was called"),
        "{error}"
    );
    drive(&at, "@/hidden.c -o @/h.px").unwrap();
    let image = load(&at, "h.px");
    assert_eq!(image.tables().header.stack_log2, 20);
    let domain = Domain::builder(&image).build().unwrap();
    assert_eq!(domain.run_main(&["h"], &[] as &[&str]).unwrap(), 7);
}

/// A frame that is larger than the stack, and than what lies below it, is an overflow and no wild
/// write.
#[test]
fn a_frame_larger_than_the_stack() {
    let at = folder(
        "frame",
        &[(
            "f.c",
            "__attribute__((noinline)) int f(volatile char *a) { volatile char b[64]; b[0] = 1; a[0] = b[0]; return a[0]; }\n\
             int main(int c, char **v) { volatile char a[3 << 20]; return f(a); }\n",
        )],
    );
    drive(&at, "-O1 @/f.c -o @/f.px").unwrap();
    let domain = Domain::builder(&load(&at, "f.px")).build().unwrap();
    let error = domain.run_main(&["f"], &[] as &[&str]).unwrap_err();
    let fault = error.fault().expect("a fault");
    assert_eq!(fault.kind, postern::FaultKind::DataStackOverflow, "{error}");
    assert!(
        error.to_string().contains("1024 KiB, -fpostern-stack="),
        "{error}"
    );
    drive(&at, "-O1 -fpostern-stack=4M @/f.c -o @/f.px").unwrap();
    let domain = Domain::builder(&load(&at, "f.px")).build().unwrap();
    assert_eq!(domain.run_main(&["f"], &[] as &[&str]).unwrap(), 1);
}

/// `-l:NAME` is the file of that name.
#[test]
fn libraries_by_their_files_names() {
    let at = folder(
        "names_of_files",
        &[
            ("a.c", "int one(void) { return 1; }\n"),
            ("b.c", "int one(void);\nint f(void) { return one(); }\n"),
        ],
    );
    drive(&at, "-c @/a.c -o @/a.o").unwrap();
    let mut ar = std::process::Command::new("ar");
    assert!(
        ar.arg("rc")
            .args([at.join("odd.a"), at.join("a.o")])
            .status()
            .unwrap()
            .success()
    );
    drive(&at, "@/b.c -L@/ -l:odd.a -o @/b.px").unwrap();
    assert!(!load(&at, "b.px").tables().imports.iter().any(is_hosts));
    assert!(drive(&at, "@/b.c -L@/ -l:other.a -o @/b.px").is_err());
}

#[test]
fn constructors_and_the_heap_in_cxx() {
    let at = folder(
        "cxx",
        &[(
            "a.cc",
            "#include <postern/extension.h>\nstatic long *p = new long(41);\nPOSTERN_EXPORT long f() { return ++*p; }\n",
        )],
    );
    drive_as(Language::Cxx, &at, "-O2 @/a.cc -o @/a.px").unwrap();
    let image = load(&at, "a.px");
    let domain = Domain::builder(&image)
        .service("__unused", |_: &postern::Caller<'_>| {})
        .build()
        .unwrap();
    assert_eq!(domain.func::<fn() -> i64>("f").unwrap().call().unwrap(), 42);
}

#[test]
fn sections_with_names_of_their_own() {
    let at = folder(
        "sections",
        &[(
            "a.c",
            "#define IN(s) __attribute__((section(s), used))\nIN(\"things\") static int a = 1, b = 2, c = 4;\n\
             extern int __start_things[], __stop_things[];\nIN(\"constants\") static const int k = 8;\n\
             IN(\"rare\") __attribute__((noinline)) static int odd(int x) { return x + k; }\n\
             int f(void) { int sum = 0; for (int *p = __start_things; p < __stop_things; p++) sum += *p; return odd(sum); }\n",
        )],
    );
    drive(&at, "-O2 @/a.c -o @/a.px").unwrap();
    let domain = Domain::builder(&load(&at, "a.px")).build().unwrap();
    assert_eq!(domain.func::<fn() -> i32>("f").unwrap().call().unwrap(), 15);
    drive(&at, "-O2 -nostdlib @/a.c -o @/a.px").unwrap();
    let domain = Domain::builder(&load(&at, "a.px")).build().unwrap();
    assert_eq!(domain.func::<fn() -> i32>("f").unwrap().call().unwrap(), 15);
}

#[test]
fn refusals() {
    let at = folder(
        "refusals",
        &[
            (
                "asm.c",
                "int f(void) {\n  int x;\n  __asm__(\"nop\\n\\trdtsc\" : \"=a\"(x));\n  return x;\n}\n",
            ),
            (
                "tls.c",
                "extern __thread int x;\nlong f(void)\n{\n  long y;\n  __asm__(\"movq x@gottpoff(%%rip), %0\" : \"=r\"(y));\n  return y;\n}\n",
            ),
            (
                "variable.c",
                "extern int somewhere;\nint f(void) { return somewhere; }\n",
            ),
            (
                "bytes.c",
                "int f(void) {\n  __asm__ volatile(\".byte 0x0f, 0x05\");\n  return 0;\n}\n",
            ),
            ("syntax.c", "int f(void) { return }\n"),
            ("empty.c", "static int x;\n"),
            ("twice.c", "int f(void) { return 1; }\n"),
            (
                "wide.c",
                "typedef float v __attribute__((vector_size(64)));\nv f(v a) { return a + a; }\n",
            ),
            (
                "nested.c",
                "int apply(int (*f)(int)) { return f(1); }\nint g(int x) { int in(int y) { return x + y; } return apply(in); }\n",
            ),
            ("switch.c", "int f(void);\nint g(void) { return f(); }"),
        ],
    );
    let refused = |line: &str| drive(&at, line).expect_err(line);
    let has = |line: &str, parts: &[&str]| {
        let message = refused(line);
        for part in parts {
            assert!(message.contains(part), "{line}: {message}");
        }
    };
    has(
        "-O2 -c @/asm.c -o @/x.o",
        &["asm.c:4: error: `rdtsc` cannot be confined"],
    );
    has(
        "-O2 -c @/tls.c -o @/x.o",
        &["tls.c:5: error: thread-local variables of another model"],
    );
    has(
        "@/variable.c -o @/x.px",
        &["undefined reference to the variable `somewhere`"],
    );
    has(
        "@/bytes.c -o @/x.px",
        &["error: the verifier refuses the instruction at `f`+0x"],
    );
    assert!(!at.join("x.px").exists());
    has("-nostdlib @/empty.c -o @/x.px", &["no code"]);
    has("@/twice.c @/twice.c -o @/x.px", &["multiple definition"]);
    has("-O0 -c @/nested.c -o @/x.o", &["executable stack"]);
    has("@/nowhere.c", &["nowhere.c: no such file"]);
    has("@/twice.c -lnothing", &["cannot find -lnothing"]);
    has("-c @/twice.c @/empty.c -o @/x.o", &["several files"]);
    has("-march=native @/twice.c", &["x86-64-v3"]);
    has("-fsanitize=address @/twice.c", &["--native"]);
    has("-Wl,--wrap=f @/twice.c", &["--wrap=f"]);
    has("", &["no input files"]);
    // gcc's own messages are on standard error already.
    assert!(drive(&at, "-c @/syntax.c -o @/x.o").is_err());
    assert!(!at.join("x.o").exists());
}

/// An object whose one function calls what has this name.
fn calls(at: &Path, name: &str) {
    let place = "y".repeat(name.len());
    let text = format!(".globl f\n.type f, @function\nf: call {place}\nret\n.size f, . - f\n");
    let [source, object] = ["x.s", "x.o"].map(|name| at.join(name));
    std::fs::write(&source, text).unwrap();
    let mut assembler = std::process::Command::new("as");
    let assembled = assembler.args(["--64", "-o"]).args([&object, &source]);
    assert!(assembled.status().unwrap().success());
    // No assembler writes such a name.
    let mut bytes = std::fs::read(&object).unwrap();
    let mut found = bytes.windows(place.len());
    let found = found.position(|bytes| bytes == place.as_bytes()).unwrap();
    bytes[found..found + name.len()].copy_from_slice(name.as_bytes());
    std::fs::write(&object, bytes).unwrap();
}

#[test]
fn names_of_symbols_are_names_and_nothing_else() {
    let at = folder("names", &[("secret", "a secret")]);
    // Between quotation marks in assembly, this would have put a file of its choice into the
    // extension.
    let injected = format!("x\";.incbin\"{}\";.ascii\"", at.join("secret").display());
    for name in [&injected, "x\\", "\u{1b}[2Jx"] {
        calls(&at, name);
        let message = drive(&at, "-nostdlib @/x.o -o @/x.px").unwrap_err();
        assert!(message.contains("the name of an import"), "{message:?}");
        assert!(!message.contains(|c: char| c.is_control()), "{message:?}");
    }
    // Nor is a name that is to be kept a command of the linker's script.
    calls(&at, "y");
    let message = drive(&at, "-nostdlib -u x\")INPUT(\" @/x.o -o @/x.px").unwrap_err();
    assert!(message.contains("is no symbol's name"), "{message}");
}

#[test]
fn files_of_arguments_are_read_once_and_to_an_end() {
    let at = folder("arguments", &[("a.c", "int f(void) { return 1; }\n")]);
    let file = |name: &str| format!("@{}/{name} ", at.display());
    std::fs::write(at.join("given"), format!("{}/a.c -O1", at.display())).unwrap();
    let with = |name: &str| drive(&at, &format!("@@/{name} -o @/a.px"));
    with("given").unwrap();
    // Each names the next one a thousand times.
    for n in 0..15 {
        std::fs::write(
            at.join(format!("{n}")),
            file(&format!("{}", n + 1)).repeat(1000),
        )
        .unwrap();
    }
    std::fs::write(at.join("15"), "").unwrap();
    let message = with("0").unwrap_err();
    assert!(message.contains("bytes and at most"), "{message}");
    let made = std::process::Command::new("mkfifo")
        .arg(at.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let message = with("pipe").unwrap_err();
    assert!(message.contains("it is a pipe"), "{message}");
    assert!(with("nowhere").is_err());
}
