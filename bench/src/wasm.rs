//! The kernels and codecs, natively, in Postern's windows from C and from WebAssembly, and as WebAssembly in Wasmtime.
//!
//! `unsigned long` has 64 bits in all of them: for wasm32 the word `long` is compiled as `long long` in the kernels, so that checksums
//! agree. Wasmtime gets modules with SIMD, which wasm2c does not know.

use crate::clock::{best_of, geometric_mean};
use crate::codecs;
use crate::figure::Figure;
use crate::kernels::{self, Kernel, SOURCES};
use crate::native::library::Library;
use postern::{Domain, Image, Placement};
use postern_toolchain::Language;
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use wasmtime::{Config, Engine, Instance, Module, Store};

const ROUNDS: usize = 12;

/// Far above what a program takes, and still a deadline.
const DEADLINE: Duration = Duration::from_secs(60);

/// What is measured, each over gcc's native build.
const NAMES: [&str; 7] = [
    "postern.hot",
    "postern.window",
    "wasm2c.hot",
    "wasm2c.window",
    "clang",
    "wasmtime",
    "wasmtime-epochs",
];

/// Whether the program can be run.
fn have(tool: &str) -> bool {
    Command::new(tool)
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success())
}

/// One program in the builds that are not gcc's and Postern's own.
pub struct Builds {
    /// A shared object by clang, which differs from gcc in what it inlines.
    pub clang: PathBuf,
    /// A module with SIMD.
    pub module: PathBuf,
    /// An extension from a module without.
    pub wasm2c: PathBuf,
}

/// The figures of kernels and codecs; none, with the reason on stderr, where WebAssembly cannot be made.
pub fn figures() -> Result<Vec<Figure>, String> {
    let tools = [("clang", "clang"), ("wasm-ld", "lld"), ("wasm2c", "wabt")];
    for (tool, package) in tools {
        if !have(tool) {
            eprintln!(
                "peers: {tool} is missing (Debian: apt install {package}), so nothing runs in Wasmtime"
            );
            return Ok(Vec::new());
        }
    }
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut figures = Vec::new();
    let mut means = Means::default();
    for kernel in kernels::build(directory.path())? {
        let builds = build_kernel(directory.path(), &kernel)?;
        means.measure(&mut figures, &kernel, &builds)?;
    }
    means.write(&mut figures, "peers.mean");
    let mut means = Means::default();
    for (kernel, builds) in codecs::build(directory.path())? {
        means.measure(&mut figures, &kernel, &builds)?;
    }
    means.write(&mut figures, "peers.codecs.mean");
    Ok(figures)
}

/// The ratios of a group of programs.
#[derive(Default)]
struct Means([Vec<f64>; NAMES.len()]);

impl Means {
    fn measure(
        &mut self,
        figures: &mut Vec<Figure>,
        kernel: &Kernel,
        builds: &Builds,
    ) -> Result<(), String> {
        let ours = kernels::measure(kernel)?;
        let others = run(builds, kernel).map_err(|e| format!("{}: {e}", kernel.name))?;
        let mut times = vec![ours.hot.unwrap_or(f64::NAN), ours.window];
        times.extend(others);
        for ((name, seconds), ratios) in NAMES.iter().zip(times).zip(&mut self.0) {
            ratios.push(seconds / ours.native);
            let figure = Figure::plain(
                format!("peers.{}.{name}", kernel.name),
                seconds * 1e3,
                "ms",
                "over gcc -O2",
            );
            figures.push(figure.against(ours.native * 1e3));
        }
        Ok(())
    }

    fn write(&self, figures: &mut Vec<Figure>, group: &str) {
        for (name, ratios) in NAMES.iter().zip(&self.0) {
            let mean = Figure::plain(
                format!("{group}.{name}"),
                geometric_mean(ratios),
                "times",
                "geometric mean over gcc -O2",
            );
            figures.push(mean.against(1.0));
        }
    }
}

/// Runs clang.
pub fn clang(output: &Path, arguments: &[OsString]) -> Result<(), String> {
    let status = Command::new("clang")
        .args(["-O2", "-w", "-o"])
        .arg(output)
        .args(arguments)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("clang for {}: {status}", output.display())),
        Err(error) => Err(format!("clang: {error}")),
    }
}

/// Options for a module that exports `functions`.
pub fn module_options(functions: &[&str]) -> Vec<OsString> {
    let mut options: Vec<OsString> = ["--target=wasm32", "-nostdlib", "-Wl,--no-entry"]
        .map(OsString::from)
        .into();
    options.extend(functions.iter().map(|f| format!("-Wl,--export={f}").into()));
    options
}

