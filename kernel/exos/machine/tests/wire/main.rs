//! The machine on a wire that a test has the other end of: frames as they are, right ones and those
//! that are made to harm.

mod address;
mod answers;
mod client;
mod guest;
mod hostile;
mod mutations;
