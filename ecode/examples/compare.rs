//! Compares what a file's functions `long fK(long)` return by gcc and by E-code. Exit status 1:
//! they differ; 3: it does not compile with both.
#[path = "../tests/support/mod.rs"]
mod support;
use support::differential;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let source = std::fs::read_to_string(&path).unwrap();
    let names: Vec<String> = (0..200)
        .map(|n| format!("f{n}"))
        .filter(|n| source.contains(&format!("long {n}(long p)")))
        .collect();
    let Ok(expected) = std::panic::catch_unwind(|| differential::native(path.as_ref(), &names))
    else {
        std::process::exit(3)
    };
    match differential::confined(&source, &names) {
        Err(error) => {
            println!("{error}");
            std::process::exit(if error.contains("error:") { 3 } else { 1 });
        }
        Ok(found) if found != expected => {
            for (at, (e, f)) in expected
                .iter()
                .zip(&found)
                .enumerate()
                .filter(|(_, (e, f))| e != f)
            {
                println!(
                    "{}({}): gcc {e}, E-code {f}",
                    names[at / 4],
                    differential::ARGUMENTS[at % 4]
                );
            }
            std::process::exit(1);
        }
        Ok(_) => {}
    }
}
