//! All calls at random, by whoever runs on one of two processors, with slices that end, death in
//! pieces and things taken by force between them. After each step the sums hold, and what quotas,
//! slices and authority say is what a model says that knows nothing of the books.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use std::collections::HashMap;
use std::vec;
use std::vec::Vec;

use postern_aegis_abi::call::{self, ANY, RIGHT_CONTROL, TABLE};
use postern_aegis_abi::context::{GUARANTEES, Place};
use postern_aegis_abi::device::Request;
use postern_aegis_abi::records::{HoldingKind, Kind, end, stopping};
use postern_aegis_abi::{Call, Context, Error, HOLDINGS, ROOT, address};

use super::authority::Model;
use super::check::check;
use super::machine::{Chance, Processor};
use super::{requests, sums, world};
use crate::{Books, Hardware, Tick};

type World<'a> = Books<'a, Processor<'a>>;

const PAGES: usize = 160;
const NOWHERE: u64 = 0x0123_4567_89ab_cdef;

struct Run {
    chance: Chance,
    /// None where two processors call at the same time.
    model: Option<Model>,
    /// Words that capabilities are made of: found ones and forged ones.
    words: Vec<u64>,
    done: Done,
    /// Pages and slices that were taken by force.
    taken: u32,
}

impl Run {
    fn new(seed: u64) -> Run {
        Run {
            chance: Chance(seed),
            model: None,
            words: Vec::new(),
            done: Done::new(),
            taken: 0,
        }
    }

    fn living(&self, books: &World<'_>) -> Vec<u16> {
        (1..256).filter(|number| books.lives(*number)).collect()
    }

    fn somebody(&mut self, books: &World<'_>) -> u64 {
        match self.chance.below(20) {
            0 => self.chance.below(300),
            1..6 => 0,
            _ => self.one_that_lives(books).into(),
        }
    }

    fn one_that_lives(&mut self, books: &World<'_>) -> u16 {
        let living = [self.living(books), vec![0]].concat();
        self.chance.of(&living[..living.len().max(2) - 1])
    }

    /// A page of somebody's, or any number.
    fn page(&mut self, books: &World<'_>, caller: u16) -> u64 {
        let mut own = Vec::new();
        let mut page = books.environment(caller).first.load(Relaxed);
        // Another processor may change the list meanwhile.
        while let Some(record) = books.pages.get(page as usize).filter(|_| own.len() < PAGES) {
            own.push(page);
            page = record.next.load(Relaxed);
        }
        match self.chance.below(12) {
            0 => self.chance.below(PAGES as u64 + 8),
            1 => NOWHERE,
            _ => own
                .get(self.chance.below(own.len() as u64 + 1) as usize)
                .copied()
                .map_or(4, u64::from),
        }
    }

    /// A holding of somebody's, or any number.
    fn holding(&mut self, books: &World<'_>, caller: u16) -> u64 {
        let owned = |number: &u64| books.holding(*number as usize).owner.load(Relaxed) == caller;
        let own: Vec<u64> = (1..HOLDINGS as u64).filter(owned).collect();
        match own.len() {
            0 => self.chance.below(12),
            _ if self.chance.one_in(6) => self.chance.below(12),
            _ => self.chance.of(&own),
        }
    }

    /// An endpoint or a handler, as the kernel's calls make them, and what is set in them.
    fn take_holding(&mut self, books: &World<'_>, who: u16) {
        let _lock = books.lock_holdings();
        let kind = self
            .chance
            .of(&[HoldingKind::Endpoint, HoldingKind::Handler]);
        let result = books.take_holding(who, kind);
        if let Some(model) = &mut self.model {
            model.took_holding(who, kind, result);
        }
        let Ok(number) = result else { return };
        let other = self.holding(books, who) as usize;
        let handler = books.own(who, other as u64, HoldingKind::Handler);
        if let (HoldingKind::Endpoint, Ok(handler)) = (kind, handler) {
            let endpoint = books.holding(number);
            endpoint.handler.store(handler as u32, Relaxed);
        }
    }

    /// Somebody asks the disk, or the disk is done with something.
    fn disk(&mut self, here: &Processor<'_>, who: u16) {
        let books = here.books();
        if who == 0 || self.chance.one_in(2) {
            // In any order, as a device likes.
            let all: Vec<usize> = {
                let under_way = here.memory.under_way.lock().expect("it is whole");
                under_way.taken().map(|(place, ..)| place).collect()
            };
            if !all.is_empty() {
                requests::done(here, self.chance.of(&all));
            }
            return;
        }
        let request = Request {
            operation: self.chance.below(3),
            holding: self.holding(&books, who),
            block: self.chance.below(8),
            page: self.page(&books, who),
            capability: self.word(),
            authority: self.word(),
            tag: self.chance.word(),
        };
        let result = requests::ask(here, who, &request).map(|_| 0);
        *self.done.entry((Call::Blocks, result.err())).or_default() += 1;
    }

