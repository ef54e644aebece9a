//! Roles that do not stop, or do what they have no handler for.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::calls::{self, Target};
use postern_aegis::{PAGE, address, context, entry, mailbox, memory, start};
use postern_aegis_programs::words;

use crate::trusted;

/// Has the end of its slice told to a loop.
pub fn greedy() -> ! {
    trusted::never_stop();
    loop {
        mailbox::add(words::PROGRESS, 1);
    }
}

/// Raises an exception that has no handler.
pub fn crash() -> ! {
    match mailbox::get(words::FIRST) {
        0 => trusted::divide(),
        1 => drop(memory::read(memory::reserve(1))),
        3 => {
            trusted::lose_handlers(memory::reserve(1));
            let _ = memory::read(memory::reserve(1));
        }
        _ => trusted::undefined(),
    }
    mailbox::add(words::ERRORS, 1);
    start::exit()
}

/// Takes its handlers' pages away itself: they are guaranteed, so exceptions come nevertheless.
pub fn guarantee() -> ! {
    entry::on_exception(3, Some(|_| mailbox::add(words::PROGRESS, 1)));
    loop {
        for page in 1..16 {
            let at = address::GUARANTEED + page * PAGE as u64;
            if memory::table_entry(at) != 0 && calls::unmap(at, Target::SELF).is_err() {
                mailbox::add(words::ERRORS, 1);
            }
        }
        trusted::breakpoint();
    }
}

/// Registers as they are at the fault: a pattern, but for the address and the stack.
pub fn submitted() -> ! {
    if mailbox::get(words::PROGRESS) == 0 {
        let missing = memory::reserve(1);
        trusted::lose_handlers(missing);
        mailbox::set(words::PROGRESS, 1);
        trusted::fault_with_patterns(missing);
    }
    let others = &context::context().emerged_others;
    let kept = others.iter().enumerate();
    let kept = kept.filter(|(index, word)| word.load(Relaxed) == 0x1111 * (*index as u64 + 1));
    mailbox::set(words::RESULT, kept.count() as u64);
    mailbox::set(
        words::OTHER,
        context::context().emerged.address.load(Relaxed),
    );
    loop {
        entry::yield_slice();
    }
}
