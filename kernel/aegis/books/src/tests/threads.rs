//! Two threads as two processors, which run environments and make calls at the same time. Each
//! environment has a page that nobody else may bind, and looks whether its word there stays; the
//! others are shared by names, freed and taken all the time, so that a translation that is kept
//! too long sooner or later stores to somebody's page.

use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};
use std::println;
use std::sync::Mutex;

use postern_aegis_abi::records::claim;
use postern_aegis_abi::{Error, Mapping};

use super::check::check;
use super::machine::{Chance, Memory, Processor, Watch, page};
use super::random::{birth, world};
use crate::{Books, Hardware};

const PAGES: u32 = 110;
const ALL: [u16; 4] = [1, 2, 3, 4];
const START: u64 = 0x40_0000;
const PRIVATE: u64 = START + 500 * 4096;

/// What an environment knows of its private page; who runs it changes this.
#[derive(Default)]
struct Own {
    page: AtomicU64,
    word: AtomicU64,
}

struct Thread<'a> {
    processor: Processor<'a>,
    own: &'a [Own; 5],
    chance: Chance,
    done: [u32; 3],
}

#[test]
fn two_processors_keep_the_books_right() {
    let memory = world(PAGES, true, &ALL, 40);
    let own: [Own; 5] = Default::default();
    let done = std::thread::scope(|scope| {
        let threads = [0, 1].map(|number| {
            let (memory, own) = (&memory, &own);
            scope.spawn(move || run(memory, own, number))
        });
        threads.map(|thread| thread.join().expect("a processor"))
    });
    let processor = memory.processor(0);
    let books = processor.books();
    check(&books);
    check_after(&memory, &books);
    println!("looks, that found the page there, deaths: {done:?}");
    for what in 0..3 {
        assert!(
            done[0][what] + done[1][what] > 20,
            "{what} was hardly done: {done:?}"
        );
    }
}

/// One breaks the bindings to two pages that the other makes and takes away: all at one place.
#[test]
fn bindings_are_broken_while_they_are_made() {
    let memory = world(60, true, &[1, 2], 40);
    let [one, two] = [memory.processor(0), memory.processor(1)];
    let pages = [0, 1].map(|_| one.books().allocate(1, None, 1, 1).unwrap());
    build(&one.books(), 2).unwrap();
    let ended = AtomicBool::new(false);
    // Who takes any free page does so while neither of the two is free.
    let taking = Mutex::new(());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (_watch, mut chance) = (Watch(&memory), Chance(1));
            one.enter(1);
            while !ended.load(Relaxed) {
                one.poll();
                let page = chance.of(&pages);
                one.books().break_others(1, page).unwrap();
                if let (true, Ok(_taking)) = (chance.one_in(4), taking.try_lock()) {
                    one.books().free(1, page).unwrap();
                    one.books().allocate(1, Some(page), 1, 1).unwrap();
                }
            }
            one.enter(0);
        });
        let (_watch, mut chance) = (Watch(&memory), Chance(2));
        two.enter(2);
        for _ in 0..150_000 {
            two.poll();
            let at = START + chance.below(3) * 4096;
            let mapping = Mapping::new(chance.of(&pages), chance.of(&[0, 2]));
            let _ = match chance.below(8) {
                0 | 1 => two.books().unmap_page(2, at),
                2 => two.books().protect_page(2, at, 0),
                3 if chance.one_in(20) => {
                    let Ok(_taking) = taking.try_lock() else {
                        continue;
                    };
                    let done = two.books().untable(2, START, 1);
                    while let Some(page) = two.books().victim(2) {
                        two.books().free(2, page).unwrap();
                    }
                    build(&two.books(), 2).unwrap();
                    done
                }
                _ => two.books().map_page(2, 2, at, mapping, 0),
            };
        }
        two.enter(0);
        ended.store(true, Relaxed);
    });
    check(&one.books());
}

/// Makes the tables for the addresses that are used, as far as they are missing.
fn build(books: &Books<'_, Processor<'_>>, caller: u16) -> Result<(), Error> {
    for level in [3, 2, 1] {
        let page = books.allocate(caller, None, 0, 0)?;
        let links = books.allocate(caller, None, 0, 0)?;
        if books
            .table(caller, caller, START, level, page, links)
            .is_err()
        {
            books.free(caller, page)?;
            books.free(caller, links)?;
        } else if level != 1 {
            books.free(caller, links)?;
        }
    }
    Ok(())
}

/// Whoever is still dying comes to an end, and everybody else does, too: nothing is lost.
fn check_after(memory: &Memory, books: &Books<'_, Processor<'_>>) {
    for number in ALL.into_iter().rev() {
        let record = books.environment(number);
        if record.claim.load(Relaxed) == claim::FREE {
            continue;
        }
        record.claim.store(claim::ENDING, Relaxed);
        while !books.free_some_pages(number) {}
        record.claim.store(claim::FREE, Relaxed);
        check(books);
    }
    assert_eq!(memory.machine.free.load(Relaxed), PAGES - 6);
}

fn run(memory: &Memory, own: &[Own; 5], number: usize) -> [u32; 3] {
    let _watch = Watch(memory);
    let processor = memory.processor(number);
    let mut thread = Thread {
        processor,
        own,
        chance: Chance(number as u64),
        done: [0; 3],
    };
    for _ in 0..150_000 {
        thread.step();
    }
    let last = memory.runs[number].load(Relaxed) as usize;
    processor.enter(0);
    if last != 0 {
        memory.machine.environments[last]
            .claim
            .store(claim::IDLE, Release);
    }
    thread.done
}

