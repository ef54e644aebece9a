//! The service `sys`: what each policy grants and refuses, and that hostile arguments get an errno
//! and nothing else.

mod files;
mod guest;
mod life;
mod looks;
mod native;
mod paths;
mod streams;
#[path = "../support/mod.rs"]
mod support;
