//! Entries that give the processor back.

use core::arch::global_asm;
use core::mem::offset_of;

use postern_aegis::abi::{Call, Context, ROOT};
use postern_aegis::context;

global_asm!(
    ".text",
    ".global bounce_synchronous, bounce_asynchronous, bounce_begin",
    "bounce_synchronous:", // rax: who called
    "shll $8, %eax",
    "orl ${synchronous}, %eax",
    "syscall",
    "ud2",
    "bounce_asynchronous:",
    "shll $8, %eax",
    "orl ${asynchronous}, %eax",
    "syscall",
    "ud2",
    "bounce_begin:",
    "movl ${yields}, %eax",
    "syscall",
    "ud2",
    synchronous = const Call::CallSynchronous as u64,
    asynchronous = const Call::CallAsynchronous as u64,
    yields = const (ROOT as u64) << 8 | Call::Yield as u64,
    options(att_syntax)
);

unsafe extern "C" {
    static bounce_synchronous: u8;
    static bounce_asynchronous: u8;
    fn bounce_begin() -> !;
}

/// From now on this program is its entries.
pub fn bounce() -> ! {
    // SAFETY: nothing of the program goes on behind the entries but they themselves; they use no
    // memory and no stack.
    unsafe {
        let set = |offset: usize, to: u64| context::store_word(offset / 8, to);
        set(
            offset_of!(Context, synchronous),
            (&raw const bounce_synchronous) as u64,
        );
        set(
            offset_of!(Context, asynchronous),
            (&raw const bounce_asynchronous) as u64,
        );
        set(offset_of!(Context, begin), bounce_begin as *const () as u64);
        bounce_begin()
    }
}
