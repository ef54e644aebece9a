//! What the kernel lays on a stack for a signal's handler: copied elsewhere, and read again by
//! `rt_sigreturn` from there.

use libc::ucontext_t;
use std::arch::asm;
use std::mem::offset_of;

/// Bytes of the context that the kernel reads and writes on this processor. Behind the mask in
/// libc's structure is what the kernel has not.
pub(crate) const CONTEXT: usize = 304;
const _: () = assert!(
    offset_of!(ucontext_t, uc_sigmask) + 8 == CONTEXT && offset_of!(ucontext_t, uc_mcontext) == 40
);
/// Where the context says where the vector state is.
const VECTORS: usize = offset_of!(ucontext_t, uc_mcontext) + 23 * 8;
/// Where the first 512 bytes of the vector state say how long it is, if this word is there.
const SW_BYTES: usize = 464;
const MAGIC: u32 = 0x4650_5853;
/// Its length without that.
const LEGACY: usize = 512;

/// Alignment of a copy of the vector state.
pub(crate) const ALIGNMENT: usize = 64;

/// The vector state of a context, and its length; null and 0 if there is none.
///
/// # Safety
/// The address is that of the kernel's context, or of a copy.
pub(crate) unsafe fn vectors(context: *const u8) -> (*mut u8, usize) {
    // SAFETY: the kernel has laid the context there, and the vector state where it says, of the
    // length that stands in it.
    unsafe {
        let from = context.add(VECTORS).cast::<*mut u8>().read_unaligned();
        if from.is_null() {
            return (from, 0);
        }
        let word = |at: usize| from.add(at).cast::<u32>().read_unaligned();
        let bytes = match word(SW_BYTES) {
            MAGIC => word(SW_BYTES + 4) as usize,
            _ => LEGACY,
        };
        (from, bytes)
    }
}

/// Copies what `rt_sigreturn` reads.
///
/// # Safety
/// `context` is the kernel's; `to` has [`CONTEXT`] bytes that the caller may write, and `vectors`
/// as many, with its [`ALIGNMENT`], as [`vectors`] says.
pub(crate) unsafe fn copy(context: *const u8, to: *mut u8, vectors: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let (from, bytes) = self::vectors(context);
        to.copy_from_nonoverlapping(context, CONTEXT);
        if bytes != 0 {
            vectors.copy_from_nonoverlapping(from, bytes);
            to.add(VECTORS).cast::<*mut u8>().write_unaligned(vectors);
        }
    }
}

/// Goes on where a context says, with this gs base and errno.
///
/// # Safety
/// `context` is what [`copy`] has made of the calling thread's, whole; and nothing above it on its
/// stack is needed any more.
pub(crate) unsafe fn go_on(context: *const u8, gs: u64, errno: i32) -> ! {
    // SAFETY: errno's location is valid. The gs base is one that the thread had. At the address of
    // the copy `rt_sigreturn` finds what the kernel has saved, in the shape in which it saved it.
    unsafe {
        *libc::__errno_location() = errno;
        asm!(
            "wrgsbase {gs}",
            "mov rsp, {context}",
            "mov eax, {sigreturn}",
            "syscall",
            "ud2",
            gs = in(reg) gs,
            context = in(reg) context,
            sigreturn = const libc::SYS_rt_sigreturn,
            options(noreturn)
        )
    }
}
