//! A host in twenty lines: `postern cc -O2 -g -o add.px ../host-c/add.c && cargo run -- add.px`
#![forbid(unsafe_code)]

use postern::{Caller, Domain, Image, Offset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "add.px".into());
    let image = Image::load(path)?;
    let domain = Domain::builder(&image)
        .service("limit", |_: &Caller<'_>| 100i32) // the extension may call it
        .build()?;
    let add = domain.func::<fn(i32, i32) -> i64>("add")?;
    let at = domain.func::<fn(Offset) -> i32>("at")?;
    println!(
        "2 + 3 = {}, 70 + 70 = {}",
        add.call(2, 3)?,
        add.call(70, 70)?
    );
    if let Err(fault) = at.call(Offset::NULL) {
        println!("{fault}"); // a null pointer, in the extension's own memory
    }
    domain.reset()?;
    println!("and on: 4 + 5 = {}", add.call(4, 5)?);
    Ok(())
}
