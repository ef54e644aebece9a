//! Calls at random against the kernel, for some time: the root of the fuzzing run. Environments that
//! hammer the interface run beside two good ones, which check their memory and their share of the
//! processor; one that ends is made anew from the next seed. Afterwards everything is ended, and the
//! books must say what they said before.
//!
//! Files of the archive: `seed`, `seconds`.
#![no_std]
#![no_main]

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::call::{ENVIRONMENTS, HOLDINGS, NAME_EVERYBODY, SLICES};
use postern_aegis::abi::records::DISK;
use postern_aegis::abi::status::{FAILED, WELL};
use postern_aegis::load::{self, Child, LoadError, Plan};
use postern_aegis::{archive, books, calls, disk, entry, println, slices, start};
use postern_aegis_programs::{Role, words};

mod watch;

postern_aegis::program!(main);

fn main() -> ! {
    let number = |name| archive::own().number(name);
    let (seed, seconds) = (number("seed").unwrap_or(1), number("seconds").unwrap_or(5));
    println!("fuzz: seed {seed}, {seconds} seconds");
    let status = match run(seed, seconds) {
        Ok(()) => WELL,
        Err(why) => {
            println!("test fuzz FAILED: {why}");
            FAILED
        }
    };
    if status == WELL {
        println!("test fuzz ok");
    }
    let _ = calls::stop(status);
    start::exit()
}

/// Why the run failed.
enum Why {
    Load(LoadError),
    /// A good one's memory has changed, or it stands still.
    Good(&'static str, u64),
    /// The books say something else than before.
    Books(&'static str, u64, u64),
}

impl core::fmt::Display for Why {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Why::Load(error) => write!(formatter, "{error}"),
            Why::Good(what, number) => write!(formatter, "a good environment: {what} ({number})"),
            Why::Books(what, now, before) => write!(formatter, "{what}: {now}, before {before}"),
        }
    }
}

impl From<LoadError> for Why {
    fn from(error: LoadError) -> Why {
        Why::Load(error)
    }
}

/// Environments that hammer.
const HAMMERS: usize = 3;

/// One of them, and how many calls it had made when it was looked at.
struct Hammer {
    child: Child,
    calls: u64,
}

impl Hammer {
    /// Whether it lives and calls: it may have frozen or handed itself away, or wait for nobody.
    fn goes_on(&mut self) -> bool {
        let before = core::mem::replace(&mut self.calls, self.child.mailbox.get(words::PROGRESS));
        self.child.lives() && (self.calls == 0 || self.calls != before)
    }
}

/// Pages that a good one checks.
const GOOD_PAGES: u64 = 16;

fn run(seed: u64, seconds: u64) -> Result<(), Why> {
    let before = watch::Books::now();
    let good = [good(0)?, good(slices::processors() - 1)?];
    let keeper = keeper()?;
    let mut hammers: [Option<Hammer>; HAMMERS] = [const { None }; HAMMERS];
    let (mut born, mut calls, mut done) = (0u64, 0, 0);
    let mut end = |hammer: Hammer| {
        calls += hammer.child.mailbox.get(words::PROGRESS);
        done += hammer.child.mailbox.get(words::RESULT);
        hammer.child.end();
    };
    let mut watched = watch::Shares::new(&good);
    while watched.seconds() < seconds {
        for (place, slot) in hammers.iter_mut().enumerate() {
            if let Some(hammer) = slot.take_if(|hammer| !hammer.goes_on()) {
                end(hammer);
            }
            if slot.is_none() {
                let seed = seed.wrapping_mul(1_000_003).wrapping_add(born);
                // The last one's pages may be on their way still.
                match hit(seed, place) {
                    Ok(child) => *slot = Some(Hammer { child, calls: 0 }),
                    Err(error) if born == 0 => return Err(error.into()),
                    Err(_) => {}
                }
                born += 1;
            }
        }
        watched.check(&good)?;
        if let Some(keeper) = &keeper {
            watched.check_keeper(keeper)?;
        }
        drop_gifts();
        for _ in 0..32 {
            entry::yield_slice();
        }
    }
    hammers.into_iter().flatten().for_each(&mut end);
    println!("fuzz: {calls} calls, {done} of them done, by {born} environments");
    for child in good {
        println!(
            "fuzz: a good environment had {} slices; words changed: {}",
            books::environment(child.number).ran.load(Relaxed),
            child.mailbox.get(words::ERRORS)
        );
        child.end();
    }
    if let Some(keeper) = keeper {
        let rounds = keeper.mailbox.get(words::PROGRESS);
        let (done, sent) = (&books::machine().disk.done, &books::machine().network.sent);
        println!(
            "fuzz: blocks written and read back: {rounds}; requests in all: {}; frames sent: {}",
            done.load(Relaxed),
            sent.load(Relaxed)
        );
        keeper.end();
    }
    before.again()
}

/// Blocks of the one that keeps some, in front of what is everybody's.
const KEPT: u64 = 64;

/// One that has blocks of its own, if there is a disk. All others are everybody's.
fn keeper() -> Result<Option<Child>, LoadError> {
    if disk::blocks() == 0 {
        return Ok(None);
    }
    let refused = |error| LoadError::Call("a range of blocks", error);
    let rest = calls::split(DISK, KEPT).map_err(refused)?;
    calls::rename_holding(rest, NAME_EVERYBODY, NAME_EVERYBODY).map_err(refused)?;
    let plan = Plan {
        reserved: 32,
        more_pages: 32,
        ..Plan::new([Role::Keep as u64, DISK as u64, 0, 0, 0, 0, 0, 0])
    };
    let child = load::program("player", &plan)?;
    calls::quota(child.number, HOLDINGS, 0, 1).map_err(refused)?;
    calls::give_holding(DISK, child.number).map_err(refused)?;
    child.run_on(0)?;
    Ok(Some(child))
}

/// One that computes, with two slices and all its memory reserved.
fn good(processor: usize) -> Result<Child, LoadError> {
    let plan = Plan {
        reserved: 32,
        more_pages: 32,
        ..Plan::new([Role::Count as u64, GOOD_PAGES, 0, 0, 0, 0, 0, 0])
    };
    let child = load::program("player", &plan)?;
    child.run_on(processor)?;
    Ok(child)
}

/// One that hammers. It may make environments and have more pages and slices than it has.
fn hit(seed: u64, place: usize) -> Result<Child, LoadError> {
    let words = [0, seed, 0, 0, 0, 0, 0, 0];
    let plan = Plan {
        more_pages: 128,
        reserved: 16,
        environments: 4,
        more_slices: 0,
        words,
    };
    let child = load::program("hammer", &plan)?;
    let limit = |resource, most| {
        calls::quota(child.number, resource, 0, most)
            .map_err(|error| LoadError::Call("a quota", error))
    };
    let ready = limit(SLICES, 4)
        .and_then(|_| limit(HOLDINGS, 8))
        .and_then(|_| limit(ENVIRONMENTS, 4))
        .and_then(|_| child.run_on(place % slices::processors()));
    if let Err(error) = ready {
        child.end();
        return Err(error);
    }
    Ok(child)
}

/// Gives slices back that others gave to the root: it needs one.
fn drop_gifts() {
    for slice in slices::of(books::own_number()).skip(1) {
        let _ = calls::free_slice(slice.processor, slice.position);
    }
}
