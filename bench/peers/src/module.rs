//! What clang and wasm2c make of a program: a native build, modules, and the modules as C, compiled
//! natively and confined.

use postern_toolchain::Language;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// wasm2c's own run-time library (Debian's package `wabt`).
const RUNTIME: &str = "/usr/src/wasm2c";

/// One program in all builds.
pub struct Program {
    pub name: &'static str,
    /// `unsigned long long f(void)`; 64 bits in modules, too.
    pub function: &'static str,
    /// A shared object by `gcc -O2`, which all are held against.
    pub gcc: PathBuf,
    /// The same, as an extension.
    pub extension: PathBuf,
    pub translated: Translated,
    /// A native build that computes what modules must compute, where that is not the one by gcc.
    pub reference: Option<PathBuf>,
}

/// The builds that WebAssembly and clang have to do with.
pub struct Translated {
    /// A shared object by clang, which differs from gcc in what it inlines.
    pub clang: PathBuf,
    /// A module with SIMD, for Wasmtime.
    pub module: PathBuf,
    /// A module without, which wasm2c knows: its C as a shared object, ...
    pub wasm2c: PathBuf,
    /// ... and as an extension.
    pub confined: PathBuf,
}

/// Runs a compiler.
pub fn compile(compiler: &str, output: &Path, arguments: &[OsString]) -> Result<(), String> {
    let failed = |why: String| Err(format!("{compiler} for {}: {why}", output.display()));
    let mut command = Command::new(compiler);
    command.args(["-O2", "-w", "-o"]).arg(output);
    match command.args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => failed(status.to_string()),
        Err(error) => failed(error.to_string()),
    }
}

/// Translates a program in `directory`. `common` are the sources and options of all builds,
/// `module` those of modules besides.
pub fn translate(
    directory: &Path,
    name: &str,
    function: &str,
    common: &[OsString],
    module: &[OsString],
) -> Result<Translated, String> {
    let at = |ending: &str| directory.join(format!("{name}.{ending}"));
    let translated = Translated {
        clang: at("clang.so"),
        module: at("wasm"),
        wasm2c: at("wasm2c.so"),
        confined: at("wasm2c.px"),
    };
    let (note, inputs) = (at("inputs"), inputs(&[common, module].concat())?);
    if std::fs::read_to_string(&note).is_ok_and(|old| old == inputs) {
        return Ok(translated);
    }
    eprintln!("peers: building {name} by clang and wasm2c");
    let shared = ["-shared", "-fPIC"].map(OsString::from);
    let natively = [&shared[..], common, &["-lm".into()]].concat();
    compile("clang", &translated.clang, &natively)?;
    let mut options = [module, common].concat();
    options.push(format!("-Wl,--export={function}").into());
    let scalar = at("scalar.wasm");
    compile("clang", &scalar, &options)?;
    options.push("-msimd128".into());
    compile("clang", &translated.module, &options)?;
    natively_by_wasm2c(directory, name, function, &scalar, &translated.wasm2c)?;
    postern_toolchain::Build::new(Language::C)
        .file(&scalar)
        .flags(["-g0", "-fpostern-stack=1M"])
        .output(&translated.confined)
        .run()
        .map_err(|e| e.to_string())?;
    std::fs::write(&note, inputs).map_err(|e| e.to_string())?;
    Ok(translated)
}

/// What builds depend on: options, sources, how they are built, and by which rewriter.
fn inputs(options: &[OsString]) -> Result<String, String> {
    let mut hasher = DefaultHasher::new();
    (options, include_str!("module.rs")).hash(&mut hasher);
    postern_toolchain::fingerprint().hash(&mut hasher);
    for file in options.iter().map(Path::new).filter(|path| path.is_file()) {
        let bytes = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
        bytes.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// wasm2c as its makers mean it: a reservation of 8 GiB in place of checks of bounds. Nobody
/// recovers from traps here: the signal handler for that would be in the way of other people's.
fn natively_by_wasm2c(
    directory: &Path,
    name: &str,
    function: &str,
    module: &Path,
    output: &Path,
) -> Result<(), String> {
    let folder = directory.join(format!("{name}.wasm2c"));
    let [source, header, face] = ["w.c", "w.h", "face.c"].map(|file| folder.join(file));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let done = Command::new("wasm2c")
        .args(["-n", "w", "-o"])
        .args([&source, module])
        .status();
    if !done.is_ok_and(|status| status.success()) {
        return Err(format!("wasm2c does not translate {}", module.display()));
    }
    let declared = std::fs::read_to_string(&header).map_err(|e| e.to_string())?;
    std::fs::write(&face, face_of(function, &declared)).map_err(|e| e.to_string())?;
    let mut options = [
        "-shared",
        "-fPIC",
        "-DWASM_RT_SKIP_SIGNAL_RECOVERY=1",
        "-DWASM_RT_TRAP_HANDLER=trapped",
    ]
    .map(OsString::from)
    .to_vec();
    options.extend(["-I".into(), RUNTIME.into(), "-I".into(), folder.into()]);
    options.extend([face.into(), source.into()]);
    options.push(Path::new(RUNTIME).join("wasm-rt-impl.c").into());
    options.push("-lm".into());
    compile("gcc", output, &options)
}

/// The C around wasm2c's: imports, which are WASI's functions for files and clocks, answer that
/// nothing is there (`BADF`).
fn face_of(function: &str, declared: &str) -> String {
    let mut face = String::from(
        "#include \"w.h\"\n#include <stdlib.h>\nvoid trapped(int code) { abort(); }\nstatic Z_w_instance_t instance;\nstatic int made;\n",
    );
    for line in declared.lines() {
        let Some(head) = line.strip_suffix(';').filter(|head| head.contains('(')) else {
            continue;
        };
        let head = head.trim_start_matches("extern ");
        let body = match head.split_once(" Z_wasi_") {
            Some(("u32", _)) => "return 8;",
            Some(("void", _)) => "abort();",
            _ => continue,
        };
        face.push_str(&format!("{head} {{ {body} }}\n"));
    }
    let imports = if declared.contains("void Z_w_instantiate(Z_w_instance_t*);") {
        ""
    } else {
        ", 0"
    };
    let start = match declared.contains(" Z_wZ__initialize(") {
        true => "Z_wZ__initialize(&instance);",
        false => "",
    };
    face.push_str(&format!(
        "unsigned long long {function}(void)\n{{\n\tif (!made) {{\n\t\tmade = 1;\n\t\twasm_rt_init();\n\t\tZ_w_init_module();\n\t\t\
         Z_w_instantiate(&instance{imports});\n\t\t{start}\n\t}}\n\treturn Z_wZ_{function}(&instance);\n}}\n"
    ));
    face
}
