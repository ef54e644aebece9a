//! The same source by gcc and by E-code: every function called with the same arguments must return
//! the same.

use std::ffi::CString;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use postern::{Domain, Image};

use super::{file, generate};

/// Flags under which C is what E-code's reference says.
pub const FLAGS: &[&str] = &[
    "-std=c11",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-builtin",
    "-w",
];

/// Arguments that every function is called with.
pub const ARGUMENTS: [i64; 4] = [0, 1, -3, 123_456_789_012];

/// gcc's results of `names`, in order, for all arguments.
pub fn native(source: &Path, names: &[String]) -> Vec<i64> {
    let library = source.with_extension("so");
    let output = Command::new("gcc")
        .args(FLAGS)
        .args(["-O0", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "gcc: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let path = CString::new(library.to_str().unwrap()).unwrap();
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        let mut results = Vec::new();
        for name in names {
            let name = CString::new(name.as_str()).unwrap();
            let symbol = libc::dlsym(handle, name.as_ptr());
            assert!(!symbol.is_null());
            let f: extern "C" fn(i64) -> i64 = std::mem::transmute(symbol);
            results.extend(ARGUMENTS.map(|argument| f(argument)));
        }
        libc::dlclose(handle);
        results
    }
}

/// E-code's results of the same.
pub fn confined(source: &str, names: &[String]) -> Result<Vec<i64>, String> {
    let unit = postern_ecode::compile(source).map_err(|errors| errors.to_string())?;
    let image = Image::from_bytes(&file(&unit)).map_err(|error| error.to_string())?;
    let domain = Domain::builder(&image)
        .deadline(Some(Duration::from_secs(20)))
        .build()
        .map_err(|e| e.to_string())?;
    let mut results = Vec::new();
    for name in names {
        let f = domain.func::<fn(i64) -> i64>(name);
        for argument in ARGUMENTS {
            let result = match &f {
                Ok(f) => f
                    .call(argument)
                    .map_err(|e| format!("{name}({argument}): {e}"))?,
                Err(_) => domain
                    .func::<fn() -> i64>(name)
                    .unwrap()
                    .call()
                    .map_err(|e| e.to_string())?,
            };
            results.push(result);
        }
    }
    Ok(results)
}

/// Random programs that gcc compiles at once.
const BATCH: u64 = 50;

/// The functions of a seed's program: mostly one; a few programs are long.
fn functions(seed: u64) -> usize {
    match seed % 250 {
        0 => 40,
        other => 1 + usize::from(other % 8 == 0),
    }
}

/// Compares what the random programs of these seeds compute; the differences.
pub fn random_programs(seeds: Range<u64>, folder: &Path) -> Vec<String> {
    let mut bad = Vec::new();
    let mut from = seeds.start;
    while from < seeds.end && bad.len() < 5 {
        let to = seeds.end.min(from + BATCH);
        let programs: Vec<_> = (from..to).map(|seed| (seed, functions(seed))).collect();
        let path = folder.join(format!("p{from}.c"));
        std::fs::write(&path, generate::batch(&programs)).unwrap();
        let own = |count| (0..count).map(|n| format!("f{n}"));
        let names = |count| own(count).chain(["everything".into()]).collect::<Vec<_>>();
        let all: Vec<String> = programs
            .iter()
            .flat_map(|(seed, count)| {
                names(*count)
                    .into_iter()
                    .map(move |n| format!("p{seed}_{n}"))
            })
            .collect();
        let results = native(&path, &all);
        let mut expected = &results[..];
        for (seed, count) in programs {
            let names = names(count);
            let (mine, rest) = expected.split_at(names.len() * ARGUMENTS.len());
            expected = rest;
            match confined(&generate::program(seed, count), &names) {
                Err(error) => bad.push(format!("program {seed} {count}: {error}")),
                Ok(found) => {
                    if let Some(at) = (0..mine.len()).find(|at| mine[*at] != found[*at]) {
                        let (name, argument) = (at / ARGUMENTS.len(), at % ARGUMENTS.len());
                        bad.push(format!(
                            "program {seed} {count}: {}({}) is {} by gcc, {} by E-code",
                            names[name], ARGUMENTS[argument], mine[at], found[at]
                        ));
                    }
                }
            }
        }
        std::fs::remove_file(&path).unwrap();
        from = to;
    }
    bad
}
