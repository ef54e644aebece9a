//! The root environment of ExOS: registry of processes and keeper of pages that they share. It
//! decides who may be made and who may act on whom; the work is done by the library in the
//! processes themselves.
#![no_std]
#![no_main]

use postern_aegis::abi::call::NAME_EVERYBODY;
use postern_aegis::abi::records::CONSOLE;
use postern_aegis::load::{self, Plan};
use postern_aegis::{archive, calls, entry, println, start};

postern_aegis::program!(main);

fn main() -> ! {
    let _ = calls::rename_holding(CONSOLE, NAME_EVERYBODY, NAME_EVERYBODY);
    let line = archive::own().file("init").unwrap_or(b"sh");
    let name = core::str::from_utf8(line).unwrap_or_default().trim();
    let child = load::program(name, &Plan::new([0; 8]));
    match child.and_then(|child| child.run_on(0).map(|_| child)) {
        Err(error) => println!("init: {name}: {error}"),
        Ok(child) => {
            while child.lives() {
                entry::yield_slice();
            }
        }
    }
    let _ = calls::stop(0);
    start::exit()
}
