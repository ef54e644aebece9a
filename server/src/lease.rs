//! What keeps an instance and its memory for a request: until all that was written is sent, nobody
//! else gets it.

use std::any::Any;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Whoever holds one has a session for himself.
pub type Lease = Arc<dyn Any + Send + Sync>;

/// Stands for this: nobody writes a half of the answer's memory. Made when the program has left, or
/// has lost the right to; it gets neither the session nor the half back before this is dropped.
pub struct WriteHold {
    _permit: Option<OwnedSemaphorePermit>,
    _lease: Lease,
}

impl WriteHold {
    /// With the right to the half and to the session.
    pub fn new(permit: Option<OwnedSemaphorePermit>, lease: Lease) -> WriteHold {
        WriteHold {
            _permit: permit,
            _lease: lease,
        }
    }
}
