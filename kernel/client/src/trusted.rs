//! The kernel is asked here, and only here is `unsafe`.
//!
//! Invariant: each address that the kernel is given is that of a borrowed value which is at least
//! as long as the request says, for as long as the request lasts.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::abi;
use crate::request::{Request, Requests};

/// Bytes of a list of extensions, of which there are 256 at most.
const LONGEST_LIST: usize = 1 << 20;

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(result),
    }
}

/// The device of the module.
pub(crate) struct DeviceFile(File);

impl DeviceFile {
    /// Opens the device, and nothing that is none.
    pub(crate) fn open(path: &Path) -> io::Result<DeviceFile> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        match std::os::unix::fs::FileTypeExt::is_char_device(&file.metadata()?.file_type()) {
            true => Ok(DeviceFile(file)),
            // What the module's device would not say.
            false => Err(io::Error::from_raw_os_error(libc::ENOTTY)),
        }
    }

    /// # Safety
    /// The number is of a request whose structure is `T`, and the addresses in it are of memory
    /// that is borrowed until this returns and as long as the request may take it to be.
    unsafe fn ioctl<T>(&self, number: u64, argument: &mut T) -> io::Result<libc::c_int> {
        debug_assert_eq!(number >> 16 & 0x3fff, size_of::<T>() as u64);
        let at = std::ptr::from_mut(argument);
        // SAFETY: the caller's promise; the kernel copies what it reads and writes.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), number, at) })
    }
}

impl Requests for DeviceFile {
    fn ask(&self, request: Request<'_>) -> io::Result<()> {
        // SAFETY: for each call: the structure is the one that `postern.h` has for the number (a
        // test compares), its addresses are set right here from slices that this function borrows,
        // with their lengths; a key or value has at most as many bytes as the buffers.
        let answer = unsafe {
            match request {
                Request::Load(load, file) => {
                    (load.file, load.size) = (file.as_ptr() as u64, file.len() as u64);
                    self.ioctl(abi::LOAD, load)
                }
                Request::Replace(load, file) => {
                    (load.file, load.size) = (file.as_ptr() as u64, file.len() as u64);
                    self.ioctl(abi::REPLACE, load)
                }
                Request::JudgeText(text, code) => {
                    text.text = code.as_ptr() as u64;
                    // What is too long for the number is too long for the module.
                    text.size = u32::try_from(code.len()).unwrap_or(u32::MAX);
                    self.ioctl(abi::JUDGE_TEXT, text)
                }
                Request::Unload(mut id) => self.ioctl(abi::UNLOAD, &mut id),
                Request::Call(call) => self.ioctl(abi::CALL, call),
                Request::Statistics(statistics) => self.ioctl(abi::STATISTICS, statistics),
                Request::Attach(attach) => self.ioctl(abi::ATTACH, attach),
                Request::Detach(mut id) => self.ioctl(abi::DETACH, &mut id),
                Request::Attachment(attachment) => self.ioctl(abi::ATTACHMENT, attachment),
                Request::MapMake(mut map) => self.ioctl(abi::MAP_MAKE, &mut map),
                Request::MapSizes(map) => self.ioctl(abi::MAP_SIZES, map),
                Request::MapAccess {
                    mut access,
                    buffers,
                    first,
                } => {
                    access.key = match first {
                        true => 0,
                        false => buffers.key.as_mut_ptr() as u64,
                    };
                    access.value = buffers.value.as_mut_ptr() as u64;
                    access.next_key = buffers.next_key.as_mut_ptr() as u64;
                    self.ioctl(abi::MAP_ACCESS, &mut access)
                }
            }
        };
        answer.map(|_| ())
    }

    fn open(&self, id: u32) -> io::Result<OwnedFd> {
        // SAFETY: the request's structure is a number, without addresses.
        let descriptor = unsafe { self.ioctl(abi::OPEN, &mut id.clone()) }?;
        // SAFETY: the request's value is a new descriptor, which nobody else knows.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    fn list(&self) -> io::Result<String> {
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        loop {
            match self.0.read_at(&mut piece, bytes.len() as u64)? {
                // Some other device, without an end.
                _ if bytes.len() > LONGEST_LIST => {
                    return Err(io::Error::from_raw_os_error(libc::ENOTTY));
                }
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                got => bytes.extend_from_slice(&piece[..got]),
            }
        }
    }
}

