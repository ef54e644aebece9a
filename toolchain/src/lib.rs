//! `postern cc` and `postern c++`: from C and C++ sources to a confined extension.
//!
//! The compiler is gcc; this crate drives it ([`driver`]), turns its assembly into confined assembly ([`rewrite`]),
//! links the objects into an extension file ([`link`]) and lets the verifier judge the result. Nothing here is trusted:
//! an extension that was made otherwise is judged by the same verifier when it is loaded.

#![forbid(unsafe_code)]

mod archive;
pub mod assembly;
mod cache;
mod cxx;
pub mod diagnostic;
pub mod disassembly;
pub mod driver;
mod library;
pub mod link;
pub mod project;
pub mod rewrite;
pub mod sysroot;
mod wasm;

pub use cache::cache;
pub use diagnostic::Diagnostic;
pub use driver::{Build, BuildError, DriverError, Language, main, run};
pub use library::fingerprint;
pub use rewrite::{Adjustment, RewriteOptions, rewrite};
