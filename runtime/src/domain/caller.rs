//! Which domain calls a service.

use super::{Domain, of};
use crate::service::Caller;
use postern_gates::{shim, stale};

impl Caller<'_> {
    /// Shows `look` the caller of the service in which this thread is, for services that get no
    /// [`Caller`]: C functions. `None` outside services, and when the calling domain was closed
    /// meanwhile.
    pub fn with_current<R>(look: impl FnOnce(&Caller<'_>) -> R) -> Option<R> {
        let control = stale::serving()?;
        let _alive = of(control)?;
        Some(look(&Caller::new(control)))
    }

    /// The calling domain, to reach its memory. If another thread is dropping the domain just now,
    /// the service ends here, and with it the call.
    pub fn domain(&self) -> Domain {
        // Whoever made the call holds the domain, unless it was made through a C function pointer
        // or by a peer. Then dropping it waits for this very service, which must not go on.
        let domain = of(self.control);
        Domain(domain.unwrap_or_else(|| std::panic::resume_unwind(Box::new(shim::Gone))))
    }
}