/// Makes reading of a descriptor fail where it would wait.
pub(crate) fn never_wait(of: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: numbers only, about a descriptor that is borrowed.
    let flags = checked(unsafe { libc::fcntl(of.as_raw_fd(), libc::F_GETFL) })?;
    let flags = flags | libc::O_NONBLOCK;
    // SAFETY: likewise.
    checked(unsafe { libc::fcntl(of.as_raw_fd(), libc::F_SETFL, flags) }).map(|_| ())
}

/// Waits until a descriptor has something to read; `None` waits for ever. Whether it has.
pub(crate) fn wait(of: BorrowedFd<'_>, longest: Option<Duration>) -> io::Result<bool> {
    let end = longest.and_then(|longest| Instant::now().checked_add(longest));
    loop {
        let left = end.map_or(-1, |end| {
            let left = end.saturating_duration_since(Instant::now());
            // Rounded up, so that it is not asked again and again in the last millisecond.
            i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        let mut asked = libc::pollfd {
            fd: of.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure, which is borrowed.
        match checked(unsafe { libc::poll(&raw mut asked, 1, left) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(asked.revents != 0),
        }
    }
}

/// An extension's shared area, mapped. Extensions write there at any time, so there are copies of
/// its bytes and atomic words, and no references to plain memory.
#[derive(Debug)]
pub struct Area {
    start: NonNull<AtomicU64>,
    size: usize,
}

// SAFETY: the mapping belongs to the value and is touched by atomic operations only.
unsafe impl Send for Area {}
// SAFETY: likewise.
unsafe impl Sync for Area {}

impl Area {
    /// Maps `size` bytes, whole pages, from the start of what the descriptor leads to.
    pub(crate) fn map(of: BorrowedFd<'_>, size: usize) -> io::Result<Area> {
        // SAFETY: a new mapping at a place that the kernel chooses.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                of.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(at.cast()) {
            Some(start) if at != libc::MAP_FAILED => Ok(Area { start, size }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Bytes of it.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All of it as words: the first eight bytes are the first, in the machine's order.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has so many whole words, is aligned to a page, and stays as long as
        // the value. What the kernel's side does with it at the same time is as another thread's.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size / 8) }
    }

    /// Copies bytes out. Those that the extension writes meanwhile may be old or new.
    ///
    /// Returns false, and copies nothing, if they are not all in the area.
    #[must_use = "nothing was copied if it is false"]
    pub fn read(&self, offset: usize, to: &mut [u8]) -> bool {
        if !self.has(offset, to.len()) {
            return false;
        }
        let (mut at, mut rest) = (offset, to);
        while !rest.is_empty() {
            let word = self.words()[at / 8].load(Relaxed).to_ne_bytes();
            let count = (8 - at % 8).min(rest.len());
            let (piece, behind) = rest.split_at_mut(count);
            piece.copy_from_slice(&word[at % 8..][..count]);
            (at, rest) = (at + count, behind);
        }
        true
    }

    /// Copies bytes in. Words of which only a part is written are exchanged with what is there.
    ///
    /// Returns false, and copies nothing, if there is no room for them.
    #[must_use = "nothing was copied if it is false"]
    pub fn write(&self, offset: usize, from: &[u8]) -> bool {
        if !self.has(offset, from.len()) {
            return false;
        }
        let (mut at, mut rest) = (offset, from);
        while !rest.is_empty() {
            let count = (8 - at % 8).min(rest.len());
            let (piece, behind) = rest.split_at(count);
            let put = |word: u64| {
                let mut bytes = word.to_ne_bytes();
                bytes[at % 8..][..count].copy_from_slice(piece);
                u64::from_ne_bytes(bytes)
            };
            let word = &self.words()[at / 8];
            match count {
                8 => word.store(put(0), Relaxed),
                _ => {
                    let _ = word.fetch_update(Relaxed, Relaxed, |word| Some(put(word)));
                }
            }
            (at, rest) = (at + count, behind);
        }
        true
    }

    fn has(&self, offset: usize, length: usize) -> bool {
        offset
            .checked_add(length)
            .is_some_and(|end| end <= self.size)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the value's own mapping, of which nobody has a reference any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
    }
}
