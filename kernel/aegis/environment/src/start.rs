//! How a program begins and ends. The kernel enters at the link script's entry with no stack;
//! assembly takes one and comes to [`program`](crate::program)'s function.

mod trusted;

use core::panic::PanicInfo;

use crate::calls::{self, Target};
use crate::{books, println};

/// Ends this environment.
pub fn exit() -> ! {
    loop {
        // Only a tick can be between this and the end.
        let _ = calls::destroy(Target::SELF);
    }
}

/// What a panic of any program does: it says where, and the environment ends; the root stops the
/// machine, since nobody is left who could.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("environment {}: {info}", books::own_number());
    let _ = calls::stop(PANIC);
    exit()
}

/// The machine's status when the root panics.
pub const PANIC: u8 = 3;

/// Names a program's first function: `fn() -> !`.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        /// Where assembly comes to, on a stack.
        #[unsafe(no_mangle)]
        extern "C" fn aegis_main() -> ! {
            let main: fn() -> ! = $main;
            $crate::entry::install();
            main()
        }
    };
}
