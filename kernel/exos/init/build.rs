//! The link script of Aegis' root programs.

use std::env::var;
use std::path::Path;

fn main() {
    let folder = var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let script = Path::new(&folder).join("../../aegis/programs/link/root.ld");
    println!("cargo:rerun-if-changed={}", script.display());
    println!("cargo:rustc-link-arg-bins=-T{}", script.display());
    for option in [
        "--gc-sections",
        "-zmax-page-size=4096",
        "--no-dynamic-linker",
        "-znognustack",
    ] {
        println!("cargo:rustc-link-arg-bins={option}");
    }
}
