//! Link scripts: roots are flat, other programs have two segments.

use std::env::var;
use std::path::Path;

const ROOTS: &[&str] = &["hello", "echo", "monitor", "tests", "demo", "bench", "fuzz"];
const OTHERS: &[&str] = &["player", "hammer", "bounce"];

fn main() {
    let folder = var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    for (script, programs) in [("root.ld", ROOTS), ("program.ld", OTHERS)] {
        let script = Path::new(&folder).join("link").join(script);
        println!("cargo:rerun-if-changed={}", script.display());
        for program in programs {
            println!("cargo:rustc-link-arg-bin={program}=-T{}", script.display());
        }
    }
    for option in [
        "--gc-sections",
        "-zmax-page-size=4096",
        "--no-dynamic-linker",
        "-znognustack",
    ] {
        println!("cargo:rustc-link-arg-bins={option}");
    }
}
