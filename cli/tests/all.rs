//! The tests of this crate in one program, for one is linked in a fraction of the time of many.
//! Apart: live and interfaces, for each of their tests runs its program again with nothing but
//! itself.

mod bench;
mod demux;
mod ecode;
mod filter;
mod inspect;
mod kernel;
mod policy;
mod program;
mod run;
mod savefiles;
mod serve;
mod share;
mod shared_handler;
mod support;
mod sysroot;
mod top;
mod verify;
