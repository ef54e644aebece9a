//! The books against models.

mod authority;
mod check;
mod every;
mod life;
mod machine;
mod model;
mod random;
mod revocation;
mod slices;
mod sums;
mod swap;
mod world;
