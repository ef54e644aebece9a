//! Calls by chance, compared with the model after each; every number comes from a seed.

use core::sync::atomic::Ordering::Relaxed;
use std::boxed::Box;
use std::collections::HashMap;
use std::vec::Vec;

use postern_aegis_abi::address::{END, GUARANTEED};
use postern_aegis_abi::records::{Kind, claim};
use postern_aegis_abi::{Error, Mapping};

use super::check::check;
use super::machine::{Chance, Memory, page};
use super::model::{Known, Model};

const PAGES: u32 = 180;
const KERNEL: u32 = 6;
const ALL: [u16; 4] = [1, 2, 3, 4];
const REGIONS: [u64; 4] = [0x40_0000, 0x60_0000, GUARANTEED, END - 0x20_0000];
const BUFFER: u64 = 0x40_3000;

/// Makes an environment of two pages of the first one, or of its own.
pub fn birth(memory: &Memory, number: u16, limit: u32) {
    let processor = memory.processor(0);
    let books = processor.books();
    let record = books.environment(number);
    record.birth.fetch_add(1, Relaxed);
    record.parent.store(1, Relaxed);
    record.pages_limit.store(limit, Relaxed);
    let maker = if books.environment(1).claim.load(Relaxed) == claim::FREE {
        number
    } else {
        1
    };
    let context = books.allocate(maker, None, 0, 0).unwrap();
    let table = books.allocate(maker, None, 0, 0).unwrap();
    books.found(maker, number, context, table).unwrap();
    record.claim.store(claim::IDLE, Relaxed);
}

/// A machine with environments.
pub fn world(pages: u32, threads: bool, environments: &[u16], limit: u32) -> Memory {
    let memory = Memory::new(pages as usize, threads);
    memory
        .processor(0)
        .books()
        .start_pages(|page| page >= KERNEL);
    for number in environments {
        birth(&memory, *number, limit);
    }
    memory
}

struct Run {
    memory: &'static Memory,
    chance: Chance,
    model: Model,
    known: Known,
    words: Vec<u64>,
    /// Somebody is dying in pieces: the model is read again after each step.
    dying: Option<u16>,
    errors: HashMap<Error, u32>,
}

