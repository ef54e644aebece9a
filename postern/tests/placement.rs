//! The hot window: given, taken and moved, and nothing that lives in a domain notices.
mod support;
use postern::{
    Caller, Domain, DomainBuilder, HotWindow, Image, Offset, Placement, Prot, Shared, hot_domain,
    hot_window,
};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use support::{code, fork, succeeds_in_child};

const SOURCE: &str = "
    .data
    .balign 8
    n: .quad 0
    .text
    next: movl $1,%eax
        lock xaddq %rax,%gs:n(,%eiz,1)
        ret
    put: movq %rsi,%gs:(%edi)
        ret
    get: movq %gs:(%edi),%rax
        ret
    locals: PUSH %rdi
        call s
        POP %rax
        ret
    pointer: movl $seven,%eax
        ret
    through: GUARDED %edi, call
        ret
    seven: PAD
        movl $7,%eax
        ret
    busy: subq $1,%rdi
        jne busy
        movl $1,%eax
        ret
    trap: ud2
";

fn extension() -> Image {
    code(
        &[("s", "v()")],
        &[
            ("next", "l()"),
            ("put", "v(pl)"),
            ("get", "l(p)"),
            ("locals", "l(l)"),
            ("pointer", "p()"),
            ("through", "l(p)"),
            ("busy", "l(l)"),
            ("trap", "v()"),
        ],
        SOURCE,
    )
    .image()
}

fn plain(image: &Image) -> DomainBuilder {
    Domain::builder(image).service("s", |_: &Caller<'_>| {})
}

fn placed(image: &Image, placement: Placement) -> Domain {
    plain(image).placement(placement).build().unwrap()
}

fn next(d: &Domain) -> i64 {
    d.func::<fn() -> i64>("next").unwrap().call().unwrap()
}

/// Runs `body` in a process of its own if the hot window is there.
fn alone(test: &str, body: impl FnOnce(Image)) {
    succeeds_in_child(test, || {
        let image = extension();
        if hot_window() == HotWindow::Free {
            body(image);
        }
    });
}

/// Waits for what the watchdog does. Nothing is said about how long it takes.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{what} never came");
}

#[test]
fn all_state_moves_along() {
    alone("all_state_moves_along", |image| {
        let d = placed(&image, Placement::Cold);
        let area = Shared::new(8192).unwrap();
        d.share(&area, Prot::ReadWrite).unwrap();
        area.protect(&d, 4096.., Prot::Read).unwrap();
        let heap = Offset(image.tables().layout.heap_start + 4096);
        let put = d.func::<fn(Offset, i64)>("put").unwrap();
        let get = d.func::<fn(Offset) -> i64>("get").unwrap();
        let through = d.func::<fn(Offset) -> i64>("through").unwrap();
        let locals = d.func::<fn(i64) -> i64>("locals").unwrap();
        let seven = d.func::<fn() -> Offset>("pointer").unwrap().call().unwrap();
        let at = d.func_at::<fn() -> i64>(seven).unwrap();
        // SAFETY: the stub has the C calling convention and this type.
        let c: extern "C" fn() -> i64 = unsafe {
            std::mem::transmute(d.function_pointer("next", &"l()".parse().unwrap()).unwrap())
        };
        put.call(heap, 41).unwrap();
        put.call(area.offset(), 42).unwrap();
        // Another thread, and so another data stack.
        let (sender, receiver) = std::sync::mpsc::channel::<i64>();
        let (answer, answers) = std::sync::mpsc::channel();
        let other = locals.clone();
        let thread = std::thread::spawn(move || {
            for value in receiver {
                answer.send(other.call(value).unwrap()).unwrap();
            }
        });
        let mut base = d.base();
        for round in 0..20 {
            d.set_placement([Placement::Hot, Placement::Cold][round % 2]);
            assert_eq!(d.is_hot(), round % 2 == 0, "round {round}");
            assert_ne!(std::mem::replace(&mut base, d.base()), d.base());
            // Each page of the area has the right that it had.
            let table = postern::memory_table().unwrap();
            let rights = table.rows.iter().filter(|row| row.is_area);
            let rights: Vec<_> = rights.map(|row| row.cell(0).to_string()).collect();
            assert_eq!(rights, ["rw", "r"], "round {round}\n{table}");
            assert_eq!((next(&d), c()), (0, 1));
            assert_eq!(get.call(heap).unwrap(), 41);
            assert_eq!(d.read_vec(heap, 1).unwrap(), [41]);
            assert_eq!(get.call(area.offset()).unwrap(), 42);
            assert_eq!(locals.call(99).unwrap(), 99);
            sender.send(98).unwrap();
            assert_eq!(answers.recv().unwrap(), 98);
            assert_eq!((at.call().unwrap(), through.call(seven).unwrap()), (7, 7));
            assert!(get.call(Offset(0xf000_0000)).unwrap_err().fault().is_some());
            d.set_placement(Placement::Auto);
            assert!(d.is_poisoned() && next_error(&d));
            // Back to the first state, but for the shared area.
            d.reset().unwrap();
            assert_eq!(get.call(heap).unwrap(), 0);
            put.call(heap, 41).unwrap();
        }
        assert_eq!(d.counters().moves, 20);
        drop(sender);
        thread.join().unwrap();
        drop((put, get, through, locals, at, d));
        assert_eq!(hot_window(), HotWindow::Free);
        assert_eq!(c(), 0, "its domain is gone");
    });
}

