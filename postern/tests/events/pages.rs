//! Pages that are missing, and who fills them.

use super::support::{code, cold, descriptors, fork, succeeds_in_child, threads};
use super::{handled, number, until};
use postern::{
    Domain, DomainBuilder, Event, EventError, Image, Offset, Placement, Prot, Shared, Subscription,
    Way, Ways,
};
use std::sync::LazyLock;
use std::time::Duration;

const PAGE: usize = 4096;

/// A pager that fills each page with 64-bit words of its offset, and readers.
fn image() -> &'static Image {
    static IMAGE: LazyLock<Image> = LazyLock::new(|| {
        let source = ".bss
             .balign 4096
             page: .skip 4096
             .data
             .balign 8
             calls: .quad 0
             answer: .quad 0
             other: .quad 0
             .text
             fills: lock incq %gs:calls(,%eiz,1)
                 xorl %eax,%eax
             1: movq %rsi,%gs:page(,%eax,8)
                 incl %eax
                 cmpl $512,%eax
                 jb 1b
                 movl %esi,%edi
                 movl $page,%esi
                 call __postern_page_fill
                 cltq
                 movq %rax,%gs:answer(,%eiz,1)
                 ret
             nothing: lock incq %gs:calls(,%eiz,1)
                 ret
             touches: lock incq %gs:calls(,%eiz,1)
                 leal 4096(%esi),%eax
                 movq %gs:(%eax),%rax
                 movq %rax,%gs:answer(,%eiz,1)
                 ret
             asks: movl %gs:other(,%eiz,1),%eax
                 movq %gs:(%eax),%rax
                 movq %rax,%gs:answer(,%eiz,1)
                 jmp fills
             set_other: movl %edi,%gs:other(,%eiz,1)
                 ret
             traps: ud2
             loops: jmp loops
             fill: call __postern_page_fill
                 cltq
                 ret
             load: movl %edi,%edi
                 movq %gs:(%edi),%rax
                 ret
             calls_of: movq %gs:calls(,%eiz,1),%rax
                 ret
             answer_of: movq %gs:answer(,%eiz,1),%rax
                 ret
             page_of: movl $page,%eax
                 ret";
        let handlers = ["fills", "nothing", "touches", "asks", "traps", "loops"];
        let handlers = handlers.map(|name| (name, "v(IL)"));
        let others = [
            ("fill", "l(II)"),
            ("load", "L(I)"),
            ("set_other", "v(I)"),
            ("calls_of", "L()"),
            ("answer_of", "L()"),
            ("page_of", "L()"),
        ];
        let exports = [&handlers[..], &others[..]].concat();
        code(&[("__postern_page_fill", "i(II)")], &exports, source).image()
    });
    &IMAGE
}

/// A domain of each way that this machine allows.
fn domains(deadline: Duration) -> Vec<Domain> {
    let all = [Way::Current, Way::RealTime, Way::Plain];
    let made = all.into_iter().filter_map(|way| {
        let builder = cold(image()).deadline(Some(deadline));
        let domain = builder.ways(Ways::only(way)).build().unwrap();
        match domain.way() {
            Ok(_) => Some(domain),
            Err(error) => {
                eprintln!("NOT TESTED here, {way:?}: {error}");
                None
            }
        }
    });
    made.collect()
}

const LONG: Duration = Duration::from_secs(60);

/// Whose calls may sleep for pages as long as the machine likes.
fn patient() -> DomainBuilder {
    cold(image()).deadline(Some(LONG))
}

