//! The end of an area: no window that is kept shows it any more, and its place is free again.

use super::{Area, arena};
use crate::image;
use crate::table;
use std::sync::atomic::Ordering;

impl Drop for Area {
    fn drop(&mut self) {
        if self.withheld.load(Ordering::Relaxed) {
            for image in image::cached() {
                image.spare.forget(self);
            }
        }
        if let Some(arena) = arena().as_mut()
            && self.view.part().unmap().is_ok()
            && let Some(used) = arena.areas.remove(&self.start)
        {
            table::forget_area(used.record);
        }
    }
}