/// What only its descriptor can map is the same memory in the window to which the domain moves.
#[test]
fn a_device_moves_along() {
    alone("a_device_moves_along", |image| {
        let d = placed(&image, Placement::Cold);
        // SAFETY: the name is a string, and nobody else has the new descriptor.
        let file = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"device".as_ptr(), 0)) };
        std::fs::File::from(file.try_clone().unwrap())
            .set_len(8192)
            .unwrap();
        let area = Shared::builder().device(file, 8192).unwrap();
        d.share(&area, Prot::ReadWrite).unwrap();
        area.protect(&d, 4096.., Prot::Read).unwrap();
        let put = d.func::<fn(Offset, i64)>("put").unwrap();
        let get = d.func::<fn(Offset) -> i64>("get").unwrap();
        let second = Offset(area.offset().0 + 4096);
        for round in 0..6i64 {
            let hot = round % 2 == 0;
            d.set_placement(if hot { Placement::Hot } else { Placement::Cold });
            assert_eq!(d.is_hot(), hot);
            put.call(area.offset(), round).unwrap();
            let mut seen = [0; 8];
            area.read(0, &mut seen).unwrap();
            assert_eq!(i64::from_le_bytes(seen), round);
            area.write(4096, &(round + 1).to_le_bytes()).unwrap();
            assert_eq!(get.call(second).unwrap(), round + 1);
            assert!(put.call(second, 0).unwrap_err().fault().is_some());
            d.reset().unwrap();
        }
        // Seen for the first time by a domain that is hot.
        d.set_placement(Placement::Hot);
        d.unshare(&area).unwrap();
        assert!(get.call(second).unwrap_err().fault().is_some());
        d.reset().unwrap();
        d.share(&area, Prot::Read).unwrap();
        assert_eq!(get.call(second).unwrap(), 6);
    });
}

fn next_error(d: &Domain) -> bool {
    d.func::<fn() -> i64>("next").unwrap().call().is_err()
}

#[test]
fn moves_leave_no_hole_and_no_mapping() {
    alone("moves_leave_no_hole_and_no_mapping", |image| {
        let d = placed(&image, Placement::Cold);
        next(&d);
        let shuttle = |times: usize| {
            for _ in 0..times {
                d.set_placement(Placement::Hot);
                assert!(d.is_hot());
                d.set_placement(Placement::Cold);
                assert!(!d.is_hot());
            }
        };
        shuttle(2);
        let before = support::mappings();
        shuttle(100);
        // The host's own allocator may have made a few.
        assert!(support::mappings() < before + 20);
        assert_eq!(next(&d), 1);
        // The whole of the low 4 GiB is still reserved.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut end = None;
        for line in maps.lines() {
            let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let [from, to] = [from, to].map(|n| u64::from_str_radix(n, 16).unwrap());
            if from > 1 << 32 {
                break;
            }
            assert!(end.is_none_or(|end| end == from), "a hole before {from:#x}");
            end = Some(to);
        }
        assert_eq!(end, Some((1 << 32) + (64 << 10)));
    });
}

