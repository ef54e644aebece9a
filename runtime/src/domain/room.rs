//! Where heap and data stacks of a domain lie.

use super::Limits;
use crate::common::header::CommonLayout;
use crate::common::memory::BELOW_STACKS;
use crate::error::InstantiateError;
use crate::image::{Image, ImageInner};
use postern_image::MemoryLayout;
use postern_verifier::window::{LIMIT, PAGE, STACK_LOG2};

/// Where things lie in the windows of a common domain with these limits.
pub(crate) fn common_layout(
    image: &Image,
    limits: &Limits,
) -> Result<CommonLayout, InstantiateError> {
    let image = &image.0;
    let stack = data_stack(image, limits)?;
    let heap = heap_range(image, &image.tables.layout, limits, stack)?;
    Ok(CommonLayout::of(image, heap, stack)?)
}

/// Size of each data stack in bytes.
pub(super) fn data_stack(image: &ImageInner, limits: &Limits) -> Result<u32, InstantiateError> {
    let linked = image.tables.layout.stack_size;
    let Some(bytes) = limits.data_stack else {
        return Ok(linked);
    };
    let refused = |why: String| {
        Err(InstantiateError::Limits(format!(
            "a data stack of {bytes} bytes {why}"
        )))
    };
    let (least, most) = (1 << STACK_LOG2.0, 1 << STACK_LOG2.2);
    let size = match bytes.max(least).checked_next_power_of_two() {
        Some(size) if size <= most => size as u32,
        _ => return refused(format!("is too large: at most {} MiB", most >> 20)),
    };
    match image.suits_stack(size) {
        Ok(()) => Ok(size),
        Err(why) => refused(why),
    }
}

/// First and last (exclusive) offset of the heap.
pub(super) fn heap_range(
    image: &ImageInner,
    layout: &MemoryLayout,
    limits: &Limits,
    stack: u32,
) -> Result<(u32, u32), InstantiateError> {
    const DEFAULT: u64 = 64 << 20;
    let wish = image.tables.header.heap_wish;
    let bytes = limits.heap.unwrap_or(if wish == 0 {
        DEFAULT.min(limits.heap_ceiling)
    } else {
        wish
    });
    let zeroes = u64::from(layout.heap_start - layout.data_file_end);
    let heap = limits.heap.map_or(wish, |_| 0);
    let wishes = [("heap", heap), ("zeroed variables", zeroes)];
    let ceiling = limits.heap_ceiling;
    if let Some(&(what, wish)) = wishes.iter().find(|(_, wish)| *wish > ceiling) {
        return Err(InstantiateError::Wish {
            what,
            wish,
            ceiling,
        });
    }
    let pages = bytes.div_ceil(u64::from(PAGE));
    let end = u64::from(layout.heap_start).saturating_add(pages.saturating_mul(PAGE.into()));
    // A stack of the image's size has its place among the parts of the image; this keeps one more.
    let room = match stack == layout.stack_size {
        true => u64::from(LIMIT - stack),
        false => u64::from(((LIMIT - stack) & !(stack - 1)) - BELOW_STACKS),
    };
    if end > room {
        return Err(InstantiateError::Limits(format!(
            "a heap of {bytes} bytes does not fit the window: at most {} are left",
            room.saturating_sub(u64::from(layout.heap_start))
        )));
    }
    Ok((layout.heap_start, end as u32))
}
