//! A monitor on the serial line: the root of `make aegis`. It reads the public books and nothing
//! else, and starts and ends programs of its archive by calls that every program has.
//!
//! | module | what |
//! |---|---|
//! | `line` | a line from the console |
//! | `show` | tables of the books |
//! | `programs` | starting and ending |
#![no_std]
#![no_main]

mod line;
mod programs;
mod show;

use postern_aegis::{calls, entry, print, println};

use line::Line;

postern_aegis::program!(main);

const HELP: &str = "\
help                what there is
environments        who lives, and what each has
pages [FROM]        pages in runs of the same owner and kind, from a number on
bindings PAGE       where a page is bound
slices              the processors' vectors of time slices
free                free pages and positions
programs            what can be run
run NAME [WORD ...] starts a program, with words for its mailbox (player: its role first)
kill NUMBER         ends an environment that was started here
stop [STATUS]       stops the machine";

fn main() -> ! {
    println!("Aegis: an exokernel. `help` says what can be asked.");
    show::machine();
    show::environments();
    let mut line = Line::new();
    loop {
        print!("> ");
        let text = line.read();
        let mut words = text.split_whitespace();
        if let Some(command) = words.next() {
            obey(command, words);
        }
        entry::yield_slice();
    }
}

fn obey<'a>(command: &str, mut words: impl Iterator<Item = &'a str>) {
    match command {
        "help" | "?" => println!("{HELP}"),
        "environments" | "ps" => show::environments(),
        "pages" => match optional(words.next()) {
            Some(from) => show::pages(from.unwrap_or(0) as u32),
            None => println!("pages: a page's number"),
        },
        "bindings" => match number(words.next()) {
            Some(page) => show::bindings(page as u32),
            None => println!("bindings: a page's number"),
        },
        "slices" => show::slices(),
        "free" => show::free(),
        "programs" => programs::list(),
        "run" => match words.next() {
            Some(name) => programs::run(name, words),
            None => println!("run: a program's name"),
        },
        "kill" => match number(words.next()) {
            Some(which) => programs::kill(which as u16),
            None => println!("kill: an environment's number"),
        },
        "stop" | "exit" | "quit" => match optional(words.next()) {
            Some(status) => {
                let _ = calls::stop(status.unwrap_or(0) as u8);
            }
            None => println!("stop: a status from 0 to 63"),
        },
        _ => println!("{command}: no such command; `help` says which there are"),
    }
}

/// A number, decimal or after `0x`.
fn number(word: Option<&str>) -> Option<u64> {
    let word = word?;
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// A number, or none; `None` if there is a word that is no number.
fn optional(word: Option<&str>) -> Option<Option<u64>> {
    match word {
        None => Some(None),
        some => number(some).map(Some),
    }
}
