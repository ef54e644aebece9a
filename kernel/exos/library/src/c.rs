//! Functions that C's library asks for, by its names.

mod trusted;
