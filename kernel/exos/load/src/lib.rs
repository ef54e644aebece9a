//! Files of the archive, by pages, and programs among them as environments: what the registry does
//! once for the first process, and every process for those that it makes. All of it is calls that
//! everybody may make.
//!
//! | module | what |
//! |---|---|
//! | [`archive`] | the directory, files, bytes of them |
//! | [`elf`] | what of a program's file is loaded where |
//! | [`source`] | where a program's bytes come from |
//! | [`space`] | an environment in the making |
//! | [`start`] | the pages that say how a process is called |
#![no_std]

pub mod archive;
pub mod elf;
pub mod source;
pub mod space;
pub mod start;
mod trusted;
