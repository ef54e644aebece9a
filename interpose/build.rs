//! Builds the loader, which `src/lib.rs` has as bytes.

use std::env::{var, var_os};
use std::path::Path;
use std::process::Command;

fn main() {
    let here = var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let target = Path::new(&var("OUT_DIR").expect("cargo sets it")).join("loader");
    let folder = Path::new(&here).join("loader");
    for part in [
        "loader",
        "../gates/src",
        "../image/src",
        "../verifier/src",
        "../x86/src",
    ] {
        println!("cargo:rerun-if-changed={part}");
    }
    let cargo = var_os("CARGO").expect("cargo sets it");
    let mut build = Command::new(cargo);
    build
        .args(["build", "--release", "--locked", "--quiet"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", &target);
    // It has flags of its own, in `loader/.cargo`.
    for of_this_build in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
    ] {
        build.env_remove(of_this_build);
    }
    let built = build.status().expect("cargo can be started");
    assert!(built.success(), "the loader cannot be built");
    let loader = target.join("x86_64-unknown-linux-gnu/release/postern-loader");
    println!("cargo:rustc-env=POSTERN_LOADER={}", loader.display());
}
