//! Processes: making, replacing and ending them, signals, times, limits. The registry decides who
//! may be made and who may act on whom; all else is done here, in the program's own space.
//!
//! | module | what |
//! |---|---|
//! | [`registry`] | requests to the registry |
//! | [`own`] | what this process is |
//! | [`groups`] | process groups |
//! | [`stack`] | another stack for handlers |
//! | [`cause`] | why a signal came |
//! | [`signals`] | handlers, masks, delivery |
//! | [`program`] | programs by their names, and scripts |
//! | [`exec`] | programs as processes, new ones or this one |
//! | [`fork`] | a process that is a copy |
//! | [`wait`] | how children ended |

pub mod cause;
pub mod exec;
pub mod fork;
pub mod groups;
pub mod own;
pub mod program;
pub mod registry;
pub mod signals;
pub mod stack;
mod trusted;
pub mod wait;

pub use trusted::Stack;
