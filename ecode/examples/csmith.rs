//! Programs of csmith by gcc and by E-code: `make csmith`, or `cargo run --release -p postern-ecode
//! --example csmith [COUNT [SEED]]`. Exit status 1: something differs.
#[path = "../tests/support/mod.rs"]
mod support;

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |otherwise| support::number(&mut args, otherwise, "csmith [COUNT [SEED]]");
    let (count, first) = (number(100), number(1));
    let report = support::csmith::run(first..first + count);
    for (seed, why) in &report.failed {
        println!("FAILED seed {seed}: {why}");
    }
    println!(
        "csmith through E-code: {} passed, {} passed over, {} outside of the language, {} failed",
        report.passed,
        report.skipped,
        report.outside,
        report.failed.len()
    );
    std::process::exit(i32::from(!report.failed.is_empty()));
}
