//! Grants that are taken back while calls are under way, by other threads or by the call itself.

use super::*;

#[test]
fn calls_that_are_inside_go_on_and_new_ones_see_the_revocation() {
    let (entered, leave) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (tell, wait) = (entered.clone(), leave.clone());
    let domain = support::cold(image())
        .deadline(None)
        .service("add", move |_: &Caller<'_>, x: i32, y: i32| {
            tell.store(true, Ordering::SeqCst);
            while !wait.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            x + y
        })
        .build()
        .unwrap();
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| sum(&domain, 20, 3));
        while !entered.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let why = taken(domain.revoke_at_once(&add()));
        assert!(matches!(why, Reluctance::NotAsked), "{why}");
        assert_eq!(sum(&domain, 20, 3).unwrap(), 0);
        leave.store(true, Ordering::SeqCst);
        assert_eq!(inside.join().unwrap().unwrap(), 23);
    });
    assert_eq!(domain.counters().denied_services["add"], 1);
}

/// Threads call the service all the time, and each call says whether it found the service revoked
/// at its beginning or at its end.
fn no_call_is_left(
    domain: &Domain,
    function: &str,
    revoked: &AtomicBool,
    seen: &AtomicU32,
    grant: &Grant,
) {
    const ROUNDS: u32 = 100;
    let stop = AtomicBool::new(false);
    let made = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let call = domain.func::<fn(i32, i32) -> i32>(function).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    call.call(20, 3).unwrap();
                    made.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..ROUNDS {
            domain.revoke(grant, Duration::ZERO).unwrap();
            revoked.store(true, Ordering::SeqCst);
            // Whoever is late is seen now.
            let now = made.load(Ordering::Relaxed);
            while made.load(Ordering::Relaxed) < now + 3 {
                std::thread::yield_now();
            }
            revoked.store(false, Ordering::SeqCst);
            domain.restore(grant).unwrap();
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(seen.load(Ordering::SeqCst), 0);
    assert!(made.load(Ordering::SeqCst) > ROUNDS);
}

#[test]
fn no_call_is_in_a_service_or_begins_it_after_its_revocation() {
    let revoked: Arc<AtomicBool> = Arc::default();
    let seen: Arc<AtomicU32> = Arc::default();
    let (look, count) = (revoked.clone(), seen.clone());
    let domain = support::cold(image())
        .deadline(None)
        .service("add", move |_: &Caller<'_>, x: i32, y: i32| {
            let late = look.load(Ordering::SeqCst);
            // The widest window is that of a thread which is not running.
            if x & 1 == 0 {
                std::thread::yield_now();
            }
            let late = late || look.load(Ordering::SeqCst);
            count.fetch_add(u32::from(late), Ordering::SeqCst);
            x + y
        })
        .build()
        .unwrap();
    no_call_is_left(&domain, "sum", &revoked, &seen, &add());
}

#[test]
fn no_call_is_in_a_peer_or_begins_it_after_its_revocation() {
    let revoked: Arc<AtomicBool> = Arc::default();
    let seen: Arc<AtomicU32> = Arc::default();
    let (look, count) = (revoked.clone(), seen.clone());
    let peer = support::cold(image())
        .deadline(None)
        .service("add", move |_: &Caller<'_>, x: i32, y: i32| {
            count.fetch_add(u32::from(look.load(Ordering::SeqCst)), Ordering::SeqCst);
            x + y
        })
        .build()
        .unwrap();
    let domain = support::cold(image())
        .deadline(None)
        .peer("add", &peer.peer_export("sum").unwrap())
        .build()
        .unwrap();
    no_call_is_left(&domain, "sum", &revoked, &seen, &add());
    assert!(!domain.is_poisoned() && !peer.is_poisoned());
}

#[test]
fn services_that_revoke_themselves_on_two_threads_do_not_wait_for_each_other() {
    let both = Arc::new(std::sync::Barrier::new(2));
    let meet = both.clone();
    let domain = support::cold(image())
        .deadline(None)
        .service("add", move |caller: &Caller<'_>, x: i32, y: i32| {
            meet.wait();
            match caller.domain().revoke(&add(), Duration::ZERO) {
                Ok(Revoked::Taken(Reluctance::NotAsked)) | Err(RevokeError::NotGranted(_)) => x + y,
                other => panic!("{other:?}"),
            }
        })
        .build()
        .unwrap();
    for _ in 0..50 {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(sum(&domain, 20, 3).unwrap(), 23));
            }
        });
        assert_eq!(sum(&domain, 20, 3).unwrap(), 0);
        domain.restore(&add()).unwrap();
    }
}

/// A program that sleeps would keep whoever takes its system calls waiting.
#[test]
fn system_calls_that_wait_end_when_they_are_revoked() {
    let domain = support::cold(image())
        .deadline(None)
        .policy(Policy::compute())
        .build();
    assert!(domain.is_err(), "add is wanted");
    let domain = tenant(Policy::compute());
    let forever = [1_000_000i64, 0].map(i64::to_le_bytes).concat();
    let memory = domain.func::<fn() -> Offset>("memory").unwrap();
    let memory = memory.call().unwrap();
    domain.write(memory, &forever).unwrap();
    std::thread::scope(|scope| {
        let asleep = scope
            .spawn(|| sys(&domain, libc::SYS_nanosleep, [memory.0.into(), 0, 0, 0, 0]).unwrap());
        while domain.counters().services["sys"] == 0 {
            std::thread::yield_now();
        }
        domain
            .revoke(&Grant::Service("sys".into()), Duration::ZERO)
            .unwrap();
        assert_eq!(asleep.join().unwrap(), -i64::from(libc::ECANCELED));
    });
}

