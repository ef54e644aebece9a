//! WebAssembly modules as extensions. Modules written by hand, and arithmetic over values at the
//! edges, must give what wabt's interpreter gives, traps included; modules that clang made must
//! give what gcc's native build of the same source gives.

mod arithmetic;
mod host;

use std::path::{Path, PathBuf};
use std::process::Command;

use postern::{Domain, FaultKind, Image};
use postern_toolchain::{Build, Language};

/// An empty folder for a test.
fn folder(test: &str) -> PathBuf {
    crate::folder::fresh("wasm", test, &[])
}

fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| {
            panic!("{program}: {error} (Debian: apt-get install wabt clang lld)")
        });
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {messages}"
    );
    String::from_utf8(output.stdout).unwrap()
}

fn build(files: &[&Path], flags: &str) -> Result<Image, String> {
    let mut build = Build::new(Language::C).flags(flags.split_whitespace());
    for file in files {
        build = build.file(file);
    }
    let output = files[0].with_extension("px");
    let image = build.output(output).run().map_err(|e| e.to_string())?;
    Image::load(image).map_err(|e| e.to_string())
}

fn from_text(test: &str, text: &str) -> (PathBuf, Result<Image, String>) {
    let file = folder(test).join("m.wat");
    std::fs::write(&file, text).unwrap();
    let image = build(&[&file], "");
    (file, image)
}

/// wabt's words for a trap, and ours.
const TRAPS: &[(&str, &str)] = &[
    ("out of bounds memory access", "out of bounds memory access"),
    ("out of bounds table access", "out of bounds table access"),
    ("undefined table index", "undefined element"),
    ("uninitialized table element", "uninitialized element"),
    (
        "indirect call signature mismatch",
        "indirect call type mismatch",
    ),
    ("unreachable executed", "unreachable"),
    ("integer divide by zero", "integer divide by zero"),
    ("integer overflow", "integer overflow"),
    (
        "invalid conversion to integer",
        "invalid conversion to integer",
    ),
];

/// Calls a function without parameters: its result as the interpreter prints it, or its trap in our
/// words, after which everything begins anew.
fn call(domain: &Domain, name: &str) -> String {
    let signature = domain
        .image()
        .tables()
        .export(name)
        .and_then(|e| e.signature);
    let signature = signature.map(|s| s.to_string()).unwrap_or_default();
    let result = match signature.as_str() {
        "v()" => domain
            .func::<fn()>(name)
            .unwrap()
            .call()
            .map(|()| String::new()),
        "i()" => {
            let function = domain.func::<fn() -> i32>(name).unwrap();
            function.call().map(|value| format!("i32:{}", value as u32))
        }
        "l()" => {
            let function = domain.func::<fn() -> i64>(name).unwrap();
            function.call().map(|value| format!("i64:{}", value as u64))
        }
        other => panic!("{name} has the signature `{other}`"),
    };
    result.unwrap_or_else(|error| {
        domain.reset().unwrap();
        let fault = error.fault().unwrap_or_else(|| panic!("{name}: {error}"));
        assert_eq!(fault.kind, FaultKind::Aborted, "{name}: {fault}");
        format!("error: {}", fault.message.clone().unwrap_or_default())
    })
}

/// Compares every export of the module with the interpreter's run of all of them; returns how many
/// there were.
fn compare(wat: &Path, flags: &str) -> usize {
    let binary = wat.with_extension("wasm");
    tool(
        "wat2wasm",
        &[wat.to_str().unwrap(), "-o", binary.to_str().unwrap()],
    );
    let expected = tool(
        "wasm-interp",
        &["--run-all-exports", binary.to_str().unwrap()],
    );
    let image =
        build(&[&binary], flags).unwrap_or_else(|error| panic!("{}: {error}", wat.display()));
    let domain = Domain::builder(&image).build().unwrap();
    let mut count = 0;
    for line in expected.lines() {
        let (name, expected) = line.split_once("() =>").expect(line);
        let expected = match expected.trim().strip_prefix("error: ") {
            None => expected.trim().to_owned(),
            Some(trap) => {
                let known = TRAPS.iter().find(|(theirs, _)| trap.starts_with(theirs));
                format!("error: {}", known.unwrap_or_else(|| panic!("{trap}")).1)
            }
        };
        assert_eq!(
            call(&domain, name),
            expected,
            "{} {flags}: {name}",
            wat.display()
        );
        count += 1;
    }
    count
}

