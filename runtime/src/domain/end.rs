//! The end of a domain: it is closed, its calls end, and then nothing knows of it any more.

use super::{DomainInner, domains, reclaim};
use crate::counters::metrics;
use crate::{placement, symbols, table};
use std::sync::Weak;
use std::sync::atomic::Ordering;

impl Drop for DomainInner {
    fn drop(&mut self) {
        if self.0.is_none() {
            return;
        }
        if !self.ending.swap(true, Ordering::SeqCst) {
            self.control.lifecycle().close();
            drop(self.end_pool());
            if self.pointed_to.load(Ordering::SeqCst) {
                // C function pointers and peers hold no reference: their calls may be inside.
                self.drain();
            }
        }
        if self.occupied() && reclaim::keep(self) {
            return;
        }
        placement::leaves(self);
        self.publish();
        metrics::keep(self);
        symbols::hide(self);
        let number = self.control.number() as usize;
        // A failed build drops a domain that was never registered.
        if let Some(place) = domains().get_mut(number) {
            *place = Weak::new();
            table::forget_domain(number);
        }
    }
}
