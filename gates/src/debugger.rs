//! GDB's interface for code that was made at run time (GDB manual, "JIT Compilation Interface"): a
//! list of files in memory, and a function with a breakpoint in it.
//!
//! Both symbols are weak, so that another library of the process that defines them, too, is not in
//! the way: the list is then common to both. Invariant: an entry and its file live as long as they
//! are in the list.

use std::arch::global_asm;
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard};

global_asm!(
    ".weak __jit_debug_register_code",
    ".type __jit_debug_register_code, @function",
    "__jit_debug_register_code:",
    "nop",
    "ret",
    ".size __jit_debug_register_code, . - __jit_debug_register_code",
    ".pushsection .data",
    ".balign 8",
    ".weak __jit_debug_descriptor",
    ".type __jit_debug_descriptor, @object",
    ".size __jit_debug_descriptor, 24",
    "__jit_debug_descriptor:",
    ".long 1, 0",
    ".quad 0, 0",
    ".popsection",
);

#[repr(C)]
struct JitCodeEntry {
    next: *mut JitCodeEntry,
    previous: *mut JitCodeEntry,
    file: *const u8,
    size: u64,
}

#[repr(C)]
struct JitDescriptor {
    version: u32,
    action: u32,
    relevant: *mut JitCodeEntry,
    first: *mut JitCodeEntry,
}

const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

unsafe extern "C" {
    static mut __jit_debug_descriptor: JitDescriptor;
    fn __jit_debug_register_code();
}

/// An entry with its file.
struct Shown {
    entry: Box<JitCodeEntry>,
    _file: Vec<u8>,
}

/// What is in the list, by number.
#[derive(Default)]
struct All(HashMap<u32, Shown>);

// SAFETY: the pointers of an entry are followed under the lock only (and by GDB, which stops the
// process).
unsafe impl Send for All {}

static ALL: Mutex<Option<All>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<All>> {
    ALL.lock().unwrap_or_else(|e| e.into_inner())
}

/// Holds the list, for a thread that forks. Of what is held nothing can be touched.
pub fn all() -> impl Sized + 'static {
    lock()
}

/// Tells the debugger of a file, in place of the one that had this number.
pub fn show(number: u32, file: Vec<u8>) {
    let mut guard = lock();
    let all = guard.get_or_insert_default();
    remove(all, number);
    let mut entry = Box::new(JitCodeEntry {
        next: null_mut(),
        previous: null_mut(),
        file: file.as_ptr(),
        size: file.len() as u64,
    });
    // SAFETY: the descriptor and the list are ours while the lock is held (or of another library
    // that makes code on this very thread's behalf); the entry is boxed and lives until `remove`
    // has taken it out.
    unsafe {
        let descriptor = &raw mut __jit_debug_descriptor;
        let first = (*descriptor).first;
        entry.next = first;
        if let Some(first) = first.as_mut() {
            first.previous = &mut *entry;
        }
        (*descriptor).first = &mut *entry;
        (*descriptor).relevant = &mut *entry;
        (*descriptor).action = REGISTER;
        __jit_debug_register_code();
    }
    all.0.insert(number, Shown { entry, _file: file });
}

/// Tells the debugger that the file with this number goes; false if there is none.
pub fn hide(number: u32) -> bool {
    lock().as_mut().is_some_and(|all| remove(all, number))
}

fn remove(all: &mut All, number: u32) -> bool {
    let Some(mut shown) = all.0.remove(&number) else {
        return false;
    };
    // SAFETY: as in `show`; neighbours in the list live, because whoever is dropped is taken out
    // first.
    unsafe {
        let descriptor = &raw mut __jit_debug_descriptor;
        let (next, previous) = (shown.entry.next, shown.entry.previous);
        if let Some(next) = next.as_mut() {
            next.previous = previous;
        }
        match previous.as_mut() {
            Some(previous) => previous.next = next,
            None => (*descriptor).first = next,
        }
        (*descriptor).relevant = &mut *shown.entry;
        (*descriptor).action = UNREGISTER;
        __jit_debug_register_code();
        (*descriptor).relevant = null_mut();
        (*descriptor).action = 0;
    }
    true
}