    /// Time passes, on both processors at once.
    fn pass(&mut self, here: &Processor<'_>) {
        let passed = self.chance.below(64);
        here.memory.time.fetch_add(passed, Relaxed);
        here.books().alarms();
        if self.model.is_none() {
            return;
        }
        let now = here.time();
        for number in self.living(&here.books()) {
            let alarm = here.books().environment(number).alarm.load(Relaxed);
            assert!(alarm == 0 || alarm > now, "{number}: {alarm}, {now}");
        }
    }

    fn address(&mut self) -> u64 {
        let offset = self.chance.below(4) << 12;
        match self.chance.below(12) {
            0 => self.chance.word(),
            1 => address::TABLES,
            2..6 => address::GUARANTEED + offset,
            _ => 0x1000 + offset,
        }
    }

    fn word(&mut self) -> u64 {
        let words = [&[0, NOWHERE], &self.words[..]].concat();
        self.chance.of(&words)
    }

    fn small(&mut self) -> u64 {
        if self.chance.one_in(30) {
            self.chance.word()
        } else {
            self.chance.below(12)
        }
    }

    fn arguments(&mut self, books: &World<'_>, caller: u16, call: Call) -> [u64; 6] {
        let names = TABLE[call as usize].arguments;
        let mut all = [0; 6];
        for (argument, name) in all.iter_mut().zip(names) {
            *argument = match *name {
                "page" if call == Call::Allocate && !self.chance.one_in(4) => ANY,
                "page" | "context" | "table" | "links" => self.page(books, caller),
                "environment" => self.somebody(books),
                "address"
                    if matches!(call, Call::Table | Call::Untable) && self.chance.one_in(2) =>
                {
                    0
                }
                "address" => self.address(),
                "level" => self.chance.below(5),
                "mapping" => self.page(books, caller) << 12 | self.chance.below(8) & 6,
                "capability" | "control" => self.word(),
                "requests" | "addresses" => self.chance.of(&[0x1000, 0x2008, NOWHERE]),
                "count" => self.chance.of(&[0, 1, 2, 3, 1, 600]),
                "flags" => self.chance.below(8),
                "resource" => self.chance.below(6),
                "holding" | "behind" if self.chance.one_in(40) => self.chance.below(200),
                "holding" | "behind" => self.holding(books, caller),
                "blocks" => self.chance.below(20),
                "time" | "seconds" => self.chance.below(1 << 13),
                "processor" => self.chance.below(3),
                "position" if self.chance.one_in(3) => ANY,
                "position" => self.chance.below(10),
                "what" => self.chance.below(4),
                "value" if self.chance.one_in(2) => self.somebody(books),
                "rights" => 1 << self.chance.below(4),
                _ => self.small(),
            };
        }
        all
    }

    /// Somebody stores to its context, as it likes.
    fn scribble(&mut self, books: &World<'_>, who: u16) {
        let index = self.chance.below(GUARANTEES as u64) as usize;
        if self.chance.one_in(2) {
            let mapping = if self.chance.one_in(2) {
                0
            } else {
                self.page(books, who) << 12 | 2
            };
            let at = offset_of!(Context, guaranteed) + 16 * index;
            world::set(
                books,
                who,
                at,
                address::GUARANTEED + ((index as u64 & 3) << 12),
            );
            world::set(books, who, at + 8, mapping);
        } else {
            let kind = u64::from(
                self.chance
                    .of(&[Place::NOWHERE, Place::PAGE, Place::SERVER]),
            );
            let number = match kind == u64::from(Place::SERVER) {
                true => books.environment(who).server.load(Relaxed).into(),
                false => self.page(books, who) & 0xffff_ffff,
            };
            let at = offset_of!(Context, places) + size_of::<Place>() * index;
            world::set(books, who, at, kind | number << 32);
            let word = self.word();
            world::set(books, who, at + 8, word);
        }
    }

    fn call(&mut self, books: &World<'_>, caller: u16) {
        let calls: Vec<Call> = world::calls().map(|one| one.call).collect();
        let call = self.chance.of(&calls);
        if matches!(call, Call::Destroy | Call::Submit) && !self.chance.one_in(6) {
            return;
        }
        let arguments = self.arguments(books, caller, call);
        if call == Call::Destroy && matches!((caller, arguments[0]), (ROOT, 0 | 1)) {
            return;
        }
        let result = self.make(books, caller, call, arguments);
        *self.done.entry((call, result.err())).or_default() += 1;
    }

