//! Peers that were bound to open imports.

use postern_gates::peer::Peer;
use std::sync::Mutex;

/// What was bound after the domain was built. It stays until the domain goes: a thread may be just
/// about to use it.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "the gates refer to what is in the box")]
pub(crate) struct Bound(pub(super) Mutex<Vec<Box<Peer>>>);
