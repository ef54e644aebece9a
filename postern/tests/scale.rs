//! Many of everything: domains, shared areas, threads. Each test has a process of its own, because
//! mappings, descriptors and threads are counted for each process.
mod support;
use postern::{CallError, Domain, Image, Limits, Prot, Shared};
use std::sync::{Arc, Barrier};
use support::{cold, image, succeeds_in_child};

fn small() -> Image {
    image(
        &[("f", "i()"), ("put", "v(pi)"), ("trap", "v()")],
        ".data
         n: .long 0
         .text
         f: incl %gs:n(,%eiz,1)
            movl %gs:n(,%eiz,1),%eax
            ret
         put: movl %esi,%gs:(%edi)
            ret
         trap: ud2",
    )
}

fn call(d: &Domain) -> i32 {
    d.func::<fn() -> i32>("f").unwrap().call().unwrap()
}

/// Under the default limit of mappings, with a shared area for every tenth.
#[test]
fn ten_thousand_domains_and_a_thousand_areas() {
    succeeds_in_child("ten_thousand_domains_and_a_thousand_areas", || {
        // An area is a memory file; the usual soft limit of descriptors is 1,024.
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: reads and raises a limit of this process.
        unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            limit.rlim_cur = limit.rlim_max.min(4096);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
        let i = small();
        // The first domain that goes opens what tells its pages.
        drop(cold(&i).build().unwrap());
        let before = support::descriptors();
        for round in 0..2 {
            let domains: Vec<_> = (0..10_000).map(|_| cold(&i).build().unwrap()).collect();
            let areas: Vec<_> = (0..1000).map(|_| Shared::new(100).unwrap()).collect();
            for (n, area) in areas.iter().enumerate() {
                let d = &domains[n * 10];
                let at = d.share(area, Prot::ReadWrite).unwrap();
                let put = d.func::<fn(postern::Offset, i32)>("put").unwrap();
                put.call(at, n as i32).unwrap();
                // SAFETY: the host's view of a living area.
                let seen = unsafe { area.as_ptr().cast::<i32>().read_volatile() };
                assert_eq!(seen, n as i32);
            }
            assert!(domains.iter().all(|d| call(d) == 1), "{round}");
            // One faults, and no other notices.
            let e = domains[5000].func::<fn()>("trap").unwrap().call();
            assert!(e.unwrap_err().fault().is_some());
            let others = domains.iter().rev().filter(|d| !d.is_poisoned());
            assert_eq!(others.map(call).filter(|&n| n == 2).count(), 9999);
        }
        assert_eq!(support::descriptors(), before);
    });
}

/// A thousand threads in one domain at once, with a stack of their own each.
#[test]
fn a_thousand_threads_in_one_domain() {
    succeeds_in_child("a_thousand_threads_in_one_domain", || {
        const THREADS: usize = 1000;
        let i = small();
        let d = cold(&i).build().unwrap();
        for _ in 0..2 {
            let together = Arc::new(Barrier::new(THREADS));
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (d, together) = (d.clone(), together.clone());
                    let thread = std::thread::Builder::new().stack_size(128 << 10);
                    let body = move || {
                        let f = d.func::<fn() -> i32>("f").unwrap();
                        f.call().unwrap();
                        together.wait();
                        f.call().unwrap();
                        together.wait();
                    };
                    thread.spawn(body).unwrap()
                })
                .collect();
            threads.into_iter().for_each(|t| t.join().unwrap());
        }
        assert_eq!(d.counters().calls, 4 * THREADS as u64);
    });
}

/// A limit that is reached has a name, says what to raise, and harms no other domain.
#[test]
fn threads_beyond_the_limits() {
    succeeds_in_child("threads_beyond_the_limits", || {
        let i = small();
        let mut limits = Limits::default();
        limits.threads = 100;
        let few = cold(&i).limits(limits).build().unwrap();
        let free = cold(&i).build().unwrap();
        // Nearly all of the window is heap: no room for many stacks.
        let narrow = cold(&i).heap((4 << 30) - (16 << 20)).build().unwrap();
        let together = Arc::new(Barrier::new(300));
        let threads: Vec<_> = (0..300)
            .map(|_| {
                let (few, free, narrow) = (few.clone(), free.clone(), narrow.clone());
                let together = together.clone();
                let thread = std::thread::Builder::new().stack_size(128 << 10);
                let body = move || {
                    let of = |d: &Domain| d.func::<fn() -> i32>("f").unwrap().call();
                    let results = (of(&few), of(&narrow));
                    of(&free).unwrap();
                    together.wait();
                    results
                };
                thread.spawn(body).unwrap()
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let refused = |e: &CallError| matches!(e, CallError::TooManyThreads);
        assert_eq!(
            results
                .iter()
                .filter(|r| r.0.as_ref().is_err_and(refused))
                .count(),
            200
        );
        let e = results.iter().find_map(|r| r.0.as_ref().err()).unwrap();
        assert!(e.to_string().contains("Limits::threads"), "{e}");
        let narrow = |e: &CallError| matches!(e, CallError::NoDataStack);
        let left_out = results.iter().filter_map(|r| r.1.as_ref().err());
        let left_out: Vec<_> = left_out.collect();
        assert!(!left_out.is_empty() && left_out.into_iter().all(narrow));
    });
}
