//! Visible revocation and the abort protocol.