#[test]
fn who_asks_comes_before_who_does_not() {
    alone("who_asks_comes_before_who_does_not", |image| {
        let auto = placed(&image, Placement::Auto);
        assert_eq!((auto.is_hot(), next(&auto)), (true, 0));
        assert_eq!(hot_domain().unwrap().base(), 0);
        let first = placed(&image, Placement::Hot);
        assert_eq!((auto.is_hot(), next(&auto)), (false, 1));
        assert_eq!((first.is_hot(), next(&first)), (true, 0));
        let second = placed(&image, Placement::Hot);
        assert!(first.is_hot() && !second.is_hot());
        let cold = placed(&image, Placement::Cold);
        // The watchdog gives it on.
        drop(first);
        until("the second's turn", || second.is_hot());
        assert_eq!(hot_domain().unwrap().name(), second.name());
        assert_eq!((next(&second), next(&cold), next(&auto)), (0, 0, 2));
        // Whoever does not want it any more keeps it until somebody else asks.
        second.set_placement(Placement::Auto);
        assert!(second.is_hot());
        auto.set_placement(Placement::Hot);
        assert!(auto.is_hot() && !second.is_hot());
        auto.set_placement(Placement::Cold);
        assert!(!auto.is_hot() && !cold.is_hot());
        assert_eq!(hot_window(), HotWindow::Free);
        assert!(hot_domain().is_none());
        assert_eq!((next(&auto), next(&second), next(&cold)), (3, 1, 1));
    });
}

/// A domain that is inside is moved once its calls have come back, and nobody is refused meanwhile.
#[test]
fn a_busy_domain_is_moved_when_it_is_not() {
    alone("a_busy_domain_is_moved_when_it_is_not", |image| {
        let (inside, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (a, b) = (inside.clone(), go.clone());
        let auto = Domain::builder(&image)
            .deadline(None)
            .service("s", move |caller: &Caller<'_>| {
                a.wait();
                b.wait();
                // Nested calls are let in, though the domain is wanted elsewhere.
                for _ in 0..100 {
                    next(&caller.domain());
                    caller.domain().set_placement(Placement::Auto);
                }
            })
            .build()
            .unwrap();
        assert!(auto.is_hot());
        let d = auto.clone();
        let thread = std::thread::spawn(move || {
            let locals = d.func::<fn(i64) -> i64>("locals").unwrap();
            assert_eq!(locals.call(5).unwrap(), 5);
        });
        inside.wait();
        let hot = placed(&image, Placement::Hot);
        assert!(auto.is_hot() && !hot.is_hot());
        // Others go in and out while it is wanted elsewhere.
        for i in 0..100 {
            assert_eq!((next(&auto), next(&hot)), (i, i));
        }
        go.wait();
        thread.join().unwrap();
        until("the move", || hot.is_hot());
        assert_eq!((next(&auto), next(&hot)), (200, 100));
        assert!(!auto.is_hot());
    });
}

#[test]
fn threads_call_while_their_domain_is_moved() {
    alone("threads_call_while_their_domain_is_moved", |image| {
        let d = plain(&image).placement(Placement::Cold).build().unwrap();
        let heap = Offset(image.tables().layout.heap_start + 4096);
        let stop = AtomicBool::new(false);
        let calls = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for t in 1..4i64 {
                let (d, stop, calls) = (&d, &stop, &calls);
                scope.spawn(move || {
                    let next = d.func::<fn() -> i64>("next").unwrap();
                    let locals = d.func::<fn(i64) -> i64>("locals").unwrap();
                    let pointer = d.func::<fn() -> Offset>("pointer").unwrap();
                    let through = d.func::<fn(Offset) -> i64>("through").unwrap();
                    while !stop.load(SeqCst) {
                        for i in 0..100 {
                            next.call().unwrap();
                            assert_eq!(locals.call(t << 32 | i).unwrap(), t << 32 | i);
                            assert_eq!(through.call(pointer.call().unwrap()).unwrap(), 7);
                        }
                        calls.fetch_add(100, SeqCst);
                    }
                });
            }
            // The host's own hands are in it, too.
            let (d, stop) = (&d, &stop);
            scope.spawn(move || {
                let mut n = 0u64;
                while !stop.load(SeqCst) {
                    n += 1;
                    d.write(heap, &n.to_le_bytes()).unwrap();
                    let mut back = [0; 8];
                    d.read(heap, &mut back).unwrap();
                    assert_eq!(u64::from_le_bytes(back), n);
                }
            });
            for round in 0..60 {
                let placement = [Placement::Hot, Placement::Cold][round % 2];
                d.set_placement(placement);
                until("the move", || d.is_hot() == (placement == Placement::Hot));
            }
            stop.store(true, SeqCst);
        });
        assert_eq!(next(&d) as u64, calls.load(SeqCst), "no call was lost");
        assert_eq!(d.counters().moves, 60);
        assert!(d.counters().faults.is_empty());
    });
}

#[test]
fn threads_come_and_go_while_their_domain_is_moved() {
    alone("threads_come_and_go_while_their_domain_is_moved", |image| {
        let d = plain(&image).placement(Placement::Cold).build().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..300 {
                    let d = d.clone();
                    std::thread::spawn(move || {
                        let locals = d.func::<fn(i64) -> i64>("locals").unwrap();
                        assert_eq!(locals.call(3).unwrap(), 3);
                    })
                    .join()
                    .unwrap();
                }
                done.store(true, SeqCst);
            });
            let mut round = 0;
            while !done.load(SeqCst) {
                d.set_placement([Placement::Hot, Placement::Cold][round % 2]);
                round += 1;
            }
        });
        assert_eq!(next(&d), 0);
    });
}

