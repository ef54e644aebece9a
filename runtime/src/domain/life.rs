//! A domain's beginnings: its constructors, and a reset.

use super::{Busy, Domain, DomainInner};
use crate::call::{self, FuncType};
use crate::error::CallError;
use crate::own_threads::mine;
use postern_gates::lifecycle::Phase;

impl Domain {
    /// Back to the image's first state: private pages dropped, fault forgotten, counters kept.
    ///
    /// # Errors
    /// [`Busy`] while threads are inside; the static constructors' own error otherwise is reported
    /// as a fault of the next call.
    pub fn reset(&self) -> Result<(), Busy> {
        let span = tracing::debug_span!("postern.reset", domain = %self.0.name, image = %self.0.image.name);
        let _entered = span.enter();
        self.0.start_again(None)?;
        self.0.restarts.forget();
        Ok(())
    }
}

impl DomainInner {
    /// Runs the static constructors, if there are any. The domain is in `phase`, and they are let
    /// in.
    pub(super) fn initialise(&self, phase: Phase) -> Result<(), CallError> {
        let Some(export) = self.image.tables.export("__postern_init") else {
            return Ok(());
        };
        let nothing = <fn() as FuncType>::signature();
        let entry = self.entry(export.offset, &nothing);
        call::run(&match phase {
            Phase::Exclusive => entry.in_exclusive(),
            _ => entry,
        })
    }

    /// Back to the image's first state, from phase `from` or from any in which somebody may. If the
    /// static constructors fail, the domain is poisoned.
    pub(crate) fn start_again(&self, from: Option<Phase>) -> Result<(), Busy> {
        // Threads of its own end with the program, unless it is to go on.
        if self.threads.run()
            && (mine::number_of(&self.threads).is_some() || self.occupied_by_host())
        {
            return Err(Busy);
        }
        self.end_threads();
        self.exclusive_from(from, |inner, _| {
            inner.restarts.begin();
            drop(inner.threads.take_end());
            inner.system.reset();
            inner.repossessions.clear();
            inner.return_my_data_stack();
            inner.instance.refresh()?;
            if let Some(code) = inner.code.get() {
                code.first_values(&inner.instance.pin());
            }
            let begun = inner.initialise(Phase::Exclusive);
            if begun.is_err() {
                inner.restarts.failed();
            }
            Ok(match begun {
                Ok(()) => Phase::Open,
                Err(_) => Phase::Poisoned,
            })
        })
    }
}
