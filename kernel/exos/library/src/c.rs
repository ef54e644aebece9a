//! Functions that C's library asks for, by its names.

mod extension;
mod trusted;
