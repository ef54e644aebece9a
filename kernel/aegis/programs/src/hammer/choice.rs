//! What is called next, and with what: numbers near those that are something.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Call;
use postern_aegis::abi::call::TABLE;
use postern_aegis::context::context;
use postern_aegis::{PAGE, address, books, calls, disk, memory, slices};

/// Numbers that are remembered: pages and capabilities that it got.
const KNOWN: usize = 32;

/// Arguments that are in memory.
static ARRAY: [AtomicU64; 128] = [const { AtomicU64::new(0) }; 128];

/// Filters that are some, lie, or are none.
const FILTERS: [&str; 8] = [
    "udp",
    "udp dst port 7",
    "dst port 7 or dst port 9",
    "tcp and not src port 80",
    "ip",
    "arp",
    "udp dst port",
    "(((",
];

fn store(words: &[AtomicU64], values: &[u64]) {
    for (word, value) in words.iter().zip(values) {
        word.store(*value, Relaxed);
    }
}

/// A generator of numbers, and what it has learned.
pub struct Choice {
    state: u64,
    known: [u64; KNOWN],
}

impl Choice {
    pub fn new(seed: u64) -> Choice {
        Choice {
            state: seed | 1,
            known: [0; KNOWN],
        }
    }

    /// The next number (xorshift, multiplied: every seed has its own order).
    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 32) % most.max(1)
    }

    pub fn one_of(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// A call's number. Not its own end, mostly, and not too much on the console.
    pub fn call(&mut self) -> u64 {
        let number = if self.one_of(50) {
            self.below(256)
        } else {
            self.below(TABLE.len() as u64)
        };
        let seldom = matches!(
            Call::of(number as u8),
            Some(Call::Destroy | Call::Write | Call::Submit | Call::Judge)
        );
        if seldom && !self.one_of(200) {
            Call::Map as u64
        } else {
            number
        }
    }

    /// An environment: mostly one that is, sometimes itself, sometimes nobody.
    pub fn environment(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => books::own_number().into(),
            2 => self.odd(),
            _ => self.below(12),
        }
    }

    /// A page: one that it had, one of anybody's, or none.
    fn page(&mut self) -> u64 {
        match self.below(8) {
            0 => self.odd(),
            1..=2 => self.below(books::pages().len() as u64),
            _ => self.known(),
        }
    }

    /// A holding: one of its own, or any.
    fn holding(&mut self) -> u64 {
        let any = 1 + self.below(24);
        let holdings = &books::machine().holdings;
        let own = |number: &u64| {
            let holding = holdings.get(*number as usize);
            holding.is_some_and(|holding| holding.owner.load(Relaxed) == books::own_number())
        };
        let near = (any..any + 24).find(own);
        match self.below(4) {
            0 => self.below(130),
            _ => near.unwrap_or(any),
        }
    }

    /// A page that it has, mostly.
    fn own_page(&mut self) -> u64 {
        let nth = self.below(8) as usize;
        let own = books::environment(books::own_number());
        match books::pages_of(own).nth(nth) {
            Some(page) if !self.one_of(4) => page.into(),
            _ => self.page(),
        }
    }

    /// A range of blocks, mostly.
    fn range(&mut self) -> u64 {
        let any = self.below(12);
        let is = |number: &u64| disk::range(*number as usize).is_some();
        match (any..any + 12).find(is) {
            Some(range) if !self.one_of(8) => range,
            _ => self.holding(),
        }
    }

    /// Arguments of a call that takes an array: mostly one that makes sense, in its own memory.
    pub fn array(&mut self, call: Option<Call>) -> Option<[u64; 6]> {
        if self.one_of(4) {
            return None;
        }
        let count = 1 + self.below(4);
        let at = ARRAY.as_ptr() as u64;
        let place = |choice: &mut Choice| choice.page() << 12 | choice.below(PAGE as u64);
        match call? {
            Call::Blocks => {
                for request in ARRAY.chunks_exact(7).take(count as usize) {
                    let words = [
                        [0, 0, 0, 1, 1, 1, 2, 3][self.below(8) as usize],
                        self.range(),
                        self.below(3) * self.below(12),
                        self.own_page(),
                        self.known(),
                        self.known(),
                        self.next(),
                    ];
                    store(request, &words);
                }
                Some([at, count, 0, 0, 0, 0])
            }
            Call::Send => {
                for piece in ARRAY.chunks_exact(3).take(count as usize) {
                    let words = [place(self), self.below(600), self.known()];
                    store(piece, &words);
                }
                Some([at, count, 0, 0, 0, 0])
            }
            Call::Bind => {
                let text = FILTERS[self.below(FILTERS.len() as u64) as usize];
                let (priority, ring) = (self.below(3), self.page());
                let length = text.len() as u64;
                Some([text.as_ptr() as u64, length, priority, ring, 0, 0])
            }
            Call::Matches => {
                ARRAY[..8]
                    .iter()
                    .for_each(|word| word.store(self.next(), Relaxed));
                Some([at, self.below(64), at + 512, self.below(20), 0, 0])
            }
            _ => None,
        }
    }

    /// Rings for what comes, in pages that it has, with what it likes in them.
    pub fn rings(&mut self) {
        context().completions.store(self.page(), Relaxed);
        let at = self.address();
        let _ = calls::alarm(slices::clock() + self.below(1 << 20));
        crate::trusted::touch(at);
    }

    fn known(&mut self) -> u64 {
        let index = self.below(KNOWN as u64) as usize;
        self.known[index]
    }

    /// An address: in a small part of its space, at an edge, its own program's, or nowhere.
    pub fn address(&mut self) -> u64 {
        match self.below(16) {
            0 => self.odd(),
            1 => address::GUARANTEED + self.below(32) * PAGE as u64,
            2 => address::TABLES + self.below(1 << 30) * 8,
            3 => memory::FIRST + self.next() % (1 << 45),
            _ => {
                memory::FIRST
                    + self.below(1024) * PAGE as u64 * if self.one_of(8) { 512 } else { 1 }
            }
        }
    }

    /// Something at an edge of something.
    fn odd(&mut self) -> u64 {
        let edge = 1u64 << self.below(64);
        match self.below(4) {
            0 => edge,
            1 => edge.wrapping_sub(1),
            2 => edge.wrapping_neg(),
            _ => self.next(),
        }
    }

    /// An argument by what the call's table says that it is.
    pub fn argument(&mut self, number: u64, place: usize) -> u64 {
        let name = TABLE
            .get(number as usize)
            .and_then(|description| description.arguments.get(place).copied())
            .unwrap_or("");
        if self.one_of(24) {
            return self.odd();
        }
        match name {
            "page" | "links" | "context" | "table" if self.one_of(6) => u64::MAX,
            "page" | "links" | "context" | "table" => self.page(),
            "environment" => self.environment(),
            "address" | "addresses" | "requests" => self.address(),
            "mapping" => self.page() << 12 | [0, 2, 4, 6][self.below(4) as usize],
            "level" => 1 + self.below(3),
            "read" | "write" | "name" => self.below(4),
            "rights" => 1 << self.below(3),
            "processor" => self.below(3),
            "position" => self.below(66),
            "resource" => 1 + self.below(4),
            "what" => 1 + self.below(3),
            "holding" | "behind" | "handler" => self.holding(),
            "ring" => self.page(),
            "blocks" | "priority" => self.below(4),
            "offset" => self.below(40) * PAGE as u64,
            "time" => slices::clock() + self.below(1 << 22),
            "capability" | "control" => {
                if self.one_of(2) {
                    0
                } else {
                    self.known()
                }
            }
            "flags" => [0, 2, 4, 6][self.below(4) as usize],
            "on" => self.below(2),
            _ => self.below(16),
        }
    }

    /// A call's result may be a page, an environment or a capability: it is used again.
    pub fn learn(&mut self, number: u64, result: u64) {
        if number == Call::Allocate as u64 || number == Call::Capability as u64 {
            let index = self.below(KNOWN as u64) as usize;
            self.known[index] = result;
        }
    }
}
