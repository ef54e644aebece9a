//! Schedulers as libraries (*Exokernel*, section 7.3): a process that has slices gives each of them
//! to a process that it is responsible for, by yielding to it. Policies are the crate
//! `postern-exos-schedule`, or the program's own functions.
//!
//! | module | what |
//! |---|---|
//! | [`clients`] | who is able to run, and giving them a slice |
//! | `trusted` | `<exos/schedule.h>` |

pub mod clients;
mod trusted;
