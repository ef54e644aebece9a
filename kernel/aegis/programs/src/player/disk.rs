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

/// Writes blocks and reads them back.
pub fn keep() -> ! {
    let range = mailbox::get(words::FIRST) as usize;
    let fails = |failed: bool| mailbox::add(words::ERRORS, failed.into());
    let (at, to) = (memory::reserve(1), memory::reserve(1));
    let pages = [at, to].map(|at| memory::map_fresh(at, Mapping::WRITE));
    let (Ok(disk), [Ok(from), Ok(page)]) = (Disk::new(), pages) else {
        fails(true);
        postern_aegis::start::exit()
    };
    let mut disk = disk;
    // Others' requests may be in the way for long.
    let mut make = |request| {
        while calls::blocks(core::slice::from_ref(&request)).is_err() {
            entry::yield_slice();
        }
        disk.wait().result.is_ok()
    };
    for round in 0u64.. {
        let (block, last) = (round % 32, (round + 1) % 32);
        let pattern = |round: u64, word: u64| (round << 9 | word).wrapping_mul(0x9e37_79b9);
        (0..512).for_each(|word| memory::write(at + 8 * word, pattern(round, word)));
        fails(!make(disk::write(range, block, from)));
        if round % 16 == 0 {
            fails(!make(disk::flush(range)));
        }
        if round >= 31 {
            // What was written longest ago.
            fails(!make(disk::read(range, last, page)));
            let has = |word: u64| memory::read(to + 8 * word) == pattern(round - 31, word);
            fails(!(0..512).all(has));
        }
        mailbox::add(words::PROGRESS, 1);
    }
    postern_aegis::start::exit()
}
