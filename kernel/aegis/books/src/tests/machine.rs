//! A machine without a processor: memory, what each processor knows of translations, and the
//! kernel's records. A translation is learnt from the tables by [`Memory::access`] alone and
//! forgotten by [`Hardware`]'s methods alone, so one that is kept too long is found.

use core::array::from_fn;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::boxed::Box;
use std::collections::HashMap;
use std::sync::Mutex;
use std::vec::Vec;

use postern_aegis_abi::PROCESSORS;
use postern_aegis_abi::address::index;
use postern_aegis_abi::records::{Machine, Page, claim};

use crate::{Books, Hardware, Minted, UnderWay};

pub const KEY: [u8; 16] = *b"sixteen bytes of";

/// What stands in the slots that the kernel fills.
pub const KERNEL: u64 = 0xdead_0000;

pub struct Memory {
    pub words: Vec<[AtomicU64; 512]>,
    pub pages: Vec<Page>,
    pub lent: Vec<AtomicU8>,
    pub machine: Box<Machine>,
    /// Who runs on each processor, and what it knows: entries by address.
    pub runs: [AtomicU32; 2],
    pub known: [Mutex<HashMap<u64, u64>>; 2],
    /// Whether each processor runs in a thread of its own: asked to forget, it does so itself.
    pub threads: bool,
    /// The counter of cycles.
    pub time: AtomicU64,
    /// What the disk is asked, with its lock.
    pub under_way: Mutex<UnderWay>,
    last: [AtomicU32; 2],
    minted: [Minted; 2],
    asked: [AtomicBool; 2],
    /// A thread has come to a bad end: the other one does not wait for it.
    failed: AtomicBool,
    delays: AtomicU64,
}

/// One of the two processors.
#[derive(Clone, Copy)]
pub struct Processor<'a> {
    pub memory: &'a Memory,
    pub number: usize,
}

impl Memory {
    /// A machine whose first pages are the kernel's.
    pub fn new(pages: usize, threads: bool) -> Memory {
        let memory = Memory {
            words: (0..pages)
                .map(|_| from_fn(|_| AtomicU64::new(!0)))
                .collect(),
            pages: (0..pages).map(|_| Page::default()).collect(),
            machine: Box::new(Machine {
                magic: AtomicU64::new(Machine::MAGIC),
                processors: AtomicU32::new(2),
                pages: AtomicU32::default(),
                free: AtomicU32::default(),
                first_free: AtomicU32::default(),
                free_lock: AtomicU32::default(),
                slice: AtomicU64::default(),
                births: AtomicU32::default(),
                dying: AtomicU32::default(),
                package: AtomicU32::default(),
                asked: Default::default(),
                processor: Default::default(),
                slices: from_fn::<_, PROCESSORS, _>(|_| from_fn(|_| Default::default())),
                environments: from_fn(|_| Default::default()),
                holdings_lock: AtomicU32::default(),
                binds: AtomicU64::default(),
                next_alarm: AtomicU64::default(),
                network: Default::default(),
                disk: Default::default(),
                clock: Default::default(),
                holdings: from_fn(|_| Default::default()),
                filters: from_fn(|_| from_fn(|_| AtomicU64::default())),
            }),
            lent: (0..pages).map(|_| AtomicU8::default()).collect(),
            runs: Default::default(),
            known: Default::default(),
            threads,
            time: AtomicU64::new(1),
            under_way: Mutex::new(UnderWay::new()),
            last: Default::default(),
            minted: Default::default(),
            asked: Default::default(),
            failed: AtomicBool::new(false),
            delays: AtomicU64::new(0),
        };
        for (number, record) in memory.machine.environments.iter().enumerate() {
            record.number.store(number as u16, Relaxed);
            record.claim.store(claim::FREE, Relaxed);
        }
        memory
    }

    pub fn processor(&self, number: usize) -> Processor<'_> {
        Processor {
            memory: self,
            number,
        }
    }

    /// Between two steps of the kernel, another processor sometimes does much.
    fn delay(&self) {
        if !self.threads {
            return;
        }
        let chance = Chance(self.delays.fetch_add(1, Relaxed)).word();
        if chance.is_multiple_of(64) {
            for _ in 0..chance >> 54 {
                core::hint::spin_loop();
            }
        }
    }
}

