//! The loader of `postern interpose`: it is executed instead of a program, loads that program, and
//! has the kernel stop each of its system calls, about which an agent is asked. It needs nothing of
//! the machine's libraries, so that it can stand beside any program.
//!
//! | module | what |
//! |---|---|
//! | `bytes` | copies, for the compiler |
//! | `system` | system calls of its own |
//! | `elf`, `place` | programs' files; programs in memory, and their heap |
//! | `thread` | what it has of each of the program's threads |
//! | `stubs` | places from which calls are made that pass |
//! | `trap` | the kernel's signal instead of a call |
//! | `faults` | an agent's, and the program's |
//! | `agent` | who is asked |
//! | `calls` | what becomes of a call |
//! | `sites`, `decode`, `maps`, `near` | places that make calls, rewritten: which may be, and how |
//! | `fast` | calls from there |
//! | `deferred` | signals meanwhile |
//! | `after` | calls behind which the agent is called again |
//! | `signals`, `descriptors`, `filters`, `exec` | of those about these, and programs |
//! | `start` | the beginning |
#![no_std]
#![no_main]

extern crate alloc;

mod after;
mod agent;
mod bytes;
mod calls;
mod decode;
mod deferred;
mod descriptors;
mod elf;
mod exec;
mod fast;
mod faults;
mod filters;
mod maps;
mod memory;
mod near;
mod place;
mod signals;
mod sites;
mod start;
mod stubs;
mod system;
mod thread;
mod trap;

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    system::give_up(127, &[b"the loader failed"])
}
