//! C function pointers end with their domains: nothing of them stays, and what is left of them does
//! no harm.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{Domain, Image, Placement};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use support::{cold, succeeds_in_child};

type Add = extern "C" fn(i32) -> i32;

/// `one` adds a number to an `i32`, `two` to an `i64`.
fn image(number: u32) -> Image {
    support::image(
        &[("one", "i(i)"), ("two", "l(l)")],
        &format!(
            "one: leal {number}(%rdi),%eax
             ret
             .skip {number} * 8, 0x90
             two: leaq {number}(%rdi),%rax
             ret"
        ),
    )
}

fn pointer(domain: &Domain, name: &str) -> usize {
    domain
        .function_pointer(name, &domain.signature(name).unwrap())
        .unwrap() as usize
}

fn call(pointer: usize, x: i32) -> i32 {
    unsafe { std::mem::transmute::<usize, Add>(pointer)(x) }
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn two_hundred_thousand_domains_leave_nothing() {
    succeeds_in_child("two_hundred_thousand_domains_leave_nothing", || {
        let image = image(1);
        let cycle = |i: i32| {
            let domain = cold(&image).build().unwrap();
            let one = pointer(&domain, "one");
            assert_eq!(call(one, i), i + 1);
            one
        };
        assert!((0..5000).map(cycle).all(|one| one != 0));
        let (mappings, before) = (support::mappings(), resident());
        let mut last = 0;
        (0..200_000).for_each(|i| last = cycle(i));
        assert_eq!(call(last, 1), 0);
        // One that the allocator or the libc may make.
        assert!(support::mappings() <= mappings + 2, "{mappings}");
        assert!(resident() <= before + (1 << 20), "{before} {}", resident());
    });
}

#[test]
fn a_modules_pointer_is_made_once() {
    succeeds_in_child("a_modules_pointer_is_made_once", || {
        let module = postern::Module::new(&image(1), |builder| builder).unwrap();
        let types = "i(i)".parse().unwrap();
        let pointer = || module.function_pointer("one", &types).unwrap();
        let one = pointer();
        let before = resident();
        assert!((0..300_000).all(|_| pointer() == one));
        assert!(resident() <= before + (1 << 20));
        assert_eq!(call(one as usize, 2), 3);
        drop(module);
        assert_eq!(call(one as usize, 2), 0);
    });
}

#[test]
fn the_same_function_has_the_same_pointer() {
    let image = image(1);
    let domain = cold(&image).build().unwrap();
    let other = cold(&image).build().unwrap();
    let one = pointer(&domain, "one");
    assert_eq!(pointer(&domain, "one"), one);
    assert_ne!(pointer(&other, "one"), one);
    assert_ne!(pointer(&domain, "two"), one);
}

/// A pointer is refused for a long time, and its place is only ever a function's of the same type.
#[test]
fn places_keep_their_type_and_rest_before_they_are_used_again() {
    succeeds_in_child(
        "places_keep_their_type_and_rest_before_they_are_used_again",
        || {
            const REST: usize = 1024;
            let images = [image(1), image(2)];
            let (mut ones, mut twos) = (HashMap::new(), HashSet::new());
            let mut ended = Vec::new();
            for i in 0..3 * REST {
                let domain = cold(&images[i % 2]).build().unwrap();
                let (one, two) = (pointer(&domain, "one"), pointer(&domain, "two"));
                if let Some(before) = ones.insert(one, i) {
                    assert!(i - before > REST, "{i} {before}");
                }
                twos.insert(two);
                drop(domain);
                ended.push(one);
                for &stale in ended.iter().rev().take(REST).step_by(101) {
                    assert_eq!(call(stale, 5), 0);
                }
            }
            assert!(ones.len() < 2 * REST && twos.len() < 2 * REST);
            assert!(ones.keys().all(|one| !twos.contains(one)));
        },
    );
}

/// Threads call pointers of domains that end meanwhile, whose places others get: each call is one
/// of a function of the type, or refused.
#[test]
fn calls_race_with_the_ends_of_their_domains() {
    succeeds_in_child("calls_race_with_the_ends_of_their_domains", || {
        const CYCLES: usize = 20_000;
        let images = [image(1), image(2), image(3)];
        let (current, done) = (AtomicUsize::new(0), AtomicBool::new(false));
        let calls: u32 = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let (mut answered, mut kept) = (0, 0);
                        while !done.load(SeqCst) {
                            let now = current.load(SeqCst);
                            for stub in [now, kept].into_iter().filter(|&s| s != 0) {
                                match call(stub, 100) {
                                    0 => {}
                                    101..=103 => answered += 1,
                                    other => panic!("{other}"),
                                }
                            }
                            kept = now;
                        }
                        answered
                    })
                })
                .collect();
            for i in 0..CYCLES {
                let builder = Domain::builder(&images[i % 3]).placement(Placement::Cold);
                let domain = builder.build().unwrap();
                current.store(pointer(&domain, "one"), SeqCst);
                for _ in 0..i % 7 * 20 {
                    std::hint::spin_loop();
                }
            }
            done.store(true, SeqCst);
            callers.into_iter().map(|c| c.join().unwrap()).sum()
        });
        assert!(calls > 0);
    });
}
