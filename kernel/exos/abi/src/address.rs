//! How a process's space is divided. Aegis keeps everything from its second segment on.

/// The program's image begins here, and the heap behind it. The first pages of stack, image and
/// heap have one last-level table, so that a small process needs two of them.
pub const IMAGE: u64 = 0xc1_0000;
/// Mappings of files and memory, shared or not, are made from here on.
pub const MAPPINGS: u64 = 0x10_0000_0000;
/// The stack ends here, and grows down.
pub const STACK: u64 = IMAGE;
/// Bytes that a stack has at most, if nobody says otherwise.
pub const STACK_LIMIT: u64 = 8 << 20;
/// The library's own tables: mapped before they are needed, and never missing.
pub const PRIVATE: u64 = 0x7c00_0000_0000;
/// The table of processes, to be read. This and what follows stands in the last-level table that
/// the second segment needs in any case.
pub const TABLE: u64 = 0x7e00_0012_0000;
/// The page that a process shares with the registry ([`Mailbox`](crate::mailbox::Mailbox)).
pub const MAILBOX: u64 = 0x7e00_0013_0000;
/// The pages that say how the process was started.
pub const START: u64 = 0x7e00_0014_0000;
/// What the archive has, to be read ([`Directory`](crate::directory::Directory)).
pub const DIRECTORY: u64 = 0x7e00_0015_0000;
/// Numbers of the archive's pages, to be read: words of 32 bits, at most [`NUMBERS_PAGES`] pages.
pub const NUMBERS: u64 = 0x7e00_0018_0000;
/// Pages that the archive's numbers take at most.
pub const NUMBERS_PAGES: usize = 32;
/// Where loaders bind pages of others for a moment: so many from here on.
pub const WINDOWS: u64 = 0x7e00_001a_0000;
/// Offsets of open files that parents and children share.
pub const OFFSETS: u64 = 0x7e00_001b_0000;
/// The first of the library's own tables ([`PRIVATE`]).
pub const FIRST_TABLE: u64 = 0x7e00_001c_0000;
/// Where the library binds pages of its own process for a moment.
pub const OWN_WINDOWS: u64 = 0x7e00_001d_0000;
/// The page of services, to be read.
pub const SERVICES: u64 = 0x7e00_001e_0000;
/// Where the library has what it shares with servers of files.
pub const FILES: u64 = 0x7e00_0020_0000;
