//! Waiting for others who need some microseconds, and of whom nobody tells when they are ready.

/// Waits for what takes microseconds.
#[derive(Default)]
pub struct Pause(u32);

impl Pause {
    /// Waits a moment, the longer the more often it was called.
    pub fn again(&mut self) {
        self.0 += 1;
        match self.0 {
            0..=100 => std::hint::spin_loop(),
            101..=200 => std::thread::yield_now(),
            _ => std::thread::sleep(std::time::Duration::from_micros(50)),
        }
    }

    /// Times it was called.
    pub fn count(&self) -> u32 {
        self.0
    }
}
