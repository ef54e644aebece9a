//! Threads that programs start, and their ends: as many as the host grants, gone with the program,
//! with a reset and with the domain, whatever they do.

use crate::libc::confined;
use postern::{CallError, Domain, FaultKind, Image, Offset, Policy};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| confined("own_threads.c", &[]))
}

fn domain(threads: u32) -> Domain {
    let builder = Domain::builder(image()).policy(Policy::compute());
    builder.own_threads(threads).deadline(None).build().unwrap()
}

fn main_of(domain: &Domain, what: &str, number: u32) -> Result<i32, CallError> {
    let number = number.to_string();
    domain.run_main(&["program", what, &number], &[] as &[&str])
}

/// How many threads of the process are extensions'. Tests beside this one may have some.
fn tasks() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name == b"postern-thread\n").count()
}

/// None stays.
fn all_go() {
    let begin = Instant::now();
    while tasks() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(300), "a thread stays");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn there_are_as_many_as_the_host_grants() {
    for most in [0, 1, 2, 17] {
        assert_eq!(main_of(&domain(most), "grants", most).unwrap(), 0, "{most}");
    }
    assert!(domain(3).grants().to_string().contains("threads   3"));
}

#[test]
fn whoever_joins_a_thread_can_start_another() {
    assert_eq!(main_of(&domain(3), "again", 3).unwrap(), 0);
}

#[test]
fn threads_that_start_threads_stay_within_the_grant() {
    assert_eq!(main_of(&domain(5), "multiply", 5).unwrap(), 0);
    all_go();
}

#[test]
fn main_ends_all() {
    assert_eq!(main_of(&domain(12), "return", 12).unwrap(), 12);
    all_go();
}

#[test]
fn exit_of_one_ends_all() {
    for _ in 0..5 {
        assert_eq!(main_of(&domain(9), "exit", 6).unwrap(), 7);
    }
    all_go();
}

#[test]
fn a_fault_of_one_is_the_program_s() {
    for (what, kind, place) in [
        ("break", FaultKind::NullPointer, "breaks_here"),
        ("abort", FaultKind::Aborted, ""),
        ("recurse", FaultKind::DataStackOverflow, "recurses"),
    ] {
        let domain = domain(8);
        let error = main_of(&domain, what, 6).unwrap_err();
        let fault = error.fault().unwrap_or_else(|| panic!("{what}: {error}"));
        assert_eq!(fault.kind, kind, "{what}: {fault}");
        assert!(fault.place().contains(place), "{what}: {}", fault.place());
        assert!(domain.is_poisoned());
        domain.reset().unwrap();
        assert_eq!(main_of(&domain, "return", 6).unwrap(), 6);
    }
    all_go();
}

/// Of a domain whose functions the host calls, threads go on between calls.
#[test]
fn resets_and_ends_of_domains_end_them() {
    let start = |domain: &Domain| {
        let start_all = domain.func::<fn(i32) -> i32>("start_all").unwrap();
        assert_eq!(start_all.call(12).unwrap(), 12);
        let next = domain.func::<fn() -> i32>("next").unwrap();
        assert_eq!(next.call().unwrap(), 1);
    };
    let reset = domain(12);
    for _ in 0..10 {
        start(&reset);
        reset.reset().unwrap();
    }
    start(&reset);
    reset.close();
    assert!(reset.is_closed());
    for _ in 0..5 {
        // The handles go while threads are in system calls, too.
        start(&domain(12));
    }
    all_go();
}

#[test]
fn a_reset_while_the_host_is_inside_ends_none() {
    let domain = domain(2);
    let start_waiting = domain.func::<fn() -> i32>("start_waiting").unwrap();
    assert_eq!(start_waiting.call().unwrap(), 0);
    std::thread::scope(|scope| {
        let wait_for = domain
            .func::<fn(Offset, u32, i64) -> i32>("wait_for")
            .unwrap();
        let place = domain
            .func::<fn() -> Offset>("place")
            .unwrap()
            .call()
            .unwrap();
        let inside = scope.spawn(move || wait_for.call(place, 0, -1));
        std::thread::sleep(Duration::from_millis(50));
        assert!(domain.reset().is_err());
        // One runs still, so there is room for one.
        assert_eq!(start_waiting.call().unwrap(), 0);
        assert_eq!(start_waiting.call().unwrap(), 11);
        domain.interrupt();
        let ended = inside.join().unwrap().unwrap_err();
        assert_eq!(ended.fault().unwrap().kind, FaultKind::Interrupted);
    });
    domain.reset().unwrap();
}

