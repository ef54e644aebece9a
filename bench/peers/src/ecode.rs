//! E-code beside gcc, tcc and Cranelift (Wasmtime): how long each takes to compile the kernels of
//! `ecode/kernels`, and how fast the code is, in one process and by turns. gcc and clang vectorise
//! nothing, for E-code and Cranelift do not either.

use crate::contest::{instance, place};
use crate::module::compile;
use crate::programs::is_wanted;
use kernels::KERNELS;
use postern::{Domain, Image, Namespace, Placement};
use postern_figures::clock::{best_of, geometric_mean};
use postern_figures::figure::Figure;
use postern_figures::trusted::library::Library;
use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[path = "../../../ecode/tests/support/kernels.rs"]
mod kernels;

/// What runs, each over gcc -O2.
const SPEEDS: [&str; 4] = ["ecode", "wasmtime", "tcc", "gcc -O0"];

/// What compiles, each in microseconds.
const COMPILERS: [&str; 4] = ["ecode, to the call", "wasmtime", "tcc -c", "gcc -O2 -c"];

const ROUNDS: usize = 12;

/// Of what takes microseconds.
const QUICK_ROUNDS: usize = 100;

/// Far above what a kernel takes.
const DEADLINE: Duration = Duration::from_secs(60);

/// Flags under which C is what E-code is.
const C: [&str; 4] = ["-std=c11", "-fwrapv", "-fno-strict-aliasing", "-w"];

pub struct Table(Vec<Row>);

struct Row {
    name: &'static str,
    lines: usize,
    /// Microseconds of [`COMPILERS`].
    compiled: [f64; 4],
    /// Seconds of gcc -O2's build, and ratios of [`SPEEDS`] to it.
    native: f64,
    ratios: [f64; 4],
}

/// Measures the kernels that are named, or all.
pub fn table(only: &[String]) -> Result<Table, String> {
    if !Command::new("tcc")
        .arg("-v")
        .output()
        .is_ok_and(|out| out.status.success())
    {
        return Err("the package tcc is missing; `make setup-bench` installs it".into());
    }
    let directory = place()?.join("ecode");
    std::fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let wanted = KERNELS.iter().filter(|(name, _)| is_wanted(name, only));
    let rows = wanted
        .map(|(name, rounds)| row(&directory, name, *rounds).map_err(|e| format!("{name}: {e}")));
    Ok(Table(rows.collect::<Result<_, String>>()?))
}

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

/// The compilers' options, those for a shared object besides.
fn flags(optimisation: &str) -> Vec<OsString> {
    [
        words([optimisation, "-fno-tree-vectorize", "-shared", "-fPIC"]),
        words(C),
    ]
    .concat()
}

fn row(directory: &Path, name: &'static str, rounds: u32) -> Result<Row, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ecode/kernels");
    let kernel =
        std::fs::read_to_string(folder.join(format!("{name}.c"))).map_err(|e| e.to_string())?;
    // A face without arguments, as all programs here have it.
    let text = format!("{kernel}\nlong work(void) {{ return kernel({rounds}); }}\n");
    let at = |ending: &str| directory.join(format!("{name}.{ending}"));
    let source = at("c");
    std::fs::write(&source, &text).map_err(|e| e.to_string())?;

    let build = |compiler: &str, ending: &str, options: Vec<OsString>| -> Result<PathBuf, String> {
        let output = at(ending);
        compile(
            compiler,
            &output,
            &[options, vec![source.clone().into()]].concat(),
        )?;
        Ok(output)
    };
    let module = words([
        "--target=wasm32",
        "-nostdlib",
        "-Wl,--no-entry",
        "-Wl,--export=work",
        "-ffreestanding",
        "-fno-builtin",
        "-fno-vectorize",
        "-fno-slp-vectorize",
        "-Dlong=long long",
    ]);
    let fast = Library::open(&build("gcc", "gcc2.so", flags("-O2"))?)?;
    let slow = Library::open(&build("gcc", "gcc0.so", flags("-O0"))?)?;
    let tcc = Library::open(&build("tcc", "tcc.so", words(["-shared"]))?)?;
    let module = build("clang", "wasm", [module, words(C)].concat())?;
    let module = std::fs::read(module).map_err(|e| e.to_string())?;

    // Wasmtime installs its handlers first: Postern's call the former ones.
    let (mut store, wasmtime) = instance(&module, "work", false).map_err(|e| e.to_string())?;

    let unit = postern_ecode::compile(&text).map_err(|e| e.to_string())?;
    let linked = postern_ecode::link(&[unit], 18).map_err(|e| e.to_string())?;
    let image = Image::from_bytes(&linked.file).map_err(|e| e.to_string())?;
    let domain = Domain::builder(&image)
        .placement(Placement::Hot)
        .deadline(Some(DEADLINE));
    let domain = domain.build().map_err(|e| e.to_string())?;
    let confined = domain
        .func::<fn() -> i64>("work")
        .map_err(|e| e.to_string())?;

    let gcc = fast.kernel("work")?;
    let (slow, tcc) = (slow.kernel("work")?, tcc.kernel("work")?);
    let wanted = gcc();
    let wrong = RefCell::new(None);
    let expect = |who: &str, result: Result<i64, String>| {
        if result != Ok(wanted as i64) {
            wrong.replace(Some(format!("{who} gives {result:?}, and not {wanted:#x}")));
        }
    };
    let [native, times @ ..] = best_of(
        ROUNDS,
        [
            &mut || expect("gcc -O2", Ok(gcc() as i64)),
            &mut || expect("E-code", confined.call().map_err(|e| e.to_string())),
            &mut || {
                expect(
                    "Wasmtime",
                    wasmtime.call(&mut store, ()).map_err(|e| e.to_string()),
                )
            },
            &mut || expect("tcc", Ok(tcc() as i64)),
            &mut || expect("gcc -O0", Ok(slow() as i64)),
        ],
    );
    if let Some(wrong) = wrong.into_inner() {
        return Err(wrong);
    }
    Ok(Row {
        name,
        lines: kernel.lines().count(),
        compiled: compiled(
            &folder.join(format!("{name}.c")),
            &kernel,
            &module,
            &at("o"),
        )?,
        native,
        ratios: times.map(|seconds| seconds / native),
    })
}

