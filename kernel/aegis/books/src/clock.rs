//! The time of day, and alarms.
//!
//! Invariant: no alarm is due before `next_alarm`. Whoever sets an alarm stores it first and then
//! lowers `next_alarm`; whoever looks for what is due raises that to the end of time first, and
//! then lowers it to each alarm that is left. So a processor that looks at a tick reads one word.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use postern_aegis_abi::records::{CLOCK, HoldingKind};
use postern_aegis_abi::{Context, Error};

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// The call: when the caller's event of the alarm is raised; 0: never.
    pub fn set_alarm(&self, caller: u16, time: u64) -> Result<(), Error> {
        self.environment(caller).alarm.store(time, Release);
        if time != 0 {
            self.machine.next_alarm.fetch_min(time, AcqRel);
        }
        Ok(())
    }

    /// Raises the alarms that are due.
    pub fn alarms(&self) {
        let now = self.hardware.time();
        let next = &self.machine.next_alarm;
        if now < next.load(Relaxed) {
            return;
        }
        next.swap(u64::MAX, AcqRel);
        for number in self.numbers() {
            let alarm = &self.environment(number).alarm;
            if alarm.load(Acquire) == 0 {
                continue;
            }
            let _lock = self.lock_environment(number);
            // It may set another one at any time.
            match alarm.load(Acquire) {
                0 => {}
                time if !self.lives(number) => {
                    let _ = alarm.compare_exchange(time, 0, AcqRel, Relaxed);
                }
                time if time > now => {
                    next.fetch_min(time, AcqRel);
                }
                time => {
                    let _ = alarm.compare_exchange(time, 0, AcqRel, Relaxed);
                    self.raise_locked(number, Context::EVENT_ALARM);
                }
            }
        }
    }

    /// The call: what time of day it is now.
    pub fn set_clock(&self, caller: u16, seconds: u64, capability: u64) -> Result<(), Error> {
        let _holdings = self.lock_holdings();
        let clock = (CLOCK as u64, HoldingKind::Clock);
        self.may_use(caller, clock, true, capability)
            .map_err(|_| Error::Denied)?;
        let clock = &self.machine.clock;
        let passed = self.hardware.time() / clock.frequency.load(Relaxed).max(1);
        clock.epoch.store(seconds.saturating_sub(passed), Relaxed);
        Ok(())
    }
}
