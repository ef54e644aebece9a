//! A crash-safe file system over blocks that an application owns, with a cache that it controls.
//! `no_std`, without a processor: tested on the host.
//!
//! Who mounts it gives a [`Disk`], frames for the cache, a [`Policy`] which says what frame is
//! given up, and an [`Owner`], which has a clock and lends frames to others. What comes back is a
//! [`Files`](postern_exos_abi::file::Files):
//!
//! ```no_run
//! # extern crate std;
//! use postern_exos_abi::file::{Files, Kind};
//! use postern_exos_fs::memory::{MemoryDisk, Ticks};
//! use postern_exos_fs::{Block, FileSystem, Format, Lru, format};
//!
//! let mut disk = MemoryDisk::new(1024);
//! format(&mut disk, &Format::default()).unwrap();
//! let mut frames = vec![Block::ZERO; 128];
//! let mut files = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()).unwrap();
//! let root = files.root();
//! let file = files.create(root, b"greeting", Kind::File, 0o644, b"").unwrap();
//! files.write(file, 0, b"hello").unwrap();
//! files.synchronise(None).unwrap();
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod disk;
pub mod error;
pub mod memory;
pub mod owner;
pub mod policy;

pub use check::{Report, check};
pub use disk::{Block, Disk, DiskError};
pub use error::Error;
pub use file_system::{FRAMES, FileSystem};
pub use format::{Format, format};
pub use mount::is_there;
pub use owner::Owner;
pub use policy::{Lru, Policy, TwoQueues};

mod act;
mod bytes;
mod cache;
mod change;
mod check;
mod commit;
mod entries;
mod file_system;
mod files;
mod finish;
mod folder;
mod format;
mod frames;
mod hash;
#[cfg(test)]
mod hostile;
mod index;
mod layout;
mod log;
mod mount;
mod names;
mod nodes;
mod room;
mod space;
mod table;
mod transaction;
mod tree;
