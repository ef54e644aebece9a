//! The disk: blocks that are read and written, pages that are lent to it, ranges and who may use
//! them. Of a machine without one, that it says so.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::call::{
    HOLDINGS as RESOURCE, NAME_EVERYBODY, NAME_NOBODY, RIGHT_READ, RIGHT_WRITE,
};
use postern_aegis::abi::device::{REQUESTS, Request};
use postern_aegis::abi::records::DISK;
use postern_aegis::abi::{Call, Context};
use postern_aegis::disk::{self, Disk, flush, read, write};
use postern_aegis::load::Child;
use postern_aegis::{Error, Mapping, books, calls, entry, mailbox, memory, pages, slices, time};
use postern_aegis_programs::{Role, words};

use crate::scenario::{
    Named, Outcome, Why, ask, check, gone, player, refused, running, same, wait,
};

crate::scenarios! {
    "disk.blocks" blocks;
    "disk.arguments" arguments;
    "disk.order" order;
    "disk.many" many;
    "disk.ranges" ranges;
    "disk.capabilities" capabilities;
    "disk.lent" lent;
    "disk.death" death;
    "disk.revoked" revoked;
    "disk.at-once" at_once;
    "disk.upcalls" upcalls;
    "disk.random" random;
    "disk.host" host;
    "disk.fails" fails;
}

/// Names for the tests' own.
const READS: u32 = 601;
const WRITES: u32 = 602;

pub fn is_there() -> bool {
    disk::blocks() != 0
}

/// A page of this program's, where it is mapped.
#[derive(Clone, Copy)]
struct Page {
    at: u64,
    page: u32,
}

impl Page {
    fn new() -> Result<Page, Why> {
        let at = memory::reserve(1);
        let page = memory::map_fresh(at, Mapping::WRITE).named("a page")?;
        Ok(Page { at, page })
    }

    fn fill(&self, seed: u64) {
        (0..512).for_each(|word| memory::write(self.at + 8 * word, pattern(seed, word)));
    }

    fn has(&self, seed: u64) -> bool {
        (0..512).all(|word| memory::read(self.at + 8 * word) == pattern(seed, word))
    }

    fn free(self) -> Outcome {
        pages::free(self.page).named("freeing")
    }
}

