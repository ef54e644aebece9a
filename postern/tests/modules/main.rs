//! Hot reload: where calls go while a module's version is replaced, what is handed over, what comes
//! back, and what is left.

mod ends;
mod guest;
mod rollback;
#[path = "../support/mod.rs"]
mod support;
mod versions;
