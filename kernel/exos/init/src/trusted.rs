//! The registry's lock, and pages that others see.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use postern_aegis::entry::Message;
use postern_exos_abi::directory::Entry;
use postern_exos_abi::mailbox::Mailbox;
use postern_exos_abi::service::Services;
use postern_exos_abi::table::Table;

/// A value that one function has at a time; another one does not wait for it.
#[derive(Debug)]
pub struct Guarded<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached between taking and giving back the flag.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// A value.
    pub const fn new(value: T) -> Guarded<T> {
        Guarded {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Does something with it, unless somebody does already.
    pub fn attempt<R>(&self, what: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: nobody else has it until the flag is given back.
        let result = what(unsafe { &mut *self.value.get() });
        self.taken.store(false, Ordering::Release);
        Some(result)
    }
}

/// The table of processes, in pages that were bound for it.
pub fn table(at: u64) -> &'static Table {
    // SAFETY: the caller has bound whole pages of zeros there, for good; all words are atomics.
    unsafe { &*(at as *const Table) }
}

/// The page of services, the same way.
pub fn services(at: u64) -> &'static Services {
    // SAFETY: as above.
    unsafe { &*(at as *const Services) }
}

/// A mailbox, in a page that was bound for it and stays until the window is bound to another: all
/// words are atomics, so that two names for one word do no harm.
pub fn mailbox(at: u64) -> &'static Mailbox {
    // SAFETY: as above.
    unsafe { &*(at as *const Mailbox) }
}

/// Writes an entry of the directory.
pub fn write_entry(at: u64, entry: &Entry) {
    // SAFETY: the caller has bound a page there, which nobody reads yet.
    unsafe { (at as *mut Entry).write(*entry) }
}

/// A page's number among those of the archive.
pub fn write_number(at: u64, number: u32) {
    // SAFETY: as above.
    unsafe { &*(at as *const AtomicU32) }.store(number, Ordering::Relaxed);
}

// Requests come on a stack of 8 KiB with nothing between it and what stands below; decisions take
// more, so they have one of their own. One request is served at a time.
global_asm!(
    ".section .text.init_on_stack, \"ax\", @progbits",
    "init_on_stack:",
    "pushq %rbp",
    "movq %rsp, %rbp",
    "leaq init_stack_end(%rip), %rsp",
    "movq %rdi, %rax",
    "movq %rsi, %rdi",
    "call *%rax",
    "movq %rbp, %rsp",
    "popq %rbp",
    "ret",
    ".section .bss.init_stack, \"aw\", @nobits",
    ".balign 16",
    ".skip 65536",
    "init_stack_end:",
    ".text",
    options(att_syntax)
);

unsafe extern "C" {
    fn init_on_stack(function: extern "C" fn(&mut Message), message: &mut Message);
}

/// Has a function serve a request on a stack of 64 KiB, whose one user it is.
pub fn on_stack(function: extern "C" fn(&mut Message), message: &mut Message) {
    // SAFETY: it calls the function with the message as C does. Nobody else uses the stack, since
    // the entries have one request served at a time.
    unsafe { init_on_stack(function, message) }
}
