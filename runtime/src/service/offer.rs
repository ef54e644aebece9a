//! What a domain is offered under a name, before gates are told of it.

use super::caller::DEFAULT_STACK;
use super::closure::{Closure, Service};
use postern_gates::callee::Callee;
use postern_image::Signature;

/// Least stack that a C function is taken to need.
const LEAST_STACK: usize = 4096;

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
    /// It is there in place of one that is missing, and ends the call.
    pub(super) stands_in: bool,
}

impl Offer {
    /// A service of one domain.
    pub(super) fn new(callee: Callee, signature: Option<Signature>, stack: usize) -> Offer {
        Offer {
            callee,
            signature,
            stack,
            for_many: false,
            stands_in: false,
        }
    }

    pub(super) fn closure<A: 'static, F: Service<A>>(function: F) -> Offer {
        let signature = F::signature();
        let closure = Closure::<A, F>::new(function);
        let callee = Callee::closure(closure, signature.result());
        Offer::new(callee, Some(signature), DEFAULT_STACK)
    }

    /// A plain C function, which needs so many bytes of stack.
    pub(super) fn function(callee: Callee, signature: Signature, stack: usize) -> Offer {
        Offer::new(callee, Some(signature), stack.max(LEAST_STACK))
    }
}
