//! What a call does that found its domain closed: goes elsewhere, waits, or begins the domain anew.

use super::Outlook;
use crate::domain::{self, DomainInner};
use crate::own_threads::mine;
use postern_gates::entry::Entry;
use postern_gates::lifecycle::Phase;
use postern_gates::outcome::Refusal;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A call of `entry` was refused for this reason: another entry to try, perhaps the same one, or
/// the reason that stays.
pub(crate) fn instead(entry: &Entry, refusal: Refusal) -> Result<&Entry, Refusal> {
    if !matches!(refusal, Refusal::Poisoned | Refusal::Busy | Refusal::Closed) {
        return Err(refusal);
    }
    if let Some(switch) = entry.switch()
        && let Some(module) = switch.owner()
        && let Some(other) = module.route(switch, entry)
    {
        return Ok(other);
    }
    if refusal == Refusal::Closed {
        return Err(refusal);
    }
    let inner = domain::of(entry.control()).ok_or(refusal)?;
    inner.revive(refusal).map(|()| entry)
}

impl DomainInner {
    /// Opens the domain as its policy says, or says why not.
    fn revive(&self, refusal: Refusal) -> Result<(), Refusal> {
        /// How long a call waits for others to leave the domain, or to open it.
        const PATIENCE: Duration = Duration::from_millis(100);
        let rule = self.restarts.rule.as_ref();
        // A thread of the domain's own is of the life that is over.
        let own = mine::number_of(&self.threads).is_some();
        if own || !rule.is_some_and(|rule| rule.restarts()) || self.occupied_by_me() {
            return Err(refusal);
        }
        let begin = Instant::now();
        loop {
            match self.control.lifecycle().settled() {
                Phase::Open | Phase::MovePending => return Ok(()),
                Phase::Poisoned => match self.restarts.outlook() {
                    Outlook::Rests(left) => return Err(Refusal::Resting(left)),
                    Outlook::Stays => return Err(Refusal::Poisoned),
                    // Waited for like others who are inside: `start_again` has no limit of time.
                    Outlook::Now if self.any_entered() => {}
                    Outlook::Now if self.start_again(Some(Phase::Poisoned)).is_ok() => {
                        self.restarts.done.fetch_add(1, Ordering::Relaxed);
                        tracing::info!(domain = %self.name, "restarted after a fault");
                        // The constructors may have failed.
                        return match self.control.lifecycle().settled() {
                            Phase::Poisoned => Err(Refusal::Poisoned),
                            _ => Ok(()),
                        };
                    }
                    Outlook::Now => {}
                },
                Phase::Exclusive => {}
                _ => return Err(refusal),
            }
            if begin.elapsed() > PATIENCE {
                return Err(Refusal::Busy);
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}
