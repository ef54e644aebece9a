//! How many instructions the kernel's operations take: the root of `make aegis-bench`. Each row is a
//! line `figure NAME INSTRUCTIONS REPEATS`, for the host to set beside Linux's.
//!
//! | module | what |
//! |---|---|
//! | `trusted`, `bench.s` | what is measured, between two readings of the clock |
//! | `rows` | the least of some measurements, as a line |
//! | `memory`, `exceptions`, `environments`, `filters` | the rows |
//! | `network` | those that wait for a peer: all, and nothing else, if the archive has a file `network` |
#![no_std]
#![no_main]

mod environments;
mod exceptions;
mod filters;
mod memory;
mod network;
mod rows;
mod trusted;

use postern_aegis::abi::Call;
use postern_aegis::abi::status::{FAILED, WELL};
use postern_aegis::{archive, calls, println, start};

use rows::{Outcome, Refused, call_row, row};

postern_aegis::program!(main);

fn main() -> ! {
    let status = match all() {
        Ok(()) => WELL,
        Err(Refused(what, error)) => {
            println!("bench: {what}: {error}");
            FAILED
        }
    };
    let _ = calls::stop(status);
    start::exit()
}

fn all() -> Outcome {
    if archive::own().file("network").is_some() {
        return network::all();
    }
    row("procedure", 1, || Ok(trusted::procedure()))?;
    call_row("null", Call::Null, &[])?;
    call_row("null-stack", Call::NullStack, &[])?;
    call_row("fpu", Call::Fpu, &[1])?;
    let _ = calls::fpu(false);
    exceptions::all()?;
    environments::transfers()?;
    environments::births()?;
    environments::slices()?;
    memory::all()?;
    filters::all()
}
