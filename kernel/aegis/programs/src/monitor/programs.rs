//! Programs of the archive as environments.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::calls::{self, Target};
use postern_aegis::load::{self, Plan};
use postern_aegis::{Mapping, archive, books, entry, memory, println, slices};

/// What can be run.
pub fn list() {
    for file in archive::own().files() {
        println!("{:>8} bytes  {}", file.bytes.len(), file.name);
    }
}

/// Starts a program, on the processor with the most free positions.
pub fn run<'a>(name: &str, rest: impl Iterator<Item = &'a str>) {
    let mut words = [0; 8];
    for (word, text) in words.iter_mut().zip(rest) {
        *word = text.parse().unwrap_or(0);
    }
    let busy = |processor: &usize| {
        let vector = &books::machine().slices[*processor];
        vector
            .iter()
            .filter(|slice| slice.owner.load(Relaxed) != 0)
            .count()
    };
    let processor = (0..slices::processors()).min_by_key(busy).unwrap_or(0);
    let started = load::program(name, &Plan::new(words))
        .and_then(|child| child.run_on(processor).map(|slice| (child, slice)));
    match started {
        Ok((child, slice)) => println!(
            "environment {} runs on processor {} in position {}",
            child.number, slice.processor, slice.position
        ),
        Err(error) => println!("run: {error}"),
    }
    entry::yield_slice();
}

/// Ends an environment.
pub fn kill(number: u16) {
    if number == books::own_number() {
        println!("kill: that is the monitor; `stop` stops the machine");
        return;
    }
    match calls::destroy(Target::child(number)) {
        Ok(_) => println!("environment {number} ends"),
        Err(error) => println!("kill: {error}"),
    }
}

/// Everybody's pages of links, read through a window.
pub struct Links {
    window: u64,
}

impl Links {
    pub fn new() -> Links {
        use core::sync::atomic::AtomicU64;
        static WINDOW: AtomicU64 = AtomicU64::new(0);
        if WINDOW.load(Relaxed) == 0 {
            WINDOW.store(memory::reserve(1), Relaxed);
        }
        Links {
            window: WINDOW.load(Relaxed),
        }
    }

    /// The binding after one of a table.
    pub fn next(&mut self, table: u32, index: u32) -> Option<u32> {
        // The record of a table of the last level names its page of links.
        let links = books::page(table)?.read.load(Relaxed);
        memory::map(self.window, Mapping::new(links, 0), 0, Target::SELF).ok()?;
        let word = memory::read(self.window + u64::from(index) * 8);
        let _ = calls::unmap(self.window, Target::SELF);
        Some(word as u32)
    }
}