fn pattern(seed: u64, word: u64) -> u64 {
    if seed == 0 {
        0
    } else {
        (seed << 16 | word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

fn blocks() -> Outcome {
    if !is_there() {
        return refused(
            "asking no disk",
            calls::blocks(&[flush(DISK)]),
            Error::NoDevice,
        );
    }
    let mut disk = Disk::new().named("a ring")?;
    let (from, to) = (Page::new()?, Page::new()?);
    let last = disk::blocks() - 1;
    for block in [0, 1, 77, last] {
        from.fill(block + 5);
        disk.make(&write(DISK, block, from.page)).named("writing")?;
    }
    disk.make(&flush(DISK)).named("flushing")?;
    for block in [last, 77, 1, 0] {
        disk.make(&read(DISK, block, to.page)).named("reading")?;
        check(to.has(block + 5), "something else is read")?;
    }
    disk.make(&read(DISK, 78, to.page)).named("reading")?;
    check(to.has(0), "a block that nobody wrote")?;
    from.free()?;
    to.free()?;
    disk.free().named("the ring")
}

fn arguments() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let page = Page::new()?;
    let right = read(DISK, 0, page.page);
    let wrong = |change: fn(&mut Request)| {
        let mut request = right;
        change(&mut request);
        calls::blocks(&[request])
    };
    let argument = Error::Argument;
    refused("an operation", wrong(|one| one.operation = 3), argument)?;
    refused("a holding", wrong(|one| one.holding = 126), argument)?;
    refused("no holding", wrong(|one| one.holding = u64::MAX), argument)?;
    refused("the console", wrong(|one| one.holding = 1), Error::Kind)?;
    refused("beyond", wrong(|one| one.block = disk::blocks()), argument)?;
    refused("far beyond", wrong(|one| one.block = u64::MAX), argument)?;
    refused("no page", wrong(|one| one.page = 1 << 32), argument)?;
    refused("the kernel's", wrong(|one| one.page = 1), Error::Kind)?;
    let any = crate::trusted::any_call;
    let number = Call::Blocks as u64;
    let call = |at: u64, count: u64| any(number, [at, count, 0, 0, 0, 0]);
    refused("too many", call(page.at, 513), argument)?;
    refused("no multiple of eight", call(page.at + 4, 1), argument)?;
    refused("nowhere", call(0x1000, 1), Error::Unmapped)?;
    refused(
        "the kernel",
        call(0xffff_8000_0000_0000, 1),
        Error::Unmapped,
    )?;
    refused("the end", call(!7, 1), Error::Unmapped)?;
    check(call(page.at, 0) == Ok(0), "none at all")?;
    // The first is done, the second is not.
    let both = calls::blocks(&[
        right,
        Request {
            holding: 1,
            ..right
        },
    ]);
    same("requests", both.named("asking")?, 1)?;
    quiet()?;
    page.free()
}

/// Waits until nothing of this program's is under way.
fn quiet() -> Outcome {
    let requests = &books::environment(books::own_number()).requests;
    wait("requests stay under way", || requests.load(Relaxed) == 0)
}

/// Of two requests for one block none writes; a flush is alone.
fn order() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut disk = Disk::new().named("a ring")?;
    let all = [Page::new()?, Page::new()?, Page::new()?];
    let [one, two, three] = all;
    for round in 1..30 {
        one.fill(round);
        two.fill(round + 1000);
        // The kernel is not left between these: so the first is under way.
        let asked = calls::blocks(&[write(DISK, 9, one.page), read(DISK, 9, three.page)]);
        same("a write and a read", asked.named("asking")?, 1)?;
        disk.wait().result.named("writing")?;
        let asked = calls::blocks(&[
            read(DISK, 9, three.page),
            read(DISK, 9, three.page),
            write(DISK, 9, two.page),
        ]);
        same("two reads and a write", asked.named("asking")?, 2)?;
        disk.wait();
        disk.wait();
        check(three.has(round), "what was written before is not read")?;
        let asked = calls::blocks(&[write(DISK, 8, two.page), flush(DISK)]);
        same("a flush behind something", asked.named("asking")?, 1)?;
        disk.wait();
        let asked = calls::blocks(&[flush(DISK), write(DISK, 8, one.page)]);
        same("something behind a flush", asked.named("asking")?, 1)?;
        disk.wait().result.named("flushing")?;
        disk.make(&read(DISK, 8, three.page)).named("reading")?;
        check(three.has(round + 1000), "it was not written")?;
    }
    for page in all {
        page.free()?;
    }
    disk.free().named("the ring")
}

/// As many as can be under way, each told once.
fn many() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut disk = Disk::new().named("a ring")?;
    let page = Page::new()?;
    page.fill(3);
    let requests: [Request; REQUESTS + 4] = core::array::from_fn(|index| Request {
        tag: 1 << index,
        ..write(DISK, 20 + index as u64, page.page)
    });
    for _ in 0..20 {
        let asked = calls::blocks(&requests).named("asking")?;
        same("requests", asked, REQUESTS as u64)?;
        let mut tags = 0u64;
        for _ in 0..REQUESTS {
            let done = disk.wait();
            done.result.named("writing")?;
            check(tags & done.tag == 0, "one is told twice")?;
            tags |= done.tag;
        }
        same("those that were told", tags, (1 << REQUESTS) - 1)?;
        check(disk.take().is_none(), "one more")?;
    }
    quiet()?;
    page.free()?;
    disk.free().named("the ring")
}

/// Where a child's mailbox has requests.
const AT: usize = 64;

/// Has an obedient player ask the disk for something.
fn asks(child: &Child, request: &Request) -> Result<i64, Why> {
    for (index, word) in request.words().into_iter().enumerate() {
        child.mailbox.set(AT + index, word);
    }
    let at = mailbox::ADDRESS + 8 * AT as u64;
    let result = ask(child, Call::Blocks, &[at, 1])? as i64;
    // It is done with it.
    let requests = &books::environment(child.number).requests;
    wait("its request stays under way", || {
        requests.load(Relaxed) == 0
    })?;
    Ok(result)
}

fn asked(what: &'static str, got: i64, wanted: Option<Error>) -> Outcome {
    match wanted {
        None => check(got == 1, what),
        Some(error) => check(got == error as i64, what),
    }
}

