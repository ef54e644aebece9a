//! A host of a WebAssembly module: `clang --target=wasm32 -mbulk-memory -O2 -nostdlib
//! -Wl,--no-entry -o histogram.wasm histogram.c`, `postern cc histogram.wasm -o histogram.px` and
//! `cargo run -- histogram.px`
#![forbid(unsafe_code)]

use postern::{Caller, Domain, Image, Offset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "histogram.px".into());
    let image = Image::load(path)?;
    let domain = Domain::builder(&image)
        // The module imports it as `env.report`.
        .service("env_report", |_: &Caller<'_>, byte: i32, times: i32| {
            println!("{:?} stands there {times} times", byte as u8 as char);
        })
        .build()?;
    let memory = domain.func::<fn() -> Offset>("wasm_memory")?.call()?;
    let buffer = domain.func::<fn(i32) -> i32>("buffer")?;
    let count = domain.func::<fn(i32, i32) -> i32>("count")?;

    // The module's addresses are counted from the beginning of its memory.
    let text = b"the wall holds, and the postern opens";
    let at = buffer.call(text.len() as i32)?;
    domain.write(Offset(memory.0 + at as u32), text)?;
    println!("{} different bytes", count.call(at, text.len() as i32)?);

    if let Err(trap) = count.call(-1, 10) {
        println!("{trap}"); // an address outside the module's memory
    }
    domain.reset()?;
    println!("and on: {} bytes in nothing", count.call(at, 0)?);
    Ok(())
}
