//! ExOS: what an operating system does for a program, as a library in the program's own address
//! space, on calls of Aegis alone (*Exokernel*, sections 6 and 7). As an archive, `libexos.a`, it
//! is linked to programs in C.
//!
//! | module | what |
//! |---|---|
//! | [`start`] | from Aegis' entry to `main` |
//! | [`memory`] | virtual memory: faults, the page table, mappings |
//! | [`c`] | functions that C's library asks for |
//! | [`ipc`] | pipes, shared memory, calls to other processes |
//! | [`schedule`] | giving slices to other processes, by a policy |
//! | [`extension`] | native code of others in domains inside the process |
//! | `heap` | Rust's memory is C's |
//!
//! `unsafe` is in modules named `trusted` and in assembly, each block with its argument.
#![no_std]

extern crate alloc;

pub mod c;
pub mod extension;
mod heap;
pub mod ipc;
pub mod memory;
pub mod schedule;
pub mod start;
