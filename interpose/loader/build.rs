//! Where the loader lies: far from programs, from what the kernel maps for them, and from windows.

fn main() {
    println!("cargo:rustc-link-arg=--image-base=0x7e0000000000");
    for argument in [
        "--no-pie",
        "-static",
        "--no-dynamic-linker",
        "-zseparate-code",
        "-znognustack",
    ] {
        println!("cargo:rustc-link-arg={argument}");
    }
}