/// An answer must be that no error is there, or one of those that are.
fn agree<T: core::fmt::Debug>(answer: Result<T, Error>, wrong: &[Error]) -> bool {
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

    fn runs(&self, processor: usize) -> u16 {
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

    fn address(&mut self) -> u64 {
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
    fn page(&mut self, caller: u16) -> u32 {
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
    fn unbound(&mut self, caller: u16) -> u32 {
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

    fn owner(&self, page: u32) -> u16 {
        self.model.pages[page as usize].owner
    }

    fn flags(&mut self) -> u64 {
        if self.chance.one_in(30) {
            return self.chance.of(&[1, 8, 0xfff, u64::MAX, 1 << 63]);
        }
        self.chance.of(&[0, 0, 2, 2, 2, 4, 6, 0x10, 0x16])
    }

    fn mapping(&mut self, caller: u16) -> u64 {
        match self.chance.below(40) {
            0 => self
                .chance
                .of(&[u64::MAX, u64::MAX - 1, 1 << 63, 1 << 44, (1 << 52) | 2]),
            _ => u64::from(self.page(caller)) << 12 | self.flags(),
        }
    }

    fn name(&mut self) -> u32 {
        self.chance.of(&[0, 0, 1, 2, 3, 77, u32::MAX])
    }

    fn word(&mut self) -> u64 {
        match self.chance.below(4) {
            0 if !self.words.is_empty() => self.chance.of(&self.words.clone()),
            1 => self.chance.word(),
            2 => u64::MAX,
            _ => 0,
        }
    }

    /// Whose tables: the caller's, or those of somebody who runs nowhere, claimed.
    fn environment(&mut self, caller: u16) -> u16 {
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

    fn allocate(&mut self, number: usize, caller: u16) -> Option<Error> {
        let page = self.chance.one_in(3).then(|| self.page(0));
        let (read, write) = (self.name(), self.name());
        let answer = self
            .memory
            .processor(number)
            .books()
            .allocate(caller, page, read, write);
        let wrong = self.model.allocate(caller, page, answer.ok());
        if self.agree(answer, &wrong) {
            let got = answer.unwrap() as usize;
            assert!(
                self.memory.words[got]
                    .iter()
                    .all(|word| word.load(Relaxed) == 0)
            );
            self.model.pages[got] = super::model::Page {
                owner: caller,
                kind: Kind::Data,
                read,
                write,
            };
        }
        answer.err()
    }

    fn agree<T: core::fmt::Debug + Copy>(&self, answer: Result<T, Error>, wrong: &[Error]) -> bool {
        // Bindings that the dying have are not in the model.
        if self.dying.is_some() {
            answer.is_ok()
        } else {
            agree(answer, wrong)
        }
    }

    fn free(&mut self, number: usize, caller: u16) -> Option<Error> {
        let page = self.page(caller);
        let answer = self.memory.processor(number).books().free(caller, page);
        let wrong = self.model.free(caller, page, false);
        self.agree(answer, &wrong);
        answer.err()
    }

    fn give(&mut self, number: usize, caller: u16) -> Option<Error> {
        let to = if self.chance.one_in(6) {
            self.chance.of(&[0, 9, 255, 256, 257, u16::MAX])
        } else {
            self.chance.of(&ALL)
        };
        let page = self.page(caller);
        let answer = self.memory.processor(number).books().give(caller, page, to);
        let wrong = self.model.give(caller, page, to, false);
        self.agree(answer, &wrong);
        answer.err()
    }

    fn rename(&mut self, number: usize, caller: u16) -> Option<Error> {
        let (page, read, write) = (self.page(caller), self.name(), self.name());
        let answer = self
            .memory
            .processor(number)
            .books()
            .rename(caller, page, read, write);
        let wrong = self.model.rename(caller, page, read, write);
        self.agree(answer, &wrong);
        answer.err()
    }

    fn break_others(&mut self, number: usize, caller: u16) -> Option<Error> {
        let page = self.page(caller);
        let answer = self
            .memory
            .processor(number)
            .books()
            .break_others(caller, page);
        let wrong = self.model.break_others(caller, page);
        self.agree(answer, &wrong);
        answer.err()
    }

    fn table(&mut self, number: usize, caller: u16) -> Option<Error> {
        let environment = self.environment(caller);
        let (page, links) = (self.unbound(caller), self.unbound(caller));
        let links = if self.chance.one_in(20) { page } else { links };
        let level = if self.chance.one_in(20) {
            self.chance.of(&[0, 4, 5, u32::MAX])
        } else {
            self.chance.below(3) as u32 + 1
        };
        let address = self.address();
        let processor = self.memory.processor(number);
        let answer = processor
            .books()
            .table(caller, environment, address, level, page, links);
        let wrong = self
            .model
            .table((caller, environment), (address, level), page, links);
        self.agree(answer, &wrong);
        answer.err()
    }

    fn untable(&mut self, number: usize, caller: u16) -> Option<Error> {
        let environment = self.environment(caller);
        let level = if self.chance.one_in(20) {
            4
        } else {
            self.chance.below(3) as u32 + 1
        };
        let address = self.address();
        let answer = self
            .memory
            .processor(number)
            .books()
            .untable(environment, address, level);
        let wrong = self.model.untable(environment, address, level);
        self.agree(answer, &wrong);
        answer.err()
    }

    fn map(&mut self, number: usize, caller: u16) -> Option<Error> {
        let environment = self.environment(caller);
        let (address, mapping, word) = (self.address(), self.mapping(caller), self.word());
        let processor = self.memory.processor(number);
        let answer = processor
            .books()
            .map(caller, environment, address, Mapping(mapping), word);
        let known = self.known.get(&word);
        let wrong = self
            .model
            .map((caller, environment), address, mapping, known);
        self.agree(answer, &wrong);
        answer.err()
    }

    fn unmap(&mut self, number: usize, caller: u16) -> Option<Error> {
        let (environment, address) = (self.environment(caller), self.address());
        let answer = self
            .memory
            .processor(number)
            .books()
            .unmap(environment, address);
        let wrong = self.model.unmap(environment, address);
        self.agree(answer, &wrong);
        answer.err()
    }

    fn protect(&mut self, number: usize, caller: u16) -> Option<Error> {
        let (address, flags) = (self.address(), self.flags());
        let answer = self
            .memory
            .processor(number)
            .books()
            .protect(caller, address, flags);
        let wrong = self.model.protect(caller, address, flags);
        self.agree(answer, &wrong);
        answer.err()
    }

    /// What stands at the place of arrays can be read, and written before.
    fn buffer(&mut self, number: usize, caller: u16, words: &[u64]) -> bool {
        let at = BUFFER + 4096 - 64;
        let bound = self.model.spaces[&caller].entries.get(&BUFFER);
        let next = self.model.spaces[&caller].entries.get(&(BUFFER + 4096));
        let long = words.len() > 8;
        let can = bound.is_some_and(|(_, flags)| flags & 2 != 0)
            && (!long || next.is_some_and(|(_, flags)| flags & 2 != 0));
        let processor = self.memory.processor(number);
        let answer = processor.books().write_words(caller, at, words);
        assert_eq!(answer.is_ok(), can);
        let mut back = std::vec![0; words.len()];
        if can {
            processor.books().read_words(caller, at, &mut back).unwrap();
            // The two pages may be one.
            return back == words;
        }
        false
    }

    fn many(&mut self, number: usize, caller: u16) -> Option<Error> {
        let count = self.chance.below(9) as usize + 1;
        if self.chance.one_in(3) {
            let addresses: Vec<u64> = (0..count).map(|_| self.address()).collect();
            let flags = self.flags();
            if !self.buffer(number, caller, &addresses) {
                return None;
            }
            let (at, many) = (BUFFER + 4096 - 64, count as u64);
            let processor = self.memory.processor(number);
            let answer = processor.books().protect_many(caller, at, many, flags);
            if flags & !0x16 != 0 {
                assert_eq!(answer, Err(Error::Argument));
                return answer.err();
            }
            let done = addresses
                .iter()
                .take_while(|address| self.model.protect(caller, **address, flags).is_empty());
            let done = done.count() as u64;
            assert!(self.dying.is_some() || answer == Ok(done));
            return answer.err();
        }
        let requests: Vec<u64> = (0..count)
            .flat_map(|_| {
                let mapping = match self.chance.below(4) {
                    0 => u64::MAX,
                    _ => self.mapping(caller),
                };
                [self.address(), mapping, self.word()]
            })
            .collect();
        if !self.buffer(number, caller, &requests) {
            return None;
        }
        let processor = self.memory.processor(number);
        let answer = processor
            .books()
            .map_many(caller, BUFFER + 4096 - 64, count as u64);
        let mut done = 0;
        for request in requests.chunks(3) {
            let known = self.known.get(&request[2]);
            let wrong = match request[1] {
                u64::MAX => self.model.unmap(caller, request[0]),
                mapping => self.model.map((caller, caller), request[0], mapping, known),
            };
            if !wrong.is_empty() {
                break;
            }
            done += 1;
        }
        assert!(
            self.dying.is_some() || answer == Ok(done),
            "{answer:?} {done}"
        );
        answer.err()
    }

    /// Binds one page to many addresses.
    fn bulk(&mut self, number: usize, caller: u16) -> Option<Error> {
        let open = |page: &u32| self.model.pages[*page as usize].read == 1;
        let open: Vec<u32> = (0..PAGES).filter(open).collect();
        let page = if open.is_empty() {
            self.page(caller)
        } else {
            self.chance.of(&open)
        };
        let word = self.word();
        let start = 64 + self.chance.below(300);
        for slot in start..start + 90 {
            let (address, mapping) = (REGIONS[1] + slot * 4096, u64::from(page) << 12);
            let processor = self.memory.processor(number);
            let answer = processor
                .books()
                .map(caller, caller, address, Mapping(mapping), word);
            let known = self.known.get(&word);
            let wrong = self.model.map((caller, caller), address, mapping, known);
            self.agree(answer, &wrong);
        }
        None
    }

    fn capability(&mut self, number: usize, caller: u16) -> Option<Error> {
        let (name, right) = (self.name(), self.chance.of(&[1, 2, 0, 3, 8, u64::MAX]));
        let answer = self
            .memory
            .processor(number)
            .books()
            .capability(caller, name, right, caller);
        assert_eq!(answer.is_ok(), name > 1 && (right == 1 || right == 2));
        if let Ok(word) = answer {
            assert!(word as i64 >= 0);
            let birth = self.model.spaces[&caller].birth;
            self.known.insert(word, (caller, birth, name, right));
            self.words.push(word);
        }
        answer.err()
    }

    /// Takes a page by force from anybody, in one go, and saves it.
    fn force(&mut self, number: usize) -> Option<Error> {
        let from = self.chance.of(&ALL);
        if self.dying == Some(from) {
            return None;
        }
        let processor = self.memory.processor(number);
        let books = processor.books();
        let page = books.victim(from)?;
        assert!(matches!(
            self.model.pages[page as usize].kind,
            Kind::Data | Kind::Leaving
        ));
        let answer = books.take(from, page);
        let wrong = self.model.free(from, page, true);
        if !self.agree(answer, &wrong) {
            return answer.err();
        }
        let (place, word) = (self.page(from), self.word());
        let saved = books.save(from, page, place, word);
        if saved.is_ok() {
            let record = self.model.pages[place as usize];
            let lets = record.owner == from || record.write == 1 || self.known.contains_key(&word);
            assert!(record.kind == Kind::Data && lets);
        }
        let to = self.chance.of(&ALL);
        if self.chance.one_in(2) {
            let answer = books.hand_taken(from, page, to);
            let wrong = self.model.give(from, page, to, true);
            if self.agree(answer, &wrong) {
                return None;
            }
        }
        assert_eq!(books.drop_taken(from, page), Ok(()));
        self.model.free(from, page, false);
        assert_eq!(books.drop_taken(from, page), Err(Error::Denied));
        None
    }

    /// Writes a guaranteed mapping into the context, and misses.
    fn guarantee(&mut self, number: usize, caller: u16) -> Option<Error> {
        let (address, mapping) = (self.address(), self.mapping(caller));
        let processor = self.memory.processor(number);
        let books = processor.books();
        let place = core::mem::offset_of!(postern_aegis_abi::Context, guaranteed) / 8 + 2;
        let (old, old_mapping) = (
            &books.context(caller)[place],
            &books.context(caller)[place + 1],
        );
        old.store(address, Relaxed);
        old_mapping.store(mapping, Relaxed);
        let before = self.model.spaces[&caller].entries.get(&address).copied();
        let same = (mapping >> 12, mapping & 0x16);
        let own = self.model.pages.get((mapping >> 12) as usize);
        let own = own.is_some_and(|page| page.owner == caller);
        let restored = books.guarantee(caller, address);
        let mut wrong = Vec::new();
        if address < GUARANTEED
            || before.is_some_and(|(page, flags)| (u64::from(page), flags) == same)
            || !own
        {
            wrong.push(Error::Denied);
        } else {
            wrong = self.model.map((caller, caller), address, mapping, None);
        }
        assert!(
            self.dying.is_some() || restored == wrong.is_empty(),
            "{wrong:?}"
        );
        // Another guaranteed one of the same address, by chance, may stand before.
        old.store(0, Relaxed);
        old_mapping.store(0, Relaxed);
        None
    }

    /// Somebody dies, all at once or in pieces between others' calls.
    fn die(&mut self, number: usize) -> Option<Error> {
        let processor = self.memory.processor(number);
        let books = processor.books();
        if let Some(dying) = self.dying {
            if books.free_some_pages(dying) {
                books.environment(dying).claim.store(claim::FREE, Relaxed);
                birth_if_room(self.memory, dying);
                self.dying = None;
                self.model = Model::read(&books);
            }
            return None;
        }
        let who = self.chance.of(&ALL[1..]);
        let runs = self.runs(0) == who || self.runs(1) == who;
        let owned: Vec<u32> = (0..PAGES).filter(|page| self.owner(*page) == 1).collect();
        // The first one must be able to make it anew.
        if runs || self.chance.one_in(2) || owned.len() > 56 {
            return None;
        }
        books.environment(who).claim.store(claim::ENDING, Relaxed);
        self.dying = Some(who);
        self.model = Model::read(&books);
        None
    }
}

fn birth_if_room(memory: &Memory, number: u16) {
    let processor = memory.processor(0);
    let books = processor.books();
    let record = books.environment(1);
    // Its limit is not what is tested here.
    let limit = record.pages_limit.swap(u32::MAX, Relaxed);
    birth(memory, number, 60);
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
    let unseen = |error: &&Error| !matches!(error, Error::NoCall | Error::Busy);
    for error in Error::ALL.iter().filter(unseen) {
        assert!(
            errors.contains_key(error),
            "{error:?} never came: {errors:?}"
        );
    }
}
