//! Pages that miss, and who fills them.

use super::support::{code, cold, fork};
use super::{handled, number, until};
use postern::{Domain, Event, EventError, Image, Offset, Prot, Shared, Subscription, Way, Ways};
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
        let handlers =
            ["fills", "nothing", "touches", "traps", "loops"].map(|name| (name, "v(IL)"));
        let others = [
            ("fill", "l(II)"),
            ("load", "L(I)"),
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

fn watched(domain: &Domain, pages: usize, handler: &str) -> Option<(Shared, Subscription)> {
    let area = Shared::new(pages * PAGE).unwrap();
    domain.share(&area, Prot::ReadWrite).unwrap();
    match domain.on(Event::missing_pages(&area), handler) {
        Ok(event) => Some((area, event)),
        Err(error @ EventError::Pages { .. }) => {
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
        assert!(handled(&event) >= PAGES as u64);
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
        let Some((area, event)) = watched(&domain, 4, "loops") else {
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
            let inside = scope.spawn(|| {
                domain
                    .func::<fn(u32) -> u64>("load")
                    .unwrap()
                    .call(area.offset().0)
            });
            until("the handler runs", || domain.counters().calls >= 2);
            drop(event);
            for sleeper in sleepers {
                assert_eq!(sleeper.join().unwrap(), 0);
            }
            domain.close();
            drop(inside.join().unwrap());
        });
        until("nobody is inside", || domain.reset().is_ok());
        let event = domain.on(Event::missing_pages(&area), "fills").unwrap();
        assert_eq!(
            load(&domain, &area, 3 * PAGE),
            u64::from(area.offset().0) + 3 * PAGE as u64
        );
        // The event keeps the area; a reset keeps it watched.
        domain.reset().unwrap();
        assert_eq!(
            load(&domain, &area, 2 * PAGE),
            u64::from(area.offset().0) + 2 * PAGE as u64
        );
        domain.unshare(&area).unwrap();
        drop(area);
        drop(event);
    }
}

/// A view that comes later is watched, too, and a child's is not.
#[test]
fn views_that_come_later_and_children() {
    for domain in domains(LONG) {
        let Some((area, event)) = watched(&domain, 4, "fills") else {
            return;
        };
        let other = cold(image()).build().unwrap();
        other.share(&area, Prot::Read).unwrap();
        assert_eq!(load(&other, &area, 0), u64::from(area.offset().0));
        assert_eq!(fork(|| host(&area, PAGE) == 0), 0);
        assert_eq!(host(&area, PAGE), 0);
        until("one", || handled(&event) == 1);
    }
}
