//! Locks of bytes, as `fcntl` has them: a process's, of ranges, given free when it closes the file.

use alloc::vec::Vec;
use core::ops::Range;

use postern_exos_abi::errno::{self, Errno};

/// Locks that there are at most.
const ALL: usize = 4096;

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Whose.
    pub pid: u32,
    /// Of what.
    pub node: u64,
    /// Which bytes.
    pub bytes: Range<u64>,
    /// Whether nobody else has one.
    pub writes: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Locks(Vec<Lock>);

impl Locks {
    /// None.
    pub const fn new() -> Locks {
        Locks(Vec::new())
    }

    /// A lock of somebody else's that is in the way of one.
    pub fn other(&self, pid: u32, node: u64, bytes: &Range<u64>, writes: bool) -> Option<&Lock> {
        self.0.iter().find(|lock| {
            lock.node == node
                && lock.pid != pid
                && (lock.writes || writes)
                && lock.bytes.start < bytes.end
                && bytes.start < lock.bytes.end
        })
    }

    /// Takes bytes, which nobody else has; what the process had of them is as this says.
    pub fn take(
        &mut self,
        pid: u32,
        node: u64,
        bytes: Range<u64>,
        writes: bool,
    ) -> Result<(), Errno> {
        self.free(pid, node, bytes.clone())?;
        if self.0.len() >= ALL {
            return Err(errno::NOBUFS);
        }
        self.0.push(Lock {
            pid,
            node,
            bytes,
            writes,
        });
        Ok(())
    }

    /// Gives bytes free.
    pub fn free(&mut self, pid: u32, node: u64, bytes: Range<u64>) -> Result<(), Errno> {
        if self.0.len() + 1 >= ALL {
            return Err(errno::NOBUFS);
        }
        let mut at = 0;
        while let Some(lock) = self.0.get_mut(at) {
            let (from, end) = (lock.bytes.start, lock.bytes.end);
            let meets =
                lock.pid == pid && lock.node == node && from < bytes.end && bytes.start < end;
            if !meets {
                at += 1;
            } else if from < bytes.start {
                lock.bytes.end = bytes.start;
                let rest = Lock {
                    bytes: bytes.end..end,
                    ..lock.clone()
                };
                if end > bytes.end {
                    self.0.push(rest);
                }
                at += 1;
            } else if end > bytes.end {
                lock.bytes.start = bytes.end;
                at += 1;
            } else {
                self.0.swap_remove(at);
            }
        }
        Ok(())
    }

    /// A process has closed a file.
    pub fn close(&mut self, pid: u32, node: u64) {
        self.0.retain(|lock| lock.pid != pid || lock.node != node);
    }

    /// A process has ended.
    pub fn end(&mut self, pid: u32) {
        self.0.retain(|lock| lock.pid != pid);
    }
}