impl Thread<'_> {
    fn step(&mut self) {
        self.processor.poll();
        let caller = self.processor.memory.runs[self.processor.number].load(Relaxed) as u16;
        if caller == 0 || self.chance.one_in(50) {
            self.switch(caller);
            return;
        }
        match self.chance.below(20) {
            0..3 => self.keep(caller),
            3..9 => self.touch(),
            9 => self.force(),
            10 => self.die(),
            _ => {
                let _ = self.call(caller);
            }
        }
    }

    fn claim(&self, number: u16, from: u32, to: u32) -> bool {
        let claim = &self.processor.memory.machine.environments[usize::from(number)].claim;
        claim.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
    }

    fn switch(&mut self, from: u16) {
        let (to, running) = (self.chance.of(&ALL), self.processor.number as u32 + 1);
        if to != from && self.claim(to, claim::IDLE, running) {
            self.processor.enter(to);
            if from != 0 {
                assert!(self.claim(from, running, claim::IDLE));
            }
        }
    }

    fn address(&mut self) -> u64 {
        START + self.chance.below(6) * 4096
    }

    fn call(&mut self, caller: u16) -> Result<(), Error> {
        let processor = self.processor;
        let books = processor.books();
        let (any, at) = (self.chance.below(PAGES.into()) as u32, self.address());
        let private = u64::from(any) == self.own[usize::from(caller)].page.load(Relaxed);
        let page = if private { 0 } else { any };
        let flags = self.chance.of(&[0, 2, 2, 2, 4]);
        match self.chance.below(14) {
            0 => books.allocate(caller, None, 1, 1).map(drop),
            1 => books.free(caller, page),
            2 => books.give(caller, page, self.chance.of(&ALL)),
            3 => books.break_others(caller, page),
            4 => books.rename(caller, page, 1, self.chance.of(&[0, 1])),
            5 => build(&books, caller),
            6 if self.chance.one_in(8) => books.untable(caller, START, 1),
            7 => books.unmap_page(caller, at),
            8 => books.protect_page(caller, at, flags),
            9 => books.write_words(caller, at + 8, &[self.chance.word(); 3]),
            _ => books
                .map_page(caller, caller, at, Mapping::new(any, flags), 0)
                .inspect(|()| {
                    // Own pages can be bound anywhere, the private one, too: not to be scribbled.
                    if private {
                        books
                            .unmap_page(caller, at)
                            .or(Err(Error::Unmapped))
                            .unwrap_or_default();
                    }
                }),
        }
    }

    /// Looks at the private page, or gets one.
    fn keep(&mut self, caller: u16) {
        let own = &self.own[usize::from(caller)];
        let books = self.processor.books();
        let number = own.page.load(Relaxed);
        let bound = self
            .processor
            .walk(PRIVATE)
            .is_some_and(|entry| page(entry) as u64 == number);
        if number != 0 && bound {
            // It may be broken just now, by force: but what is known is the page still.
            if let Some(word) = self.processor.access(PRIVATE, false) {
                assert_eq!(
                    word.load(Relaxed),
                    own.word.load(Relaxed),
                    "{caller}, {number}"
                );
                self.done[1] += 1;
            }
            self.done[0] += 1;
            if self.chance.one_in(30) && books.free(caller, number as u32).is_ok() {
                own.page.store(0, Relaxed);
            }
            return;
        }
        own.page.store(0, Relaxed);
        let Ok(page) = books.allocate(caller, None, 0, 0) else {
            return;
        };
        let mapping = Mapping::new(page, Mapping::WRITE);
        if books.map_page(caller, caller, PRIVATE, mapping, 0).is_err() {
            let _ = books.free(caller, page);
            return;
        }
        own.word.store(self.chance.word(), Relaxed);
        if let Some(word) = self.processor.access(PRIVATE, true) {
            assert_eq!(word.load(Relaxed), 0, "a page is cleared");
            word.store(own.word.load(Relaxed), Relaxed);
            own.page.store(page.into(), Relaxed);
        }
    }

    /// Stores where others may, too.
    fn touch(&mut self) {
        for _ in 0..4 {
            let (address, word) = (self.address(), self.chance.word());
            if let Some(place) = self.processor.access(address, true) {
                place.store(word, Relaxed);
            }
        }
    }

    /// Takes a page of anybody by force.
    fn force(&mut self) {
        let (from, to) = (self.chance.of(&ALL), self.chance.of(&ALL));
        let books = self.processor.books();
        // As whoever asks for pages does: only of those who live, whom it locks.
        if !books.lives(from) {
            return;
        }
        let Some(page) = books.victim(from) else {
            return;
        };
        if books.take(from, page).is_ok()
            && (self.chance.one_in(2) || books.hand_taken(from, page, to).is_err())
        {
            let _ = books.drop_taken(from, page);
        }
    }

    /// Ends somebody, does a piece of that, or makes it anew.
    fn die(&mut self) {
        let who = self.chance.of(&ALL[1..]);
        let books = self.processor.books();
        if self.chance.one_in(40) && self.claim(who, claim::IDLE, claim::ENDING) {
            self.own[usize::from(who)].page.store(0, Relaxed);
            self.done[2] += 1;
        }
        let record = books.environment(who);
        if self.claim(who, claim::ENDING, claim::CHANGING) {
            let gone = books.free_some_pages(who);
            let state = if gone { claim::FREE } else { claim::ENDING };
            record.claim.store(state, Release);
        }
        if self.claim(who, claim::FREE, claim::CHANGING) {
            drop(books.lock_environment(who));
            if birth(&self.processor, who, 40).is_err() {
                record.claim.store(claim::FREE, Release);
            }
        }
    }
}
