//! Why something was not done: what was asked about what, and what to do.

use std::io;
use std::path::PathBuf;

use crate::image::Unreadable;
use crate::refusal::Refusal;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no device.
    #[error(
        "{path}: there is no such device: the module is not loaded; `modprobe postern` as root loads it where it is installed (`make dkms` in Postern's sources makes the package)"
    )]
    NoModule {
        /// Where the device should be.
        path: PathBuf,
    },
    /// This process may not do it.
    #[error("{what}: not permitted: the device needs CAP_SYS_ADMIN, so do it as root")]
    NotPermitted {
        /// What was asked.
        what: String,
    },
    /// It is no device of Postern's module, or of another version of it.
    #[error(
        "{what}: the device does not know this request: the module is of another version than this program; load the one that belongs to it"
    )]
    OtherVersion {
        /// What was asked.
        what: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] Unreadable),
    /// A name that the device does not take.
    #[error(
        "`{name}`: names have at most 63 bytes here, and those of extensions are ASCII without spaces"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// More arguments than calls have.
    #[error("{count} arguments: a function in the kernel is called with at most 6")]
    Arguments {
        /// How many were given.
        count: usize,
    },
    /// The shared area is not one that can be mapped.
    #[error(
        "`{symbol}` is {size} bytes at {start:#x}: a shared area is whole pages; declare it `__attribute__((aligned(4096)))`, with a size that is a multiple of 4096"
    )]
    Shared {
        /// The variable.
        symbol: String,
        /// Its offset in the window.
        start: u32,
        /// Its size in bytes.
        size: u32,
    },
    /// The image was refused.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// What is asked about is not there.
    #[error("{what}: {which} is not there")]
    Absent {
        /// What was asked.
        what: String,
        /// What is not there.
        which: String,
    },
    /// It is in use, or the one before is not done.
    #[error("{what}: {why}")]
    Busy {
        /// What was asked.
        what: String,
        /// Who has it.
        why: &'static str,
    },
    /// A key or a value has another size than the map's.
    #[error("map {map}: a {part} of {given} bytes; this map's have {wanted}")]
    Size {
        /// The map's number.
        map: u32,
        /// Key or value.
        part: &'static str,
        /// Bytes that were given.
        given: usize,
        /// Bytes that it has to have.
        wanted: usize,
    },
    /// The kernel has no memory for it.
    #[error("{what}: the kernel has no memory for it; unload something")]
    Memory {
        /// What was asked.
        what: String,
    },
    /// The device, or the kernel, says no for another reason.
    #[error("{what}: {source}{}", remedy(source))]
    Device {
        /// What was asked.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// The device said what no device of this version says.
    #[error(
        "{what}: the device's answer makes no sense ({answer}): the module is of another version"
    )]
    Answer {
        /// What was asked.
        what: String,
        /// The answer.
        answer: String,
    },
}

/// What to do about an error of the kernel's, behind a semicolon.
fn remedy(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EINVAL) => "; a number, a name or an option is not what the device takes",
        Some(libc::EFBIG) => "; an image has at most 4 MiB",
        Some(libc::ENOSPC) => "; there is no room left: unload or remove something",
        Some(libc::E2BIG) => "; it is more than the device takes",
        Some(libc::EOPNOTSUPP | libc::ENOSYS) => "; this kernel does not have it",
        Some(libc::EACCES) => "; the extension was loaded without the right to it",
        Some(libc::ELOOP) => {
            "; interrupts are off at this hook, and the extension has loops or long paths"
        }
        Some(libc::EEXIST) => "; it is there already",
        _ => "",
    }
}

/// What [`Error`] an error of the device's is. `which` is what the request was about.
pub(crate) fn from_device(
    what: String,
    which: impl FnOnce() -> String,
    source: io::Error,
) -> Error {
    match source.raw_os_error() {
        Some(libc::EPERM) => Error::NotPermitted { what },
        Some(libc::ENOTTY) => Error::OtherVersion { what },
        Some(libc::ENOENT) => Error::Absent {
            what,
            which: which(),
        },
        Some(libc::EBUSY) => Error::Busy {
            what,
            why: "it is in use: what was asked before is not done yet; ask again later",
        },
        Some(libc::ENOMEM) => Error::Memory { what },
        _ => Error::Device { what, source },
    }
}
