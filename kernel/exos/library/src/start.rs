//! How a process begins: from Aegis' entry to C's `main`.

mod trusted;

use postern_aegis::start::exit;
use postern_aegis::{entry, println};
use postern_exos_abi::address::STACK;

use crate::memory;

postern_aegis::program!(begin);

fn begin() -> ! {
    entry::coprocessor(true);
    if let Err(error) = memory::begin() {
        println!("no memory to begin with: {error}");
        exit();
    }
    memory::on_stack(STACK, run)
}

extern "C" fn run() -> ! {
    crate::ipc::begin();
    trusted::set_thread_pointer();
    trusted::main()
}
