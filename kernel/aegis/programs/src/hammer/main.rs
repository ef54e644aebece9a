//! An environment that calls the kernel at random: with numbers that are something and numbers that
//! are nothing, its own pages, tables, children and those of others. What becomes of itself does not
//! matter; what its maker looks at is the others, and the books.
//!
//! Words of its mailbox: a seed first; `PROGRESS` counts its calls, `RESULT` those that were done.
#![no_std]
#![no_main]

mod choice;
mod trusted;

use postern_aegis::abi::Call;
use postern_aegis::entry::{self, Frame, Message};
use postern_aegis::mailbox;
use postern_aegis_programs::words;

use choice::Choice;

postern_aegis::program!(main);

fn main() -> ! {
    let mut choice = Choice::new(mailbox::get(words::FIRST));
    // Whatever it does to its own memory is answered by pages that come, as long as there are any.
    for vector in 0..32 {
        entry::on_exception(vector, Some(survive));
    }
    entry::on_request(|message: &mut Message| message.words[0] = !message.words[0]);
    entry::on_events(|_| {});
    entry::events_at_once();
    loop {
        let number = choice.call();
        let arguments = core::array::from_fn(|place| choice.argument(number, place));
        mailbox::add(words::PROGRESS, 1);
        match Call::of(number as u8) {
            // They come back at a begin.
            Some(Call::Yield) if choice.one_of(4) => entry::yield_slice(),
            Some(Call::Yield) => drop(entry::yield_to(choice.environment() as u16)),
            Some(Call::CallSynchronous) => {
                let _ = entry::request(choice.environment() as u16, [arguments[0]; 5]);
            }
            Some(Call::CallAsynchronous) => {
                let _ = entry::send(choice.environment() as u16, [arguments[0]; 5]);
            }
            _ => {
                let arguments = choice.array(Call::of(number as u8)).unwrap_or(arguments);
                if let Ok(result) = trusted::any_call(number, arguments) {
                    choice.learn(number, result);
                    mailbox::add(words::RESULT, 1);
                }
            }
        }
        if choice.one_of(64) {
            trusted::touch(choice.address());
        }
        if choice.one_of(64) {
            choice.rings();
        }
    }
}

/// Goes on behind an instruction that touched what is not there; anything else ends it.
fn survive(frame: &mut Frame) {
    if !trusted::skip(frame) {
        postern_aegis::start::exit();
    }
}
