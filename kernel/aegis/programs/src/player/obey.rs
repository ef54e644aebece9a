//! Roles that make calls as somebody who has no rights of its own.

use postern_aegis::calls::{self, Target};
use postern_aegis::entry::{self, Frame};
use postern_aegis::{Mapping, mailbox, memory};
use postern_aegis_programs::words;

use crate::trusted;

/// Makes the calls that the mailbox asks for; results as the processor has them.
pub fn obey() -> ! {
    loop {
        let asked = mailbox::get(words::ASKED);
        if asked != 0 {
            let argument = |index: usize| mailbox::get(words::ARGUMENT + index);
            let arguments = core::array::from_fn(argument);
            let result = trusted::any_call(asked - 1, arguments);
            mailbox::set(
                words::RESULT,
                result.unwrap_or_else(|error| error as i64 as u64),
            );
            mailbox::set(words::ASKED, 0);
        }
        entry::yield_slice();
    }
}

/// Reads a page until it is gone. What is read must be zero: whatever else was there was written
/// after the binding was broken.
pub fn watch() -> ! {
    let page = mailbox::get(words::FIRST) as u32;
    let at = memory::reserve(1);
    entry::on_exception(14, Some(gone));
    let mapped = memory::map(
        at,
        Mapping::new(page, 0),
        mailbox::get(words::SECOND),
        Target::SELF,
    );
    mailbox::set(
        words::RESULT,
        mapped.map_or_else(|error| error as i64 as u64, |()| 0),
    );
    if mapped.is_err() {
        idle();
    }
    loop {
        if memory::read(at) != 0 {
            mailbox::add(words::ERRORS, 1);
        }
        mailbox::add(words::PROGRESS, 1);
    }
}

fn gone(frame: &mut Frame) {
    mailbox::set(words::OTHER, frame.address);
    let _ = calls::null();
    idle();
}

/// Does nothing more.
pub fn idle() -> ! {
    loop {
        entry::yield_slice();
    }
}
