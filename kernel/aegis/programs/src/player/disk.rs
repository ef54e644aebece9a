//! Roles that ask the disk.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Context;
use postern_aegis::disk::{self, Disk};
use postern_aegis::{Mapping, calls, entry, mailbox, memory};
use postern_aegis_programs::words;

use crate::trusted;

/// Requests under way at a time.
const MANY: u64 = 8;

static PAGE: AtomicU32 = AtomicU32::new(0);

/// Asks for the how many-th block.
fn ask(number: u64) {
    let range = mailbox::get(words::FIRST) as usize;
    let _ = calls::blocks(&[disk::read(range, number % 64, PAGE.load(Relaxed))]);
}

/// Reads blocks.
pub fn disk() -> ! {
    let at = memory::reserve(1);
    match memory::map_fresh(at, Mapping::WRITE) {
        Ok(page) => PAGE.store(page, Relaxed),
        Err(_) => mailbox::add(words::ERRORS, 1),
    }
    if mailbox::get(words::SECOND) != 0 {
        registers();
    }
    let Ok(mut disk) = Disk::new() else {
        mailbox::add(words::ERRORS, 1);
        postern_aegis::start::exit()
    };
    let mut next = 0;
    loop {
        (0..MANY).for_each(|more| ask(next + more));
        next += MANY;
        while let Some(done) = disk.take() {
            mailbox::add(words::PROGRESS, 1);
            if done.result.is_err() {
                mailbox::add(words::ERRORS, 1);
            }
        }
        entry::yield_slice();
    }
}

/// Each answer is the reason for the next request.
fn registers() -> ! {
    entry::coprocessor(true);
    entry::on_request(|message| message.words = message.words.map(|word| word.wrapping_add(1)));
    entry::on_events(|events| {
        if events & Context::EVENT_DISK != 0 {
            mailbox::add(words::OTHER, 1);
            ask(mailbox::get(words::OTHER));
        }
    });
    entry::events_at_once();
    ask(0);
    loop {
        if !trusted::registers_hold() || !trusted::vectors_hold(0xfedc_ba98_7654_3210) {
            mailbox::add(words::ERRORS, 1);
        }
        mailbox::add(words::PROGRESS, 1);
    }
}
