//! Calls by chance, compared with the model after each; every number comes from a seed.

use core::sync::atomic::Ordering::{Relaxed, Release};
use std::boxed::Box;
use std::collections::HashMap;
use std::vec::Vec;

use postern_aegis_abi::Error;
use postern_aegis_abi::address::{END, GUARANTEED};
use postern_aegis_abi::records::{Kind, claim};

use super::check::check;
use super::machine::{Chance, Memory, Processor, page};
use super::model::{Known, Model};

pub const PAGES: u32 = 180;
const KERNEL: u32 = 6;
pub const ALL: [u16; 4] = [1, 2, 3, 4];
pub const REGIONS: [u64; 4] = [0x40_0000, 0x60_0000, GUARANTEED, END - 0x20_0000];
pub const BUFFER: u64 = 0x40_3000;

/// Makes an environment of two pages of the first one, or of its own, with a number that is
/// nobody's meanwhile.
pub fn birth(processor: &Processor<'_>, number: u16, limit: u32) -> Result<(), Error> {
    let books = processor.books();
    let record = books.environment(number);
    let maker = if books.lives(1) { 1 } else { number };
    let context = books.allocate(maker, None, 0, 0)?;
    let table = books.allocate(maker, None, 0, 0).inspect_err(|_| {
        books.free(maker, context).unwrap();
    })?;
    record.birth.fetch_add(1, Relaxed);
    record.parent.store(1, Relaxed);
    books.found(maker, number, context, table)?;
    record.pages_limit.store(limit, Relaxed);
    record.claim.store(claim::IDLE, Release);
    Ok(())
}

/// A machine with environments.
pub fn world(pages: u32, threads: bool, environments: &[u16], limit: u32) -> Memory {
    let memory = Memory::new(pages as usize, threads);
    memory
        .processor(0)
        .books()
        .start_pages(|page| page >= KERNEL);
    for number in environments {
        let record = &memory.machine.environments[usize::from(*number)];
        record.pages_limit.store(2, Relaxed);
        birth(&memory.processor(0), *number, limit).unwrap();
    }
    memory
}

pub struct Run {
    pub memory: &'static Memory,
    pub chance: Chance,
    pub model: Model,
    pub known: Known,
    pub words: Vec<u64>,
    /// Somebody is dying in pieces: the model is read again after each step.
    pub dying: Option<u16>,
    pub errors: HashMap<Error, u32>,
}

/// An answer must be that no error is there, or one of those that are.
pub fn agree<T: core::fmt::Debug>(answer: Result<T, Error>, wrong: &[Error]) -> bool {
    match answer {
        Ok(_) => assert!(wrong.is_empty(), "{answer:?}, but {wrong:?}"),
        Err(error) => assert!(wrong.contains(&error), "{answer:?}, but {wrong:?}"),
    }
    answer.is_ok()
}

impl Run {
    fn new(seed: u64) -> Run {
        let memory = &*Box::leak(Box::new(world(PAGES, false, &ALL, 60)));
        let model = Model::read(&memory.processor(0).books());
        Run {
            memory,
            chance: Chance(seed),
            model,
            known: Known::new(),
            words: Vec::new(),
            dying: None,
            errors: HashMap::new(),
        }
    }

    pub fn runs(&self, processor: usize) -> u16 {
        self.memory.runs[processor].load(Relaxed) as u16
    }

    /// Lets a processor run somebody who runs nowhere.
    fn switch(&mut self, processor: usize) {
        let to = self.chance.of(&ALL);
        if self.dying == Some(to) || self.runs(0) == to || self.runs(1) == to {
            return;
        }
        let claim = |number: u16| &self.memory.machine.environments[number as usize].claim;
        if self.runs(processor) != 0 {
            claim(self.runs(processor)).store(claim::IDLE, Relaxed);
        }
        claim(to).store(processor as u32 + 1, Relaxed);
        self.memory.processor(processor).enter(to);
    }

    pub fn address(&mut self) -> u64 {
        if self.chance.one_in(12) {
            let strange = [
                0,
                0x1000,
                END,
                u64::MAX,
                !0xfff,
                0x40_0001,
                1 << 47,
                END - 1,
                GUARANTEED - 4096,
            ];
            return self.chance.of(&strange);
        }
        self.chance.of(&REGIONS) + self.chance.of(&[0, 1, 2, 3, 3, 511]) * 4096
    }

    /// A page's number, one of the caller's own more often than not.
    pub fn page(&mut self, caller: u16) -> u32 {
        if self.chance.one_in(15) {
            return self
                .chance
                .of(&[0, PAGES, PAGES - 1, u32::MAX, 1 << 23, KERNEL]);
        }
        let own: Vec<u32> = (0..PAGES)
            .filter(|page| self.owner(*page) == caller)
            .collect();
        if own.is_empty() || self.chance.one_in(3) {
            return self.chance.below(u64::from(PAGES)) as u32;
        }
        self.chance.of(&own)
    }

    /// A page that is likely to be fit for a table.
    pub fn unbound(&mut self, caller: u16) -> u32 {
        for _ in 0..4 {
            let page = self.page(caller);
            if self.fit(page) {
                return page;
            }
        }
        KERNEL + 9
    }

    fn fit(&self, page: u32) -> bool {
        let kind = self.model.pages.get(page as usize).map(|page| page.kind);
        kind == Some(Kind::Data) && self.model.bindings(page).next().is_none()
    }

    pub fn owner(&self, page: u32) -> u16 {
        self.model.pages[page as usize].owner
    }

