//! Several copies of this library in one process: how one recognises another's signal handler.
//!
//! Each copy's handler is reached through a jump that has sixteen known bytes before it
//! ([`super::signal`] has it). A copy that was loaded later chains to the earlier one, so the
//! earlier one need not worry when it finds such a handler in its place.

const MAGIC: [u8; 16] = *b"postern handler\0";

unsafe extern "C" {
    static postern_on_signal: u8;
}

/// The address to install as handler.
pub(super) fn handler() -> usize {
    &raw const postern_on_signal as usize
}

/// Whether `address` is the handler of this or another copy.
///
/// # Safety
/// It is `SIG_DFL`, `SIG_IGN`, or the address of a handler that is installed.
pub(super) unsafe fn is_handler(address: usize) -> bool {
    // Handlers of ours are 16 bytes into a 32-byte line, so the bytes before one lie in the same
    // page.
    if address % 32 != 16 {
        return false;
    }
    // SAFETY: an installed handler's page is readable text, and the 16 bytes before this address
    // are in that page.
    unsafe { *((address - 16) as *const [u8; 16]) == MAGIC }
}
