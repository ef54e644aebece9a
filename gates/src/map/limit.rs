//! Limits of the system: which one was met.

use crate::machine;
use std::fmt;
use std::io::{self, Read};

/// A limit of the system that Postern met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemLimit {
    /// Mappings of a process: `vm.max_map_count`.
    Mappings,
    /// Address space of a process: `ulimit -v`.
    AddressSpace,
    /// Writable private memory of a process: `ulimit -d`.
    Data,
    /// Memory that all processes may ask for, where the system promises no more than it has:
    /// `vm.overcommit_memory` is 2.
    Commit,
    /// Locked memory of a process: `ulimit -l`.
    Locked,
    /// Open files of a process: `ulimit -n`.
    Files,
    /// Open files of the system: `fs.file-max`.
    AllFiles,
    /// Size of files, also of those in memory: `ulimit -f`.
    FileSize,
    /// Threads of the user, the system or the container: `ulimit -u`.
    Threads,
    /// Memory of the system or the container.
    Memory,
    /// Another cause.
    Other,
}

impl SystemLimit {
    /// What the system's error means, when `bytes` were asked for.
    pub fn of(error: &io::Error, bytes: u64) -> SystemLimit {
        match error.raw_os_error() {
            Some(libc::EMFILE) => SystemLimit::Files,
            Some(libc::ENFILE) => SystemLimit::AllFiles,
            Some(libc::EFBIG) => SystemLimit::FileSize,
            Some(libc::EAGAIN) => SystemLimit::Locked,
            Some(libc::ENOMEM) => of_memory(bytes),
            _ => SystemLimit::Other,
        }
    }
}

/// The kernel has one error for many limits: which of them there is no room under.
fn of_memory(bytes: u64) -> SystemLimit {
    let used = statm();
    let over = |resource, used: u64| {
        machine::limit(resource).is_some_and(|limit| used.saturating_add(bytes) > limit)
    };
    let setting = |path| std::fs::read_to_string(path).unwrap_or_default();
    if over(libc::RLIMIT_AS, used[0]) {
        SystemLimit::AddressSpace
    } else if count().is_some_and(|count| count + 2 >= most()) {
        SystemLimit::Mappings
    } else if over(libc::RLIMIT_DATA, used[5]) {
        SystemLimit::Data
    } else if setting("/proc/sys/vm/overcommit_memory").trim() == "2" {
        SystemLimit::Commit
    } else {
        SystemLimit::Memory
    }
}

/// The process's memory by `/proc/self/statm`, in bytes: all of it first, data sixth.
fn statm() -> [u64; 6] {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut numbers = text.split_whitespace().map(|n| n.parse::<u64>());
    std::array::from_fn(|_| numbers.next().and_then(Result::ok).unwrap_or(0) * 4096)
}

impl fmt::Display for SystemLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SystemLimit::Mappings => {
                "the process has as many mappings as it may, less a reserve for the host: raise `sysctl vm.max_map_count`"
            }
            SystemLimit::AddressSpace => {
                "the process may have no more address space: `ulimit -v` must be unlimited"
            }
            SystemLimit::Data => "the process may have no more private memory: raise `ulimit -d`",
            SystemLimit::Commit => {
                "the system promises no more memory than it has (`sysctl vm.overcommit_memory` is 2): raise `vm.overcommit_ratio`, or give domains smaller heaps"
            }
            SystemLimit::Locked => "the process may lock no more memory: raise `ulimit -l`",
            SystemLimit::Files => "the process may open no more files: raise `ulimit -n`",
            SystemLimit::AllFiles => "the system may open no more files: raise `sysctl fs.file-max`",
            SystemLimit::FileSize => "files may not be so large: raise `ulimit -f`",
            SystemLimit::Threads => "there may be no more threads: raise `ulimit -u`",
            SystemLimit::Memory => "the system or its container has no more memory",
            SystemLimit::Other => "no limit that is known",
        })
    }
}

/// Mappings of the process.
pub(super) fn count() -> Option<i64> {
    let mut file = std::fs::File::open("/proc/self/maps").ok()?;
    let (mut lines, mut buffer) = (0, [0u8; 4096]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Some(lines),
            Ok(n) => lines += buffer[..n].iter().filter(|&&b| b == b'\n').count() as i64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Mappings that a process may have.
pub(super) fn most() -> i64 {
    std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(65_530)
}
