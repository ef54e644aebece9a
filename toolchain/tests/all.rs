//! The tests of this crate in one program, for one is linked in a fraction of the time of many.

mod allocator;
mod bitcode;
mod cxx;
mod differential;
mod driver;
mod filetests;
mod folder;
mod kernel;
mod libc;
mod namespaces;
mod own_threads;
mod processor;
mod project;
mod robust;
mod wasm;