fn watched(domain: &Domain, pages: usize, handler: &str) -> Option<(Shared, Subscription)> {
    let area = Shared::new(pages * PAGE).unwrap();
    domain.share(&area, Prot::ReadWrite).unwrap();
    match domain.on(Event::missing_pages(&area), handler) {
        Ok(event) => Some((area, event)),
        Err(error @ EventError::Userfault(_)) => {
            eprintln!("NOT TESTED here: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn load(domain: &Domain, area: &Shared, at: usize) -> u64 {
    let load = domain.func::<fn(u32) -> u64>("load").unwrap();
    load.call(area.offset().0 + at as u32).unwrap()
}

fn host(area: &Shared, at: usize) -> u64 {
    let mut bytes = [0; 8];
    area.read(at, &mut bytes).unwrap();
    u64::from_ne_bytes(bytes)
}

fn fill(domain: &Domain, page: u32, source: u32) -> i64 {
    let fill = domain.func::<fn(u32, u32) -> i64>("fill").unwrap();
    fill.call(page, source).unwrap()
}

#[test]
fn a_pager_fills_what_host_and_extension_touch() {
    for domain in domains(LONG) {
        const PAGES: usize = 64;
        let Some((area, event)) = watched(&domain, PAGES, "fills") else {
            return;
        };
        let _attached = domain.attach().unwrap();
        for page in 0..PAGES {
            let at = page * PAGE + 8 * page;
            let wanted = u64::from(area.offset().0) + (page * PAGE) as u64;
            let found = match page % 2 {
                0 => load(&domain, &area, at),
                _ => host(&area, at),
            };
            assert_eq!(found, wanted);
            assert_eq!(
                (load(&domain, &area, at), host(&area, at)),
                (wanted, wanted)
            );
        }
        until("all", || handled(&event) == PAGES as u64);
        assert_eq!(number(&domain, "calls_of"), PAGES as u64);
        assert_eq!(event.counters().by_current, 0);
    }
}

/// Each page has what the pager fills it with, however many touch it at once.
#[test]
fn many_threads_touch_pages_at_once() {
    for domain in domains(LONG) {
        const PAGES: usize = 256;
        let Some((area, event)) = watched(&domain, PAGES, "fills") else {
            return;
        };
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (domain, area) = (&domain, &area);
                scope.spawn(move || {
                    let _attached = (thread % 3 == 0).then(|| domain.attach().unwrap());
                    for page in 0..PAGES {
                        let at = (page * 37 + thread * 5) % PAGES * PAGE;
                        let wanted = u64::from(area.offset().0) + at as u64;
                        let found = match thread % 2 {
                            0 => load(domain, area, at),
                            _ => host(area, at),
                        };
                        assert_eq!(found, wanted);
                    }
                });
            }
        });
        until("all", || handled(&event) == number(&domain, "calls_of"));
        // One that was filled while another thread was on its way to sleep is told once more.
        assert!(handled(&event) >= PAGES as u64);
        assert_eq!(event.counters().dropped, 0);
    }
}

#[test]
fn what_nobody_fills_is_zeros() {
    for domain in domains(LONG) {
        let Some((area, event)) = watched(&domain, 4, "nothing") else {
            return;
        };
        assert_eq!((load(&domain, &area, 0), host(&area, PAGE)), (0, 0));
        until("two", || handled(&event) == 2);
        // The domain may be closed, or gone but for its event.
        domain.close();
        assert_eq!(host(&area, 2 * PAGE), 0);
        until("a skip", || event.counters().skipped == 1);
        drop(domain);
        assert_eq!(host(&area, 3 * PAGE), 0);
    }
}

#[test]
fn handlers_that_end_leave_zeros() {
    for name in ["traps", "loops"] {
        for domain in domains(Duration::from_millis(20)) {
            let Some((area, event)) = watched(&domain, 4, name) else {
                return;
            };
            assert_eq!(host(&area, 0), 0);
            until("a fault", || event.counters().faults == 1);
            assert!(domain.is_poisoned());
            assert_eq!(host(&area, PAGE), 0);
            domain.reset().unwrap();
            assert_eq!(host(&area, 2 * PAGE), 0);
            until("another", || event.counters().faults == 2);
        }
    }
}

/// A handler never waits for itself: neither its own instructions nor what services do for it.
#[test]
fn handlers_that_touch_missing_pages_find_zeros() {
    for domain in domains(LONG) {
        let Some((area, event)) = watched(&domain, 4, "touches") else {
            return;
        };
        assert_eq!((host(&area, 0), host(&area, PAGE)), (0, 0));
        until("one", || handled(&event) == 1);
        assert_eq!(
            (number(&domain, "calls_of"), number(&domain, "answer_of")),
            (1, 0)
        );
        let read = domain.read_vec(Offset(area.offset().0 + 2 * PAGE as u32), 8);
        assert_eq!(read.unwrap(), [0; 8]);
        until("two", || handled(&event) == 2);
        // The second page is there since the first handler missed it.
        assert_eq!(event.counters().dropped, 2);
    }
}

