//! What `exos/pager.h` has in the library: the choice of victims if a program has no other.

mod trusted;
