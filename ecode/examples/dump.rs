//! Prints what E-code makes of a file: `cargo run -p postern-ecode --example dump FILE [OUT]`; the
//! text goes to OUT.
fn main() {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        eprintln!("usage: dump FILE [OUT]");
        std::process::exit(2);
    };
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        eprintln!("{path}: {error}");
        std::process::exit(2);
    });
    match postern_ecode::compile(&source) {
        Err(errors) => {
            eprintln!("{errors}");
            std::process::exit(1);
        }
        Ok(unit) => {
            for symbol in &unit.symbols {
                println!(
                    "{:6x} {:6} {:?} {} {}",
                    symbol.offset, symbol.size, symbol.section, symbol.name, symbol.signature
                );
            }
            println!(
                "text {} rodata {} data {} bss {}",
                unit.text.len(),
                unit.rodata.len(),
                unit.data.len(),
                unit.bss
            );
            if let Some(out) = args.next() {
                std::fs::write(out, &unit.text).unwrap();
            }
        }
    }
}