/// Each of two pagers needs what the other one has: one of them goes without, and nobody sleeps for
/// ever.
#[test]
fn pagers_that_wait_for_each_other_go_on() {
    for (domain, other) in domains(LONG).into_iter().zip(domains(LONG)) {
        let Some((area, event)) = watched(&domain, 4, "asks") else {
            return;
        };
        let (its, its_event) = watched(&other, 4, "asks").unwrap();
        domain.share(&its, Prot::Read).unwrap();
        other.share(&area, Prot::Read).unwrap();
        let (mine, theirs) = (area.offset().0, its.offset().0);
        let asks = |domain: &Domain, page: u32| {
            let set = domain.func::<fn(u32)>("set_other").unwrap();
            set.call(page).unwrap();
        };
        asks(&domain, theirs);
        asks(&other, mine + PAGE as u32);
        assert_eq!(host(&area, 0), u64::from(mine));
        let answer = |domain| number(domain, "answer_of");
        until("both", || handled(&event) + handled(&its_event) == 2);
        // What `fills` was told by the service comes last.
        assert_eq!((answer(&domain), answer(&other)), (0, 0));
        assert_eq!(host(&its, 0), u64::from(theirs));
        assert_eq!(host(&area, PAGE), 0);
        assert_eq!(
            (event.counters().dropped, its_event.counters().dropped),
            (1, 0)
        );
        // One who does not wait for it does have it.
        asks(&other, mine + 2 * PAGE as u32);
        asks(&domain, theirs);
        assert_eq!(host(&its, PAGE), u64::from(theirs) + PAGE as u64);
        assert_eq!(host(&area, 2 * PAGE), u64::from(mine) + 2 * PAGE as u64);
        assert_eq!(
            (event.counters().dropped, its_event.counters().dropped),
            (1, 0)
        );
    }
}

#[test]
fn fills_are_checked() {
    for domain in domains(LONG) {
        let Some((area, event)) = watched(&domain, 4, "fills") else {
            return;
        };
        let (start, page) = (area.offset().0, number(&domain, "page_of") as u32);
        let (pages, other) = (4 * PAGE as u32, Shared::new(PAGE).unwrap());
        domain.share(&other, Prot::ReadWrite).unwrap();
        for beyond in [
            0,
            page,
            start - 1,
            start + 8,
            start + pages,
            other.offset().0,
            u32::MAX,
        ] {
            assert_eq!(
                fill(&domain, beyond, page),
                i64::from(-libc::EINVAL),
                "{beyond:#x}"
            );
        }
        // No memory, memory that ends, a page that itself misses.
        for source in [0, u32::MAX, start + pages - 8, start + PAGE as u32] {
            assert_eq!(
                fill(&domain, start, source),
                i64::from(-libc::EFAULT),
                "{source:#x}"
            );
        }
        // Before anybody touches it.
        assert_eq!(fill(&domain, start, page), 0);
        assert_eq!(fill(&domain, start, page), i64::from(-libc::EEXIST));
        assert_eq!((host(&area, 0), number(&domain, "calls_of")), (0, 0));
        drop(event);
        assert_eq!(fill(&domain, start, page), i64::from(-libc::EINVAL));
    }
}

