//! From the bytes of an extension file to an image whose every claim about shape has been checked.
//!
//! The bytes come from whoever wrote the extension, so nothing in them is believed:
//! [`ImageFile::parse`] checks every field before it uses it, adds and compares in 64 bits, and
//! takes memory linear in the length of the file, and time, too, but for a logarithm of the number
//! of names. What it returns is a view over the same bytes. It proves that the parts have a legal
//! size and place; that the *code* is harmless is for `postern_verifier` alone to say.
//!
//! | module | what |
//! |---|---|
//! | [`ImageFile`] | the checked view: header, parts, imports, exports |
//! | [`MemoryLayout`] | where each part lies in a window |
//! | [`ThreadLocals`] | thread-local variables, at the top of each data stack |
//! | [`Signature`] | the C types of a function, as the notes spell them |
//! | [`ImageTables`] | imports and exports that outlive the bytes |
//! | [`debug`] | names and source lines of offsets, from bytes that may lie |
//! | [`input`] | whole files, read after a look at what they are |
//! | [`builder`] | makes an image file from machine code |
//! | [`object`] | code that is not bound to any place yet, for compilers and namespaces |
//!
//! Without the feature `std` it needs an allocator and nothing else, and `debug` and `input` are
//! left out: a kernel parses what a process parses, by the same code.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod builder;
#[cfg(feature = "std")]
pub mod debug;
mod elf;
mod error;
mod file;
mod heap_sort;
#[cfg(feature = "std")]
pub mod input;
mod layout;
mod notes;
pub mod object;
mod signature;
mod tables;
mod thread_locals;

pub use builder::ImageBuilder;
pub use error::{FileLocation, ImageError, Problem, Protection};
pub use file::{ImageFile, Part};
pub use layout::MemoryLayout;
pub use notes::{Export, Header, Import};
pub use postern_verifier::Segment;
pub use signature::{MAX_PARAMETERS, Signature, SignatureError, Type};
pub use tables::{ExportOwned, ImageTables, ImportOwned};
pub use thread_locals::ThreadLocals;