/// A range is somebody's own; cut and joined again it is the whole disk.
fn ranges() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut disk = Disk::new().named("a ring")?;
    let page = Page::new()?;
    let child = running(Role::Obey, 0, 0)?;
    calls::quota(child.number, RESOURCE, 0, 1).named("a quota")?;
    let rest = calls::split(DISK, 100).named("cutting")?;
    let all = calls::split(DISK, 100).map(|number| number as u64);
    refused("all of it", all, Error::Argument)?;
    page.fill(42);
    disk.make(&write(rest, 3, page.page)).named("writing")?;
    page.fill(0);
    refused(
        "beyond its range",
        calls::blocks(&[read(DISK, 100, page.page)]),
        Error::Argument,
    )?;
    calls::give_holding(rest, child.number).named("giving")?;
    refused(
        "another's",
        calls::blocks(&[read(rest, 3, page.page)]),
        Error::Denied,
    )?;
    refused("joining another's", calls::join(DISK, rest), Error::Denied)?;
    calls::rename(page.page, NAME_NOBODY, NAME_EVERYBODY).named("everybody's page")?;
    let own = read(rest, 3, page.page);
    asked("its own range", asks(&child, &own)?, None)?;
    check(page.has(42), "the block has something else")?;
    let other = read(DISK, 0, page.page);
    asked("the root's", asks(&child, &other)?, Some(Error::Denied))?;
    let beyond = read(rest, disk::blocks() - 100, page.page);
    asked("beyond", asks(&child, &beyond)?, Some(Error::Argument))?;
    let number = child.number;
    child.end();
    gone(number)?;
    calls::join(DISK, rest).named("joining what came back")?;
    let count = disk::range(DISK).map_or(0, |range| range.count.load(Relaxed));
    same("blocks", count, disk::blocks())?;
    page.free()?;
    disk.free().named("the ring")
}

fn capabilities() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let child = running(Role::Obey, 0, 0)?;
    let page = Page::new()?;
    calls::rename(page.page, READS, WRITES).named("a page's names")?;
    calls::rename_holding(DISK, READS, WRITES).named("a range's names")?;
    let word = |name, right| calls::capability(name, right, 0).named("a word");
    let (reads, writes) = (word(READS, RIGHT_READ)?, word(WRITES, RIGHT_WRITE)?);
    let denied = Some(Error::Denied);
    for (what, request, authority, capability, wanted) in [
        ("nothing", read(DISK, 5, page.page), 0, writes, denied),
        ("reading", read(DISK, 5, page.page), reads, writes, None),
        (
            "a page to be read only",
            read(DISK, 5, page.page),
            reads,
            reads,
            denied,
        ),
        (
            "writing by reading",
            write(DISK, 5, page.page),
            reads,
            reads,
            denied,
        ),
        ("writing", write(DISK, 5, page.page), writes, reads, None),
        (
            "another's page",
            write(DISK, 5, page.page),
            writes,
            0,
            denied,
        ),
        ("a flush by reading", flush(DISK), reads, 0, denied),
        ("a flush", flush(DISK), writes, 0, None),
        (
            "a forged word",
            read(DISK, 5, page.page),
            reads ^ 1,
            writes,
            denied,
        ),
    ] {
        let request = Request {
            capability,
            authority,
            ..request
        };
        asked(what, asks(&child, &request)?, wanted)?;
    }
    calls::rename_holding(DISK, WRITES, NAME_NOBODY).named("other names")?;
    let old = Request {
        authority: reads,
        capability: writes,
        ..read(DISK, 5, page.page)
    };
    asked("an old name", asks(&child, &old)?, denied)?;
    calls::rename_holding(DISK, NAME_NOBODY, NAME_NOBODY).named("no names")?;
    child.end();
    page.free()
}