/// The end of the event wakes who sleeps; then the area can be watched anew.
#[test]
fn one_event_watches_an_area_until_it_is_dropped() {
    for domain in domains(LONG) {
        let Some((area, event)) = watched(&domain, 8, "loops") else {
            return;
        };
        let again = domain.on(Event::missing_pages(&area), "fills").unwrap_err();
        assert!(
            matches!(&again, EventError::Watched(name) if name == area.name()),
            "{again}"
        );
        std::thread::scope(|scope| {
            let sleepers = [0, 1, 1].map(|page| {
                let area = &area;
                scope.spawn(move || host(area, page * PAGE))
            });
            let inside = scope.spawn(|| load(&domain, &area, 0));
            until("the handler runs", || domain.counters().calls >= 2);
            drop(event);
            for sleeper in sleepers {
                assert_eq!(sleeper.join().unwrap(), 0);
            }
            assert_eq!(inside.join().unwrap(), 0);
        });
        // The handler has no end of its own.
        until("nobody is inside", || {
            domain.interrupt();
            domain.reset().is_ok()
        });
        let event = domain.on(Event::missing_pages(&area), "fills").unwrap();
        let wanted = |page: usize| u64::from(area.offset().0) + (page * PAGE) as u64;
        assert_eq!(load(&domain, &area, 3 * PAGE), wanted(3));
        // A reset keeps it watched, a domain that sees the area no more does too.
        domain.reset().unwrap();
        assert_eq!(load(&domain, &area, 2 * PAGE), wanted(2));
        domain.unshare(&area).unwrap();
        assert_eq!(host(&area, 4 * PAGE), wanted(4));
        domain.share(&area, Prot::Read).unwrap();
        assert_eq!(load(&domain, &area, 5 * PAGE), wanted(5));
        // And the event keeps the area.
        drop(area);
        drop(event);
    }
}

/// Who sleeps inside is ended as anybody else.
#[test]
fn calls_that_sleep_are_ended() {
    for domain in domains(LONG) {
        let Some((area, event)) = watched(&domain, 4, "loops") else {
            return;
        };
        let readers = patient().build().unwrap();
        readers.share(&area, Prot::Read).unwrap();
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let load = readers.func::<fn(u32) -> u64>("load").unwrap();
                load.call(area.offset().0)
            });
            until("the handler runs", || domain.counters().calls >= 1);
            readers.close();
            assert!(inside.join().unwrap().is_err());
        });
        // Both who has its memory taken while it sleeps …
        let other = patient().build().unwrap();
        other.share(&area, Prot::Read).unwrap();
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let load = other.func::<fn(u32) -> u64>("load").unwrap();
                load.call(area.offset().0 + PAGE as u32)
            });
            until("it is inside", || other.counters().calls >= 1);
            other.unshare(&area).unwrap();
            // … once it is woken.
            domain.interrupt();
            until("the handler is ended", || {
                domain.interrupt();
                inside.is_finished()
            });
            assert!(inside.join().unwrap().is_err());
        });
        drop(event);
    }
}

/// Views of all domains are watched: those that were there before, or in a window that is used
/// again, and those that come later, or are moved. A child's are not, and it fills nothing.
#[test]
fn views_of_other_domains_and_of_children() {
    for domain in domains(LONG) {
        let area = Shared::new(16 * PAGE).unwrap();
        let wanted = |page: usize| u64::from(area.offset().0) + (page * PAGE) as u64;
        let before = patient().build().unwrap();
        before.share(&area, Prot::Read).unwrap();
        let gone = patient().build().unwrap();
        gone.share(&area, Prot::Read).unwrap();
        drop(gone);
        let event = match domain.on(Event::missing_pages(&area), "fills") {
            Err(error @ EventError::Userfault(_)) => return eprintln!("NOT TESTED: {error}"),
            event => event.unwrap(),
        };
        assert_eq!(load(&before, &area, 0), wanted(0));
        let later = [1, 2].map(|page| {
            let other = patient().build().unwrap();
            other.share(&area, Prot::Read).unwrap();
            assert_eq!(load(&other, &area, page * PAGE), wanted(page));
            other
        });
        // Some pages only.
        let some = patient().build().unwrap();
        area.protect(&some, PAGE * 3..PAGE * 4, Prot::Read).unwrap();
        assert_eq!(load(&some, &area, 3 * PAGE), wanted(3));
        for (page, placement) in [(4, Placement::Hot), (5, Placement::Cold)] {
            before.set_placement(placement);
            assert_eq!(load(&before, &area, page * PAGE), wanted(page));
        }
        until("each", || handled(&event) == 6);
        let page = number(&domain, "page_of") as u32;
        let status = fork(|| {
            let refused = fill(&domain, wanted(6) as u32, page) == i64::from(-libc::EINVAL);
            let zeros = host(&area, 7 * PAGE) == 0;
            // What it has of its own is its own's.
            let own = patient().build().unwrap();
            let _event = own.on(Event::missing_pages(&area), "fills").unwrap();
            refused && zeros && host(&area, 8 * PAGE) == wanted(8)
        });
        assert_eq!(status, 0);
        assert_eq!(host(&area, 8 * PAGE), wanted(8));
        assert_eq!(
            (host(&area, 6 * PAGE), host(&area, 7 * PAGE)),
            (wanted(6), 0)
        );
        until("one more", || handled(&event) == 7);
        drop(later);
    }
}

