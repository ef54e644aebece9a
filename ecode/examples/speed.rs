//! The kernels: how long E-code compiles them, and how fast the code is next to gcc's and tcc's.
//! `cargo run --release -p postern-ecode --example speed [KERNEL…]`
#![allow(clippy::undocumented_unsafe_blocks)]
#[path = "../tests/support/mod.rs"]
mod support;
use std::ffi::{CString, c_void};
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use support::kernels::KERNELS;

use postern::{Domain, Placement};
use postern_verifier::{Layout, Profile, buffer_len, verify};

type Kernel = extern "C" fn(i64) -> i64;

fn native(compiler: &str, flags: &[&str], source: &Path, out: &Path) -> Option<Kernel> {
    let status = Command::new(compiler)
        .args(flags)
        .args(["-shared", "-fPIC", "-o"])
        .arg(out)
        .arg(source)
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return None;
    }
    let path = CString::new(out.to_str()?).ok()?;
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        let symbol = if handle.is_null() {
            std::ptr::null_mut()
        } else {
            libc::dlsym(handle, c"kernel".as_ptr())
        };
        (!symbol.is_null()).then(|| std::mem::transmute::<*mut c_void, Kernel>(symbol))
    }
}

/// The least time of each of several functions, taken in turns, and what they returned last.
fn race(functions: &mut [&mut dyn FnMut() -> i64]) -> Vec<(f64, i64)> {
    let mut results = vec![(f64::MAX, 0); functions.len()];
    for _ in 0..40 {
        for (function, result) in functions.iter_mut().zip(&mut results) {
            let start = Instant::now();
            result.1 = function();
            result.0 = result.0.min(start.elapsed().as_secs_f64());
        }
    }
    results
}

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let scratch = tempfile::tempdir().unwrap();
    let only: Vec<String> = std::env::args().skip(1).collect();
    let (mut product, mut count) = (0.0, 0);
    println!(
        "{:12} {:>9} {:>9} {:>7} {:>7} {:>8} {:>8} {:>8}",
        "kernel", "compile", "verify", "bytes", "gcc -O2", "E-code", "gcc -O0", "tcc"
    );
    for (name, rounds) in KERNELS {
        let rounds = i64::from(rounds);
        if !only.is_empty() && !only.iter().any(|o| o == name) {
            continue;
        }
        let path = folder.join(format!("{name}.c"));
        let source = std::fs::read_to_string(&path).unwrap();
        let mut compiler = postern_ecode::Compiler::default();
        let unit = match compiler.compile(&source) {
            Ok(unit) => unit,
            Err(errors) => panic!("{name}: {errors}"),
        };
        let mut compile = f64::MAX;
        for _ in 0..200 {
            let start = Instant::now();
            let _ = compiler.compile(&source);
            compile = compile.min(start.elapsed().as_secs_f64());
        }
        let mut buffer = vec![0; buffer_len(unit.text.len())];
        let layout = Layout::new(unit.imports.len() as u32);
        let mut judge = f64::MAX;
        for _ in 0..200 {
            let start = Instant::now();
            verify(&unit.text, &layout, Profile::User, &mut buffer).ok();
            judge = judge.min(start.elapsed().as_secs_f64());
        }
        let domain = Domain::builder(&support::image(&source))
            .placement(Placement::Hot)
            .build()
            .unwrap();
        let f = domain.func::<fn(i64) -> i64>("kernel").unwrap();
        let flags = [
            "-O2",
            "-std=c11",
            "-fwrapv",
            "-fno-strict-aliasing",
            "-fno-tree-vectorize",
            "-w",
        ];
        let gcc = native(
            "gcc",
            &flags,
            &path,
            &scratch.path().join(format!("{name}2.so")),
        )
        .unwrap();
        let slow = native(
            "gcc",
            &["-O0", "-w"],
            &path,
            &scratch.path().join(format!("{name}0.so")),
        )
        .unwrap();
        let tcc = native(
            "tcc",
            &[],
            &path,
            &scratch.path().join(format!("{name}t.so")),
        );
        // Each works on data of its own, and all make the same calls.
        let missing = tcc.is_none();
        let results = race(&mut [
            &mut || gcc(rounds),
            &mut || f.call(rounds).unwrap(),
            &mut || slow(rounds),
            &mut || tcc.map_or(0, |tcc| tcc(rounds)),
        ]);
        let [
            (reference, expected),
            (time, value),
            (time0, _),
            (time_tcc, _),
        ] = results[..]
        else {
            return;
        };
        let time_tcc = (!missing).then_some(time_tcc);
        assert_eq!(value, expected, "{name}");
        println!(
            "{name:12} {:6.1} us {:6.1} us {:7} {:4.1} ms {:8.2} {:8.2} {:>8}",
            compile * 1e6,
            judge * 1e6,
            unit.text.len(),
            reference * 1e3,
            time / reference,
            time0 / reference,
            time_tcc.map_or("-".to_owned(), |t| format!("{:.2}", t / reference)),
        );
        product += (time / reference).ln();
        count += 1;
    }
    println!("geometric mean {:.3}", (product / f64::from(count)).exp());
    println!("time by length of source:");
    for functions in [25, 100, 400] {
        let source = support::generate::program(1, functions);
        let lines = source.lines().count();
        let mut compiler = postern_ecode::Compiler::default();
        let results = race(&mut [&mut || {
            compiler
                .compile(&source)
                .map_or(0, |unit| unit.text.len() as i64)
        }]);
        println!(
            "{lines:6} lines {:8.2} ms {:6.2} us a line",
            results[0].0 * 1e3,
            results[0].0 * 1e6 / lines as f64
        );
    }
}
