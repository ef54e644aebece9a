//! Where the parts of an image lie in a window (extension ABI, section 1).
//!
//! All of it follows from the number of imports, the sizes of the parts and the data stack's size:
//! a part has one possible place, so an image cannot leave holes that would cost memory when they
//! are read.

use postern_verifier::window::{self, LIMIT, PAGE};

use crate::error::Problem;

/// Where the parts of an image lie: offsets in the window, in ascending order.
///
/// Invariant: `gates < text < text_end <= readonly_end <= … <= heap_start <= LIMIT`, and all but
/// `bss_end` are multiples of the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// First gate slot: [`window::GATES`], or as many pages above it as the header says. From the
    /// info page up to here zeros are read.
    pub gates: u32,
    /// First byte of text, in the page after the slots.
    pub text: u32,
    /// End of text, rounded up to a page. Read-only data begins here.
    pub text_end: u32,
    /// End of what is mapped read-only: read-only data and the zero pages up to the data stack.
    /// Equal to `stack`.
    pub readonly_end: u32,
    /// First byte of the first data stack, aligned to its own size.
    pub stack: u32,
    /// Size of the data stack in bytes, a power of two.
    pub stack_size: u32,
    /// First byte of data, and end of the data stack.
    pub data: u32,
    /// End of the data that comes from the file, rounded up to a page.
    pub data_file_end: u32,
    /// End of data and bss; the only field that may lie inside a page.
    pub bss_end: u32,
    /// First byte that the heap may have: `bss_end` rounded up to a page.
    pub heap_start: u32,
}

/// `value` rounded up to a multiple of `alignment`, a power of two. Values stay far below 2^63
/// here.
fn align_up(value: u64, alignment: u64) -> u64 {
    (value + (alignment - 1)) & !(alignment - 1)
}

impl MemoryLayout {
    /// The layout of an image.
    ///
    /// `sizes` are those of text, of read-only data, of data in the file, and of data and bss in
    /// memory, in bytes; the last is not smaller than the third. Fails if the image would reach
    /// beyond [`LIMIT`]. `shift` is at most [`window::MAX_SHIFT`].
    pub(crate) fn new(
        shift: u32,
        imports: u32,
        sizes: Sizes,
        stack_log2: u32,
    ) -> Result<MemoryLayout, Problem> {
        let page = u64::from(PAGE);
        let stack_size = 1u64 << stack_log2;
        let up = shift * PAGE;
        let text = u64::from(window::text_start(imports) + up);
        let text_end = align_up(text.saturating_add(sizes.text).min(MAX), page);
        let rodata_end = align_up(text_end.saturating_add(sizes.rodata).min(MAX), page);
        let stack = align_up(rodata_end, stack_size);
        let data = stack + stack_size;
        let bss_end = data.saturating_add(sizes.data_memory).min(MAX);
        let heap_start = align_up(bss_end, page);
        if heap_start > u64::from(LIMIT) {
            return Err(Problem::BeyondWindow(heap_start));
        }
        let data_file_end = align_up(data + sizes.data_file, page);
        // Every number is at most heap_start, which fits.
        Ok(MemoryLayout {
            gates: window::GATES + up,
            text: text as u32,
            text_end: text_end as u32,
            readonly_end: stack as u32,
            stack: stack as u32,
            stack_size: stack_size as u32,
            data: data as u32,
            data_file_end: data_file_end as u32,
            bss_end: bss_end as u32,
            heap_start: heap_start as u32,
        })
    }
}

/// Sizes beyond this are cut to it; they fail all the same, without overflow on the way.
const MAX: u64 = 1 << 40;

/// Sizes of an image's parts in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub text: u64,
    pub rodata: u64,
    pub data_file: u64,
    pub data_memory: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(
        imports: u32,
        text: u64,
        rodata: u64,
        data: (u64, u64),
        log2: u32,
    ) -> Result<MemoryLayout, Problem> {
        let sizes = Sizes {
            text,
            rodata,
            data_file: data.0,
            data_memory: data.1,
        };
        MemoryLayout::new(0, imports, sizes, log2)
    }

    #[test]
    fn parts_follow_each_other_by_pages() {
        let l = layout(0, 1, 1, (1, 5000), 12).unwrap();
        assert_eq!(
            (l.gates, l.text, l.text_end),
            (0x1_1000, 0x1_1000, 0x1_2000)
        );
        assert_eq!(
            (l.readonly_end, l.stack, l.data),
            (0x1_3000, 0x1_3000, 0x1_4000)
        );
        assert_eq!(
            (l.data_file_end, l.bss_end, l.heap_start),
            (0x1_5000, 0x1_5388, 0x1_6000)
        );
        let l = layout(129, 4096, 0, (0, 0), 18).unwrap();
        assert_eq!(
            (l.text, l.text_end, l.stack, l.data),
            (0x1_3000, 0x1_4000, 0x4_0000, 0x8_0000)
        );
        assert_eq!(
            (l.data_file_end, l.bss_end, l.heap_start),
            (0x8_0000, 0x8_0000, 0x8_0000)
        );
    }

    #[test]
    fn the_window_has_an_end() {
        let room = u64::from(LIMIT) - 0x8_0000;
        assert!(layout(0, 1, 0, (0, room), 18).is_ok());
        assert!(layout(0, 1, 0, (0, room + 1), 18).is_err());
        for huge in [1 << 32, u64::MAX - 5, u64::MAX] {
            assert!(layout(0, huge, 0, (0, 0), 18).is_err());
            assert!(layout(0, 1, huge, (0, 0), 18).is_err());
            assert!(layout(0, 1, 0, (0, huge), 18).is_err());
        }
    }
}