/// A page that the disk writes to is nobody else's before it is done.
fn lent() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut disk = Disk::new().named("a ring")?;
    let from = Page::new()?;
    from.fill(7);
    disk.make(&write(DISK, 50, from.page)).named("writing")?;
    let child = player(Role::Count, 0, 0)?;
    for _ in 0..12 {
        let page = pages::take().named("a page")?;
        calls::blocks(&[read(DISK, 50, page)]).named("reading")?;
        // Whether the disk was faster or not: freed and taken again, it stays clear.
        match calls::give(page, child.number) {
            Err(Error::Again) => {}
            given => _ = given.named("giving")?,
        }
        if books::page(page).is_some_and(|page| page.owner.load(Relaxed) == 1) {
            pages::free(page).named("freeing")?;
            let again = calls::allocate_page(page, 0, 0).named("taking it again")?;
            let at = memory::reserve(1);
            let mapping = Mapping::new(again, 0);
            memory::map(at, mapping, 0, calls::Target::SELF).named("mapping")?;
            disk.wait();
            let clear = (0..512).all(|word| memory::read(at + 8 * word) == 0);
            check(clear, "the disk wrote to a page that was freed")?;
            pages::free(again).named("freeing")?;
        } else {
            disk.wait();
        }
    }
    child.end();
    from.free()?;
    disk.free().named("the ring")
}

/// Who ends with requests under way leaves nothing behind.
fn death() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    calls::rename_holding(DISK, NAME_EVERYBODY, NAME_NOBODY).named("all may read")?;
    let done = || books::machine().disk.done.load(Relaxed);
    for round in 0..6 {
        let child = running(Role::Disk, DISK as u64, 0)?;
        let before = done();
        wait("it does not ask", || done() > before + 40 + round)?;
        same("errors", child.mailbox.get(words::ERRORS), 0)?;
        let number = child.number;
        child.end();
        gone(number)?;
    }
    calls::rename_holding(DISK, NAME_NOBODY, NAME_NOBODY)
        .named("no names")
        .map(drop)
}

/// Pages are taken by force from who has them lent.
fn revoked() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    calls::rename_holding(DISK, NAME_EVERYBODY, NAME_NOBODY).named("all may read")?;
    let child = running(Role::Disk, DISK as u64, 0)?;
    let has = || books::environment(child.number).pages.load(Relaxed);
    wait("it does not ask", || {
        child.mailbox.get(words::PROGRESS) > 20
    })?;
    // It gives nothing back, and misses what is taken: so it may end, too.
    let before = has();
    calls::revoke(child.target(), postern_aegis::abi::call::PAGES, 2).named("revoking")?;
    wait("nothing is taken", || has() < before || !child.lives())?;
    child.end();
    calls::rename_holding(DISK, NAME_NOBODY, NAME_NOBODY)
        .named("no names")
        .map(drop)
}

static TOLD: AtomicU64 = AtomicU64::new(0);

fn hear(events: u64) {
    if events & Context::EVENT_DISK != 0 {
        TOLD.fetch_add(1, Relaxed);
    }
}

/// A request that is done is told while the program runs, in the same slice.
fn at_once() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    entry::on_events(hear);
    entry::events_at_once();
    let mut disk = Disk::new().named("a ring")?;
    let page = Page::new()?;
    let ran = || books::environment(books::own_number()).ran.load(Relaxed);
    // A host that is slow makes slices end before.
    let (mut rounds, mut same_slice) = (0, 0);
    while rounds < 40 || rounds < 2000 && same_slice == 0 {
        rounds += 1;
        entry::yield_slice();
        let (told, before) = (TOLD.load(Relaxed), ran());
        calls::blocks(&[read(DISK, 3, page.page)]).named("reading")?;
        let start = slices::clock();
        while TOLD.load(Relaxed) == told {
            let long = slices::clock().wrapping_sub(start) > time::cycles(20_000_000);
            check(!long, "it is not told")?;
        }
        same_slice += u64::from(ran() == before);
        disk.wait().result.named("it failed")?;
    }
    check(same_slice > 0, "never at once")?;
    page.free()?;
    disk.free().named("the ring")
}

/// Registers are kept over interrupts by the disk, whatever they interrupt.
fn upcalls() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    calls::rename_holding(DISK, NAME_EVERYBODY, NAME_NOBODY).named("all may read")?;
    for processor in [0, slices::processors() - 1] {
        let child = player(Role::Disk, DISK as u64, 1)?;
        child.run_on(processor)?;
        wait("it does not start", || child.mailbox.get(words::OTHER) > 0)?;
        let asker = player(Role::Ask, child.number.into(), 0)?;
        asker.run_on(processor)?;
        wait("it is not told often", || {
            child.mailbox.get(words::OTHER) > 300 && child.mailbox.get(words::PROGRESS) > 5
        })?;
        same("changed registers", child.mailbox.get(words::ERRORS), 0)?;
        same("wrong answers", asker.mailbox.get(words::ERRORS), 0)?;
        asker.end();
        child.end();
    }
    calls::rename_holding(DISK, NAME_NOBODY, NAME_NOBODY)
        .named("no names")
        .map(drop)
}