/// The module as an extension.
pub fn extension(module: &Path) -> Result<PathBuf, String> {
    let build = postern_toolchain::Build::new(Language::C).file(module);
    build
        .output(module.with_extension("px"))
        .run()
        .map_err(|e| e.to_string())
}

fn build_kernel(directory: &Path, kernel: &Kernel) -> Result<Builds, String> {
    let source = SOURCES.iter().find(|(name, ..)| *name == kernel.name);
    let (_, function, source) = source.ok_or("a kernel without source")?;
    let [file, module, plain, shared] = ["c", "wasm", "scalar.wasm", "so"]
        .map(|e| directory.join(format!("{}.clang.{e}", kernel.name)));
    std::fs::write(&file, source).map_err(|e| e.to_string())?;
    let mut options = module_options(&[function]);
    options.extend(["-ffreestanding", "-fno-builtin", "-Dlong=long long"].map(OsString::from));
    options.push(file.clone().into());
    clang(&plain, &options)?;
    options.push("-msimd128".into());
    clang(&module, &options)?;
    clang(&shared, &["-shared".into(), "-fPIC".into(), file.into()])?;
    Ok(Builds {
        clang: shared,
        module,
        wasm2c: extension(&plain)?,
    })
}

/// Seconds in Postern's hot window and another one from the module, of clang's native build, and of Wasmtime without and with epochs.
fn run(builds: &Builds, kernel: &Kernel) -> Result<[f64; 5], String> {
    let wanted = {
        let build = kernel.builds.first().ok_or("no build")?;
        let library = Library::open(&build.native)?;
        let native = library.kernel(kernel.function)?;
        native()
    };
    let library = Library::open(&builds.clang)?;
    let native = library.kernel(kernel.function)?;
    let image = Image::load(&builds.wasm2c).map_err(|e| e.to_string())?;
    let domain = |placement| {
        let domain = Domain::builder(&image)
            .placement(placement)
            .deadline(Some(DEADLINE))
            .build()
            .map_err(|e| e.to_string())?;
        let function = domain
            .func::<fn() -> i64>(kernel.function)
            .map_err(|e| e.to_string())?;
        Ok::<_, String>((domain, function))
    };
    let (first, hot) = domain(Placement::Hot)?;
    let (_second, window) = domain(Placement::Cold)?;
    let module = std::fs::read(&builds.module).map_err(|e| e.to_string())?;
    let instance = |epochs: bool| -> Result<_, wasmtime::Error> {
        let mut config = Config::new();
        config.epoch_interruption(epochs);
        let engine = Engine::new(&config)?;
        let module = Module::new(&engine, &module)?;
        let mut store = Store::new(&engine, ());
        if epochs {
            store.set_epoch_deadline(1_000_000);
        }
        let instance = Instance::new(&mut store, &module, &[])?;
        let function = instance.get_typed_func::<(), i64>(&mut store, kernel.function)?;
        Ok((store, function))
    };
    let (mut store, function) = instance(false).map_err(|e| e.to_string())?;
    let (mut store_epochs, function_epochs) = instance(true).map_err(|e| e.to_string())?;
    let wrong = RefCell::new(None);
    let expect = |who: &str, result: Result<i64, String>| match result {
        Ok(found) if found as u64 == wanted => {}
        Ok(found) => drop(wrong.replace(Some(format!(
            "{who} computes {found:#x}, gcc's native build {wanted:#x}"
        )))),
        Err(error) => drop(wrong.replace(Some(format!("{who}: {error}")))),
    };
    let ours = |function: &postern::Func<fn() -> i64>| {
        expect("wasm2c", function.call().map_err(|e| e.to_string()));
    };
    let mut times = best_of(
        ROUNDS,
        [
            &mut || ours(&hot),
            &mut || ours(&window),
            &mut || expect("clang", Ok(native() as i64)),
            &mut || {
                let result = function.call(&mut store, ());
                expect("wasmtime", result.map_err(|e| e.to_string()));
            },
            &mut || {
                let result = function_epochs.call(&mut store_epochs, ());
                expect("wasmtime", result.map_err(|e| e.to_string()));
            },
        ],
    );
    if !first.is_hot() {
        times[0] = f64::NAN;
    }
    match wrong.into_inner() {
        Some(wrong) => Err(wrong),
        None => Ok(times),
    }
}
