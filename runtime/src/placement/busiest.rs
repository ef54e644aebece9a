//! Which of the domains that did not ask has the most time inside lately. Kept by the watchdog, of
//! the domains that it sees somebody in, so that idle ones cost nothing.

use super::{Placement, favour, hot_domain};
use crate::domain::{self, Domain, let_go};
use postern_gates::control::Control;
use postern_gates::window::{HotWindow, hot_window};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How often domains are compared. What a domain did in one period counts half in the next.
const PERIOD: Duration = Duration::from_millis(100);
/// Least time inside, in a period and what is left of those before, that is worth a move.
const LEAST: f64 = 0.25 * PERIOD.as_nanos() as f64;
/// How many times the occupant's time inside it must be: neighbours in rank shall not take turns.
const CLEARLY: f64 = 2.0;

/// Time inside, in nanoseconds, of one domain.
struct Share {
    generation: u32,
    lately: f64,
}

/// Time inside by the number of the control block.
pub(crate) struct Busiest {
    shares: HashMap<u32, Share>,
    compared: Instant,
}

impl Busiest {
    pub(crate) fn new() -> Busiest {
        Busiest {
            shares: HashMap::new(),
            compared: Instant::now(),
        }
    }

    /// Somebody was inside for this long.
    pub(crate) fn note(&mut self, control: &Control, time: Duration) {
        let generation = control.generation();
        let share = self.shares.entry(control.number()).or_insert(Share {
            generation,
            lately: 0.0,
        });
        if share.generation != generation {
            (share.generation, share.lately) = (generation, 0.0);
        }
        share.lately += time.as_nanos() as f64;
    }

    /// Nobody was inside for a while in which nobody looked.
    pub(crate) fn rested(&mut self, now: Instant) {
        let periods = (now - self.compared).as_secs_f64() / PERIOD.as_secs_f64();
        self.compared = now;
        self.fade(0.5f64.powf(periods));
    }

    fn fade(&mut self, by: f64) {
        self.shares.retain(|_, share| {
            share.lately *= by;
            share.lately > 1000.0
        });
    }

    /// At the end of a period, has the hot window given to whom it brings most.
    pub(crate) fn compare(&mut self, now: Instant) {
        if now - self.compared < PERIOD {
            return;
        }
        self.compared = now;
        if matches!(hot_window(), HotWindow::Free | HotWindow::Taken) {
            self.choose();
        }
        self.fade(0.5);
    }

    fn choose(&self) {
        let occupant = hot_domain();
        let time = |domain: &Domain| self.of(&domain.0.control);
        let asked = |domain: &Domain| domain.placement() == Placement::Hot;
        if !occupant.as_ref().is_some_and(asked) {
            let least = occupant.as_ref().map_or(0.0, time) * CLEARLY;
            self.best(least.max(LEAST));
        }
        occupant.into_iter().for_each(|domain| let_go(domain.0));
    }

    fn of(&self, control: &Control) -> f64 {
        let generation = control.generation();
        let share = self.shares.get(&control.number());
        share
            .filter(|share| share.generation == generation)
            .map_or(0.0, |share| share.lately)
    }

    fn best(&self, least: f64) {
        let mut shares: Vec<_> = self
            .shares
            .iter()
            .filter(|(_, share)| share.lately > least)
            .collect();
        shares.sort_by(|a, b| b.1.lately.total_cmp(&a.1.lately));
        for (&number, share) in shares {
            let found = domain::domains()
                .get(number as usize)
                .and_then(|weak| weak.upgrade());
            let Some(inner) = found else { continue };
            let fits = inner.control.generation() == share.generation
                && inner.place.wanted() == Placement::Auto
                && inner.place.can_move()
                && !inner.instance.is_hot();
            if fits {
                favour(&inner);
            }
            let_go(inner);
            if fits {
                return;
            }
        }
    }
}
