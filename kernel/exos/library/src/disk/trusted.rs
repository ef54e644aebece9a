//! Pages as blocks, this process's one driver, and functions of C that choose.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use core::{ptr, slice};

use postern_aegis::PAGE;
use postern_exos_fs::Block;

use crate::disk::driver::Driver;

/// Has the page of an address come, to be read, or to be written as well.
pub fn touch(at: u64, is_written: bool) {
    let byte = at as *mut u8;
    // SAFETY: the driver names addresses of blocks that it has borrowed, to be written if it says
    // so. Nobody else stores there meanwhile: a process has one thread.
    unsafe {
        let was = byte.read_volatile();
        if is_written {
            byte.write_volatile(was);
        }
    }
}

/// Copies a page: of two, one is the driver's spare one, the other a block that it has borrowed.
pub fn copy(to: u64, from: u64) {
    // SAFETY: as above; they are different pages.
    unsafe { ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, PAGE) }
}

/// Pages from an address on, as blocks, for good.
///
/// Whoever asks has bound so many pages of its own there, which nobody else has bound to be
/// written, and asks once.
pub fn blocks(at: u64, count: usize) -> &'static mut [Block] {
    // SAFETY: as the function says. Any bytes are a block; the address is a page's.
    unsafe { slice::from_raw_parts_mut(at as *mut Block, count) }
}

struct Own {
    driver: UnsafeCell<Option<(u32, Driver)>>,
    busy: AtomicBool,
}

// SAFETY: a process has one thread; `busy` keeps what interrupts it from a second borrow.
unsafe impl Sync for Own {}

static OWN: Own = Own {
    driver: UnsafeCell::new(None),
    busy: AtomicBool::new(false),
};

/// Does something with this process's driver, and whose it is; `None`: it is in use, in what this
/// interrupts.
pub fn with<T>(act: impl FnOnce(&mut Option<(u32, Driver)>) -> T) -> Option<T> {
    if OWN.busy.swap(true, Acquire) {
        return None;
    }
    // SAFETY: `busy` was not set, so nobody has a reference.
    let done = act(unsafe { &mut *OWN.driver.get() });
    OWN.busy.store(false, Release);
    Some(done)
}

/// Functions of a program that choose which frame is given up (`struct exos_cache_policy`); null:
/// none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    begin: Option<extern "C" fn(*mut c_void, u32)>,
    filled: Option<extern "C" fn(*mut c_void, u32, u64)>,
    used: Option<extern "C" fn(*mut c_void, u32)>,
    emptied: Option<extern "C" fn(*mut c_void, u32)>,
    choose: Option<
        extern "C" fn(*mut c_void, extern "C" fn(*mut c_void, u32) -> i32, *mut c_void) -> i64,
    >,
    of: *mut c_void,
}

/// Asks whether a frame may be given up.
extern "C" fn may(which: *mut c_void, frame: u32) -> i32 {
    let may = which.cast::<&mut dyn FnMut(u32) -> bool>();
    // SAFETY: `choose` has made it of a reference that lives while the program's function runs,
    // which is the only one that has it.
    i32::from(unsafe { (*may)(frame) })
}

impl Functions {
    pub fn begin(&mut self, frames: u32) {
        if let Some(begin) = self.begin {
            begin(self.of, frames);
        }
    }

    pub fn filled(&mut self, frame: u32, what: u64) {
        if let Some(filled) = self.filled {
            filled(self.of, frame, what);
        }
    }

    pub fn used(&mut self, frame: u32) {
        if let Some(used) = self.used {
            used(self.of, frame);
        }
    }

    pub fn emptied(&mut self, frame: u32) {
        if let Some(emptied) = self.emptied {
            emptied(self.of, frame);
        }
    }

    /// `None`: the program names none.
    pub fn choose(&mut self, mut ask: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        let choose = self.choose?;
        let frame = choose(self.of, may, ptr::from_mut(&mut ask).cast());
        u32::try_from(frame).ok()
    }
}
