//! The books against a model.
