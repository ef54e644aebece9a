//! Programs in all builds, taking turns in one process: natively, in Postern's windows, and as
//! WebAssembly in Wasmtime and by wasm2c.

use crate::module::Program;
use crate::programs;
use postern::{Domain, Image, Placement};
use postern_figures::clock::{best_of, geometric_mean};
use postern_figures::figure::Figure;
use postern_figures::kernels;
use postern_figures::trusted::library::Library;
use std::cell::RefCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use wasmtime::{Config, Engine, ExternType, Linker, Module, Store, TypedFunc, Val};

const ROUNDS: usize = 12;

/// Far above what a program takes, and still a deadline.
const DEADLINE: Duration = Duration::from_secs(60);

/// WASI's answer to a call for a file that is not open; all that these modules import are functions
/// of WASI.
const BAD_DESCRIPTOR: i32 = 8;

/// What is measured, each over gcc's native build.
pub const NAMES: [&str; 8] = [
    "postern.hot",
    "postern.window",
    "clang",
    "wasm2c",
    "wasmtime",
    "wasmtime-epochs",
    "wasm2c-confined.hot",
    "wasm2c-confined.window",
];

/// A group of programs.
pub struct Contest {
    group: &'static str,
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    /// Seconds of gcc's build.
    native: f64,
    /// Of the others to it, as [`NAMES`] has them.
    ratios: [f64; NAMES.len()],
}

/// Says what is missing, and the package that has it.
fn missing() -> Option<&'static str> {
    let tools = [("clang", "clang"), ("wasm-ld", "lld"), ("wasm2c", "wabt")];
    let files = [
        ("/usr/include/wasm32-wasi", "wasi-libc"),
        ("/usr/src/wasm2c", "wabt"),
    ];
    let absent = |tool: &str| {
        let run = Command::new(tool).arg("--version").output();
        !run.is_ok_and(|out| out.status.success())
    };
    let tool = tools.iter().find(|(tool, _)| absent(tool));
    let file = files.iter().find(|(file, _)| !Path::new(file).exists());
    tool.or(file).map(|(_, package)| *package)
}

/// The folder of builds in the user's cache, if WebAssembly can be made.
pub fn place() -> Result<PathBuf, String> {
    if let Some(package) = missing() {
        return Err(format!(
            "the package {package} is missing; `make setup-bench` installs it"
        ));
    }
    let folder = postern_toolchain::cache().join("bench/peers");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// The kernels. Native and confined ones exist in four placements of the code, of which the best
/// counts.
pub fn kernels(only: &[String]) -> Result<Contest, String> {
    let directory = place()?;
    let mut rows = Vec::new();
    for (program, kernel) in programs::kernels(&directory, only)? {
        let mut row = measure(&program)?;
        let best = kernels::measure(&kernel)?;
        // The best native time is the one that all are held against.
        row.ratios = row.ratios.map(|ratio| ratio * row.native / best.native);
        row.native = best.native;
        row.ratios[0] = best.hot.unwrap_or(f64::NAN) / best.native;
        row.ratios[1] = best.window / best.native;
        rows.push(row);
    }
    Ok(Contest {
        group: "kernels",
        rows,
    })
}

/// The programs.
pub fn programs(only: &[String]) -> Result<Contest, String> {
    let directory = place()?;
    let mut rows = Vec::new();
    for program in programs::programs(&directory, only)? {
        rows.push(measure(&program)?);
    }
    Ok(Contest {
        group: "programs",
        rows,
    })
}

impl Contest {
    fn means(&self) -> [f64; NAMES.len()] {
        std::array::from_fn(|column| {
            let ratios: Vec<f64> = self.rows.iter().map(|row| row.ratios[column]).collect();
            geometric_mean(&ratios)
        })
    }

    /// The figures, means last.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for row in &self.rows {
            for (name, ratio) in NAMES.iter().zip(row.ratios) {
                let name = format!("peers.{}.{}.{name}", self.group, row.name);
                let native = row.native * 1e3;
                let figure = Figure::plain(name, ratio * native, "ms", "over gcc -O2");
                figures.push(figure.against(native));
            }
        }
        for (name, mean) in NAMES.iter().zip(self.means()) {
            let name = format!("peers.{}.mean.{name}", self.group);
            let figure = Figure::plain(name, mean, "times", "geometric mean over gcc -O2");
            figures.push(figure.against(1.0));
        }
        figures
    }

    /// A table of ratios to gcc's build in Markdown.
    pub fn table(&self) -> String {
        let mut table = format!("| {} | gcc -O2, ms | {} |\n", self.group, NAMES.join(" | "));
        table.push_str(&"|---".repeat(NAMES.len() + 2));
        table.push_str("|\n");
        let cells = |ratios: [f64; NAMES.len()]| ratios.map(|ratio| format!("{ratio:.2}"));
        for row in &self.rows {
            let cells = cells(row.ratios).join(" | ");
            let _ = writeln!(
                table,
                "| {} | {:.2} | {cells} |",
                row.name,
                row.native * 1e3
            );
        }
        let cells = cells(self.means()).join("** | **");
        let _ = writeln!(table, "| **geometric mean** | | **{cells}** |");
        table
    }
}

pub type Entry = (Store<()>, TypedFunc<(), i64>);

