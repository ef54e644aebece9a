//! Words of tables, functions of C, pages below the program's own image.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use postern_aegis::abi::Call;
use postern_aegis::calls::{Target, raw};
use postern_aegis::entry::Frame;
use postern_aegis::{Error, Mapping, PAGE, memory};

use crate::memory::reason::Reason;
use crate::memory::space::Space;

/// Binds a page to any address of the own space, also of the image.
///
/// What stands at an address of the image stays what it is: the caller binds the page that was
/// there before, or one with the same words, or one that the program asked for by its address.
pub fn bind(to: u64, mapping: Mapping, capability: u64) -> Result<(), Error> {
    let arguments = [to, mapping.0, capability, 0, 0, 0];
    // SAFETY: as the function says. Text and constants are bound to be read only, so no reference
    // of Rust sees them change.
    match unsafe { raw(Call::Map as u64, arguments) } {
        Err(Error::NoTable) => {
            memory::give_table(to, 1, Target::SELF)?;
            // SAFETY: as above.
            unsafe { raw(Call::Map as u64, arguments) }.map(drop)
        }
        result => result.map(drop),
    }
}

/// A word of the processor's tables of this space.
#[inline(always)]
pub fn entry(at: u64) -> u64 {
    // SAFETY: the kernel has the tables bound there, to be read; the caller has seen that the one above
    // is there. What is not raises an exception, and changes no memory.
    unsafe { (at as *const u64).read_volatile() }
}

