//! Memory that is filled when it is touched, as the kernel lets a process do it by itself: by a
//! handler of SIGSEGV that gives access, or by a thread that reads a userfaultfd.

use std::ffi::c_void;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::JoinHandle;

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// What pages are filled with.
static CONTENTS: [u8; PAGE] = [1; PAGE];

fn system(what: &str) -> String {
    format!("{what}: {}", Error::last_os_error())
}

/// Pages of nobody else, until this is dropped.
struct Memory {
    start: usize,
    len: usize,
}

impl Memory {
    fn new(pages: usize, protection: i32) -> Result<Memory, String> {
        let len = pages * PAGE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a mapping at a place of the kernel's choice.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
        match start {
            libc::MAP_FAILED => Err(system("map pages")),
            start => Ok(Memory {
                start: start as usize,
                len,
            }),
        }
    }

    /// The first byte of a page, which somebody fills when this touches it.
    fn touch(&self, page: usize) -> u8 {
        assert!(page < self.len / PAGE);
        // SAFETY: within the mapping; whoever fills it writes no byte but once.
        unsafe { ((self.start + page * PAGE) as *const u8).read_volatile() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing refers to it.
        unsafe { libc::munmap(self.start as *mut c_void, self.len) };
    }
}

/// Where the handler of SIGSEGV fills pages.
static FILLED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

extern "C" fn fill(signal: i32, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel passes where the access was. A page of the mapping of `SignalPages` is
    // filled there, which stays while this handler is installed; with any other fault the process
    // ends, as without it.
    unsafe {
        let page = (*info).si_addr() as usize & !(PAGE - 1);
        if !(FILLED[0].load(SeqCst)..FILLED[1].load(SeqCst)).contains(&page) {
            libc::signal(signal, libc::SIG_DFL);
            return;
        }
        let both = libc::PROT_READ | libc::PROT_WRITE;
        libc::mprotect(page as *mut c_void, PAGE, both);
        ptr::copy_nonoverlapping(CONTENTS.as_ptr(), page as *mut u8, PAGE);
    }
}

/// Pages that a handler of SIGSEGV fills, in place of the one that was there, until this is
/// dropped. One at a time.
pub struct SignalPages {
    memory: Memory,
    old: libc::sigaction,
}

impl SignalPages {
    /// So many.
    ///
    /// # Errors
    /// No memory.
    pub fn new(pages: usize) -> Result<SignalPages, String> {
        let memory = Memory::new(pages, libc::PROT_NONE)?;
        FILLED[0].store(memory.start, SeqCst);
        FILLED[1].store(memory.start + memory.len, SeqCst);
        // SAFETY: plain data is zeroed; the handler does what one may.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler = fill as extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void);
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGSEGV, &action, &mut old);
            Ok(SignalPages { memory, old })
        }
    }

    /// The first byte of a page.
    pub fn touch(&self, page: usize) -> u8 {
        self.memory.touch(page)
    }
}

impl Drop for SignalPages {
    fn drop(&mut self) {
        // SAFETY: puts back what was there before.
        unsafe { libc::sigaction(libc::SIGSEGV, &self.old, ptr::null_mut()) };
    }
}

/// Pages that a thread fills, which reads a userfaultfd, until this is dropped.
pub struct ThreadPages {
    memory: Memory,
    end: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl ThreadPages {
    /// So many.
    ///
    /// # Errors
    /// No memory, or no userfaultfd.
    pub fn new(pages: usize) -> Result<ThreadPages, String> {
        const USER_MODE_ONLY: i32 = 1;
        let memory = Memory::new(pages, libc::PROT_READ | libc::PROT_WRITE)?;
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
        // SAFETY: both calls make a descriptor, which is nobody else's.
        let (faults, end) = unsafe {
            let faults = libc::syscall(libc::SYS_userfaultfd, flags) as i32;
            let faults = (faults >= 0).then(|| OwnedFd::from_raw_fd(faults));
            let end = libc::eventfd(0, libc::EFD_CLOEXEC);
            let end = (end >= 0).then(|| OwnedFd::from_raw_fd(end));
            (faults.zip(end)).ok_or_else(|| system("userfaultfd"))?
        };
        control(&faults, 0xc018_aa3f, &mut [0xaa, 1 << 5, 0])?;
        let (start, len) = (memory.start as u64, memory.len as u64);
        control(&faults, 0xc020_aa00, &mut [start, len, 1, 0])?;
        let ends = end.try_clone().map_err(|error| error.to_string())?;
        let thread = std::thread::spawn(move || serve(&faults, &ends));
        Ok(ThreadPages {
            memory,
            end,
            thread: Some(thread),
        })
    }

    /// The first byte of a page.
    pub fn touch(&self, page: usize) -> u8 {
        self.memory.touch(page)
    }
}

impl Drop for ThreadPages {
    fn drop(&mut self) {
        // SAFETY: writes eight bytes to a descriptor of its own.
        unsafe { libc::write(self.end.as_raw_fd(), ptr::from_ref(&1u64).cast(), 8) };
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn control<const WORDS: usize>(
    faults: &OwnedFd,
    what: libc::Ioctl,
    words: &mut [u64; WORDS],
) -> Result<(), String> {
    // SAFETY: each request has a structure of so many words; what else the kernel writes are pages
    // of the mapping that is registered.
    match unsafe { libc::ioctl(faults.as_raw_fd(), what, words.as_mut_ptr()) } {
        0 => Ok(()),
        _ => Err(system("userfaultfd")),
    }
}

/// Fills each page that is touched, until `end` is rung.
fn serve(faults: &OwnedFd, end: &OwnedFd) {
    loop {
        let wait = |descriptor: &OwnedFd| libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut waits = [wait(faults), wait(end)];
        let mut message = [0u64; 4];
        // SAFETY: the kernel writes both arrays, of the lengths that it is told.
        let read = unsafe {
            libc::poll(waits.as_mut_ptr(), 2, -1);
            if waits[1].revents != 0 {
                return;
            }
            libc::read(faults.as_raw_fd(), message.as_mut_ptr().cast(), 32)
        };
        if read == 32 {
            let page = message[2] & !(PAGE as u64 - 1);
            let from = CONTENTS.as_ptr() as u64;
            let _ = control(faults, 0xc028_aa03, &mut [page, from, PAGE as u64, 0, 0]);
        }
    }
}
