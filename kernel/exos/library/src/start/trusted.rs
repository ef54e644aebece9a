//! The way into C.

use core::arch::{asm, global_asm};
use core::ffi::{CStr, c_int};
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::context::context;
use postern_exos_abi::address::START;
use postern_exos_abi::start::{DESCRIPTORS, Handed, Head, SIZE};

use crate::process::own;

// Which library this is: a program with pieces of its own may call it otherwise.
global_asm!(
    ".section .rodata.exos_version, \"a\", @progbits",
    ".weak exos_version",
    ".type exos_version, @object",
    "exos_version:",
    concat!(".asciz \"ExOS ", env!("CARGO_PKG_VERSION"), "\""),
    ".text",
);

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

/// Descriptors that were handed on.
pub fn handed() -> impl Iterator<Item = Handed> {
    let count = (own::head().descriptors as usize).min(DESCRIPTORS);
    let first = (START as usize + size_of::<Head>()) as *const Handed;
    // SAFETY: the maker wrote so many there, as the version says, and nobody changes them.
    (0..count).map(move |index| unsafe { first.add(index).read() })
}

/// The folder that the program is started in, if it is not `/`.
pub fn folder() -> Option<&'static [u8]> {
    let at = usize::from(own::head().folder);
    if !(1..SIZE).contains(&at) {
        return None;
    }
    // SAFETY: as above: a string, ended by a zero.
    Some(unsafe { CStr::from_ptr((START as usize + at) as *const _) }.to_bytes())
}

/// Runs the program to its end: constructors, `main`, `exit`.
pub fn main() -> ! {
    unsafe extern "C" {
        static mut environ: *const *const u8;
    }
    let head = own::head();
    let pointers = (START as usize + head.pointers as usize) as *const *const u8;
    let count = head.arguments as usize;
    // SAFETY: the maker wrote the addresses there, of arguments and of variables, each ended by a
    // zero; the program's own functions, each called once, in the order that C has them.
    unsafe {
        let variables = pointers.add(count + 1);
        environ = variables;
        __libc_init_array();
        atexit(__libc_fini_array);
        exit(c_main(count as c_int, pointers, variables))
    }
}
