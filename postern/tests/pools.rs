//! Pools: who is lent what, what the next one sees, and what becomes of domains that fault. Time is
//! the test's own.
mod support;
use postern::{
    BackOff, CallError, Domain, Func, Image, InstantiateError, Lendable, Pool, PoolBuilder,
    PoolError, Recycle, RestartPolicy,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, OnceLock, mpsc};
use std::time::Duration;
use support::{code, cold, fork, image};

fn small() -> Image {
    image(
        &[("next", "i()"), ("trap", "v()"), ("spin", "v()")],
        ".data
         n: .long 0
         .text
         next: movl $1,%eax
            lock xaddl %eax,%gs:n(,%eiz,1)
            ret
         trap: ud2
         spin: jmp spin",
    )
}

/// A domain with its entries, as a host would keep them.
struct Handler {
    domain: Domain,
    next: Func<fn() -> i32>,
}

impl Lendable for Handler {
    fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl Handler {
    fn new(image: &Image) -> Result<Handler, Box<dyn std::error::Error + Send + Sync>> {
        let domain = cold(image).build()?;
        let next = domain.func("next")?;
        Ok(Handler { domain, next })
    }

    fn next(&self) -> i32 {
        self.next.call().unwrap()
    }

    fn trap(&self) {
        let e = self.domain.func::<fn()>("trap").unwrap().call();
        assert!(e.unwrap_err().fault().is_some());
    }
}

fn pool() -> PoolBuilder<Handler> {
    let image = small();
    Pool::builder(move || Handler::new(&image)).max_wait(Duration::ZERO)
}

#[test]
fn a_pool_of_no_size_is_refused() {
    let refused = pool().size(0).build();
    assert!(matches!(refused, Err(PoolError::NoSize)), "{refused:?}");
}

#[test]
fn the_next_one_sees_nothing_of_the_last() {
    let reset = pool().size(1).build().unwrap();
    let keep = pool().size(1).recycle(Recycle::Keep).build().unwrap();
    for round in 0..4 {
        assert_eq!(reset.with(|h| (h.next(), h.next())).unwrap(), (0, 1));
        assert_eq!(keep.with(Handler::next).unwrap(), round);
    }
    let (r, k) = (reset.counters(), keep.counters());
    assert_eq!((r.resets, k.resets), (4, 0));
    assert_eq!((r.made, r.taken, r.idle, r.in_use), (1, 4, 1, 0));
}

#[test]
fn domains_and_functions_can_be_lent_as_they_are() {
    let image = small();
    let i = image.clone();
    let domains = Pool::builder(move || cold(&i).build()).size(2).build();
    let domains: Pool = domains.unwrap();
    assert!(domains.with(|d| d.counters().calls).unwrap() == 0);
    let functions = Pool::builder(
        move || -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
            Ok(cold(&image).build()?.func::<fn() -> i32>("next")?)
        },
    );
    let functions = functions.size(1).build().unwrap();
    assert_eq!(functions.with(|f| f.call().unwrap()).unwrap(), 0);
    assert_eq!(functions.get_owned().unwrap().call().unwrap(), 0);
}

#[test]
fn a_full_pool_says_which_limit() {
    let p = pool().size(2).warm(0).build().unwrap();
    assert_eq!((p.counters().made, p.counters().size), (0, 2));
    let (a, b) = (p.get().unwrap(), p.get().unwrap());
    assert!(a.domain().base() != b.domain().base());
    assert_eq!((p.counters().made, p.counters().in_use), (2, 2));
    assert!(matches!(p.get(), Err(PoolError::TimedOut(Duration::ZERO))));
    drop(a);
    drop(p.get().unwrap());
    drop(b);
    assert_eq!((p.counters().in_use, p.counters().idle), (0, 2));
    assert_eq!(p.counters().refused, 1);

    let p = pool().size(1).max_waiting(0).build().unwrap();
    let a = p.get().unwrap();
    let e = p.get().map(|_| ()).unwrap_err();
    assert!(matches!(e, PoolError::Full(0)), "{e}");
    drop(a);
    assert!(p.get().is_ok());
}

