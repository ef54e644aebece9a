//! The tests of this crate in one program, for one is linked in a fraction of the time of many.
//! Apart: packets, for each of its tests runs this program again with nothing but itself.

mod examples;
mod header;
mod hosts;
mod support;
