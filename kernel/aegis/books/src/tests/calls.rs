//! The calls that [`random`](super::random) makes, each with what the model says.

use core::sync::atomic::Ordering::Relaxed;
use std::vec::Vec;

use postern_aegis_abi::address::GUARANTEED;
use postern_aegis_abi::records::{Kind, claim};
use postern_aegis_abi::{Error, Mapping};

use super::model::{Model, Page};
use super::random::{ALL, BUFFER, PAGES, REGIONS, Run, agree, birth_if_room};

impl Run {
    pub fn allocate(&mut self, number: usize, caller: u16) -> Option<Error> {
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
            self.model.pages[got] = Page {
                owner: caller,
                kind: Kind::Data,
                read,
                write,
            };
        }
        answer.err()
    }

    pub fn agree<T: core::fmt::Debug + Copy>(
        &self,
        answer: Result<T, Error>,
        wrong: &[Error],
    ) -> bool {
        // Bindings that the dying have are not in the model.
        if self.dying.is_some() {
            answer.is_ok()
        } else {
            agree(answer, wrong)
        }
    }

    pub fn free(&mut self, number: usize, caller: u16) -> Option<Error> {
        let page = self.page(caller);
        let answer = self.memory.processor(number).books().free(caller, page);
        let wrong = self.model.free(caller, page, false);
        self.agree(answer, &wrong);
        answer.err()
    }

    pub fn give(&mut self, number: usize, caller: u16) -> Option<Error> {
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

    pub fn rename(&mut self, number: usize, caller: u16) -> Option<Error> {
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

    pub fn break_others(&mut self, number: usize, caller: u16) -> Option<Error> {
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

    pub fn table(&mut self, number: usize, caller: u16) -> Option<Error> {
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

    pub fn untable(&mut self, number: usize, caller: u16) -> Option<Error> {
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

    pub fn map(&mut self, number: usize, caller: u16) -> Option<Error> {
        let environment = self.environment(caller);
        let (address, mapping, word) = (self.address(), self.mapping(caller), self.word());
        let processor = self.memory.processor(number);
        let answer =
            processor
                .books()
                .map_page(caller, environment, address, Mapping(mapping), word);
        let known = self.known.get(&word);
        let wrong = self
            .model
            .map((caller, environment), address, mapping, known);
        self.agree(answer, &wrong);
        answer.err()
    }

    pub fn unmap(&mut self, number: usize, caller: u16) -> Option<Error> {
        let (environment, address) = (self.environment(caller), self.address());
        let answer = self
            .memory
            .processor(number)
            .books()
            .unmap_page(environment, address);
        let wrong = self.model.unmap(environment, address);
        self.agree(answer, &wrong);
        answer.err()
    }

    pub fn protect(&mut self, number: usize, caller: u16) -> Option<Error> {
        let (address, flags) = (self.address(), self.flags());
        let answer = self
            .memory
            .processor(number)
            .books()
            .protect_page(caller, address, flags);
        let wrong = self.model.protect(caller, address, flags);
        self.agree(answer, &wrong);
        answer.err()
    }

    /// What stands at the place of arrays can be read, and written before.
    pub fn buffer(&mut self, number: usize, caller: u16, words: &[u64]) -> bool {
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

    pub fn many(&mut self, number: usize, caller: u16) -> Option<Error> {
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
    pub fn bulk(&mut self, number: usize, caller: u16) -> Option<Error> {
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
            let answer =
                processor
                    .books()
                    .map_page(caller, caller, address, Mapping(mapping), word);
            let known = self.known.get(&word);
            let wrong = self.model.map((caller, caller), address, mapping, known);
            self.agree(answer, &wrong);
        }
        None
    }

    pub fn capability(&mut self, number: usize, caller: u16) -> Option<Error> {
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
    pub fn force(&mut self, number: usize) -> Option<Error> {
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
    pub fn guarantee(&mut self, number: usize, caller: u16) -> Option<Error> {
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
    pub fn die(&mut self, number: usize) -> Option<Error> {
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
