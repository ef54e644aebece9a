//! Vectors of time slices.