/// Reads and writes by chance: a block has what was written to it last.
fn random() -> Outcome {
    const BLOCKS: usize = 24;
    if !is_there() {
        return Ok(());
    }
    let mut disk = Disk::new().named("a ring")?;
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut chance = |below: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) % below
    };
    let mut pages = [Page { at: 0, page: 0 }; 8];
    for page in &mut pages {
        *page = Page::new()?;
    }
    // What each block has; what each page's request is, and what it reads then.
    let mut has = [None; BLOCKS];
    let mut under_way: [Option<(u64, Option<u64>)>; 8] = [None; 8];
    let mut seed = 1;
    for _ in 0..1500 {
        let slot = chance(8) as usize;
        if under_way[slot].is_some() {
            let done = disk.wait();
            done.result.named("it failed")?;
            let (_, reads) = under_way[done.tag as usize & 7]
                .take()
                .ok_or(Why::Not("unknown"))?;
            let right = reads.is_none_or(|seed| pages[done.tag as usize & 7].has(seed));
            check(right, "a block has something else")?;
            continue;
        }
        let (block, page) = (chance(BLOCKS as u64), pages[slot]);
        let reads = has[block as usize].filter(|_| chance(2) == 0);
        let request = match reads {
            Some(_) => read(DISK, 200 + block, page.page),
            None => {
                seed += 1;
                page.fill(seed);
                write(DISK, 200 + block, page.page)
            }
        };
        let asked = calls::blocks(&[Request {
            tag: slot as u64,
            ..request
        }]);
        match asked {
            Err(Error::Again) => {}
            asked => {
                asked.named("asking")?;
                under_way[slot] = Some((block, reads));
                if reads.is_none() {
                    has[block as usize] = Some(seed);
                }
            }
        }
    }
    quiet()?;
    for page in pages {
        page.free()?;
    }
    disk.free().named("the ring")
}

/// What stands in the first block if somebody on the host wrote this disk, and looks at it afterwards.
const FROM_HOST: u64 = 0x7473_6f68_206d_6f72;
/// The same, if its block [`BAD`] can neither be read nor written.
const FAILS: u64 = 0x736c_6961_6620_7369;
/// That block.
const BAD: u64 = 9;

fn first_word(disk: &mut Disk, page: Page) -> Result<u64, Why> {
    disk.make(&read(DISK, 0, page.page)).named("reading")?;
    Ok(memory::read(page.at))
}

/// Bytes that the host wrote are read, and those that are written here it reads.
fn host() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut disk = Disk::new().named("a ring")?;
    let page = Page::new()?;
    if first_word(&mut disk, page)? == FROM_HOST {
        disk.make(&read(DISK, 5, page.page)).named("reading")?;
        for at in (page.at..).step_by(8).take(512) {
            memory::write(at, !memory::read(at));
        }
        let last = disk::blocks() - 1;
        disk.make(&write(DISK, last, page.page)).named("writing")?;
        disk.make(&flush(DISK)).named("flushing")?;
    }
    page.free()?;
    disk.free().named("the ring")
}

/// What the device cannot do is told as that, and what comes behind it is done.
fn fails() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let mut disk = Disk::new().named("a ring")?;
    let page = Page::new()?;
    if first_word(&mut disk, page)? == FAILS {
        let told = disk.make(&read(DISK, BAD, page.page));
        check(told == Err(Error::Failed), "a read that fails")?;
        let told = disk.make(&write(DISK, BAD, page.page));
        check(told == Err(Error::Failed), "a write that fails")?;
        page.fill(3);
        disk.make(&write(DISK, BAD + 1, page.page))
            .named("writing beside it")?;
        disk.make(&read(DISK, BAD + 1, page.page))
            .named("reading beside it")?;
        check(page.has(3), "what was written beside it")?;
    }
    page.free()?;
    disk.free().named("the ring")
}
