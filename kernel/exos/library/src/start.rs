//! How a process begins: from Aegis' entry to C's `main`.

mod trusted;

use postern_aegis::entry;

postern_aegis::program!(begin);

fn begin() -> ! {
    entry::coprocessor(true);
    crate::ipc::begin();
    trusted::set_thread_pointer();
    trusted::main()
}