/// A deadline is for each of a domain's calls, and a thread is one.
#[test]
fn a_thread_has_the_deadline_of_a_call() {
    let builder = Domain::builder(image()).policy(Policy::compute());
    let limit = Some(Duration::from_millis(200));
    let domain = builder.own_threads(1).deadline(limit).build().unwrap();
    let start = domain.func::<fn() -> i32>("start_waiting").unwrap();
    assert_eq!(start.call().unwrap(), 0);
    let begin = Instant::now();
    while !domain.is_poisoned() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(domain.counters().faults.get("deadline"), Some(&1));
    domain.reset().unwrap();
    assert_eq!(start.call().unwrap(), 0);
}

#[test]
fn words_that_are_none_are_refused() {
    let domain = domain(4);
    let garbage = domain.func::<fn(Offset) -> i32>("garbage").unwrap();
    let exit = domain.func::<fn(Offset) -> i32>("thread_exit").unwrap();
    let exit_at = domain.func::<fn(Offset) -> i32>("exit_at").unwrap();
    let wait = domain
        .func::<fn(Offset, u32, i64) -> i32>("wait_for")
        .unwrap();
    let wake = domain.func::<fn(Offset, u32) -> i32>("wake").unwrap();
    let place = domain
        .func::<fn() -> Offset>("place")
        .unwrap()
        .call()
        .unwrap();
    // Nowhere, the info page, between the parts, the window's ends.
    for word in [
        0,
        1,
        4,
        0x1000,
        0x10002,
        0x7fff_fffc,
        0xffff_fffc,
        0xffff_ffff,
    ] {
        assert_eq!(garbage.call(Offset(word)).unwrap(), 0, "{word:#x}");
        assert!(matches!(exit.call(Offset(word)), Err(CallError::Exited(0))));
        assert_eq!(exit_at.call(Offset(word)).unwrap(), 0);
    }
    let mut bytes = [0; 4];
    domain.read(place, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 4]);
    assert_eq!(wait.call(place, 1, -1).unwrap(), -11);
    assert_eq!(wait.call(place, 0, 0).unwrap(), -110);
    assert_eq!(wait.call(place, 0, 100_000_000).unwrap(), -110);
    assert_eq!(wait.call(Offset(place.0 + 1), 0, -1).unwrap(), -22);
    assert_eq!(wake.call(place, u32::MAX).unwrap(), 0);
    assert!(matches!(exit.call(place), Err(CallError::Exited(0))));
    domain.read(place, &mut bytes).unwrap();
    assert_eq!(u32::from_le_bytes(bytes), 0x1234_5678);
}

/// Whoever waits is woken by another call of the domain, and by no other domain's.
#[test]
fn waits_are_a_domain_s_own() {
    let (domain, other) = (domain(0), domain(0));
    let place = domain
        .func::<fn() -> Offset>("place")
        .unwrap()
        .call()
        .unwrap();
    std::thread::scope(|scope| {
        let wait = domain
            .func::<fn(Offset, u32, i64) -> i32>("wait_for")
            .unwrap();
        let waiting = scope.spawn(move || wait.call(place, 0, -1).unwrap());
        let wake = |domain: &Domain| {
            let wake = domain.func::<fn(Offset, u32) -> i32>("wake").unwrap();
            wake.call(place, 1).unwrap()
        };
        let begin = Instant::now();
        loop {
            assert_eq!(wake(&other), 0);
            if wake(&domain) == 1 {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(60));
        }
        assert_eq!(waiting.join().unwrap(), 0);
    });
}

/// Threads that come and go while the host resets, closes and drops.
#[test]
fn ends_at_any_moment() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..40 {
        let domain = domain(6);
        let start = domain.func::<fn(i32) -> i32>("start_all").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // However it ends.
                let _ = start.call(6);
            });
            std::thread::sleep(Duration::from_micros(random.u64(0..3000)));
            match round % 3 {
                0 => domain.close(),
                1 => domain.interrupt(),
                _ => drop(domain.reset()),
            }
            domain.interrupt();
            domain.close();
        });
        drop(start);
    }
    all_go();
}
