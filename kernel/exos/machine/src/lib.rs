//! The host's side of ExOS.
//!
//! | module | what |
//! |---|---|
//! | [`extensions`] | extensions that programs load |
//! | [`place`] | where things lie |
//! | [`build`] | the library and the root environment |
//! | [`cc`] | the compiler for programs |
//! | [`programs`] | the programs in C, compiled when something has changed |
//! | [`software`] | what a machine boots |
//! | [`each`] | programs as processes, one after the other |
//! | [`handlers`] | handlers that run in the kernel |
//! | [`images`] | images of the machine's disk |
//! | [`inside`] | the tests of `programs/tests` |
//! | [`conformance`] | GCC's own tests as processes |
//! | [`ganesha`] | a server of NFS for tests |
//! | [`measure`] | ExOS' own figures |
//! | [`schedules`] | Figure 3, as a program says it |
//! | [`executed`] | instructions that a machine executes, for others to look at |
//! | [`cold`] | a cold start, of ExOS and of Linux |
//! | [`linux`] | the same programs under Linux |
//! | [`budgets`] | what experiments take, exactly |
//! | [`figures`] | ExOS and Linux beside each other, as the paper's tables have them |
#![forbid(unsafe_code)]

pub mod budgets;
pub mod build;
pub mod cc;
pub mod cold;
pub mod conformance;
pub mod each;
pub mod executed;
pub mod extensions;
pub mod figures;
pub mod ganesha;
pub mod handlers;
pub mod images;
pub mod inside;
pub mod linux;
pub mod measure;
pub mod place;
pub mod programs;
pub mod requests;
pub mod schedules;
pub mod site;
pub mod software;
