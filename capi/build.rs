//! How the shared library is linked: under its installed name, never unloaded (signal handlers,
//! thread-end hooks and C function pointers live in it), and with nothing left to be found missing
//! later.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        "-Wl,-soname,libpostern.so.0",
        "-Wl,-z,nodelete",
        "-Wl,-z,defs",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
