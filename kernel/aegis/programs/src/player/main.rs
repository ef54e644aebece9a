//! The environment that roots start for their scenes: it has a role, which its mailbox names.
//!
//! | module | roles |
//! |---|---|
//! | `work` | that compute and check: memory, registers |
//! | `obey` | that make calls for the maker |
//! | `disk` | that ask the disk |
//! | `peers` | that ask and answer others |
//! | `give` | that are asked to give pages back |
//! | `misbehave` | that do not stop, or crash |
#![no_std]
#![no_main]

mod disk;
mod give;
mod misbehave;
mod obey;
mod peers;
mod trusted;
mod work;

use postern_aegis::{mailbox, println};
use postern_aegis_programs::{Role, words};

postern_aegis::program!(main);

fn main() -> ! {
    match Role::of(mailbox::get(words::ROLE)) {
        Some(Role::Count) => work::count(),
        Some(Role::Registers) => work::registers(),
        Some(Role::Vectors) => work::vectors(),
        Some(Role::Obey) => obey::obey(),
        Some(Role::Alarms) => work::alarms(),
        Some(Role::Disk) => disk::disk(),
        Some(Role::Keep) => disk::keep(),
        Some(Role::Watch) => obey::watch(),
        Some(Role::Serve) => peers::serve(),
        Some(Role::Ask) => peers::ask(),
        Some(Role::Send) => peers::send(),
        Some(Role::Hold) => peers::hold(),
        Some(Role::Swap) => give::swap(),
        Some(Role::Comply) => give::comply(),
        Some(Role::Refuse) => give::refuse(),
        Some(Role::Transmit) => peers::transmit(),
        Some(Role::Procedure) => peers::procedure(),
        Some(Role::Call) => peers::call(),
        Some(Role::Greedy) => misbehave::greedy(),
        Some(Role::Crash) => misbehave::crash(),
        Some(Role::Guarantee) => misbehave::guarantee(),
        Some(Role::Submitted) => misbehave::submitted(),
        None => {
            println!("player: there is no such role");
            postern_aegis::start::exit()
        }
    }
}
