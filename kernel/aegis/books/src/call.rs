//! The calls, from registers to decisions.
