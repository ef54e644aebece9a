//! Builds what the C tests need with the system's own tools: an extension from assembly, and hosts
//! from `tests/c` against the library under its installed name.
#![allow(dead_code)]

use object::{Object, ObjectSection, ObjectSymbol};
use postern_image::ImageBuilder;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The macros, which declare nothing; the first of the others includes them.
pub const MACROS: &str = "postern-types.h";
/// What hosts include; each may need those before it.
pub const HEADERS: [&str; 6] = [
    "postern.h",
    "postern-events.h",
    "postern-modules.h",
    "postern-policy.h",
    "postern-filter.h",
    "postern-kernel.h",
];

/// A directory that looks as after `make install`: lib, include, and `kit.px`.
pub fn installed() -> &'static Path {
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    DIRECTORY
        .get_or_init(|| {
            let directory = tempfile::tempdir().expect("a temporary directory");
            install(directory.path());
            std::fs::write(directory.path().join("kit.px"), kit()).expect("kit.px");
            directory
        })
        .path()
}

/// Where cargo leaves the libraries: beside this test.
pub fn built(file: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let found = test.parent().expect("a directory").join(file);
    assert!(found.exists(), "{} is not there", found.display());
    found
}

fn install(to: &Path) {
    let copy = |from: &Path, name: &str| {
        std::fs::copy(from, to.join(name)).expect("copied");
    };
    copy(&built("libpostern_capi.so"), "libpostern.so.0");
    copy(&built("libpostern_capi.so"), "another_copy.so");
    copy(&built("libpostern_capi.a"), "libpostern.a");
    std::os::unix::fs::symlink("libpostern.so.0", to.join("libpostern.so")).expect("a link");
    for header in HEADERS.into_iter().chain([MACROS]) {
        copy(&source("include").join(header), header);
    }
}

/// A file of this crate.
pub fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a command; its standard output.
pub fn run<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> String {
    let program = program.as_ref();
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|e| panic!("{program:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program:?}: {}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Compiles `tests/c/NAME` (`.c` or `.cpp`) against the shared library; the program's path.
pub fn compile(name: &str, flags: &[&str]) -> PathBuf {
    let root = installed();
    let link = ["-L.", "-Wl,-rpath,.", "-lpostern"];
    let (link, root) = (
        link.map(|f| f.replace('.', &root.display().to_string())),
        root,
    );
    let mut arguments: Vec<String> = flags.iter().map(|f| f.to_string()).collect();
    arguments.extend(link);
    compile_alone(name, root, &arguments)
}

/// Compiles `tests/c/NAME` with further arguments behind the source.
pub fn compile_alone(name: &str, root: &Path, arguments: &[String]) -> PathBuf {
    let (compiler, standard) = match name.ends_with(".cpp") {
        true => ("g++", "-std=c++11"),
        false => ("gcc", "-std=gnu11"),
    };
    let mut tag = name.replace('.', "_");
    if arguments.iter().any(|a| a.ends_with(".a")) {
        tag.push_str("_static");
    }
    let program = root.join(tag);
    let mut all = vec![
        standard.into(),
        "-O1".into(),
        "-g".into(),
        "-Wall".into(),
        "-Wextra".into(),
        "-Werror".into(),
        format!("-I{}", root.display()),
        "-o".into(),
        program.display().to_string(),
        source("tests/c").join(name).display().to_string(),
    ];
    all.extend_from_slice(arguments);
    all.push("-pthread".into());
    run(compiler, &all);
    program
}

/// Compiles and runs one C test with the path of `kit.px`.
pub fn test(name: &str) {
    let program = compile(name, &[]);
    run(program, &[installed().join("kit.px")]);
}

/// Compiles a file of `tests/extensions`.
pub fn extension(name: &str) -> PathBuf {
    let image = installed().join(format!("{name}.px"));
    let file = source(&format!("tests/extensions/{name}.c"));
    let arguments = [
        "-O1".into(),
        "-nolibc".into(),
        "-o".into(),
        image.clone().into(),
    ];
    let arguments: Vec<std::ffi::OsString> = arguments.into_iter().chain([file.into()]).collect();
    postern_toolchain::run(postern_toolchain::Language::C, &arguments).expect("it compiles");
    image
}

/// Assembles `tests/extensions/kit.s` into an image.
fn kit() -> Vec<u8> {
    const GATES: u32 = 0x1_1000;
    const TEXT: u32 = 0x1_2000;
    let path = source("tests/extensions/kit.s");
    let text = std::fs::read_to_string(&path).expect("kit.s");
    let declared = |kind: &str| -> Vec<(String, Option<String>)> {
        let prefix = format!("# {kind} ");
        text.lines()
            .filter_map(|l| l.strip_prefix(&prefix))
            .map(|l| {
                let mut words = l.split_whitespace().map(str::to_owned);
                (words.next().expect("a name"), words.next())
            })
            .collect()
    };
    let (imports, exports) = (declared("import"), declared("export"));
    let work = tempfile::tempdir().expect("a temporary directory");
    let (object, linked) = (work.path().join("kit.o"), work.path().join("kit"));
    // A relocatable file, linked where text begins, with the gate slots as known symbols.
    run(
        "as",
        &[
            "--64".as_ref(),
            "-o".as_ref(),
            object.as_os_str(),
            path.as_os_str(),
        ],
    );
    let mut builder = ImageBuilder::new([0xc3]);
    // Its code does not look for the data stack's size.
    builder.any_stack(true);
    for (name, signature) in &imports {
        builder.import(
            name,
            signature.as_ref().map(|s| s.parse().expect("a signature")),
        );
    }
    assert_eq!(builder.text_offset(), TEXT);
    let link = |data: u32| -> (Vec<u8>, Vec<(String, u64)>) {
        let mut arguments: Vec<String> = vec![
            format!("-Ttext={TEXT:#x}"),
            "-e0".into(),
            format!("--defsym=DATA={data:#x}"),
            "-o".into(),
            linked.display().to_string(),
            object.display().to_string(),
        ];
        for (slot, (name, _)) in imports.iter().enumerate() {
            arguments.push(format!("--defsym={name}={:#x}", GATES + 32 * slot as u32));
        }
        run("ld", &arguments);
        let bytes = std::fs::read(&linked).expect("the linked file");
        let file = object::File::parse(&*bytes).expect("ELF");
        let section = file.section_by_name(".text").expect("text");
        let symbols = file
            .symbols()
            .filter_map(|s| Some((s.name().ok()?.to_owned(), s.address())));
        (section.data().expect("bytes").to_vec(), symbols.collect())
    };
    let build = |data: u32| {
        let (code, symbols) = link(data);
        let mut builder = builder.clone();
        builder.text(code).data([0u8; 16], 4096);
        for (name, signature) in &exports {
            let at = symbols.iter().find(|s| s.0 == *name).expect("a label").1 as u32 - TEXT;
            builder.export(
                name,
                at,
                signature.as_ref().map(|s| s.parse().expect("a signature")),
            );
        }
        builder.build().expect("an image")
    };
    let first = build(TEXT);
    let data = postern_image::ImageFile::parse(&first)
        .expect("an image")
        .layout()
        .data;
    build(data)
}