/// Copies a page to another, both bound, and to none of which Rust has a reference.
pub fn copy_page(to: u64, from: u64) {
    // SAFETY: the target is a window of the library's alone. What is read is bytes, bound.
    unsafe {
        asm!("rep movsq", inout("rcx") PAGE / 8 => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
}

/// The program's image, as the link script says: the library's own data, whose pages are there from
/// the beginning; other data, and zeros; where it ends, and the heap begins.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The library's own.
    pub own: u64,
    /// Pages that are copied, or come, before they are stored to.
    pub data: u64,
    /// Behind all.
    pub end: u64,
}

/// Where what stands.
pub fn layout() -> Layout {
    unsafe extern "C" {
        static image_own: u8;
        static image_data: u8;
        static image_end: u8;
    }
    Layout {
        own: &raw const image_own as u64,
        data: &raw const image_data as u64,
        end: &raw const image_end as u64,
    }
}

/// Copies bytes between windows, less than a page.
pub fn copy_bytes(to: u64, from: u64, length: u64) {
    let length = length.min(PAGE as u64);
    // SAFETY: as above.
    unsafe {
        asm!("rep movsb", inout("rcx") length => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
}

struct Once {
    space: UnsafeCell<Space>,
    busy: AtomicBool,
}

// SAFETY: a process has one thread, and `with` lets one caller in at a time.
unsafe impl Sync for Once {}

static SPACE: Once = Once {
    space: UnsafeCell::new(Space::new()),
    busy: AtomicBool::new(false),
};

/// Calls with what is known of this space. Nothing comes back if somebody has it already, whom this
/// caller has interrupted.
pub fn with<T>(call: impl FnOnce(&mut Space) -> T) -> Option<T> {
    // Interruptions come back before this goes on: a load and a store are enough.
    if SPACE.busy.load(Relaxed) {
        return None;
    }
    touch_stack();
    SPACE.busy.store(true, Relaxed);
    // SAFETY: `busy` was not set, so nobody below this caller has a reference.
    let result = call(unsafe { &mut *SPACE.space.get() });
    SPACE.busy.store(false, Relaxed);
    Some(result)
}

/// Whether somebody has it, whom this caller has interrupted.
pub fn busy() -> bool {
    SPACE.busy.load(Relaxed)
}

/// Has the pages of the stack come that the caller needs while nothing can come.
#[inline]
fn touch_stack() {
    // SAFETY: loads that change nothing, where this program's stack is or is to be; where it may
    // not be, the program ends as it would by the call.
    unsafe {
        asm!("mov {0}, [rsp - 4096]", "mov {0}, [rsp - 8192]", out(reg) _,
            options(nostack, preserves_flags, readonly));
    }
}

/// A handler of C for faults: what was interrupted (`struct exos_fault`), argument.
type Handler = extern "C" fn(&mut Frame, *mut c_void) -> c_int;

static HANDLER: AtomicUsize = AtomicUsize::new(0);
static ARGUMENT: AtomicUsize = AtomicUsize::new(0);

/// Registers the program's handler of faults; the former.
#[unsafe(no_mangle)]
extern "C" fn exos_on_fault(handler: usize, argument: usize) -> usize {
    ARGUMENT.store(argument, Relaxed);
    HANDLER.swap(handler, Relaxed)
}

/// Has the program's handler serve a fault, if there is one: whether it did.
pub fn served(frame: &mut Frame) -> bool {
    let handler = HANDLER.load(Relaxed);
    if handler == 0 {
        return false;
    }
    let argument = ARGUMENT.load(Relaxed) as *mut c_void;
    // SAFETY: a function that the program gave as such a handler. Is it none, the program has
    // harmed itself.
    let handler = unsafe { transmute::<usize, Handler>(handler) };
    handler(frame, argument) != 0
}

static OTHERWISE: AtomicUsize = AtomicUsize::new(0);

/// Has a function called for faults that are nobody's.
pub fn set_otherwise(function: fn(&mut Frame, Reason)) {
    OTHERWISE.store(function as usize, Relaxed);
}

/// Calls that function, if there is one.
pub fn otherwise(frame: &mut Frame, reason: Reason) -> bool {
    let word = OTHERWISE.load(Relaxed);
    if word == 0 {
        return false;
    }
    // SAFETY: only `set_otherwise` stores there.
    let function = unsafe { transmute::<usize, fn(&mut Frame, Reason)>(word) };
    function(frame, reason);
    true
}

unsafe extern "C" {
    safe fn __errno() -> *mut c_int;
}

/// Sets C's error number.
pub fn set_errno(error: c_int) {
    // SAFETY: newlib's own variable, of a process with one thread.
    unsafe { *__errno() = error }
}

/// Goes on with a function on another stack, whose end this is.
pub fn on_stack(end: u64, function: extern "C" fn() -> !) -> ! {
    // SAFETY: the caller's frames are never returned to; what is below `end` becomes memory when it
    // is touched.
    unsafe {
        asm!("mov rsp, {end}", "xor ebp, ebp", "call {function}", "ud2",
            end = in(reg) end, function = in(reg) function, options(noreturn));
    }
}

/// A page as an array of C's pointers.
///
/// # Safety
/// The caller of C's function says that they are there.
pub unsafe fn addresses<'a>(from: *const u64, count: usize) -> &'a [u64] {
    if count == 0 {
        return &[];
    }
    // SAFETY: as the function says.
    unsafe { core::slice::from_raw_parts(from, count) }
}

unsafe extern "C" {
    fn exos_fault_policy(frame: &mut Frame, reason: c_int) -> c_int;
}

/// Has the program's fault policy look at a fault: whether it has served it.
pub fn policy(frame: &mut Frame, reason: c_int) -> bool {
    // SAFETY: the library's own, or a function that the program has in its place by this name.
    unsafe { exos_fault_policy(frame, reason) != 0 }
}

// Pieces that a program replaces by defining their names: the policy of faults leaves all of them to
// signals.
global_asm!(
    ".weak exos_page_table",
    ".set exos_page_table, exos_page_table_linear",
    ".weak exos_pager_victim",
    ".set exos_pager_victim, exos_pager_clock",
    ".weak exos_fault_policy",
    ".type exos_fault_policy, @function",
    "exos_fault_policy:",
    "xor eax, eax",
    "ret",
);
