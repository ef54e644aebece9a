//! The books with this machine below them.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64, fence};

use postern_aegis_abi::records::claim;
use postern_aegis_books::{Books, Hardware, Minted};
use spin::Once;
use spin::mutex::{Mutex, MutexGuard};

use crate::hardware::{interrupts, local, memory, registers, switch, window};
use crate::{filters, handlers};

/// The processors and the memory.
pub struct Here;

static BOOKS: Once<Books<'static, Here>> = Once::new();

/// Opens the books, once.
pub fn open(books: Books<'static, Here>) -> &'static Books<'static, Here> {
    BOOKS.call_once(|| books)
}

/// The books.
///
/// # Panics
/// Before they are open: there is no environment then, which alone gives reasons to ask.
pub fn books() -> &'static Books<'static, Here> {
    match BOOKS.get() {
        Some(books) => books,
        None => panic!("the books are not open yet"),
    }
}

/// Takes a device's lock. Whoever waits for it serves other processors meanwhile.
pub fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match lock.try_lock() {
            Some(held) => return held,
            None => Here.poll(),
        }
    }
}

/// The processor that an environment's claim names, if it runs.
fn runs_on(environment: u16) -> Option<usize> {
    let claim = books().environment(environment).claim.load(Acquire);
    claim::RUNNING.contains(&claim).then(|| claim as usize - 1)
}

impl Here {
    /// Makes a processor forget all translations, and waits for that.
    fn make_forget(&self, processor: usize) {
        if processor == self.processor() {
            return memory::forget_all();
        }
        self.ask_to_forget(local::of(processor));
    }

    fn ask_to_forget(&self, other: &local::Local) {
        let ticket = other.asked.fetch_add(1, AcqRel) + 1;
        interrupts::request(other.controller.load(Relaxed));
        while other.done.load(Acquire) < ticket {
            self.poll();
            core::hint::spin_loop();
        }
    }
}

impl Hardware for Here {
    fn words(&self, page: u32) -> &[AtomicU64; 512] {
        memory::words(page)
    }

    fn last_table(&self) -> &AtomicU32 {
        &local::this().last_table
    }

    fn minted(&self) -> &Minted {
        &local::this().minted
    }

    fn processor(&self) -> usize {
        local::this().processor()
    }

    fn flush(&self, environment: u16, address: u64) {
        if current() == environment {
            memory::forget(address);
        }
    }

    /// An environment that is left has lost its translations with its tables, so only a processor
    /// that runs it now has any: it counts the request when it has forgotten them.
    fn shoot(&self, environment: u16) {
        // The entry that was changed before whoever claims now: a processor whose claim is not seen
        // here yet sees the change.
        fence(SeqCst);
        if let Some(processor) = runs_on(environment) {
            self.make_forget(processor);
        }
    }

    fn shoot_windows(&self) {
        fence(SeqCst);
        self.make_forget(0);
    }

    fn window_opens(&self, handler: usize, table: u32) {
        window::open(handler, table);
    }

    fn window_closes(&self, handler: usize) {
        handlers::wait_for(handler);
        window::close(handler);
        self.shoot_windows();
    }

    fn constant(&self, pages: &mut dyn Iterator<Item = u32>, constant: bool) {
        pages.for_each(|page| memory::set_constant(page, constant));
        let processors = books().machine.processors.load(Relaxed) as usize;
        for processor in (0..processors).filter(|&processor| processor != self.processor()) {
            let other = local::of(processor);
            other.everything.store(1, Release);
            self.ask_to_forget(other);
        }
    }

    fn time(&self) -> u64 {
        registers::time()
    }

    fn interrupt(&self, processor: usize) {
        interrupts::request(local::of(processor).controller.load(Relaxed));
    }

    fn poll(&self) {
        let local = local::this();
        let asked = local.asked.load(Acquire);
        if local.done.load(Relaxed) < asked {
            match local.everything.swap(0, AcqRel) {
                0 => memory::forget_all(),
                _ => memory::forget_everything(),
            }
            local.done.store(asked, Release);
        }
    }

    fn endpoints_ended(&self) {
        filters::changed();
    }

    fn kernel_slots(&self, table: u32) {
        memory::kernel_slots(table);
    }
}

/// The environment that runs here.
pub fn current() -> u16 {
    switch::current().map_or(0, |environment| environment.number.load(Relaxed))
}
