//! `postern cc` and `postern c++`: from C and C++ sources to a confined extension.
//!
//! The compiler is gcc. One source is compiled ([`compile`]) by having gcc write assembly, which
//! becomes confined assembly ([`rewrite`]). The libraries of extensions are made that way, too,
//! from source ([`sysroot`]); the link puts objects and libraries together to an extension file and
//! lets the verifier judge it ([`link`]), and on top of all is the [`driver`], which reads gcc's
//! command line. Nothing here is trusted: an extension that was made otherwise is judged by the
//! same verifier when it is loaded.

#![forbid(unsafe_code)]

mod archive;
pub mod assembly;
mod cache;
pub mod compile;
mod cxx;
pub mod diagnostic;
pub mod disassembly;
pub mod driver;
pub mod error;
mod features;
mod headers;
mod library;
pub mod link;
pub mod llvm;
pub mod project;
pub mod rewrite;
pub mod sysroot;
pub mod tools;
mod wasm;

pub use archive::LibraryError;
pub use cache::cache;
pub use compile::Language;
pub use diagnostic::Diagnostic;
pub use driver::{Build, BuildError, DriverError, main, run};
pub use error::CompileError;
pub use features::Features;
pub use library::fingerprint;
pub use rewrite::{Adjustment, RewriteOptions, rewrite};
