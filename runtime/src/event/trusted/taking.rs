//! How what happened is taken from a descriptor: by a read that gives it to one of those who look,
//! and does not wait.

use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::os::fd::BorrowedFd;

/// How what happened is taken from a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Taking {
    /// The data is what it says of itself: `EPOLLIN` and so on.
    Flags,
    /// It counts: the data is the number.
    Count,
    /// Of a process: how it ended, and what `waitid` says of that in the upper half.
    End,
    /// It queues signals: number, and the value in the upper half.
    Signal,
    /// It counts, and each one is an event.
    Each,
}

impl Taking {
    pub(super) fn of(number: u32) -> Taking {
        let all = [
            Taking::Flags,
            Taking::Count,
            Taking::End,
            Taking::Signal,
            Taking::Each,
        ];
        all[number as usize % all.len()]
    }
}

/// What a counting descriptor has counted, which nobody else gets; `None` for nothing. Whoever has
/// it, too, may have made it one that waits: so this says for itself that it does not.
pub(super) fn count_of(descriptor: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes = [0; 8];
    let mut buffers = [IoSliceMut::new(&mut bytes)];
    // An offset of -1 is the file's own.
    let read = preadv2(descriptor, &mut buffers, u64::MAX, ReadWriteFlags::NOWAIT);
    let read = match read {
        // Timers do not know the flag before Linux 6.10; and nobody else has those.
        Err(rustix::io::Errno::OPNOTSUPP) => rustix::io::read(descriptor, &mut bytes),
        read => read,
    };
    (read == Ok(8)).then(|| u64::from_ne_bytes(bytes))
}

/// How a process ended. It stays for whoever has started it.
pub(super) fn end_of(descriptor: BorrowedFd<'_>) -> Option<u64> {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let (code, status) = match waitid(WaitId::PidFd(descriptor), how) {
        Ok(Some(status)) => (
            status.raw_code(),
            status.exit_status().or(status.terminating_signal()),
        ),
        Ok(None) => return None,
        // It is no child of this process, or was waited for already: it has ended all the same.
        Err(_) => (0, None),
    };
    Some(u64::from(code as u32) << 32 | u64::from(status.unwrap_or(0) as u32))
}

/// A signal that was queued.
pub(super) fn signal_of(descriptor: BorrowedFd<'_>) -> Option<u64> {
    /// Of `struct signalfd_siginfo`: its length, and where its `ssi_int` is.
    const INFO: usize = 128;
    const VALUE: usize = 44;
    let mut bytes = [0; INFO];
    let read = rustix::io::read(descriptor, &mut bytes);
    let word = |at: usize| {
        let word = bytes[at..].first_chunk().copied().unwrap_or_default();
        u64::from(u32::from_ne_bytes(word))
    };
    (read == Ok(INFO)).then(|| word(VALUE) << 32 | word(0))
}
