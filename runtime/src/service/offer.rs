//! What a domain is offered under a name, before gates are told of it.

use postern_image::Signature;
use std::any::Any;

/// A service that a domain is offered.
pub(super) struct Offer {
    pub(super) function: usize,
    /// The closure, if it is one; the peer, if it is one.
    pub(super) context: Option<Box<dyn Any + Send + Sync>>,
    pub(super) address: usize,
    /// `None`: whatever the import says. (A peer that is left open, or what stands in.)
    pub(super) signature: Option<Signature>,
    pub(super) stack: usize,
    /// A peer masks its results itself.
    pub(super) peer: bool,
}

impl std::fmt::Debug for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offer")
            .field("signature", &self.signature)
            .field("closure", &self.context.is_some())
            .finish_non_exhaustive()
    }
}
