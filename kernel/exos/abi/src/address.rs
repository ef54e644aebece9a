//! How a process's space is divided. Aegis keeps everything from its second segment on.

/// The program's image begins here.
pub const IMAGE: u64 = 0x40_0000;
/// The heap begins here, and grows up.
pub const HEAP: u64 = 0x1_0000_0000;
/// Mappings of files and memory, shared or not, are made from here on.
pub const MAPPINGS: u64 = 0x10_0000_0000;
/// The stack ends here, and grows down.
pub const STACK: u64 = 0x7000_0000_0000;
/// Bytes that a stack has at most, if nobody says otherwise.
pub const STACK_LIMIT: u64 = 8 << 20;
/// The library's own tables: mapped before they are needed, and never missing.
pub const PRIVATE: u64 = 0x7c00_0000_0000;
/// The table of processes, to be read.
pub const TABLE: u64 = 0x7d00_0000_0000;
/// The page that a process shares with the registry, for arrays of requests.
pub const MAILBOX: u64 = 0x7d00_0001_0000;
/// The page that says how the process was started.
pub const START: u64 = 0x7d00_0002_0000;
