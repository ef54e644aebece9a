//! Bytes of a shared area that are sent from where they lie.

use crate::lease::WriteHold;
use bytes::Bytes;
use postern::Shared;

/// A range of an area, and what keeps others from writing it.
struct View {
    area: Shared,
    at: usize,
    size: usize,
    _kept: WriteHold,
}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the range lies in the area (`bytes` checked it), which is mapped and of memory
        // that cannot shrink as long as `area` lives. Nobody writes it meanwhile: that is what a
        // `WriteHold` stands for (a shared object that is not confined could, but then it could do
        // anything).
        unsafe { std::slice::from_raw_parts(self.area.as_ptr().add(self.at), self.size) }
    }
}

/// The range `[at, at + size)` of an area as bytes; empty if it does not lie in the area.
pub fn bytes(area: &Shared, at: usize, size: usize, kept: WriteHold) -> Bytes {
    let within = at.checked_add(size).is_some_and(|end| end <= area.len());
    let (at, size) = if within { (at, size) } else { (0, 0) };
    Bytes::from_owner(View {
        area: area.clone(),
        at,
        size,
        _kept: kept,
    })
}