#[test]
fn revoking_and_restoring_while_threads_call() {
    let domain = support::cold(image())
        .deadline(None)
        .service("add", |_: &Caller<'_>, x: i32, y: i32| x + y)
        .build()
        .unwrap();
    let other = tenant(Policy::none());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| domain.func::<fn()>("go_on").unwrap().call().unwrap());
        }
        for round in 0..200 {
            set(&domain, round % 2);
            domain.revoke(&add(), LONG).unwrap();
            if round % 3 == 0 {
                let deny = Decider::closure(|_: &Caller<'_>, _: &Question<'_>| Verdict::Deny(1));
                domain.set_decider(Some(deny));
            }
            domain.restore(&add()).unwrap();
            domain.set_decider(None);
            assert_eq!(sum(&other, 20, 3).unwrap(), 23);
        }
        domain.func::<fn()>("finish").unwrap().call().unwrap();
    });
    assert_eq!(domain.repossessed().len(), 100);
    assert_eq!(sum(&domain, 20, 3).unwrap(), 23);
}

#[test]
fn a_service_may_revoke_itself_and_its_deadline_is_the_upcalls_own() {
    // The call that waits is older than the upcall's time; only the upcall is interrupted.
    let calls = Arc::new(AtomicU32::new(0));
    let count = calls.clone();
    let domain = support::cold(image())
        .deadline(None)
        .service("add", move |caller: &Caller<'_>, x: i32, y: i32| {
            count.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(30));
            let why = taken(caller.domain().revoke(&add(), Duration::from_millis(10)));
            assert!(matches!(why, Reluctance::Late), "{why}");
            x + y
        })
        .build()
        .unwrap();
    set(&domain, 2);
    assert_eq!(sum(&domain, 20, 3).unwrap(), 23);
    assert_eq!(sum(&domain, 20, 3).unwrap(), 0);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn the_domains_own_deadline_shortens_the_upcalls() {
    let domain = support::cold(image())
        .deadline(Some(Duration::from_millis(20)))
        .service("add", |_: &Caller<'_>, x: i32, y: i32| x + y)
        .build()
        .unwrap();
    set(&domain, 2);
    let why = taken(domain.revoke(&add(), LONG));
    assert!(matches!(why, Reluctance::Late), "{why}");
    assert!(!domain.is_poisoned());
}

#[test]
fn an_area_goes_while_another_thread_reads_it() {
    let domain = support::cold(image())
        .deadline(None)
        .service("add", |_: &Caller<'_>, x: i32, y: i32| x + y)
        .build()
        .unwrap();
    let other = tenant(Policy::none());
    let area = Shared::new(8192).unwrap();
    domain.share(&area, Prot::ReadWrite).unwrap();
    other.share(&area, Prot::Read).unwrap();
    area.write(0, &[7]).unwrap();
    let (grant, place) = (Grant::Area(area.offset()), area.offset());
    let read = domain.func::<fn(Offset) -> i32>("read_all").unwrap();
    assert_eq!(read.call(place).unwrap(), 7);
    assert_eq!(domain.grants().areas[0].1, place);
    set(&domain, 1);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let watch = domain.func::<fn(Offset)>("read_for_ever").unwrap();
            watch.call(place).unwrap_err()
        });
        while domain.counters().services.get("add") == Some(&0) {
            std::thread::yield_now();
        }
        let why = taken(domain.revoke(&grant, LONG));
        assert!(matches!(why, Reluctance::Refused(-3)), "{why}");
        assert_eq!(domain.repossessed()[0].grant, grant);
        let error = reader.join().unwrap();
        let fault = error.fault().unwrap();
        assert_eq!((fault.kind, fault.address), (FaultKind::Read, Some(place)));
    });
    domain.reset().unwrap();
    let error = read.call(place).unwrap_err();
    assert_eq!(error.fault().unwrap().kind, FaultKind::Read);
    assert!(domain.grants().areas.is_empty());
    assert!(matches!(
        domain.revoke(&grant, LONG),
        Err(RevokeError::NotGranted(_))
    ));
    // Nobody else notices: not the host, not the other domain.
    let read = other.func::<fn(Offset) -> i32>("read_all").unwrap();
    assert_eq!(read.call(place).unwrap(), 7);
    let mut byte = [0];
    area.read(0, &mut byte).unwrap();
    assert_eq!(byte, [7]);
    domain.reset().unwrap();
    domain.share(&area, Prot::Read).unwrap();
    let read = domain.func::<fn(Offset) -> i32>("read_all").unwrap();
    assert_eq!(read.call(place).unwrap(), 7);
    assert!(matches!(domain.revoke(&grant, LONG), Ok(Revoked::Returned)));
    assert_eq!(text(&domain, "last_asked"), place.to_string());
}
