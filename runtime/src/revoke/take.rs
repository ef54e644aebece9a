//! Taking grants back: the extension is asked, and what it does not give is taken.
//!
//! Invariant: when [`Domain::revoke`] returns, no call that begins afterwards has the resource.

use super::{Grant, Reluctance, Repossession, RevokeError, Revoked};
use crate::call;
use crate::domain::{Domain, DomainInner};
use crate::error::{CallError, SymbolError};
use crate::fault::FaultKind;
use crate::fork;
use crate::service::Caller;
use crate::value::Offset;
use postern_gates::enter;
use postern_gates::gate::STATUS_OK;
use postern_gates::inside::{self, Target};
use postern_gates::payload::CallPayload;
use std::time::Duration;

/// The export that is asked.
const UPCALL: &str = "__postern_revoke";

impl Domain {
    /// Takes a grant back. The extension's export `__postern_revoke`, if it has one, is asked to
    /// give it back, on this thread and as a call like any other; it is interrupted after
    /// `deadline` (or the domain's own, if that is shorter), which poisons nothing. Then the
    /// resource is gone: a service gives 0 and `sys` `-ECANCELED`, a directory does not exist, a
    /// descriptor is closed, an access to an area is a fault. With a deadline of zero the extension
    /// is not asked.
    ///
    /// Calls that are being done end as they began. Of a service, `revoke` waits for them: once it
    /// has returned, no thread is in the service's function and none begins it, but for calls that
    /// this very thread is in, and those of threads that wait for this one. So what the function
    /// uses may go then; and a lock that it needs must not be held. [`Domain::revoke_at_once`]
    /// waits for nobody.
    ///
    /// # Errors
    /// The domain does not have it; or the kernel did not take an area's pages.
    pub fn revoke(&self, grant: &Grant, deadline: Duration) -> Result<Revoked, RevokeError> {
        if !holds(&self.0, grant) {
            return Err(RevokeError::NotGranted(grant.clone()));
        }
        let asked = self.ask_back(grant, deadline);
        self.take_back(grant, asked, true)
    }

    /// Takes a grant back without asking and without waiting. Calls of a service that have passed
    /// the gate are being done, and may even begin the function after this has returned.
    ///
    /// # Errors
    /// As of [`Domain::revoke`].
    pub fn revoke_at_once(&self, grant: &Grant) -> Result<Revoked, RevokeError> {
        if !holds(&self.0, grant) {
            return Err(RevokeError::NotGranted(grant.clone()));
        }
        self.take_back(grant, Err(Reluctance::NotAsked), false)
    }

    fn take_back(
        &self,
        grant: &Grant,
        asked: Result<(), Reluctance>,
        wait: bool,
    ) -> Result<Revoked, RevokeError> {
        let inner = &*self.0;
        let kept = take(inner, grant, wait)?;
        let why = match asked {
            Ok(()) if kept => Reluctance::Kept,
            Ok(()) => return Ok(Revoked::Returned),
            Err(why) => why,
        };
        tracing::info!(domain = %inner.name, %grant, %why, "taken");
        fork::lock(&inner.repossessions.0).push(Repossession {
            grant: grant.clone(),
            why: why.clone(),
        });
        Ok(Revoked::Taken(why))
    }

    fn ask_back(&self, grant: &Grant, deadline: Duration) -> Result<(), Reluctance> {
        if deadline.is_zero() {
            return Err(Reluctance::NotAsked);
        }
        let entry = self
            .freight_entry(UPCALL, "i(piL)")
            .map_err(|error| match error {
                SymbolError::Missing { .. } => Reluctance::NoUpcall,
                other => Reluctance::Unusable(other),
            })?;
        let time = self.0.limits.deadline.map_or(deadline, |d| d.min(deadline));
        let mut name = grant.name().into_bytes();
        name.push(0);
        let mut payload = CallPayload::new([&name, &[]]);
        payload.limit = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let words = [0, grant.kind() as u64, microseconds, 0, 0, 0];
        let returned = enter::with(&entry, words, &mut payload);
        if returned.status == STATUS_OK {
            return match returned.integer as i32 {
                0 => Ok(()),
                code => Err(Reluctance::Refused(code)),
            };
        }
        Err(match call::failed() {
            CallError::Fault(fault) if fault.kind == FaultKind::Interrupted => Reluctance::Late,
            other => Reluctance::Failed(other),
        })
    }

    /// Gives a service back that was revoked.
    ///
    /// # Errors
    /// It is no service of the domain, or was not revoked.
    pub fn restore(&self, grant: &Grant) -> Result<(), RevokeError> {
        match grant {
            Grant::Service(name) => self.0.services.set_revoked(&self.0, name, false),
            _ => None,
        }
        .map(drop)
        .ok_or_else(|| RevokeError::NotRevoked(grant.clone()))
    }

    /// The repossession list: what was taken by force since the last reset, oldest first.
    pub fn repossessed(&self) -> Vec<Repossession> {
        self.0.repossessions.list()
    }
}

fn holds(inner: &DomainInner, grant: &Grant) -> bool {
    let files = inner.system.service();
    match grant {
        Grant::Service(name) => inner.services.is_granted(inner, name),
        Grant::Directory(path) => files.is_some_and(|f| f.is_open_below(path).is_some()),
        Grant::Descriptor(number) => files.is_some_and(|f| f.is_open(*number)),
        Grant::Area(offset) => inner.instance.areas().iter().any(|area| area.1 == offset.0),
    }
}

/// Takes it, whatever the extension says; whether it was still in use. With `wait`, nobody is in a
/// service's function any more then.
fn take(inner: &DomainInner, grant: &Grant, wait: bool) -> Result<bool, RevokeError> {
    let files = inner.system.service();
    Ok(match grant {
        Grant::Service(name) => {
            let taken = inner.services.set_revoked(inner, name, true);
            if let Some(entry) = taken.filter(|_| wait) {
                inside::wait(Target::service(&inner.control, entry), || {});
            }
            false
        }
        Grant::Directory(path) => files.is_some_and(|f| f.take_directory(path).unwrap_or(false)),
        Grant::Descriptor(number) => files.is_some_and(|f| f.take_descriptor(*number)),
        Grant::Area(offset) => {
            let taken = inner.instance.take_area(offset.0);
            inner.ends_if_torn();
            taken.map_err(|error| RevokeError::Kernel {
                grant: grant.clone(),
                reason: error.to_string(),
            })?;
            false
        }
    })
}

/// The service `__postern_repossessed`: the kind of the list's entry `index` (0 behind its end),
/// and its name in `room` bytes at `name`, cut to fit and ended by a NUL; -1 if that is not the
/// extension's to write.
pub(crate) fn tell(caller: &Caller<'_>, index: u32, name: Offset, room: u64) -> i64 {
    let domain = caller.domain();
    let list = fork::lock(&domain.0.repossessions.0);
    let entry = list.get(index as usize).map(|entry| entry.grant.clone());
    drop(list);
    let Some(grant) = entry else { return 0 };
    let mut text = grant.name().into_bytes();
    text.truncate(
        usize::try_from(room)
            .unwrap_or(usize::MAX)
            .saturating_sub(1),
    );
    text.push(0);
    if room > 0 && domain.write(name, &text).is_err() {
        return -1;
    }
    grant.kind().into()
}