    /// A call, with what the model says of it.
    fn make(
        &mut self,
        books: &World<'_>,
        caller: u16,
        call: Call,
        arguments: [u64; 6],
    ) -> Result<u64, Error> {
        let model = self.model.as_ref();
        let expected = model.and_then(|model| model.expected(books, caller, call, &arguments));
        let watched = self.model.is_some() && self.chance.one_in(150);
        let before = watched.then(|| sums::digest(books));
        let result = books.call(caller, call, arguments);
        if let (Some(before), Err(error)) = (before, result) {
            let same = error == Error::Again || before == sums::digest(books);
            assert!(
                same,
                "{call:?} {arguments:x?}: {error:?}, and something has changed"
            );
        }
        if let Some(expected) = expected {
            assert_eq!(result, expected, "{caller}: {call:?} {arguments:x?}");
        }
        if let Err(error) = result {
            let known = TABLE[call as usize].errors;
            assert!(known.contains(&error), "{call:?} {arguments:x?}: {error:?}");
        }
        if let (Call::Capability, Ok(word)) = (call, result) {
            self.words.push(word);
            if self.words.len() > 30 {
                self.words.remove(0);
            }
            if let (RIGHT_CONTROL, Some(model)) = (arguments[1], &mut self.model) {
                let of = if arguments[2] == 0 {
                    caller
                } else {
                    arguments[2] as u16
                };
                model.minted(books, of, word);
            }
        }
        if let (Call::Create, Ok(number)) = (call, result) {
            world::handlers(books, number as u16);
        }
        if let Some(model) = &mut self.model {
            model.done(books, caller, call, &arguments, result);
        }
        result
    }

    /// The root makes a child with tables, a few pages and slices, if it can.
    fn populate(&mut self, books: &World<'_>) -> Result<(), Error> {
        let mut go = |who: u16, call: Call, some: &[u64]| {
            let mut arguments = [0; 6];
            arguments[..some.len()].copy_from_slice(some);
            self.make(books, who, call, arguments)
        };
        let context = go(ROOT, Call::Allocate, &[ANY])?;
        let table = go(ROOT, Call::Allocate, &[ANY])?;
        let child = go(ROOT, Call::Create, &[context, table])?;
        go(ROOT, Call::Quota, &[child, call::PAGES, 14, 60])?;
        go(ROOT, Call::Quota, &[child, call::SLICES, 3, 20])?;
        go(ROOT, Call::Quota, &[child, call::ENVIRONMENTS, 0, 10])?;
        go(ROOT, Call::Quota, &[child, call::HOLDINGS, 0, 6])?;
        for processor in [0, 1, 0, 1] {
            go(child as u16, Call::TakeSlice, &[processor, ANY])?;
        }
        for at in [0, address::GUARANTEED] {
            for level in [3, 2, 1] {
                let table = go(child as u16, Call::Allocate, &[ANY])?;
                let links = go(child as u16, Call::Allocate, &[ANY])?;
                go(child as u16, Call::Table, &[at, level, table, links])?;
            }
        }
        go(ROOT, Call::Set, &[child, call::SET_FROZEN, 0])?;
        Ok(())
    }

    /// What is due is taken, but nothing that is reserved or guaranteed.
    fn due(&mut self, books: &World<'_>, processor: usize) {
        let mut kept = Vec::new();
        let has = |number: u16| {
            let record = books.environment(number);
            record.pages.load(Relaxed) + record.slices.load(Relaxed)
        };
        let before: u32 = (1..256).map(has).sum();
        for number in self.living(books) {
            let record = books.environment(number);
            for (page, owned) in books.pages.iter().enumerate() {
                let mine = owned.owner.load(Relaxed) == number;
                let memory = owned.kind.load(Relaxed) == Kind::Data as u8;
                if mine && memory && books.is_guaranteed(number, page as u32) {
                    kept.push((page, number));
                }
            }
            let least = |count: u32, reserved: u32| count.min(reserved);
            let pages = least(
                record.pages.load(Relaxed),
                record.pages_reserved.load(Relaxed),
            );
            let slices = least(
                record.slices.load(Relaxed),
                record.slices_reserved.load(Relaxed),
            );
            kept.push((PAGES + pages as usize * 1000 + slices as usize, number));
        }
        books.due(processor);
        self.taken += before - (1..256).map(has).sum::<u32>();
        for (what, number) in kept {
            let record = books.environment(number);
            if !books.lives(number) {
                assert_eq!(record.ended.load(Relaxed), end::REFUSED);
            } else if what < PAGES {
                assert_eq!(
                    books.pages[what].owner.load(Relaxed),
                    number,
                    "{what} is guaranteed"
                );
            } else {
                assert!(record.pages.load(Relaxed) as usize >= (what - PAGES) / 1000);
                assert!(record.slices.load(Relaxed) as usize >= (what - PAGES) % 1000);
            }
        }
    }

