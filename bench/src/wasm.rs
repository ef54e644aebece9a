//! The kernels, natively, in Postern's windows, and as WebAssembly in Wasmtime.
//!
//! `unsigned long` has 64 bits in all three: for wasm32 the word `long` is compiled as `long long`, so that checksums agree.

use crate::clock::{best_of, geometric_mean};
use crate::figure::Figure;
use crate::kernels::{self, Kernel, SOURCES};
use crate::native::library::Library;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use wasmtime::{Config, Engine, Instance, Module, Store};

const ROUNDS: usize = 12;

fn have(tool: &str) -> bool {
    Command::new(tool)
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success())
}

/// The figures of the kernels; none, with the reason on stderr, where clang cannot make WebAssembly.
pub fn figures() -> Result<Vec<Figure>, String> {
    if !have("clang") || !have("wasm-ld") {
        eprintln!(
            "peers: clang or wasm-ld is missing (Debian: apt install clang lld), so no kernels in Wasmtime"
        );
        return Ok(Vec::new());
    }
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let names = [
        "postern.hot",
        "postern.window",
        "clang",
        "wasmtime",
        "wasmtime-epochs",
    ];
    let mut ratios: [Vec<f64>; 5] = Default::default();
    let mut figures = Vec::new();
    for kernel in kernels::build(directory.path())? {
        let ours = kernels::measure(&kernel)?;
        let (module, shared) = compile(directory.path(), &kernel)?;
        let [clang, wasm, epochs] = run(&module, &shared, &kernel)
            .map_err(|e| format!("{} in Wasmtime: {e}", kernel.name))?;
        let times = [
            ours.hot.unwrap_or(f64::NAN),
            ours.window,
            clang,
            wasm,
            epochs,
        ];
        for ((name, seconds), ratios) in names.iter().zip(times).zip(&mut ratios) {
            ratios.push(seconds / ours.native);
            let figure = Figure::plain(
                format!("peers.{}.{name}", kernel.name),
                seconds * 1e3,
                "ms",
                "over gcc -O2",
            );
            figures.push(figure.against(ours.native * 1e3));
        }
    }
    for (name, ratios) in names.iter().zip(&ratios) {
        let mean = Figure::plain(
            format!("peers.mean.{name}"),
            geometric_mean(ratios),
            "times",
            "geometric mean over gcc -O2",
        );
        figures.push(mean.against(1.0));
    }
    Ok(figures)
}

/// As WebAssembly, and as a shared object by the same compiler, which differs from gcc in what it inlines.
fn compile(directory: &Path, kernel: &Kernel) -> Result<(Vec<u8>, PathBuf), String> {
    let source = SOURCES.iter().find(|(name, ..)| *name == kernel.name);
    let (_, function, source) = source.ok_or("a kernel without source")?;
    let [file, output, shared] =
        ["c", "wasm", "so"].map(|e| directory.join(format!("{}.clang.{e}", kernel.name)));
    std::fs::write(&file, source).map_err(|e| e.to_string())?;
    let clang = |output: &Path, arguments: &[&str]| {
        let status = Command::new("clang")
            .args(["-O2", "-o"])
            .args([output, &file])
            .args(arguments)
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("clang for {}: {status}", kernel.name)),
            Err(error) => Err(format!("clang: {error}")),
        }
    };
    let export = format!("-Wl,--export={function}");
    let freestanding = [
        "--target=wasm32",
        "-nostdlib",
        "-ffreestanding",
        "-fno-builtin",
        "-msimd128",
    ];
    clang(
        &output,
        &[
            &freestanding[..],
            &["-Dlong=long long", "-Wl,--no-entry", &export],
        ]
        .concat(),
    )?;
    clang(&shared, &["-shared", "-fPIC"])?;
    Ok((std::fs::read(&output).map_err(|e| e.to_string())?, shared))
}

/// Seconds of clang's native build, and of Wasmtime without and with epochs.
fn run(module: &[u8], shared: &Path, kernel: &Kernel) -> Result<[f64; 3], String> {
    let wanted = {
        let build = kernel.builds.first().ok_or("no build")?;
        let library = Library::open(&build.native)?;
        let native = library.kernel(kernel.function)?;
        native()
    };
    let library = Library::open(shared)?;
    let native = library.kernel(kernel.function)?;
    let instance = |epochs: bool| -> Result<_, wasmtime::Error> {
        let mut config = Config::new();
        config.epoch_interruption(epochs);
        let engine = Engine::new(&config)?;
        let module = Module::new(&engine, module)?;
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
    let expect = |result: Result<i64, wasmtime::Error>| match result {
        Ok(found) if found as u64 == wanted => {}
        Ok(found) => {
            drop(wrong.replace(Some(format!("computes {found:#x}, natively {wanted:#x}"))))
        }
        Err(error) => drop(wrong.replace(Some(error.to_string()))),
    };
    let times = best_of(
        ROUNDS,
        [
            &mut || expect(Ok(native() as i64)),
            &mut || expect(function.call(&mut store, ())),
            &mut || expect(function_epochs.call(&mut store_epochs, ())),
        ],
    );
    match wrong.into_inner() {
        Some(wrong) => Err(wrong),
        None => Ok(times),
    }
}