/// Pages that the host takes out of a file are missing again.
#[test]
fn pages_can_be_taken_out_again() {
    for domain in domains(LONG) {
        let file = unsafe {
            use std::os::fd::FromRawFd;
            std::fs::File::from_raw_fd(libc::memfd_create(c"pages".as_ptr(), libc::MFD_CLOEXEC))
        };
        file.set_len(4 * PAGE as u64).unwrap();
        let area = Shared::from_file(file.try_clone().unwrap().into(), 0, 4 * PAGE).unwrap();
        domain.share(&area, Prot::Read).unwrap();
        let event = match domain.on(Event::missing_pages(&area), "fills") {
            Err(error @ EventError::Userfault(_)) => return eprintln!("NOT TESTED: {error}"),
            event => event.unwrap(),
        };
        let wanted = u64::from(area.offset().0) + PAGE as u64;
        for round in 1..=20 {
            assert_eq!(load(&domain, &area, PAGE), wanted);
            until("it is told", || handled(&event) == round);
            let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            use std::os::fd::AsRawFd;
            let (at, len) = (PAGE as i64, PAGE as i64);
            assert_eq!(
                unsafe { libc::fallocate(file.as_raw_fd(), how, at, len) },
                0
            );
        }
        // Nor are there any beyond a file that has become short: as ever.
        file.set_len(0).unwrap();
        assert!(area.read(0, &mut [0]).is_err());
    }
}

/// What the kernel tells nothing of, and what it never writes.
#[test]
fn areas_that_cannot_be_watched() {
    let domain = patient().build().unwrap();
    let path = std::env::current_exe().unwrap();
    let own = std::fs::File::open(path).unwrap();
    let area = Shared::from_file(own.into(), 0, PAGE).unwrap();
    match domain.on(Event::missing_pages(&area), "fills") {
        Err(EventError::Unwatchable { area: name, .. }) => assert_eq!(name, area.name()),
        Err(error @ EventError::Userfault(_)) => eprintln!("NOT TESTED: {error}"),
        other => panic!("{other:?}"),
    }
}

/// Events that come and go while pages are touched: nobody sleeps for ever, and nothing is left.
#[test]
fn nothing_is_left_of_events_that_come_and_go() {
    const TEST: &str = "pages::nothing_is_left_of_events_that_come_and_go";
    succeeds_in_child(TEST, || {
        let domain = patient().ways(Ways::only(Way::Plain)).build().unwrap();
        // What is made once.
        let kept = domain.on(Event::doorbell(), "nothing").unwrap();
        match watched(&domain, 1, "fills") {
            Some((area, _event)) => assert_ne!(host(&area, 0), 0),
            None => return,
        }
        let before = (descriptors(), threads());
        for round in 0..50 {
            let (area, event) = watched(&domain, 64, "fills").unwrap();
            std::thread::scope(|scope| {
                for thread in 0..3 {
                    let (domain, area) = (&domain, &area);
                    scope.spawn(move || {
                        for page in 0..64 {
                            let at = (page * 5 + thread) % 64 * PAGE;
                            let wanted = u64::from(area.offset().0) + at as u64;
                            let found = match thread {
                                0 => load(domain, area, at),
                                _ => host(area, at),
                            };
                            assert!(found == wanted || found == 0);
                        }
                    });
                }
                until("some", || handled(&event) >= round);
                drop(event);
            });
            domain.unshare(&area).unwrap();
        }
        // What the first one had may have gone later than that was counted.
        until("all is gone", || {
            descriptors() <= before.0 && threads() <= before.1
        });
        drop(kept);
    });
}
