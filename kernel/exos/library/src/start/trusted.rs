//! The way into C.

use core::arch::asm;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::context::context;

unsafe extern "C" {
    #[link_name = "main"]
    fn c_main(count: c_int, arguments: *const *const u8, variables: *const *const u8) -> c_int;
    fn __libc_init_array();
    fn __libc_fini_array();
    fn atexit(function: unsafe extern "C" fn()) -> c_int;
    fn exit(status: c_int) -> !;
}

/// newlib's constructors call these, too, which nothing here needs.
#[unsafe(no_mangle)]
extern "C" fn _init() {}

/// As [`_init`].
#[unsafe(no_mangle)]
extern "C" fn _fini() {}

/// Has the base of fs be the thread pointer, behind the variables of the only thread (`exos.ld`).
pub fn set_thread_pointer() {
    unsafe extern "C" {
        #[link_name = "thread_pointer"]
        static POINTER: u8;
    }
    let base = &raw const POINTER as u64;
    context().fs.store(base, Relaxed);
    // SAFETY: a base of this process's own, from which nothing was addressed before; Aegis lets
    // programs set it.
    unsafe { asm!("wrfsbase {}", in(reg) base, options(nostack, preserves_flags)) };
}

/// Runs the program to its end: constructors, `main`, `exit`.
pub fn main() -> ! {
    let arguments = [c"program".as_ptr().cast(), core::ptr::null()];
    let variables = [core::ptr::null()];
    // SAFETY: the program's own functions, each called once, in the order that C has them.
    unsafe {
        __libc_init_array();
        atexit(__libc_fini_array);
        exit(c_main(1, arguments.as_ptr(), variables.as_ptr()))
    }
}