    pub fn flags(&mut self) -> u64 {
        if self.chance.one_in(30) {
            return self.chance.of(&[1, 8, 0xfff, u64::MAX, 1 << 63]);
        }
        self.chance.of(&[0, 0, 2, 2, 2, 4, 6, 0x10, 0x16])
    }

    pub fn mapping(&mut self, caller: u16) -> u64 {
        match self.chance.below(40) {
            0 => self
                .chance
                .of(&[u64::MAX, u64::MAX - 1, 1 << 63, 1 << 44, (1 << 52) | 2]),
            _ => u64::from(self.page(caller)) << 12 | self.flags(),
        }
    }

    pub fn name(&mut self) -> u32 {
        self.chance.of(&[0, 0, 1, 2, 3, 77, u32::MAX])
    }

    pub fn word(&mut self) -> u64 {
        match self.chance.below(4) {
            0 if !self.words.is_empty() => self.chance.of(&self.words.clone()),
            1 => self.chance.word(),
            2 => u64::MAX,
            _ => 0,
        }
    }

    /// Whose tables: the caller's, or those of somebody who runs nowhere, claimed.
    pub fn environment(&mut self, caller: u16) -> u16 {
        let other = self.chance.of(&ALL);
        let runs = self.runs(0) == other || self.runs(1) == other;
        if self.chance.one_in(5) && !runs && self.dying != Some(other) {
            other
        } else {
            caller
        }
    }

    fn step(&mut self) {
        let number = self.chance.below(2) as usize;
        if self.runs(number) == 0 || self.chance.one_in(20) {
            self.switch(number);
            return;
        }
        let caller = self.runs(number);
        let before = self.model.clone();
        let error = self.call(number, caller);
        if let Some(error) = error {
            *self.errors.entry(error).or_default() += 1;
        }
        self.look(number);
        let processor = self.memory.processor(number);
        let books = processor.books();
        check(&books);
        let now = Model::read(&books);
        if error == Some(Error::Again) && self.dying.is_none() {
            let count = |model: &Model| -> usize {
                model.spaces.values().map(|space| space.entries.len()).sum()
            };
            assert_eq!(count(&now) + 64, count(&before), "64 a call");
        } else if self.dying.is_none() {
            assert_eq!(now, self.model);
        }
        self.model = now;
        self.check_known();
    }

    /// Loads or stores a word, so that the processor knows a translation.
    fn look(&mut self, number: usize) {
        let (address, write) = (self.address() & !7, self.chance.one_in(2));
        let processor = self.memory.processor(number);
        if (0x1000..END).contains(&address)
            && let Some(word) = processor.access(address, write)
            && write
        {
            word.store(self.chance.word(), Relaxed);
        }
    }

    /// What a processor knows stands in the tables with these rights at least.
    fn check_known(&self) {
        for number in 0..2 {
            let processor = self.memory.processor(number);
            for (address, entry) in processor.known().iter() {
                let now = processor.walk(*address).expect("known, but bound no more");
                assert_eq!(page(now), page(*entry));
                assert_eq!(entry & !now & 2, 0, "{address:#x} is known to be writable");
                assert_eq!(
                    (now & !entry) >> 63,
                    0,
                    "{address:#x} is known to be executable"
                );
            }
        }
    }

    /// Makes a call. Its error, if it had one.
    fn call(&mut self, number: usize, caller: u16) -> Option<Error> {
        match self.chance.below(100) {
            0..10 => self.allocate(number, caller),
            10..15 => self.free(number, caller),
            15..20 => self.give(number, caller),
            20..24 => self.rename(number, caller),
            24..28 => self.break_others(number, caller),
            28..36 => self.table(number, caller),
            36..38 => self.untable(number, caller),
            38..66 => self.map(number, caller),
            66..72 => self.unmap(number, caller),
            72..79 => self.protect(number, caller),
            79..85 => self.many(number, caller),
            85..87 => self.bulk(number, caller),
            87..91 => self.capability(number, caller),
            91..94 => self.force(number),
            94..97 => self.guarantee(number, caller),
            _ => self.die(number),
        }
    }
}

pub fn birth_if_room(memory: &Memory, number: u16) {
    let processor = memory.processor(0);
    let books = processor.books();
    let record = books.environment(1);
    // Its limit is not what is tested here.
    let limit = record.pages_limit.swap(u32::MAX, Relaxed);
    birth(&processor, number, 60).unwrap();
    record.pages_limit.store(limit, Relaxed);
}

fn run(seed: u64, steps: u32, errors: &mut HashMap<Error, u32>) {
    let mut run = Run::new(seed);
    for step in 0..steps {
        let before = run.chance.0;
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.step()));
        if done.is_err() {
            panic!("seed {seed}, step {step}, chance {before:#x}");
        }
    }
    for (error, count) in run.errors {
        *errors.entry(error).or_default() += count;
    }
}

#[test]
fn calls_by_chance_do_what_the_model_does() {
    let mut errors = HashMap::new();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    for seed in 0..number("AEGIS_BOOKS_SEEDS").unwrap_or(6) {
        run(seed, 8_000, &mut errors);
    }
    let unseen = |error: &&Error| {
        !matches!(
            error,
            Error::NoCall | Error::Busy | Error::NoDevice | Error::Failed
        )
    };
    for error in Error::ALL.iter().filter(unseen) {
        assert!(
            errors.contains_key(error),
            "{error:?} never came: {errors:?}"
        );
    }
}
