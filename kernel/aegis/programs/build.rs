//! Link scripts: roots are flat, other programs have two segments.

use std::env::var;
use std::path::Path;

const ROOTS: &[&str] = &["hello"];

fn main() {
    let folder = var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let link = Path::new(&folder).join("link");
    for script in ["root.ld", "program.ld"] {
        println!("cargo:rerun-if-changed={}", link.join(script).display());
    }
    for root in ROOTS {
        println!(
            "cargo:rustc-link-arg-bin={root}=-T{}",
            link.join("root.ld").display()
        );
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
