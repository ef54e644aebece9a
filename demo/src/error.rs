//! What did not go as promised, as it is told to whoever runs the demonstration.

/// The result of a part of the demonstration.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
