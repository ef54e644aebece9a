//! Prints the random program of a seed: `cargo run -p postern-ecode --example program SEED
//! [FUNCTIONS]`
#[path = "../tests/support/generate.rs"]
mod generate;
fn main() {
    let mut args = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    print!(
        "{}",
        generate::program(args.next().unwrap_or(0), args.next().unwrap_or(40) as usize)
    );
}