/// The module in Wasmtime, instantiated.
pub fn instance(module: &[u8], function: &str, epochs: bool) -> Result<Entry, wasmtime::Error> {
    let mut config = Config::new();
    config.epoch_interruption(epochs);
    let engine = Engine::new(&config)?;
    let module = Module::new(&engine, module)?;
    let mut store = Store::new(&engine, ());
    if epochs {
        store.set_epoch_deadline(1_000_000);
    }
    let mut linker = Linker::new(&engine);
    for import in module.imports() {
        if let ExternType::Func(ty) = import.ty() {
            linker.func_new(import.module(), import.name(), ty, |_, _, results| {
                results.fill(Val::I32(BAD_DESCRIPTOR));
                Ok(())
            })?;
        }
    }
    let instance = linker.instantiate(&mut store, &module)?;
    if let Ok(start) = instance.get_typed_func::<(), ()>(&mut store, "_initialize") {
        start.call(&mut store, ())?;
    }
    let function = instance.get_typed_func(&mut store, function)?;
    Ok((store, function))
}

/// Times of a program in all builds.
fn measure(program: &Program) -> Result<Row, String> {
    run(program).map_err(|e| format!("{}: {e}", program.name))
}

fn run(program: &Program) -> Result<Row, String> {
    let (function, translated) = (program.function, &program.translated);
    let load = |file: &Path| Library::open(file);
    let libraries = (
        load(&program.gcc)?,
        load(&translated.clang)?,
        load(&translated.wasm2c)?,
    );
    let gcc = libraries.0.kernel(function)?;
    let clang = libraries.1.kernel(function)?;
    let wasm2c = libraries.2.kernel(function)?;
    let module = std::fs::read(&translated.module).map_err(|e| e.to_string())?;
    let instance = |epochs| instance(&module, function, epochs).map_err(|e| e.to_string());
    let ((mut store, plain), (mut epoch_store, epochs)) = (instance(false)?, instance(true)?);

    let wanted = gcc();
    let wanted_of_modules = match &program.reference {
        Some(file) => load(file)?.kernel(function)?(),
        None => wanted,
    };
    let wrong = RefCell::new(None);
    let expect = |who: &str, wanted: u64, result: Result<i64, String>| {
        let what = match result {
            Ok(found) if found as u64 == wanted => return,
            Ok(found) => format!("{who} computes {found:#x}, and not {wanted:#x}"),
            Err(error) => format!("{who}: {error}"),
        };
        wrong.replace(Some(what));
    };
    let native =
        |who: &str, wanted: u64, call: &dyn Fn() -> u64| expect(who, wanted, Ok(call() as i64));
    let confined = |who: &str, wanted: u64, call: &Confined| {
        expect(who, wanted, call.function.call().map_err(|e| e.to_string()));
    };

    // The hot window holds one domain, so that the two extensions are measured one after the other,
    // each with gcc's build in turns.
    let (hot, window) = both_windows(&program.extension, function)?;
    let [first, own_hot, own_window, clang, wasm2c, plain, epochs] = best_of(
        ROUNDS,
        [
            &mut || native("gcc's build", wanted, &gcc),
            &mut || confined("the extension", wanted, &hot),
            &mut || confined("the extension", wanted, &window),
            &mut || native("clang's build", wanted, &clang),
            &mut || native("wasm2c", wanted_of_modules, &wasm2c),
            &mut || {
                let result = plain.call(&mut store, ()).map_err(|e| e.to_string());
                expect("Wasmtime", wanted_of_modules, result);
            },
            &mut || {
                let result = epochs.call(&mut epoch_store, ()).map_err(|e| e.to_string());
                expect("Wasmtime with epochs", wanted_of_modules, result);
            },
        ],
    );
    let own_hot = if hot.domain.is_hot() {
        own_hot
    } else {
        f64::NAN
    };
    drop((hot, window));
    let (hot, window) = both_windows(&translated.confined, function)?;
    let [second, module_hot, module_window] = best_of(
        ROUNDS,
        [
            &mut || native("gcc's build", wanted, &gcc),
            &mut || confined("wasm2c, confined,", wanted_of_modules, &hot),
            &mut || confined("wasm2c, confined,", wanted_of_modules, &window),
        ],
    );
    let module_hot = if hot.domain.is_hot() {
        module_hot
    } else {
        f64::NAN
    };
    if let Some(wrong) = wrong.into_inner() {
        return Err(wrong);
    }
    let others = [clang, wasm2c, plain, epochs];
    let mut ratios = [own_hot, own_window, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    ratios[2..6].copy_from_slice(&others);
    let mut ratios = ratios.map(|seconds| seconds / first);
    ratios[6..].copy_from_slice(&[module_hot / second, module_window / second]);
    Ok(Row {
        name: program.name,
        native: first,
        ratios,
    })
}

/// A program's function in a domain.
struct Confined {
    domain: Domain,
    function: postern::Func<fn() -> i64>,
}

/// An extension in the hot window, if that is free, and in another.
fn both_windows(file: &Path, function: &str) -> Result<(Confined, Confined), String> {
    let image = Image::load(file).map_err(|e| e.to_string())?;
    let place = |placement| {
        let builder = Domain::builder(&image).placement(placement);
        let domain = builder
            .deadline(Some(DEADLINE))
            .build()
            .map_err(|e| e.to_string())?;
        // Modules are built without debug information; what they compute is compared with what the
        // native build does.
        let function = domain
            .func_unchecked::<fn() -> i64>(function)
            .map_err(|e| e.to_string())?;
        Ok(Confined { domain, function })
    };
    let both: Result<_, String> =
        place(Placement::Hot).and_then(|hot| Ok((hot, place(Placement::Cold)?)));
    both
}
