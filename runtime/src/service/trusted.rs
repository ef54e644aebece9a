//! What gates are told of services: functions, and what those find as their context.
//!
//! Invariant: a table's offers stay beside it, unchanged, in [`super::Services`], which is a part
//! of the domain; a domain's parts go when nobody is inside, and whoever calls a service is inside.
#![expect(
    unsafe_code,
    reason = "functions and contexts are numbers to the gates"
)]

use super::offer::Offer;
use postern_gates::control::ServiceEntry;
use postern_gates::peer::Peer;
use postern_gates::shim::Narrow;
use postern_image::Type;

/// The entry of an offer that its owner keeps beside the table.
pub(super) fn entry(offer: &Offer, result: Option<Type>) -> ServiceEntry {
    // SAFETY: there are three kinds of offers. Of a closure, function and context are the shim for
    // its very type, and the closure in the box that the offer owns; what stands in for a missing
    // service is one that reads no argument. Of a C function, whoever granted it has promised
    // (`DomainBuilder::service_c`) what is asked here, and its context is nothing, or the `Narrow`
    // in the offer's box, whose shim is the function. Of a peer they are the gates' own function
    // and the `Peer` in the box. The box stays, by the invariant above.
    unsafe {
        ServiceEntry::new(
            offer.function,
            offer.address,
            offer.stack,
            result,
            !offer.peer,
        )
    }
}

/// What stands in front of a C function of which the gates call the shim.
pub(super) fn narrow(function: usize, parameters: &[Type]) -> Option<Narrow> {
    // SAFETY: whoever granted the function has promised (`DomainBuilder::service_c`) what is asked
    // here.
    unsafe { Narrow::new(function, parameters) }
}

/// Leads an import that a peer serves to another one, which its domain keeps from then on.
pub(crate) fn bind(entry: &ServiceEntry, peer: &Peer) {
    // SAFETY: `Services::peer` gave the entry, of an offer that is a peer's; `Domain::bind_peer`
    // puts the peer's box among those that go with the domain.
    unsafe { entry.lead_to(peer) };
}
