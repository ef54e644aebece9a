//! Where a domain's window shall lie, and what has become of that.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Where a domain's window shall lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// In the hot window if nobody is there or wants to be, or when the domain has clearly more
    /// time inside than who is there.
    #[default]
    Auto,
    /// In the hot window, from which a domain that is there by `Auto` is moved away. Among those
    /// that ask the first keeps it.
    Hot,
    /// Never in the hot window, and so never moved.
    Cold,
}

impl Placement {
    /// `auto`, `hot` or `cold`.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Auto => "auto",
            Placement::Hot => "hot",
            Placement::Cold => "cold",
        }
    }
}

/// Its [`Placement::name`].
impl std::fmt::Display for Placement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A domain's part.
pub(crate) struct PlacementState {
    pub(super) wanted: AtomicU8,
    /// The kernel refused to move it, and would again.
    pub(super) stuck: AtomicBool,
    /// Times it was moved.
    pub(crate) moves: AtomicU64,
}

impl PlacementState {
    /// Of a domain that is wanted there, and can be moved unless it `stays`.
    pub(crate) fn new(placement: Placement, stays: bool) -> PlacementState {
        PlacementState {
            wanted: AtomicU8::new(placement as u8),
            stuck: AtomicBool::new(stays),
            moves: AtomicU64::new(0),
        }
    }

    pub(crate) fn wanted(&self) -> Placement {
        match self.wanted.load(Ordering::SeqCst) {
            n if n == Placement::Hot as u8 => Placement::Hot,
            n if n == Placement::Cold as u8 => Placement::Cold,
            _ => Placement::Auto,
        }
    }

    pub(super) fn can_move(&self) -> bool {
        !self.stuck.load(Ordering::Relaxed)
    }
}
