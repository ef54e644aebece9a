//! Roles that compute, and check that nobody changed what is theirs.

use postern_aegis::{Mapping, PAGE, entry, mailbox, memory, time};
use postern_aegis_programs::words;

use crate::trusted;

/// Counts, and checks some pages of memory, one word of each in turn.
pub fn count() -> ! {
    let pages = mailbox::get(words::FIRST);
    let from = memory::reserve(pages);
    let pattern = |index: u64| 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(index + 1);
    for index in 0..pages {
        let at = from + index * PAGE as u64;
        if memory::map_fresh(at, Mapping::WRITE).is_err() {
            mailbox::add(words::ERRORS, 1);
        }
        for word in 0..512 {
            memory::write(at + 8 * word, pattern(512 * index + word));
        }
    }
    let mut next = 0;
    loop {
        mailbox::add(words::PROGRESS, 1);
        if pages > 0 {
            let index = next % (512 * pages);
            if memory::read(from + 8 * index) != pattern(index) {
                mailbox::add(words::ERRORS, 1);
            }
            next = next.wrapping_add(97);
        }
    }
}

/// Keeps patterns in registers over many slices.
pub fn registers() -> ! {
    loop {
        if !trusted::registers_hold() {
            mailbox::add(words::ERRORS, 1);
        }
        mailbox::add(words::PROGRESS, 1);
    }
}

/// Keeps patterns in vector registers over many slices.
pub fn vectors() -> ! {
    entry::coprocessor(true);
    loop {
        if !trusted::vectors_hold(mailbox::get(words::FIRST)) {
            mailbox::add(words::ERRORS, 1);
        }
        mailbox::add(words::PROGRESS, 1);
    }
}

/// Keeps patterns in all registers over events that interrupt it, and requests that it serves.
pub fn alarms() -> ! {
    entry::coprocessor(true);
    entry::on_request(|message| message.words = message.words.map(|word| word.wrapping_add(1)));
    entry::on_events(|_| {
        mailbox::add(words::OTHER, 1);
        let _ = time::alarm(20);
    });
    entry::events_at_once();
    let _ = time::alarm(20);
    loop {
        if !trusted::registers_hold() || !trusted::vectors_hold(0x1234_5678_9abc_def0) {
            mailbox::add(words::ERRORS, 1);
        }
        mailbox::add(words::PROGRESS, 1);
    }
}