#[test]
fn who_waits_is_served_in_turn() {
    let p = pool()
        .size(1)
        .max_wait(Duration::from_secs(60))
        .build()
        .unwrap();
    let lent = p.get().unwrap();
    let order = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..5)
        .map(|i| {
            let (p, order) = (p.clone(), order.clone());
            let waiting = p.counters().waiting;
            let (p2, before) = (p.clone(), waiting);
            let thread = std::thread::spawn(move || {
                let lent = p.get().unwrap();
                assert_eq!(order.fetch_add(1, SeqCst), i);
                assert_eq!(lent.next(), 0);
            });
            while p2.counters().waiting == before {
                std::thread::yield_now();
            }
            thread
        })
        .collect();
    drop(lent);
    for t in threads {
        t.join().unwrap();
    }
    let c = p.counters();
    assert_eq!((c.waited, c.waiting, c.in_use, c.idle), (5, 0, 0, 1));
}

#[test]
fn many_threads_share_few_domains() {
    for per_thread in [false, true] {
        let mut builder = pool().size(3).max_wait(Duration::from_secs(60));
        if per_thread {
            builder = builder.per_thread();
        }
        let p = builder.build().unwrap();
        let used = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..12)
            .map(|t| {
                let (p, used) = (p.clone(), used.clone());
                std::thread::spawn(move || {
                    for i in 0..200 {
                        let lent = p.get().unwrap();
                        assert!(used.fetch_add(1, SeqCst) < 3);
                        assert_eq!((lent.next(), lent.next()), (0, 1));
                        if (t + i) % 50 == 0 {
                            lent.trap();
                        }
                        used.fetch_sub(1, SeqCst);
                    }
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        let c = p.counters();
        assert_eq!((c.taken, c.in_use, c.waiting), (2400, 0, 0));
        assert_eq!((c.made, c.idle, c.restarts), (3, 3, 48), "{c:?}");
        assert_eq!(c.resets, 2400 - 48);
        // All three are there, and clean.
        let all: Vec<_> = (0..3).map(|_| p.get().unwrap()).collect();
        assert!(all.iter().all(|h| h.next() == 0));
    }
}

/// Entries and domains may be used on both sides of a `catch_unwind`.
#[test]
fn what_a_host_keeps_may_cross_a_panic() {
    fn crosses<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    crosses::<Func<fn(i32) -> i32>>();
    crosses::<Domain>();
    crosses::<Pool<Handler>>();
    let domain = cold(&small()).build().unwrap();
    let next = domain.func::<fn() -> i32>("next").unwrap();
    let caught = std::panic::catch_unwind(|| {
        assert_eq!(next.call().unwrap(), 0);
        panic!("the host's own");
    });
    assert!(caught.is_err());
    assert_eq!(next.call().unwrap(), 1);
}

/// A thread gets its own domain again, warm; others take it only when there is nothing else.
#[test]
fn a_thread_keeps_its_domain() {
    let p = pool()
        .size(2)
        .recycle(Recycle::Keep)
        .per_thread()
        .build()
        .unwrap();
    let mine = p.with(|h| h.domain().base()).unwrap();
    let (stay, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (q, s, g) = (p.clone(), stay.clone(), go.clone());
    let other = std::thread::spawn(move || {
        let theirs = q.with(|h| (h.next(), h.domain().base()).1).unwrap();
        s.wait();
        g.wait();
        theirs
    });
    stay.wait();
    for round in 0..3 {
        assert_eq!(
            p.with(|h| (h.domain().base(), h.next())).unwrap(),
            (mine, round)
        );
    }
    let c = p.counters();
    assert_eq!((c.idle, c.in_use, c.made), (2, 0, 2));
    // Two at once: the second is the other thread's.
    {
        let (a, b) = (p.get().unwrap(), p.get().unwrap());
        assert_eq!(a.domain().base(), mine);
        assert_eq!(b.next(), 1);
        assert!(matches!(p.get(), Err(PoolError::TimedOut(_))));
    }
    go.wait();
    assert!(other.join().unwrap() != mine);
    // What the thread that ended had is anybody's.
    let all: Vec<_> = (0..2).map(|_| p.get().unwrap()).collect();
    drop(all);
    assert_eq!((p.counters().idle, p.counters().made), (2, 2));
}

#[test]
fn faults_follow_the_restart_policy() {
    // Immediate, the default: the next one finds a domain that works.
    let p = pool().size(1).build().unwrap();
    for _ in 0..3 {
        p.with(Handler::trap).unwrap();
        assert_eq!(p.with(Handler::next).unwrap(), 0);
    }
    let c = p.counters();
    assert_eq!((c.restarts, c.made, c.abandoned), (3, 1, 0));

    // Never: the pool shrinks, and says so when nothing is left.
    let p = pool()
        .size(2)
        .restart(RestartPolicy::Never)
        .build()
        .unwrap();
    p.with(Handler::trap).unwrap();
    assert_eq!((p.counters().size, p.counters().abandoned), (1, 1));
    p.with(Handler::trap).unwrap();
    assert!(matches!(p.get(), Err(PoolError::Spent)));
    let c = p.counters();
    assert_eq!((c.size, c.idle, c.in_use, c.made), (0, 0, 0, 2));

    // Back-off: one rests, the other is lent; when both rest, callers hear for how long.
    let now = Arc::new(AtomicU64::new(1_000_000));
    let clock = now.clone();
    let mut back_off = BackOff::default();
    back_off.first = Duration::from_millis(10);
    back_off.give_up_after = Some(3);
    let p = pool()
        .size(2)
        .restart(RestartPolicy::BackOff(back_off))
        .clock(move || Duration::from_millis(clock.load(SeqCst)))
        .build()
        .unwrap();
    p.with(Handler::trap).unwrap();
    now.fetch_add(4, SeqCst);
    p.with(Handler::trap).unwrap();
    match p.get().map(|_| ()) {
        Err(PoolError::Resting(left)) => assert_eq!(left, Duration::from_millis(6)),
        other => panic!("{other:?}"),
    }
    now.fetch_add(6, SeqCst);
    {
        let lent = p.get().unwrap();
        assert_eq!(lent.next(), 0);
        assert!(matches!(p.get(), Err(PoolError::TimedOut(_))));
    }
    assert_eq!(p.counters().restarts, 1);
    p.with(Handler::trap).unwrap();
    now.fetch_add(20, SeqCst);
    p.with(Handler::trap).unwrap();
    now.fetch_add(40, SeqCst);
    while p.counters().size == 2 {
        p.with(Handler::trap).unwrap();
        now.fetch_add(40, SeqCst);
    }
    assert_eq!(p.counters().abandoned, 1);
}

/// A domain that somebody else is still inside of is not lent to the next one.
#[test]
fn domains_that_are_not_left_are_given_up() {
    let p = pool().size(1).build().unwrap();
    let inside = Arc::new(AtomicBool::new(false));
    let lent = p.get().unwrap();
    let kept = lent.domain().clone();
    let before = kept.counters().calls;
    let (spin, i) = (kept.func::<fn()>("spin").unwrap(), inside.clone());
    let thread = std::thread::spawn(move || {
        i.store(true, SeqCst);
        spin.call().unwrap_err()
    });
    while kept.counters().calls == before {
        std::thread::yield_now();
    }
    drop(lent);
    assert_eq!((p.counters().abandoned, p.counters().idle), (1, 0));
    assert_eq!(p.with(Handler::next).unwrap(), 0, "another one");
    assert_eq!(p.counters().made, 2);
    kept.interrupt();
    assert!(thread.join().unwrap().fault().is_some());
    // Closed by the host: the same.
    p.with(|h| h.domain().close()).unwrap();
    assert_eq!(p.counters().abandoned, 2);
    assert_eq!(p.with(Handler::next).unwrap(), 0);
}

#[test]
fn what_cannot_be_made_is_an_error_and_takes_no_room() {
    let image = image(&[("f", "v()")], "f: ret");
    let wants = support::code(&[("nobody", "v()")], &[("f", "v()")], "f: call nobody\nret").image();
    let broken = Arc::new(AtomicBool::new(true));
    let (b, i) = (broken.clone(), image.clone());
    let make = move || -> Result<Domain, InstantiateError> {
        cold(if b.load(SeqCst) { &wants } else { &i }).build()
    };
    let e = Pool::builder(make.clone()).build().unwrap_err();
    assert!(e.to_string().contains("`nobody`"), "{e}");
    let p = Pool::builder(make).size(1).warm(0).build().unwrap();
    for _ in 0..3 {
        assert!(matches!(p.get(), Err(PoolError::Make(_))));
    }
    broken.store(false, SeqCst);
    assert!(p.get().is_ok());
    // A panic, too.
    let panics = Pool::builder(|| -> Result<Domain, InstantiateError> { panic!("no") });
    let panics = panics.size(1).warm(0).build().unwrap();
    for _ in 0..2 {
        let got = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| panics.get().is_ok()));
        assert!(got.is_err());
    }
    let c = panics.counters();
    assert_eq!((c.in_use, c.idle, c.size), (0, 0, 1));
}

#[test]
fn replaced_and_closed_pools() {
    for per_thread in [false, true] {
        let mut builder = pool().size(2).recycle(Recycle::Keep);
        if per_thread {
            builder = builder.per_thread();
        }
        let p = builder.build().unwrap();
        assert_eq!(p.with(Handler::next).unwrap(), 0);
        let lent = p.get().unwrap();
        let other = image(&[("next", "i()")], "next: movl $77,%eax\nret");
        let without = image(&[("f", "i()")], "f: ret");
        // An image whose export is missing changes nothing.
        let e = p.replace(move || Handler::new(&without)).unwrap_err();
        assert!(e.to_string().contains("exports no `next`"), "{e}");
        p.replace(move || Handler::new(&other)).unwrap();
        assert_eq!(p.with(Handler::next).unwrap(), 77);
        assert_eq!(lent.next(), 1, "calls in the old one go on");
        drop(lent);
        let all: Vec<_> = (0..2).map(|_| p.get().unwrap()).collect();
        assert!(all.iter().all(|h| h.next() == 77));
        drop(all);
        let lent = p.get().unwrap();
        p.close();
        assert!(matches!(p.get(), Err(PoolError::Closed)));
        assert_eq!(lent.next(), 77);
        drop(lent);
        assert_eq!((p.counters().idle, p.counters().in_use), (0, 0));
    }
}

#[test]
fn pools_go_on_in_the_child() {
    support::succeeds_in_child("pools_go_on_in_the_child", || {
        for per_thread in [false, true] {
            let mut builder = pool().size(3);
            if per_thread {
                builder = builder.per_thread();
            }
            let p = builder.build().unwrap();
            let mine = p.get().unwrap();
            let (stay, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
            let (q, s, g) = (p.clone(), stay.clone(), go.clone());
            let other = std::thread::spawn(move || {
                let lent = q.get().unwrap();
                s.wait();
                g.wait();
                lent.next()
            });
            stay.wait();
            for _ in 0..2 {
                let status = fork(|| {
                    // One is lent to this thread, one went with the other thread, so two can be
                    // had.
                    assert_eq!(p.counters().in_use, 1);
                    let (a, b) = (p.get().unwrap(), p.get().unwrap());
                    assert_eq!((mine.next(), a.next(), b.next()), (0, 0, 0));
                    assert!(matches!(p.get(), Err(PoolError::TimedOut(_))));
                    drop((a, b));
                    let q = p.clone();
                    let t = std::thread::spawn(move || q.with(Handler::next).unwrap());
                    t.join().unwrap() == 0 && p.counters().idle == 2
                });
                assert_eq!(status, 0);
            }
            assert_eq!(p.counters().in_use, 2);
            go.wait();
            assert_eq!(other.join().unwrap(), 0);
            drop(mine);
            assert_eq!((p.counters().in_use, p.counters().idle), (0, 3));
        }
    });
}

/// Nothing stays with threads or with homes when a pool is gone.
#[test]
fn nothing_is_left_over() {
    support::succeeds_in_child("nothing_is_left_over", || {
        // With an arena of malloc for each thread, mappings would depend on how many threads met in
        // it. SAFETY: sets a number that malloc looks at.
        unsafe { assert_eq!(libc::mallopt(libc::M_ARENA_MAX, 1), 1) };
        let round = || {
            // With its image goes what the image keeps for later domains.
            let image = small();
            let met = Arc::new(Barrier::new(8));
            let p = Pool::builder(move || Handler::new(&image))
                .size(8)
                .per_thread()
                .max_wait(Duration::from_secs(60))
                .build()
                .unwrap();
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    let (p, met) = (p.clone(), met.clone());
                    std::thread::spawn(move || {
                        met.wait();
                        p.with(Handler::next).unwrap()
                    })
                })
                .collect();
            p.with(Handler::trap).unwrap();
            threads
                .into_iter()
                .for_each(|t| assert_eq!(t.join().unwrap(), 0));
        };
        round();
        let count = || {
            (
                support::mappings(),
                support::descriptors(),
                support::threads(),
            )
        };
        let before = count();
        for _ in 0..20 {
            round();
        }
        let after = count();
        assert!(after.0 <= before.0 + 4, "{before:?} {after:?}");
        assert_eq!((after.1, after.2), (before.1, before.2));
    });
}

/// A guard can be used and dropped by another thread.
#[test]
fn guards_move_between_threads() {
    let p = pool().size(1).per_thread().build().unwrap();
    let lent = p.get_owned().unwrap();
    std::thread::spawn(move || assert_eq!(lent.next(), 0))
        .join()
        .unwrap();
    assert_eq!(p.with(Handler::next).unwrap(), 0);
    let lent = p.get_owned().unwrap();
    drop(p);
    assert_eq!(lent.next(), 0);
    assert!(!matches!(lent.next.call(), Err(CallError::Closed)));
}

/// What was replaced while it was being cleaned is dropped without the pool's lock: destructors of
/// the host's may ask the pool.
#[test]
fn what_is_dropped_may_ask_the_pool() {
    static POOL: OnceLock<Pool<Asking>> = OnceLock::new();
    static REPLACE: AtomicBool = AtomicBool::new(false);
    static DROPPED: AtomicU64 = AtomicU64::new(0);
    struct Asking(Domain);
    impl Lendable for Asking {
        fn domain(&self) -> &Domain {
            &self.0
        }
    }
    impl Drop for Asking {
        fn drop(&mut self) {
            let idle = POOL.get().map(|pool| pool.counters().idle);
            DROPPED.fetch_add(u64::from(idle == Some(1)), SeqCst);
        }
    }
    fn make() -> Result<Asking, InstantiateError> {
        let init = "__postern_init: call s\n ret";
        let image = code(&[("s", "v()")], &[("__postern_init", "v()")], init).image();
        let replaces = |_: &postern::Caller<'_>| {
            if REPLACE.swap(false, SeqCst) {
                POOL.get().unwrap().replace(make).unwrap();
            }
        };
        cold(&image).service("s", replaces).build().map(Asking)
    }
    let pool = Pool::builder(make).size(1).build().unwrap();
    let pool = POOL.get_or_init(|| pool);
    let (done, wait) = mpsc::channel();
    let user = std::thread::spawn(move || {
        pool.with(|_| REPLACE.store(true, SeqCst)).unwrap();
        done.send(()).unwrap();
    });
    wait.recv_timeout(Duration::from_secs(60))
        .expect("nobody waits for the lock that it holds");
    user.join().unwrap();
    assert_eq!(DROPPED.load(SeqCst), 1);
    assert!(pool.get().is_ok());
}