    /// One step of whoever runs on a processor, or of the processor.
    fn step(&mut self, here: &Processor<'_>) {
        let books = here.books();
        let current = books.machine.processor[here.number].current.load(Relaxed) as u16;
        if books.environment(current).stopping.load(Relaxed) >= stopping::SUBMIT {
            // The other processor has interrupted this one.
            world::next(here);
            return;
        }
        match self.chance.below(20) {
            0 => {
                world::next(here);
            }
            1 => {
                let told = books.tick(here.number);
                match self.model {
                    Some(_) => self.due(&books, here.number),
                    None => books.due(here.number),
                }
                if told == Tick::Next || !self.chance.one_in(5) {
                    world::next(here);
                }
            }
            2 => {
                books.reap();
            }
            3 | 4 if current != 0 => {
                let callee = self.one_that_lives(&books);
                let synchronous = self.chance.one_in(3);
                if books.donate(here.number, callee, synchronous).is_ok() {
                    let now = books.machine.processor[here.number].current.load(Relaxed);
                    here.enter(now as u16);
                }
            }
            5 if current != 0 => self.scribble(&books, current),
            6 if current != 0 && self.chance.one_in(3) => self.take_holding(&books, current),
            7 if self.chance.one_in(2) => self.pass(here),
            8 => self.disk(here, current),
            _ if current != 0 => self.call(&books, current),
            _ => {
                world::next(here);
            }
        }
        let current = books.machine.processor[here.number].current.load(Relaxed) as u16;
        if books.environment(current).stopping.load(Relaxed) >= stopping::SUBMIT {
            world::next(here);
        }
        if let Some(model) = &mut self.model {
            model.follow(&books);
        }
    }
}

type Done = HashMap<(Call, Option<Error>), usize>;

/// Some steps of a new machine, until its root ends. Returns how many, and how much was
/// taken by force.
fn run(seed: u64, steps: usize, done: &mut Done) -> (usize, u32) {
    let memory = world::machine(PAGES);
    let here = [memory.processor(0), memory.processor(1)];
    let books = here[0].books();
    let mut run = Run {
        model: Some(Model::new(&books)),
        done: core::mem::take(done),
        ..Run::new(seed)
    };
    let mut step = 0;
    while step < steps && books.lives(ROOT) {
        if step % 100 == 0 && run.living(&books).len() < 6 {
            // It has not enough left at times.
            let _ = run.populate(&books);
        }
        let processor = run.chance.below(2) as usize;
        run.step(&here[processor]);
        sums::check(&books);
        requests::check(&here[0]);
        if step % 16 == 0 {
            check(&books);
        }
        step += 1;
    }
    *done = run.done;
    (step, run.taken)
}

#[test]
fn two_hundred_thousand_steps() {
    let mut done = Done::new();
    let (mut left, mut seed, mut taken) = (200_000, 0, 0);
    while left != 0 {
        let (steps, by_force) = run(seed, left.min(10_000), &mut done);
        left -= steps;
        taken += by_force;
        seed += 1;
    }
    // Calls by chance are of use only if they are done at times.
    for description in world::calls() {
        let count = done.get(&(description.call, None)).copied().unwrap_or(0);
        assert!(count >= 10, "{}: {count}", description.name);
    }
    let asked = |error: Option<Error>| done.get(&(Call::Blocks, error)).copied();
    let asked = [None, Some(Error::Again), Some(Error::Denied)].map(asked);
    assert!(asked.iter().all(|count| *count >= Some(10)), "{asked:?}");
    assert!(taken >= 10, "{taken}");
}

/// What a processor does while the other one does it, too.
fn run_beside(here: &Processor<'_>, seed: u64, steps: usize) {
    let mut run = Run::new(seed);
    for _ in 0..steps {
        here.poll();
        run.step(here);
    }
    here.enter(0);
    here.books().vacate(here.number);
}

#[test]
fn two_processors_at_the_same_time() {
    for seed in 0..60 {
        let memory = world::machine_of(PAGES, true);
        let here = [memory.processor(0), memory.processor(1)];
        let books = here[0].books();
        for _ in 0..5 {
            // There is too little left at times.
            let _ = Run::new(0).populate(&books);
        }
        std::thread::scope(|scope| {
            for (number, here) in here.iter().enumerate() {
                scope.spawn(move || run_beside(here, seed << 1 | number as u64, 2000));
            }
        });
        check(&books);
        sums::check(&books);
        requests::check(&here[0]);
        requests::all_done(&here[0]);
        for number in 1..256 {
            books.end(number, end::DESTROYED, 0);
        }
        world::reap(&books);
        assert_eq!(
            books.machine.free.load(Relaxed) as usize,
            PAGES - world::KERNELS as usize
        );
    }
}
