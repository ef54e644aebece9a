//! Waiting for others: there are none.

/// Waits for what takes microseconds.
#[derive(Default)]
pub struct Pause(u32);

impl Pause {
    /// Waits a moment.
    pub fn again(&mut self) {
        self.0 += 1;
        core::hint::spin_loop();
    }

    /// Times it was called.
    pub fn count(&self) -> u32 {
        self.0
    }
}
