//! Roles that ask and answer other environments.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use postern_aegis::abi::device::Piece;
use postern_aegis::entry::{self, Message};
use postern_aegis::{Error, Mapping, calls, mailbox, memory, start, time};
use postern_aegis_programs::{peer, words};

use crate::obey::idle;

/// Answers.
pub fn serve() -> ! {
    entry::on_request(|message| {
        mailbox::add(words::PROGRESS, 1);
        mailbox::set(words::OTHER, message.caller);
        if message.kind == Message::ASYNCHRONOUS {
            mailbox::set(words::RESULT, message.words[0]);
        }
        for word in &mut message.words {
            *word = word.wrapping_add(1);
        }
    });
    mailbox::set(words::ASKED, 0);
    idle()
}

/// Asks without an end, and checks the answers.
pub fn ask() -> ! {
    let callee = mailbox::get(words::FIRST) as u16;
    let mut round = 0u64;
    loop {
        let words = [round, !round, round << 8, 7, u64::MAX];
        match entry::request(callee, words) {
            Ok(answer) if answer == words.map(|word| word.wrapping_add(1)) => {
                mailbox::add(words::PROGRESS, 1);
            }
            Ok(_) => mailbox::add(words::ERRORS, 1),
            Err(error) => {
                mailbox::set(words::RESULT, error as i64 as u64);
                entry::yield_slice();
            }
        }
        round += 1;
    }
}

/// The procedure that [`procedure`] serves.
extern "C" fn add(_caller: u64, first: u64, second: u64, rounds: u64, _: u64) -> u64 {
    mailbox::add(words::PROGRESS, 1);
    if first == 0 {
        match mailbox::get(words::FIRST) {
            1 => start::exit(),
            2 => idle(),
            _ => {}
        }
    }
    (0..rounds).for_each(|_| core::hint::spin_loop());
    first.wrapping_add(second)
}

/// Serves calls.
pub fn procedure() -> ! {
    entry::coprocessor(true);
    entry::accept();
    if mailbox::get(words::FIRST) == 3 {
        serve_until_alarms();
    }
    mailbox::set(words::ASKED, 0);
    let never = AtomicU32::new(0);
    entry::serve_procedure(add, &never);
    idle()
}

/// Serves, and leaves that now and then for a moment.
fn serve_until_alarms() -> ! {
    static ALARM: AtomicU32 = AtomicU32::new(0);
    entry::on_events(|_| ALARM.store(1, Relaxed));
    mailbox::set(words::ASKED, 0);
    loop {
        ALARM.store(0, Relaxed);
        let _ = time::alarm(20_000);
        entry::serve_procedure(add, &ALARM);
        mailbox::add(words::OTHER, 1);
    }
}

/// Calls without an end.
pub fn call() -> ! {
    entry::coprocessor(true);
    entry::accept();
    let callee = mailbox::get(words::FIRST) as u16;
    for round in 1u64.. {
        let answer = entry::call_procedure(callee, [round, round << 32, round % 999, 0]);
        match Error::of(answer.error) {
            Some(error) => mailbox::set(words::RESULT, error as i64 as u64),
            None if answer.word == round + (round << 32) => mailbox::add(words::PROGRESS, 1),
            None => mailbox::add(words::ERRORS, 1),
        }
    }
    idle()
}

/// Sends without an end.
pub fn send() -> ! {
    let callee = mailbox::get(words::FIRST) as u16;
    loop {
        match entry::send(callee, [mailbox::get(words::SECOND); 5]) {
            Ok(()) => mailbox::add(words::PROGRESS, 1),
            Err(error) => {
                mailbox::set(words::RESULT, error as i64 as u64);
                entry::yield_slice();
            }
        }
    }
}

/// Has requests, and answers none.
pub fn hold() -> ! {
    entry::on_request(|_| {
        mailbox::add(words::PROGRESS, 1);
        idle()
    });
    mailbox::set(words::ASKED, 0);
    idle()
}

/// Sends frames that the peer only counts.
pub fn transmit() -> ! {
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, Mapping::WRITE);
    let mut header = peer::HEADER;
    header[13] = 0xb6;
    memory::write_bytes(at, &header);
    let piece = Piece {
        place: u64::from(page.unwrap_or(0)) << 12,
        length: 60,
        capability: 0,
    };
    loop {
        match calls::send(&[piece]) {
            Ok(_) => mailbox::add(words::PROGRESS, 1),
            Err(error) => {
                mailbox::set(words::RESULT, error as i64 as u64);
                entry::yield_slice();
            }
        }
    }
}
