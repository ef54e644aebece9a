//! The books against models.

mod authority;
mod calls;
mod check;
mod endpoints;
mod every;
mod frames;
mod handlers;
mod held;
mod holdings;
mod interval;
mod life;
mod machine;
mod model;
mod random;
mod ranges;
mod requests;
mod revocation;
mod slices;
mod sums;
mod swap;
mod threads;
mod world;