impl<'a> Processor<'a> {
    pub fn books(&'a self) -> Books<'a, Processor<'a>> {
        let memory = self.memory;
        Books {
            machine: &memory.machine,
            pages: &memory.pages,
            lent: &memory.lent,
            key: &KEY,
            hardware: self,
        }
    }

    /// Enters an environment, as loading its root table does.
    pub fn enter(&self, environment: u16) {
        self.memory.runs[self.number].store(u32::from(environment), SeqCst);
        self.known().clear();
    }

    /// What a load, or a store, in the environment that runs here finds: the word, through what
    /// the processor knows or else the tables.
    pub fn access(&self, address: u64, write: bool) -> Option<&'a AtomicU64> {
        let at = address & !0xfff;
        let known = self.known().get(&at).copied();
        let entry = known
            .filter(|entry| !write || entry & 2 != 0)
            .or_else(|| self.walk(address))?;
        self.known().insert(at, entry);
        (!write || entry & 2 != 0)
            .then(|| &self.memory.words[page(entry)][address as usize >> 3 & 511])
    }

    /// The entry of an address as it stands in the tables of the environment that runs here.
    pub fn walk(&self, address: u64) -> Option<u64> {
        let environment = self.memory.runs[self.number].load(Relaxed);
        let record = &self.memory.machine.environments[environment as usize];
        let mut entry = record.root_table.load(Relaxed);
        for level in [4, 3, 2, 1] {
            entry = self.memory.words[page(entry)][index(address, level)].load(SeqCst);
            if entry & 1 == 0 {
                return None;
            }
        }
        Some(entry)
    }

    pub fn known(&self) -> std::sync::MutexGuard<'_, HashMap<u64, u64>> {
        self.memory.known[self.number].lock().unwrap()
    }
}

/// Lets others know if its thread fails.
pub struct Watch<'a>(pub &'a Memory);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.failed.fetch_or(std::thread::panicking(), SeqCst);
    }
}

pub fn page(entry: u64) -> usize {
    (entry >> 12 & 0xf_ffff_ffff) as usize
}

impl Hardware for Processor<'_> {
    fn words(&self, page: u32) -> &[AtomicU64; 512] {
        self.memory.delay();
        &self.memory.words[page as usize]
    }

    fn kernel_slots(&self, table: u32) {
        for slot in 255..512 {
            self.memory.words[table as usize][slot].store(KERNEL + slot as u64, Relaxed);
        }
    }

    fn last_table(&self) -> &AtomicU32 {
        &self.memory.last[self.number]
    }

    fn minted(&self) -> &Minted {
        &self.memory.minted[self.number]
    }

    fn processor(&self) -> usize {
        self.memory.delay();
        self.number
    }

    fn flush(&self, environment: u16, address: u64) {
        if self.memory.runs[self.number].load(Relaxed) == u32::from(environment) {
            self.known().remove(&address);
        }
    }

    fn shoot(&self, environment: u16) {
        for (number, runs) in self.memory.runs.iter().enumerate() {
            if runs.load(SeqCst) != u32::from(environment) {
                continue;
            }
            if number == self.number || !self.memory.threads {
                self.memory.known[number].lock().unwrap().clear();
                continue;
            }
            self.memory.asked[number].store(true, SeqCst);
            while self.memory.asked[number].load(SeqCst)
                && runs.load(SeqCst) == u32::from(environment)
            {
                self.poll();
            }
        }
    }

    fn shoot_windows(&self) {}

    fn time(&self) -> u64 {
        self.memory.time.load(SeqCst)
    }

    fn interrupt(&self, _processor: usize) {}

    fn poll(&self) {
        assert!(!self.memory.failed.load(SeqCst), "the other one has failed");
        if self.memory.asked[self.number].load(SeqCst) {
            self.known().clear();
            self.memory.asked[self.number].store(false, SeqCst);
        }
        std::thread::yield_now();
    }
}

/// Numbers by chance, the same in every run (SplitMix64).
pub struct Chance(pub u64);

impl Chance {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.word() % end
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len() as u64) as usize]
    }
}
