//! System calls with arguments at random.
//!
//! What the kernel writes lands in a [`Playground`], or where one of the process's other mappings
//! happens to be: of 2^47 bytes that is a few millions, and the process is there to be lost.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use postern_kernel::abi;

const PAGE: usize = 4096;

/// Memory of this process that others may write, with a page behind it that can be read only, and
/// one behind that which cannot be touched.
pub struct Playground {
    at: *mut u8,
    size: usize,
}

impl Playground {
    /// So many bytes, whole pages.
    pub fn new(size: usize) -> io::Result<Playground> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping where the kernel likes.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size + 2 * PAGE,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let open = |at: usize, size, rights| {
            // SAFETY: part of the mapping that was made right above.
            match unsafe { libc::mprotect(at as *mut libc::c_void, size, rights) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        open(at as usize, size, libc::PROT_READ | libc::PROT_WRITE)?;
        open(at as usize + size, PAGE, libc::PROT_READ)?;
        Ok(Playground {
            at: at.cast(),
            size,
        })
    }

    /// Address of the first byte.
    pub fn start(&self) -> u64 {
        self.at as u64
    }

    /// Address behind the last byte that can be written.
    pub fn end(&self) -> u64 {
        self.start() + self.size as u64
    }

    /// Copies bytes to an offset, as far as there is room.
    pub fn put(&self, offset: usize, bytes: &[u8]) {
        let size = bytes.len().min(self.size.saturating_sub(offset));
        // SAFETY: inside the mapping, to which no reference exists.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.add(offset), size) };
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        // SAFETY: its own mapping, of which nothing is left.
        unsafe { libc::munmap(self.at.cast(), self.size + 2 * PAGE) };
    }
}

/// Any request, of a structure at any address. What it opens never makes a reader wait.
pub fn ask_at_random(
    of: &impl AsRawFd,
    number: u64,
    at: u64,
    _: &Playground,
) -> io::Result<Option<OwnedFd>> {
    // SAFETY: as the head of this file says.
    let value = unsafe { libc::ioctl(of.as_raw_fd(), number, at) };
    if value < 0 {
        return Err(io::Error::last_os_error());
    }
    if number != abi::OPEN {
        return Ok(None);
    }
    // SAFETY: the request's value is a new descriptor.
    let opened = unsafe { OwnedFd::from_raw_fd(value) };
    // SAFETY: numbers.
    unsafe { libc::fcntl(opened.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    Ok(Some(opened))
}

/// What is done with a descriptor, and how.
#[derive(Clone, Copy)]
pub struct Handling {
    /// Which system call.
    pub way: u8,
    /// Any address.
    pub at: u64,
    /// Any length.
    pub length: usize,
    /// Any place in what it leads to.
    pub offset: u64,
    /// `PROT_…`
    pub protection: i32,
    /// Whether a mapping is shared.
    pub shared: bool,
}

/// Reads, writes, waits, or maps and touches what is mapped. The answers say nothing.
pub fn handle_at_random(of: &impl AsRawFd, _: &Playground, how: Handling) {
    let (descriptor, at) = (of.as_raw_fd(), how.at as *mut libc::c_void);
    let offset = how.offset as i64;
    // SAFETY: as the head of this file says; mappings are new ones.
    unsafe {
        match how.way {
            0 => drop(libc::read(descriptor, at, how.length)),
            1 => drop(libc::pread(descriptor, at, how.length, offset)),
            2 => drop(libc::write(descriptor, at, how.length)),
            3 => drop(libc::lseek(descriptor, offset, how.protection & 3)),
            4 => {
                let mut asked = libc::pollfd {
                    fd: descriptor,
                    events: how.offset as i16,
                    revents: 0,
                };
                libc::poll(&raw mut asked, 1, 0);
            }
            _ => map(descriptor, how),
        }
    }
}

/// Maps, touches each page, asks for more rights and more pages than there were, and touches those.
///
/// # Safety
/// The descriptor is open.
unsafe fn map(descriptor: i32, how: Handling) {
    let kind = if how.shared {
        libc::MAP_SHARED
    } else {
        libc::MAP_PRIVATE
    };
    let size = how.length.clamp(1, 1 << 17).next_multiple_of(PAGE);
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping where the kernel likes, of which nobody else knows; only what the
    // kernel says is mapped so is touched.
    unsafe {
        let null = std::ptr::null_mut();
        let mut at = libc::mmap(
            null,
            size,
            how.protection,
            kind,
            descriptor,
            how.offset as i64,
        );
        if at == libc::MAP_FAILED {
            return;
        }
        let touch = |at: *mut libc::c_void, size: usize, rights: i32| {
            for page in (0..size).step_by(PAGE) {
                let byte = at.cast::<u8>().add(page + how.length % PAGE);
                if rights & libc::PROT_READ != 0 {
                    byte.read_volatile();
                }
                if rights & both == both {
                    byte.write_volatile(how.at as u8);
                }
            }
        };
        touch(at, size, how.protection);
        if libc::mprotect(at, size, both) == 0 {
            touch(at, size, both);
        }
        let mut mapped = size;
        let larger = libc::mremap(at, size, size + 2 * PAGE, libc::MREMAP_MAYMOVE);
        if larger != libc::MAP_FAILED {
            (at, mapped) = (larger, size + 2 * PAGE);
            touch(at, size, how.protection);
        }
        libc::munmap(at, mapped);
    }
}
