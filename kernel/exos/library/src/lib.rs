//! ExOS: what an operating system does for a program, as a library in the program's own address
//! space, on calls of Aegis alone (*Exokernel*, sections 6 and 7). As an archive, `libexos.a`, it
//! is linked to programs in C.
//!
//! | module | what |
//! |---|---|
//! | [`memory`] | virtual memory: faults, the page table, mappings |
//! | [`process`] | making, replacing and ending processes; signals; times; limits |
//! | [`files`] | descriptors: the console, files of the archive |
//! | [`disk`] | blocks of the disk, and files on them |
//! | [`c`] | functions that C's library asks for |
//! | [`ipc`] | pipes, shared memory, calls to other processes |
//! | [`net`] | the network: frames, sockets, names |
//! | [`nfs`] | folders of other machines |
//! | [`web`] | the web server |
//! | [`schedule`] | giving slices to other processes, by a policy |
//! | [`extension`] | native code of others in domains inside the process |
//! | `heap` | Rust's memory is C's |
//! | [`start`] | from Aegis' entry to `main` |
//!
//! `unsafe` is in modules named `trusted` and in assembly, each block with its argument.
#![no_std]

extern crate alloc;

pub mod c;
pub mod disk;
pub mod extension;
pub mod files;
mod heap;
pub mod ipc;
pub mod memory;
pub mod net;
pub mod nfs;
pub mod process;
pub mod schedule;
pub mod start;
pub mod web;
