//! Tables of the books, as everybody can read them.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::records::{Environment, Kind, NONE, Page, claim, end};
use postern_aegis::abi::{ENVIRONMENTS, SLICES};
use postern_aegis::{books, print, println, slices};

/// The machine as a whole.
pub fn machine() {
    let machine = books::machine();
    println!(
        "{} processors, {} pages of 4 KiB of which {} are free, slices of {} us",
        machine.processors.load(Relaxed),
        machine.pages.load(Relaxed),
        machine.free.load(Relaxed),
        machine.slice.load(Relaxed) / 1000
    );
}

/// Who lives, and what each has.
pub fn environments() {
    println!("number maker birth state        pages (kept, most)    slices   had  forfeits");
    for (number, record) in books::machine().environments.iter().enumerate().skip(1) {
        let word = record.claim.load(Relaxed);
        if word != claim::FREE && word != claim::CHANGING {
            line(number, record, word);
        }
    }
    for number in 1..ENVIRONMENTS as u16 {
        let record = books::environment(number);
        let why = record.ended.load(Relaxed);
        if why != end::NOT && !books::lives(number) {
            print!("{number:>6} has ended: ");
            ended(why);
            println!(", at {:#x}", record.ended_at.load(Relaxed));
        }
    }
}

fn line(number: usize, record: &Environment, word: u32) {
    let get = |word: &core::sync::atomic::AtomicU32| word.load(Relaxed);
    print!(
        "{number:>6} {:>5} {:>5} ",
        record.parent.load(Relaxed),
        get(&record.birth)
    );
    match word {
        claim::IDLE => print!("ready       "),
        claim::FROZEN => print!("frozen      "),
        claim::SUBMITTED => print!("submitted   "),
        claim::ENDING => print!("ending      "),
        processor => print!("runs on {:<4}", processor - 1),
    }
    println!(
        " {:>5} ({:>5}, {:>5}) {:>4} of {:>4} {:>5} {:>5}",
        get(&record.pages),
        get(&record.pages_reserved),
        get(&record.pages_limit),
        get(&record.slices),
        get(&record.slices_limit),
        record.ran.load(Relaxed),
        get(&record.forfeits)
    );
}

fn ended(why: u32) {
    match why {
        end::DESTROYED => print!("it, or its maker, wanted so"),
        end::EXCESS => print!("it did not yield when its slices ended"),
        end::EMERGENCY => print!("an emergency that nobody handled"),
        end::REFUSED => print!("it gave nothing back, and had nothing that could be taken"),
        why if why >= end::EXCEPTION => print!("exception {}", why - end::EXCEPTION),
        why => print!("{why:#x}"),
    }
}

fn name(kind: Option<Kind>) -> &'static str {
    match kind {
        Some(Kind::Free) => "free",
        Some(Kind::Kernel) => "the kernel's",
        Some(Kind::Data) => "memory",
        Some(Kind::Links) => "links of bindings",
        Some(Kind::Table1) => "table of level 1",
        Some(Kind::Table2) => "table of level 2",
        Some(Kind::Table3) => "table of level 3",
        Some(Kind::Table4) => "table of level 4",
        Some(Kind::Context) => "contexts",
        Some(Kind::Leaving) => "on its way",
        Some(Kind::Text) => "text of a handler",
        Some(Kind::Window) => "table of a handler's window",
        None => "?",
    }
}

/// Runs of pages that are shown at a time.
const RUNS: u32 = 24;

/// Pages in runs of the same owner and kind.
pub fn pages(from: u32) {
    let of = |page: &Page| (page.owner.load(Relaxed), page.kind.load(Relaxed));
    let all = books::pages();
    let mut start = from as usize;
    println!("pages           owner  what");
    for _ in 0..RUNS {
        let Some(first) = all.get(start) else {
            return;
        };
        let what = of(first);
        let length = all[start..]
            .iter()
            .take_while(|page| of(page) == what)
            .count();
        let last = start + length - 1;
        println!(
            "{start:>6} to {last:>6} {:>5}  {}",
            what.0,
            name(Kind::of(what.1))
        );
        start += length;
    }
    println!("more: pages {start}");
}

/// Where a page is bound, by the lists that run through everybody's pages of links.
///
/// A binding names a table's page and an index; whose table it is stands in that page's record, and
/// for which address only its owner's own tables say.
pub fn bindings(number: u32) {
    let Some(page) = books::page(number) else {
        println!("there is no page {number}");
        return;
    };
    println!(
        "page {number}: {}, of environment {}, names {} to read and {} to write, {} bindings",
        name(books::kind(page)),
        page.owner.load(Relaxed),
        page.read.load(Relaxed),
        page.write.load(Relaxed),
        page.bindings.load(Relaxed)
    );
    let mut next = page.first.load(Relaxed);
    let mut links = crate::programs::Links::new();
    for _ in 0..RUNS {
        if next == NONE {
            return;
        }
        let (table, index) = (next >> 9, next & 511);
        let owner = books::page(table).map_or(0, |table| table.owner.load(Relaxed));
        println!("  table {table}, entry {index}: environment {owner}");
        let Some(following) = links.next(table, index) else {
            println!("  the next one cannot be read");
            return;
        };
        next = following;
    }
    println!("  and more");
}

/// The vectors: who owns each position, and who runs in it.
pub fn slices() {
    let machine = books::machine();
    for processor in 0..slices::processors() {
        let record = &machine.processor[processor];
        println!(
            "processor {processor}: {} slices so far, {} of them nobody's; at position {}, running {}",
            record.ticks.load(Relaxed),
            record.idle.load(Relaxed),
            record.position.load(Relaxed),
            record.current.load(Relaxed)
        );
        for (position, slice) in machine.slices[processor].iter().enumerate() {
            let (owner, runs) = (slice.owner.load(Relaxed), slice.runs.load(Relaxed));
            if owner != 0 {
                print!("  position {position:>2}: environment {owner}");
                if runs != owner {
                    print!(", in which {runs} runs");
                }
                println!();
            }
        }
    }
}

/// What nobody has.
pub fn free() {
    let machine = books::machine();
    print!(
        "{} pages are free; the next ones are",
        machine.free.load(Relaxed)
    );
    for page in books::free_pages().take(8) {
        print!(" {page}");
    }
    println!();
    for processor in 0..slices::processors() {
        let vector = &machine.slices[processor];
        let free = vector
            .iter()
            .filter(|slice| slice.owner.load(Relaxed) == 0)
            .count();
        println!("processor {processor}: {free} of {SLICES} positions are free");
    }
}
