//! How a process begins: from Aegis' entry to C's `main`.

mod trusted;

use postern_aegis::start::exit;
use postern_aegis::{entry, println};
use postern_exos_abi::VERSION;
use postern_exos_abi::address::STACK;

use crate::files::{descriptors, paths};
use crate::memory;
use crate::process::{fork, own, signals};

postern_aegis::program!(begin);

fn begin() -> ! {
    entry::coprocessor(true);
    fork::go_on_if_copy();
    let version = own::head().version;
    if version != VERSION {
        println!("the start page is of version {version}, and this library's is {VERSION}");
        exit();
    }
    trusted::set_thread_pointer();
    if let Err(error) = memory::begin() {
        println!("no memory to begin with: {error}");
        exit();
    }
    memory::on_refused(signals::faulted);
    signals::install();
    memory::on_stack(STACK, run)
}

extern "C" fn run() -> ! {
    crate::ipc::begin();
    descriptors::open(own::head(), trusted::handed());
    paths::begin(own::head().permissions.into(), trusted::folder());
    trusted::main()
}