fn by_hand(name: &str) -> usize {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/wasm")
        .join(name);
    let copy = folder(name).join(name);
    std::fs::copy(source, &copy).unwrap();
    compare(&copy, "-O1") + compare(&copy, "")
}

#[test]
fn memory() {
    assert_eq!(by_hand("memory.wat"), 2 * 45);
}

#[test]
fn control() {
    assert_eq!(by_hand("control.wat"), 2 * 29);
}

#[test]
fn traps() {
    assert_eq!(by_hand("traps.wat"), 2 * 40);
}

/// A module by clang from a C source.
fn by_clang(source: &Path, flags: &[&str]) -> PathBuf {
    let module = source.with_extension("wasm");
    let mut arguments = vec!["--target=wasm32", "-O2", "-nostdlib", "-ffreestanding"];
    arguments.extend([
        "-Wl,--no-entry",
        "-Wl,--export-all",
        "-Wl,--allow-undefined",
    ]);
    arguments.extend(flags);
    arguments.extend([source.to_str().unwrap(), "-o", module.to_str().unwrap()]);
    tool("clang", &arguments);
    module
}

/// The kernels of the benchmark, natively by gcc, and by clang as WebAssembly. `long` has 64 bits
/// in both.
#[test]
fn modules_by_clang_compute_what_gcc_computes() {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/kernels");
    let at = folder("kernels");
    for (name, function) in [
        ("fib", "fib"),
        ("tak", "tak"),
        ("chase", "chase"),
        ("qsort", "qsort_records"),
        ("matmul", "matmul"),
        ("crc", "crc"),
        ("sha256", "sha256"),
        ("gray", "gray"),
    ] {
        let source = at.join(format!("{name}.c"));
        std::fs::copy(kernels.join(format!("{name}.c")), &source).unwrap();
        let main = at.join(format!("{name}-main.c"));
        let text = format!(
            "#include \"{name}.c\"\n#include <stdio.h>\nint main(void) {{ printf(\"%lu\\n\", (unsigned long){function}()); }}\n"
        );
        std::fs::write(&main, text).unwrap();
        let native = at.join(name);
        tool(
            "gcc",
            &[
                "-O2",
                main.to_str().unwrap(),
                "-o",
                native.to_str().unwrap(),
            ],
        );
        let expected = tool(native.to_str().unwrap(), &[]);
        let module = by_clang(&source, &["-Dlong=long long"]);
        let image = build(&[&module], "").unwrap();
        let domain = Domain::builder(&image).deadline(None).build().unwrap();
        let got = domain
            .func::<fn() -> i64>(function)
            .unwrap()
            .call()
            .unwrap();
        assert_eq!((got as u64).to_string(), expected.trim(), "{name}");
    }
}

#[test]
fn what_is_refused_is_said() {
    let at = folder("refused");
    let garbage = at.join("g.wasm");
    std::fs::write(&garbage, b"\x7fELF and so on").unwrap();
    let message = build(&[&garbage], "").unwrap_err();
    assert_eq!(
        message,
        format!("{}: error: bad magic value", garbage.display())
    );

    for (name, text, wanted) in [
        (
            "syntax",
            "(module\n (func i32.add))",
            ":2:8: error: type mismatch in i32.add",
        ),
        (
            "simd",
            "(module (func (export \"f\") (result i32) (i8x16.extract_lane_u 0 (i8x16.splat (i32.const 1)))))",
            "SIMD",
        ),
        (
            "twice",
            "(module (func (export \"a b\")) (func (export \"a_b\")))",
            "error: the export `a_b` and the export `a b` would both have the name `a_b`",
        ),
        (
            "reference",
            "(module (import \"e\" \"f\" (func (param externref))))",
            "error: the import `e.f` passes references",
        ),
        (
            "comment",
            "(module (func (export \"*/ int evil; /*\")))",
            "cannot stand in C",
        ),
        (
            "large",
            "(module (memory (export \"m\") 65536))",
            "error: the module asks for 65536 pages of linear memory",
        ),
    ] {
        let (file, image) = from_text(name, text);
        let message = image.err().unwrap_or_else(|| panic!("{name} was built"));
        assert!(
            message.contains(wanted) && message.contains(file.to_str().unwrap()),
            "{name}: {message}"
        );
    }
}