/// Faults, resets and moves at the same time: what was poisoned stays so, and a reset never loses
/// against a move.
#[test]
fn faults_and_resets_while_a_domain_is_moved() {
    alone("faults_and_resets_while_a_domain_is_moved", |image| {
        let d = plain(&image).placement(Placement::Cold).build().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut round = 0;
                while !stop.load(SeqCst) {
                    d.set_placement([Placement::Hot, Placement::Cold][round % 2]);
                    round += 1;
                }
            });
            let trap = d.func::<fn()>("trap").unwrap();
            for _ in 0..2000 {
                assert_eq!((next(&d), next(&d)), (0, 1));
                let error = trap.call().unwrap_err();
                assert!(error.fault().is_some(), "{error}");
                assert!(d.is_poisoned());
                assert!(next_error(&d));
                d.reset().unwrap();
            }
            stop.store(true, SeqCst);
        });
    });
}

#[test]
fn among_those_that_do_not_ask_the_busiest_has_it() {
    alone("among_those_that_do_not_ask_the_busiest_has_it", |image| {
        let idle = placed(&image, Placement::Auto);
        let busy = plain(&image).deadline(None).build().unwrap();
        let cold = plain(&image).deadline(None).placement(Placement::Cold);
        let cold = cold.build().unwrap();
        assert!(idle.is_hot() && next(&idle) == 0);
        std::thread::scope(|scope| {
            let stop = Arc::new(AtomicBool::new(false));
            // A domain that never wants it is busier than all.
            for _ in 0..2 {
                let stop = stop.clone();
                let work = cold.func::<fn(i64) -> i64>("busy").unwrap();
                scope.spawn(move || {
                    while !stop.load(SeqCst) {
                        work.call(100_000).unwrap();
                    }
                });
            }
            let work = busy.func::<fn(i64) -> i64>("busy").unwrap();
            until("the move", || {
                for _ in 0..100 {
                    assert_eq!(work.call(100_000).unwrap(), 1);
                }
                busy.is_hot()
            });
            stop.store(true, SeqCst);
        });
        assert!(!idle.is_hot() && !cold.is_hot());
        assert_eq!((next(&idle), next(&busy)), (1, 0));
        let counters = busy.counters();
        assert!(counters.moves == 1 && counters.time_inside >= counters.time_hot);
    });
}

#[test]
fn a_child_goes_on_where_a_move_was_made() {
    alone("a_child_goes_on_where_a_move_was_made", |image| {
        let d = plain(&image).placement(Placement::Cold).build().unwrap();
        let heap = Offset(image.tables().layout.heap_start);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut round = 0;
                while !stop.load(SeqCst) {
                    d.set_placement([Placement::Hot, Placement::Cold][round % 2]);
                    round += 1;
                }
            });
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    d.write(heap, &[1; 64]).unwrap();
                }
            });
            for round in 0..30 {
                assert_eq!(next(&d), round);
                let status = fork(|| {
                    assert_eq!(next(&d), round + 1);
                    d.set_placement(Placement::Hot);
                    assert!(d.is_hot());
                    assert_eq!(next(&d), round + 2);
                    d.set_placement(Placement::Cold);
                    !d.is_hot() && next(&d) == round + 3
                });
                assert_eq!(status, 0);
            }
            stop.store(true, SeqCst);
        });
    });
}

/// A host that has something in the low 4 GiB goes on without the hot window.
#[test]
fn a_taken_low_range_is_said_and_done_without() {
    succeeds_in_child("a_taken_low_range_is_said_and_done_without", || {
        // SAFETY: maps a page where nothing is.
        let page = unsafe {
            libc::mmap(
                0x7000_0000 as *mut _,
                4096,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        assert_ne!(page, libc::MAP_FAILED);
        let image = extension();
        assert_eq!(hot_window(), HotWindow::Occupied);
        let d = placed(&image, Placement::Hot);
        let other = placed(&image, Placement::Auto);
        assert!(!d.is_hot() && !other.is_hot() && hot_domain().is_none());
        d.set_placement(Placement::Cold);
        d.set_placement(Placement::Hot);
        assert_eq!((next(&d), next(&d), next(&other)), (0, 1, 0));
        assert_eq!(d.counters().moves, 0);
    });
}
