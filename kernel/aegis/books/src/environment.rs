//! Environments: birth, control, death.
