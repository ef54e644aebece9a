//! Starting the other processors.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{interrupts, local, memory};

/// Where they begin, in real mode: a page below 1 MiB that the books leave out.
pub const PAGE: u32 = 8;

unsafe extern "C" {
    static others16: u8;
    static others16_end: u8;
}

/// The stack of the processor that is being started; `start.s` takes it.
#[unsafe(no_mangle)]
static other_stack: AtomicU64 = AtomicU64::new(0);

/// Starts a processor and waits until `up` says that it runs; `false`: it did not within some time.
pub fn start(processor: usize, controller: u32, up: impl Fn() -> bool) -> bool {
    // SAFETY: the code between two symbols of `start.s`, which is mapped where the kernel sees
    // memory, since it lies below the kernel's own addresses.
    let code = unsafe {
        let from = &raw const others16 as u64;
        memory::bytes(from, (&raw const others16_end as u64 - from) as usize)
    };
    let page = memory::words(PAGE);
    for (word, bytes) in page.iter().zip(code.chunks(8)) {
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_le_bytes(value), Ordering::SeqCst);
    }
    other_stack.store(local::stack(processor), Ordering::SeqCst);
    interrupts::start_processor(controller, PAGE as u8);
    for _ in 0..10_000_000 {
        if up() {
            return true;
        }
        core::hint::spin_loop();
    }
    false
}
