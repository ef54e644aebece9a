//! Windows: 4 GiB of address space each, with as much above that never has anything, and what is
//! mapped in them.
//!
//! Invariant: whoever has a window reaches no address outside it, and gives no page there the right
//! to be executed: only verified text has it ([`Window::furnish`]), at the place for which it was
//! verified, and is not written from then on.

use super::below::{Access, below};
use super::map::MapError;
use super::memory;
use super::sync::Mutex;
use super::text::Text;
use alloc::vec::Vec;
use core::ops::Range;
use postern_verifier::window::{
    ABI_VERSION, INFO, INFO_ABI, INFO_HEAP_END, INFO_HEAP_START, INFO_STACK_MASK, LIMIT, PAGE,
    WINDOW_SIZE,
};

/// Windows that nobody has: bare addresses.
static FREE: Mutex<Vec<u64>> = Mutex::new(Vec::new());

fn free() -> super::sync::MutexGuard<'static, Vec<u64>> {
    FREE.lock().unwrap_or_else(|e| e.into_inner())
}

/// What an extension may do with a page of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Nothing is there.
    None,
    /// It reads.
    Read,
    /// It reads and runs.
    Run,
    /// It reads and writes.
    Write,
}

/// A window with what is mapped in it; given back on drop.
pub struct Window {
    base: u64,
    parts: [(u32, u32, Right); 4],
    heap_end: u32,
}

impl Window {
    /// A window with an image in it: its info page, text, read-only data, and one range to be
    /// written, from the data stack to the end of the heap and of an area of the host's behind it,
    /// of which the extension is not told.
    pub fn furnish(text: &Text, heap_end: u32, area: u32) -> Result<Window, MapError> {
        Window::with(text, heap_end, area, true)
    }

    /// The same where what is promised has its values already: others have it, too.
    pub fn join(text: &Text, heap_end: u32, area: u32) -> Result<Window, MapError> {
        Window::with(text, heap_end, area, false)
    }

    fn with(text: &Text, heap_end: u32, area: u32, fresh: bool) -> Result<Window, MapError> {
        let layout = text.layout();
        let end = heap_end.checked_add(area).ok_or(MapError::Taken)?;
        let whole = heap_end.is_multiple_of(PAGE) && area.is_multiple_of(PAGE);
        if heap_end < layout.heap_start || end > LIMIT || !whole {
            return Err(MapError::Taken);
        }
        let known = free().pop();
        let base = known.or_else(|| (below().reserve)(2 * WINDOW_SIZE, WINDOW_SIZE));
        let window = Window {
            base: base.ok_or(MapError::Refused)?,
            parts: [
                (INFO, layout.gates, Right::Read),
                (layout.gates, layout.text_end, Right::Run),
                (layout.text_end, text.readonly_end(), Right::Read),
                (layout.stack, end, Right::Write),
            ],
            heap_end,
        };
        for (start, end, right) in window.parts {
            match right {
                _ if start >= end => {}
                Right::Write => (below().promise)(window.at(start)..window.at(end))?,
                _ => (below().open)(window.at(start)..window.at(end))?,
            }
        }
        let filled = window.put_info(layout.heap_start, heap_end, layout.stack_size)
            && window.put(text, |at| fresh || at < layout.stack);
        if !filled {
            return Err(MapError::Refused);
        }
        for (start, end, right) in window.parts {
            let access = match right {
                Right::Run => Access::ReadExecute,
                Right::Read => Access::Read,
                Right::Write | Right::None => continue,
            };
            if start < end {
                (below().protect)(window.at(start)..window.at(end), access)?;
            }
        }
        Ok(window)
    }

    /// What the extension may write is as in a new window.
    pub fn refresh(&self, text: &Text) -> Result<(), MapError> {
        let (start, end, _) = self.parts[3];
        (below().close)(self.at(start)..self.at(end));
        (below().promise)(self.at(start)..self.at(end))?;
        match self.put(text, |at| at >= start) {
            true => Ok(()),
            false => Err(MapError::Refused),
        }
    }

    /// Address of offset 0.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// What the extension may do at an offset.
    pub fn right(&self, offset: u32) -> Right {
        let part = self
            .parts
            .iter()
            .find(|(start, end, _)| (*start..*end).contains(&offset));
        part.map_or(Right::None, |part| part.2)
    }

    /// Where the heap ends.
    pub fn heap_end(&self) -> u32 {
        self.heap_end
    }

    /// The host's area.
    pub fn area(&self) -> Range<u32> {
        self.heap_end..self.parts[3].1
    }

    /// Whether all of a range may be read, or written.
    fn may(&self, offset: u32, bytes: usize, write: bool) -> bool {
        let end = u64::from(offset) + bytes as u64;
        // Parts that can be read follow each other but for holes, so page by page.
        (u64::from(offset) & !u64::from(PAGE - 1)..end)
            .step_by(PAGE as usize)
            .all(
                |page| match u32::try_from(page).map(|page| self.right(page)) {
                    Ok(Right::Write) => true,
                    Ok(Right::Read | Right::Run) => !write,
                    _ => false,
                },
            )
    }

    /// Copies into the window. False if not all of it may be written.
    pub fn write(&self, offset: u32, from: &[u8]) -> bool {
        if !self.may(offset, from.len(), true) {
            return false;
        }
        self.copy(offset, from)
    }

    /// Copies out of the window. False if not all of it may be read.
    pub fn read(&self, offset: u32, to: &mut [u8]) -> bool {
        if !self.may(offset, to.len(), false) {
            return false;
        }
        let from = self.at(offset) as usize;
        // SAFETY: a range of the window's own, which is there; no reference is made of windows.
        unsafe { memory::copy(from, to.as_mut_ptr() as usize, to.len()) }.is_ok()
    }

    fn at(&self, offset: u32) -> u64 {
        self.base + u64::from(offset)
    }

    /// Copies to what was opened.
    fn copy(&self, offset: u32, from: &[u8]) -> bool {
        let to = self.at(offset) as usize;
        // SAFETY: a range of the window's own that was opened; no reference is made of windows.
        unsafe { memory::copy(from.as_ptr() as usize, to, from.len()) }.is_ok()
    }

    /// What new windows have at some offsets. (What is not said is zero already.) False if there
    /// are no pages.
    fn put(&self, text: &Text, wanted: impl Fn(u32) -> bool) -> bool {
        let mut values = text.first_values().filter(|(at, _)| wanted(*at));
        values.all(|(at, bytes)| self.copy(at, bytes))
    }

    fn put_info(&self, heap_start: u32, heap_end: u32, stack_size: u32) -> bool {
        let mut info = [0u8; (INFO_STACK_MASK + 4 - INFO) as usize];
        let mut put = |offset: u32, bytes: &[u8]| {
            let at = (offset - INFO) as usize;
            info[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(INFO, &self.base.to_le_bytes());
        put(INFO_ABI, &ABI_VERSION.to_le_bytes());
        put(INFO_HEAP_START, &heap_start.to_le_bytes());
        put(INFO_HEAP_END, &heap_end.to_le_bytes());
        put(INFO_STACK_MASK, &(stack_size - 1).to_le_bytes());
        self.copy(INFO, &info)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        for (start, end, _) in self.parts {
            if start < end {
                (below().close)(self.at(start)..self.at(end));
            }
        }
        free().push(self.base);
    }
}
