//! What a child tells its debugger, in shared memory.

use postern::testing::ThreadAddresses;
use std::cell::UnsafeCell;

/// In a report: the call ended as it would without interruption. Other values are request kinds, or
/// this one's neighbours.
pub const AS_USUAL: u32 = 100;
pub const WRONG: u32 = 101;

/// The memory, which both have mapped.
#[repr(transparent)]
pub struct Report(UnsafeCell<Contents>);

#[repr(C)]
pub struct Contents {
    pub started: u32,
    pub kind: u32,
    pub signal: i32,
    pub length: u32,
    pub message: [u8; 2000],
    pub thread: [usize; 6],
    pub texts: [(u64, u64); 4],
    /// For tests of upcalls.
    pub upcalls: Upcalls,
}

/// What a child that is attached tells.
#[repr(C)]
pub struct Upcalls {
    pub signal: i32,
    /// The thread's state and records: first address and bytes.
    pub extents: [(usize, usize); 2],
    /// Offsets of words in the state that do not count.
    pub except: [usize; 6],
    /// Upcalls that returned, that were ended, that were skipped, and calls of their service.
    pub counts: [u64; 4],
}

impl Report {
    /// A new one, shared with children.
    pub fn map() -> &'static Report {
        // SAFETY: a new shared mapping, never unmapped; zero is a valid Report.
        unsafe {
            let p = libc::mmap(
                std::ptr::null_mut(),
                size_of::<Report>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(p, libc::MAP_FAILED);
            &*p.cast()
        }
    }

    pub fn update(&self, change: impl FnOnce(&mut Contents)) {
        // SAFETY: only the child writes, only while the parent waits for it; both go through this
        // pointer afresh.
        unsafe {
            let mut copy = std::ptr::read_volatile(self.0.get());
            change(&mut copy);
            std::ptr::write_volatile(self.0.get(), copy);
        }
    }

    fn get(&self) -> Contents {
        // SAFETY: as in `update`.
        unsafe { std::ptr::read_volatile(self.0.get()) }
    }

    pub fn started(&self) -> bool {
        self.get().started != 0
    }

    pub fn signal(&self) -> i32 {
        self.get().signal
    }

    pub fn upcalls(&self) -> Upcalls {
        self.get().upcalls
    }

    pub fn texts(&self) -> [(u64, u64); 4] {
        self.get().texts
    }

    pub fn thread(&self) -> ThreadAddresses {
        let [call_state, sequence, nested, control, request, request_kind] = self.get().thread;
        ThreadAddresses {
            call_state,
            sequence,
            nested,
            control,
            request,
            request_kind,
        }
    }

    pub fn read(&self) -> (u32, String) {
        let report = self.get();
        let bytes = &report.message[..report.length as usize];
        (report.kind, String::from_utf8_lossy(bytes).into_owned())
    }
}
