//! The only place for `unsafe`: looking at shared memory without a copy, calling code that is not confined, and starting processes
//! that end with the server.

pub mod library;
pub mod loaded;
pub mod spawn;
pub mod view;
