//! Windows: 4 GiB pieces of address space, pooled, and owned by whoever takes one.
//!
//! Every window has 64 KiB reserved and unmapped above it: the null guard of the next one, or a
//! reservation for itself. A window is wiped (all pages gone, no access) before it returns to the
//! pool, so the pool holds bare address space only.
//!
//! | type | what |
//! |---|---|
//! | [`Window`] | owns a window |
//! | [`Pin`] | the window stays where it is while this lives; bytes are copied through it |
//! | [`Part`] | a range of pages of a pinned window, checked when it is made; mappings are changed through it |
//! | [`OwnedPart`] | a part that keeps its window alive, and where it is |
//! | [`CodePart`] | the pages of a code area |
//! | [`Unpinned`] | proof that nobody else touches the window: it may go elsewhere |
//!
//! Invariant: whoever has one of these can reach no address outside its window, and gives no page
//! there the right to be executed: only verified text has it ([`Pin::map_text`], [`super::code`]),
//! at the place for which it was verified, of one image for each window.

mod owned;
mod part;
mod pin;
mod pins;
pub(crate) mod reservation;

pub(super) use owned::CodePart;
pub use owned::OwnedPart;
pub use part::Part;
pub use pin::{Pin, Unpinned};
pub use reservation::{HotWindow, Window, hot_window, pool, reserve_hot};
