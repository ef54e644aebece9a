//! Roles that have more than is reserved for them, and are asked for it.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::context::Place;
use postern_aegis::context::{self, context};
use postern_aegis::{Mapping, PAGE, calls, entry, mailbox, memory, pages};
use postern_aegis_programs::words;

use crate::obey::idle;
use crate::trusted;

/// What the pages have.
pub const FILLING: u64 = 0x5ec7_e700;

static FROM: AtomicU64 = AtomicU64::new(0);
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Takes pages and fills them, each with its index.
fn take() -> u64 {
    let count = mailbox::get(words::FIRST);
    let from = memory::reserve(count);
    FROM.store(from, Relaxed);
    for index in 0..count {
        let at = from + index * PAGE as u64;
        if memory::map_fresh(at, Mapping::WRITE).is_err() {
            break;
        }
        for word in 0..512 {
            memory::write(at + 8 * word, FILLING + index);
        }
        LEFT.store(index + 1, Relaxed);
    }
    mailbox::set(words::OTHER, LEFT.load(Relaxed));
    count
}

/// Gives back what is asked for.
pub fn comply() -> ! {
    entry::on_events(|_| {
        while context().asked_pages.load(Relaxed) > 0 && LEFT.load(Relaxed) > 0 {
            let last = LEFT.fetch_sub(1, Relaxed) - 1;
            let page = memory::page_at(FROM.load(Relaxed) + last * PAGE as u64);
            if page.is_none_or(|page| pages::free(page).is_err()) {
                mailbox::add(words::ERRORS, 1);
            }
        }
        let asked = context().asked_slices.load(Relaxed);
        let own = postern_aegis::books::own_number();
        for slice in postern_aegis::slices::of(own).take(asked as usize) {
            let _ = calls::free_slice(slice.processor, slice.position);
        }
        mailbox::set(words::OTHER, LEFT.load(Relaxed));
    });
    take();
    loop {
        mailbox::add(words::PROGRESS, 1);
    }
}

/// Gives nothing back, looks at what is taken, and goes on.
pub fn refuse() -> ! {
    let place = mailbox::get(words::SECOND);
    if place != 0 {
        let capability = mailbox::get(words::THIRD);
        let place = Place {
            kind: if capability == u64::MAX {
                Place::SERVER
            } else {
                Place::PAGE
            },
            number: place as u32,
            capability,
        };
        let _ = context::place(0, place);
    }
    let count = take();
    loop {
        mailbox::add(words::PROGRESS, 1);
        if trusted::events() != 0 {
            let taken = context().repossessions.load(Relaxed);
            let from = FROM.load(Relaxed);
            let there =
                (0..count).filter(|index| memory::page_at(from + index * PAGE as u64).is_some());
            mailbox::set(words::OTHER, there.count() as u64);
            if taken > 0 {
                let last = context::repossessed(taken - 1);
                mailbox::set(words::ARGUMENT, u64::from(last.number));
                mailbox::set(words::ARGUMENT + 1, u64::from(last.place.kind));
            }
            mailbox::set(words::RESULT, taken);
        }
    }
}

/// Keeps what it is handed.
pub fn swap() -> ! {
    entry::on_events(|events| {
        mailbox::set(words::RESULT, events);
        mailbox::add(words::PROGRESS, 1);
    });
    mailbox::set(words::ASKED, 7);
    idle()
}
