//! Windows of domains that are gone, which an image keeps for its next ones.

use crate::fork::{self, Held};
use crate::share::{Area, Withheld};
use postern_gates::window::Window;
use std::sync::Mutex;

/// Windows with the image mapped and nothing private in them.
#[derive(Default)]
pub(crate) struct SpareWindows(Mutex<Vec<SpareWindow>>);

/// One of them.
pub(crate) struct SpareWindow {
    pub(crate) window: Window,
    pub(crate) heap_end: u32,
    pub(crate) areas: Withheld,
}

impl SpareWindows {
    /// All, locked.
    pub(crate) fn lock(&self) -> Held<'_, Vec<SpareWindow>> {
        fork::lock(&self.0)
    }

    /// A window whose heap ends at `heap_end`: the last that was put here, which has most in
    /// caches.
    pub(crate) fn take(&self, heap_end: u32) -> Option<SpareWindow> {
        let mut spare = self.lock();
        let found = spare.iter().rposition(|s| s.heap_end == heap_end)?;
        Some(spare.remove(found))
    }

    /// Unmaps an area that is about to go.
    pub(crate) fn forget(&self, area: &Area) {
        for spare in self.lock().iter_mut() {
            spare.areas.forget(&spare.window.pin(), area);
        }
    }
}
