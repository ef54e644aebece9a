//! The books against a model.

mod check;
mod machine;
mod model;
mod random;
