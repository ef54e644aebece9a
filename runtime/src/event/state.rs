//! What a domain has of events, before there are any.

use super::elsewhere::Elsewhere;
use super::trusted::slots::Slots;
use super::way::Ways;
use crate::fork;
use crate::share::watch::Watch;
use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, Weak};

pub(super) type Follower = Arc<dyn Fn() + Send + Sync>;

/// Of one domain. What its services do for handlers finds it, too.
#[derive(Default)]
pub(crate) struct EventState {
    pub(crate) ways: Ways,
    /// Once there are any.
    slots: OnceLock<Arc<Slots>>,
    /// Of a common domain, before there are any.
    elsewhere: OnceLock<Arc<Elsewhere>>,
    /// A `Dispatcher`.
    pub(super) dispatcher: Mutex<Option<Weak<dyn Any + Send + Sync>>>,
    /// What its dispatcher does when another process has told something.
    pub(super) follower: Mutex<Option<Follower>>,
    /// The `Handlers` of its dispatchers.
    pub(super) handlers: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// Areas whose missing pages it fills.
    pub(super) watches: Mutex<Vec<Weak<Watch>>>,
}

impl EventState {
    pub(crate) fn new(ways: Ways) -> EventState {
        EventState {
            ways,
            ..EventState::default()
        }
    }

    /// It is a common domain's.
    pub(crate) fn set_elsewhere(&self, elsewhere: Elsewhere) {
        let _ = self.elsewhere.set(Arc::new(elsewhere));
    }

    /// Another process that has the domain in common has told something.
    pub(crate) fn follow(&self) {
        let follower = fork::lock(&self.follower).clone();
        if let Some(follower) = follower {
            follower();
        }
    }

    /// Its events and clients, if it has any. Signal handlers may call it.
    pub(crate) fn slots(&self) -> Option<&Arc<Slots>> {
        self.slots.get()
    }

    pub(super) fn slots_or_new(&self) -> std::io::Result<&Arc<Slots>> {
        // So that no fork finds it half made.
        let _one = fork::lock(&self.dispatcher);
        if self.slots.get().is_none() {
            let elsewhere = self.elsewhere.get().cloned();
            let _ = self
                .slots
                .set(Arc::new(Slots::new(fork::process(), elsewhere)?));
        }
        self.slots
            .get()
            .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::Other))
    }
}
