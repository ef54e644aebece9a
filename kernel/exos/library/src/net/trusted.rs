//! Frames as bytes, this process's stack, and pages of others.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::slice;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed};

use postern_aegis::abi::device::Ring;
use postern_exos_abi::network::Page;

use crate::net::own::Net;

/// How many entries of a ring the kernel has filled.
pub fn filled(ring: u64) -> u64 {
    let at = ring + offset_of!(Ring, filled) as u64;
    // SAFETY: whoever has a ring has its page bound; the kernel stores to the word whole.
    unsafe { &*(at as *const AtomicU64) }.load(Acquire)
}

/// The bytes of a frame that came. The kernel stores to its page only while the place is offered,
/// which it is not until the inlet is done with it.
pub fn frame<'a>(at: u64, length: usize) -> &'a [u8] {
    // SAFETY: an inlet's page, bound for as long as this environment lives; the borrow of the inlet
    // keeps it from offering the place again.
    unsafe { slice::from_raw_parts(at as *const u8, length) }
}

/// A place for a frame that goes.
pub fn frame_to_fill<'a>(at: u64, length: usize) -> &'a mut [u8] {
    // SAFETY: an outlet's page, bound for as long as this environment lives, of which a device only
    // reads; the borrow of the outlet keeps others from the place.
    unsafe { slice::from_raw_parts_mut(at as *mut u8, length) }
}

/// The page of the service `net`, bound at an address.
pub fn page(at: u64) -> &'static Page {
    // SAFETY: it is bound there, to be read, for as long as this environment lives: pages that are kept
    // stay as long as somebody binds them. Its words are atomics.
    unsafe { &*(at as *const Page) }
}

/// This process's network, which one function uses at a time.
struct Own {
    net: UnsafeCell<Option<Net>>,
    busy: AtomicBool,
}

// SAFETY: a process has one thread; `busy` keeps what interrupts it from a second borrow.
unsafe impl Sync for Own {}

static OWN: Own = Own {
    net: UnsafeCell::new(None),
    busy: AtomicBool::new(false),
};

/// Does something with this process's network; `None`: it is in use, in what this interrupts.
pub fn with<T>(act: impl FnOnce(&mut Option<Net>) -> T) -> Option<T> {
    if OWN.busy.swap(true, Acquire) {
        return None;
    }
    // SAFETY: whoever finds `busy` set has no borrow, and this one ends before it is cleared.
    let result = act(unsafe { &mut *OWN.net.get() });
    OWN.busy.store(false, Relaxed);
    Some(result)
}

/// A number that the processor draws.
pub fn random() -> u64 {
    let (mut drawn, mut got) = (0u64, 0u8);
    for _ in 0..16 {
        // SAFETY: reads the processor's random numbers, which Aegis asks for.
        unsafe {
            asm!("rdrand {}", "setc {}", out(reg) drawn, out(reg_byte) got, options(nomem, nostack));
        }
        if got != 0 {
            break;
        }
    }
    drawn
}