/// Microseconds from source to code: of E-code until a host can call it, verification included; of
/// the others as processes, and of Wasmtime from the module, which clang made.
fn compiled(source: &Path, text: &str, module: &[u8], object: &Path) -> Result<[f64; 4], String> {
    let namespace = Namespace::builder().build().map_err(|e| e.to_string())?;
    let engine = wasmtime::Engine::default();
    let wrong = RefCell::new(None);
    let process = |compiler: &str, options: &[&str]| {
        let mut command = Command::new(compiler);
        command
            .args(options)
            .args(["-c", "-o"])
            .arg(object)
            .arg(source);
        if !command.status().is_ok_and(|status| status.success()) {
            wrong.replace(Some(format!(
                "{compiler} does not compile {}",
                source.display()
            )));
        }
    };
    // Not by turns with processes, which leave nothing in the caches.
    let create = || {
        if let Err(error) = namespace.create("kernel", text) {
            wrong.replace(Some(error.to_string()));
        }
    };
    let translate = || {
        if let Err(error) = wasmtime::Module::new(&engine, module) {
            wrong.replace(Some(error.to_string()));
        }
    };
    let [ecode] = best_of(QUICK_ROUNDS, [&mut { create }]);
    let [wasmtime] = best_of(QUICK_ROUNDS, [&mut { translate }]);
    let [tcc, gcc] = best_of(
        ROUNDS,
        [&mut || process("tcc", &[]), &mut || {
            process("gcc", &["-O2", "-w"])
        }],
    );
    let seconds = [ecode, wasmtime, tcc, gcc];
    wrong.into_inner().map_or(Ok(seconds.map(|s| s * 1e6)), Err)
}

impl Table {
    fn means(&self) -> [f64; 4] {
        std::array::from_fn(|column| {
            let ratios: Vec<f64> = self.0.iter().map(|row| row.ratios[column]).collect();
            geometric_mean(&ratios)
        })
    }

    /// The figures, means last.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for row in &self.0 {
            for (who, microseconds) in COMPILERS.iter().zip(row.compiled) {
                let name = format!("peers.ecode.{}.compile.{who}", row.name);
                figures.push(Figure::plain(name, microseconds, "us", "least of many"));
            }
            for (who, ratio) in SPEEDS.iter().zip(row.ratios) {
                let (name, native) = (format!("peers.ecode.{}.{who}", row.name), row.native * 1e3);
                let figure =
                    Figure::plain(name, ratio * native, "ms", "over gcc -O2 without vectors");
                figures.push(figure.against(native));
            }
        }
        for (who, mean) in SPEEDS.iter().zip(self.means()) {
            let name = format!("peers.ecode.mean.{who}");
            let figure = Figure::plain(
                name,
                mean,
                "times",
                "geometric mean over gcc -O2 without vectors",
            );
            figures.push(figure.against(1.0));
        }
        figures
    }

    /// The table in Markdown: compiling in microseconds, then running over gcc -O2.
    pub fn table(&self) -> String {
        let mut table = format!(
            "| kernel | lines | {} | gcc -O2, ms | {} |\n{}|\n",
            COMPILERS.map(|name| format!("{name}, µs")).join(" | "),
            SPEEDS.join(" | "),
            "|---".repeat(3 + COMPILERS.len() + SPEEDS.len()),
        );
        for row in &self.0 {
            let compiled = row.compiled.map(|us| format!("{us:.0}")).join(" | ");
            let ratios = row.ratios.map(|ratio| format!("{ratio:.2}")).join(" | ");
            let (name, lines, native) = (row.name, row.lines, row.native * 1e3);
            let _ = writeln!(
                table,
                "| {name} | {lines} | {compiled} | {native:.2} | {ratios} |"
            );
        }
        let empty = "| ".repeat(COMPILERS.len() + 2);
        let means = self
            .means()
            .map(|mean| format!("{mean:.2}"))
            .join("** | **");
        let _ = writeln!(table, "| **geometric mean** {empty}| **{means}** |");
        table
    }
}
