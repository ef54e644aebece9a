//! What a domain is offered under a name, before gates are told of it.

use postern_gates::callee::Callee;
use postern_image::Signature;

/// A service that a domain is offered.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub(super) callee: Callee,
    /// `None`: whatever the import says. (A peer that is left open, or what stands in.)
    pub(super) signature: Option<Signature>,
    /// Bytes that it needs; a peer says that itself.
    pub(super) stack: usize,
    /// It is of a set: an image need not import it.
    pub(super) for_many: bool,
}
