//! Does confined code compute what native code computes? A development tool: nothing here is part
//! of what a host links.
//!
//! Two sources of programs, none of them ours: GCC's own execution tests (`gcc.c-torture/execute`),
//! and random programs of csmith. Each is built twice from the same sources with the same options,
//! by gcc and by the toolchain, and run twice, as a process and as an extension. Both must end the
//! same way and write the same bytes.
//!
//! Invariants:
//! - What fails natively says nothing and is counted apart; it never counts as passed.
//! - What is excluded is named in `exclusions.txt` with a reason, and an exclusion that would pass
//!   is an error.
//! - Confined programs run in worker processes: whatever a wrong rewriting does to one, its name is
//!   known.
#![forbid(unsafe_code)]

pub mod confined;
pub mod csmith;
pub mod directives;
pub mod exclusions;
pub mod native;
pub mod place;
pub mod program;
pub mod suite;
pub mod torture;
pub mod worker;
