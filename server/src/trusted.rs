//! The only place for `unsafe`: looking at shared memory without a copy, and calling code that is
//! not confined.

pub mod library;
pub mod loaded;
pub mod view;
