//! The window pool: nothing leaks, nothing is given out twice, and what does not fit says why.
mod support;
use postern::{Domain, HotWindow, Image, Placement, hot_window};
use std::collections::HashSet;
use support::{cold, image, in_child, succeeds_in_child};

fn small() -> Image {
    image(
        &[("f", "i()")],
        ".data\nn: .long 0\n.text\nf: incl %gs:n(,%eiz,1)\nmovl %gs:n(,%eiz,1),%eax\nret",
    )
}

fn call(d: &Domain) -> i32 {
    d.func::<fn() -> i32>("f").unwrap().call().unwrap()
}

#[test]
fn thousands_of_domains_leak_nothing() {
    succeeds_in_child("thousands_of_domains_leak_nothing", || {
        let i = small();
        for _ in 0..100 {
            call(&cold(&i).build().unwrap());
        }
        let before = (
            support::mappings(),
            support::descriptors(),
            support::threads(),
        );
        for round in 0..3000u64 {
            // Heaps of many sizes, so that clean windows of another shape cannot be taken as they
            // are.
            let d = cold(&i).heap((round % 7) * 4096).build().unwrap();
            assert_eq!(call(&d), 1);
            if round % 100 == 0 {
                let d = d.clone();
                std::thread::spawn(move || call(&d)).join().unwrap();
            }
        }
        let after = (
            support::mappings(),
            support::descriptors(),
            support::threads(),
        );
        // Clean windows that the image keeps have six mappings each.
        assert!(after.0 <= before.0 + 16 * 7, "{before:?} {after:?}");
        assert_eq!((after.1, after.2), (before.1, before.2));
        drop(i);
        assert!(
            support::descriptors() < before.1,
            "the image's file is closed"
        );
    });
}

#[test]
fn images_come_and_go() {
    succeeds_in_child("images_come_and_go", || {
        let make = |k: u32| image(&[("f", "i()")], &format!("f: movl ${k},%eax\nret"));
        let mut before = None;
        for k in 0..60 {
            let d = Domain::builder(&make(k)).build().unwrap();
            assert_eq!(call(&d), k as i32);
            drop(d);
            if k == 20 {
                before = Some((support::mappings(), support::descriptors()));
            }
        }
        let before = before.unwrap();
        let after = (support::mappings(), support::descriptors());
        assert!(
            after.0 <= before.0 + 4 && after.1 <= before.1,
            "{before:?} {after:?}"
        );
    });
}

#[test]
fn the_hot_window_is_given_once_and_comes_back() {
    succeeds_in_child("the_hot_window_is_given_once_and_comes_back", || {
        let i = small();
        if hot_window() == HotWindow::Occupied {
            return;
        }
        assert_eq!(hot_window(), HotWindow::Free);
        for _ in 0..20 {
            let cool = Domain::builder(&i)
                .placement(Placement::Cold)
                .build()
                .unwrap();
            assert!(!cool.is_hot());
            let first = Domain::builder(&i).build().unwrap();
            let second = Domain::builder(&i).build().unwrap();
            assert!(first.is_hot() && first.base() == 0 && !second.is_hot());
            assert_eq!(hot_window(), HotWindow::Taken);
            assert_eq!(
                (call(&cool), call(&first), call(&second), call(&first)),
                (1, 1, 1, 2)
            );
            drop(first);
            assert_eq!(hot_window(), HotWindow::Free);
            let third = Domain::builder(&i)
                .placement(Placement::Hot)
                .build()
                .unwrap();
            assert!(third.is_hot());
            assert_eq!(call(&third), 1);
        }
    });
}

#[test]
fn no_window_is_given_twice() {
    let i = small();
    let domains: Vec<_> = (0..500).map(|_| cold(&i).build().unwrap()).collect();
    let bases: HashSet<_> = domains.iter().map(|d| d.base()).collect();
    assert_eq!(bases.len(), 500);
    assert!(bases.iter().all(|b| b % (1 << 32) == 0 && *b != 0));
    assert!(domains.iter().all(|d| call(d) == 1));
    assert!(domains.iter().all(|d| call(d) == 2));
}

#[test]
fn too_little_address_space_says_so() {
    let output = in_child("too_little_address_space_says_so", || {
        let i = small();
        let limit = libc::rlimit {
            rlim_cur: 6 << 30,
            rlim_max: 6 << 30,
        };
        // SAFETY: sets a limit of this process.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
        match cold(&i).build() {
            Ok(_) => panic!("there is no room for a window"),
            Err(e) => eprintln!("SAID: {e}"),
        }
    });
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let said = text.lines().find(|l| l.contains("SAID")).unwrap();
    assert!(
        said.contains("ulimit -v") && said.contains("unlimited"),
        "{said}"
    );
}

/// A reset writes some pages anew and drops others: whatever was written, the next life finds first
/// values, in its second as in its hundredth.
#[test]
fn every_reset_leaves_first_values_whatever_was_written() {
    let i = image(
        &[("f", "i()")],
        ".data\nn: .long 7\n.skip 12000, 0x5a\n.bss\n.skip 9000\n.text
         f: incl %gs:n(,%eiz,1)\nmovl %gs:n(,%eiz,1),%eax\nret",
    );
    let d = cold(&i).heap(1 << 20).build().unwrap();
    let layout = d.image().tables().layout;
    let (start, end) = (layout.stack, layout.heap_start + (1 << 20));
    let len = (end - start) as usize;
    let fresh = d.read_vec(postern::Offset(start), len).unwrap();
    assert!(fresh.contains(&0x5a));
    let mut random = fastrand::Rng::with_seed(7);
    for life in 0..300 {
        assert_eq!(call(&d), 8);
        // Mostly the same few pages; now and then a page, or many, that no life before wrote.
        let extra = match life % 10 {
            9 => random.usize(1..60),
            _ => random.usize(0..2),
        };
        let same = [layout.data, layout.data + 4096, layout.heap_start + 8192];
        let other = (0..extra).map(|_| start + random.u32(0..(end - start) / 4096) * 4096);
        for page in same.into_iter().chain(other.collect::<Vec<_>>()) {
            let at = page + random.u32(0..4088);
            d.write(postern::Offset(at), &[0xee; 8]).unwrap();
        }
        d.reset().unwrap();
        if life % 3 == 0 || life > 290 {
            assert!(
                d.read_vec(postern::Offset(start), len).unwrap() == fresh,
                "{life}"
            );
        }
    }
}

/// The host may lock memory: pages that cannot be dropped must not survive a reset, nor reach the
/// next domain.
#[test]
fn locked_memory_is_wiped_all_the_same() {
    let i = small();
    for _ in 0..3 {
        let d = cold(&i).heap(1 << 16).build().unwrap();
        let layout = d.image().tables().layout;
        let (start, end) = (layout.stack, layout.heap_start + (1 << 16));
        let len = (end - start) as usize;
        let fresh = d.read_vec(postern::Offset(start), len).unwrap();
        assert_eq!(fresh.iter().filter(|&&b| b != 0).count(), 0);
        // SAFETY: locks mapped memory of the domain.
        if unsafe { libc::mlock((d.base() + u64::from(start)) as *const _, len) } != 0 {
            return;
        }
        d.write(postern::Offset(start), &vec![0x55; len]).unwrap();
        d.reset().unwrap();
        assert!(d.read_vec(postern::Offset(start), len).unwrap() == fresh);
        d.write(postern::Offset(start), &vec![0x66; len]).unwrap();
    }
}
