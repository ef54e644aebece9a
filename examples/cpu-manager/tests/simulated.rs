//! The controller alone, in simulated time: it converges, with and without a disturbance, and
//! nothing that it is told makes it do more than its bounds.

mod processor;

use postern::{Caller, Domain};
use postern_example_cpu_manager::manager::{Kind, MOST, Manager};
use postern_example_cpu_manager::share::Share;
use processor::{Shared, image, share};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;

const PAPER: [&str; 3] = ["40/400", "100/500", "60/200"];

/// A processor with clients, and one more process behind them, if it is disturbed.
fn clients(shares: &[&str], disturbed: bool) -> (Shared, Manager) {
    let processor = Shared::new(shares.len() + usize::from(disturbed));
    let manager = processor.manager();
    for (number, text) in shares.iter().enumerate() {
        manager.client(number, share(text)).expect("it fits");
    }
    (processor, manager)
}

/// What the clients got of so many milliseconds, in hundredths. The manager ticks every 10 ms; as a
/// thread it waits while the disturbance is real-time, as an upcall it does not.
fn run(processor: &Shared, manager: &Manager, milliseconds: u64, upcall: bool) -> Vec<f64> {
    let used = |p: &Shared| {
        p.lock()
            .processes
            .iter()
            .map(|p| p.used)
            .collect::<Vec<_>>()
    };
    let before = used(processor);
    for ms in 1..=milliseconds {
        let starved = {
            let mut processor = processor.lock();
            processor.run();
            processor.processes.iter().any(|p| p.real_time && p.active)
        };
        if ms % 10 == 0 && (upcall || !starved) {
            manager.tick().expect("a tick");
        }
    }
    let time = milliseconds as f64 * 1e4;
    let pairs = before.iter().zip(used(processor));
    pairs
        .map(|(before, after)| (after - before) as f64 / time)
        .collect()
}

fn assert_near(found: &[f64], shares: &[&str], by: f64) {
    for (found, text) in found.iter().zip(shares) {
        let target = share(text).part() * 100.0;
        assert!(
            (found - target).abs() <= by,
            "{text}: {found} % of {target} %"
        );
    }
}

#[test]
fn clients_get_their_shares() {
    let (processor, manager) = clients(&PAPER, false);
    run(&processor, &manager, 3000, true);
    assert_near(&run(&processor, &manager, 10_000, true), &PAPER, 1.0);
    let state = manager.state().expect("it is open");
    assert_eq!(state.ticks, 1300);
    assert!(
        state.processes[..3]
            .iter()
            .all(|p| p.late == 0 && p.refused == 0)
    );
    assert_eq!(state.processes[2].periods, 65);
}

#[test]
fn a_disturbance_is_lowered_by_who_can_interrupt_it() {
    let burst = |processor: &Shared, on: bool| {
        let mut processor = processor.lock();
        processor.processes[3].active = on;
        processor.processes[3].real_time = on;
    };
    let mut errors = [0.0; 2];
    for upcall in [false, true] {
        let (processor, manager) = clients(&PAPER, true);
        manager.background(3).expect("it fits");
        burst(&processor, false);
        run(&processor, &manager, 3000, upcall);
        for _ in 0..5 {
            burst(&processor, true);
            let found = run(&processor, &manager, 1000, upcall);
            errors[usize::from(upcall)] += (30.0 - found[2]).abs() / 5.0;
            burst(&processor, false);
            run(&processor, &manager, 1000, upcall);
        }
    }
    let [thread, upcall] = errors;
    assert!(thread > 29.0, "a thread was there in spite of it: {thread}");
    assert!(upcall < 3.0, "an upcall was not: {upcall}");
}

/// What was not had is made up for, at most four targets of it.
#[test]
fn what_was_lost_is_made_up_for() {
    let (processor, manager) = clients(&["60/200"], true);
    run(&processor, &manager, 2000, true);
    {
        let mut processor = processor.lock();
        processor.processes[1].real_time = true;
    }
    // It is no process of the background's: nobody lowers it.
    let during = run(&processor, &manager, 2000, true);
    assert_eq!(during[0], 0.0);
    processor.lock().processes[1].real_time = false;
    let after = run(&processor, &manager, 1000, true);
    assert!(after[0] > 33.0 && after[0] < 75.0, "{after:?}");
    run(&processor, &manager, 4000, true);
    assert_near(&run(&processor, &manager, 4000, true), &["60/200"], 1.0);
}

/// The guard: a timeslice grows only while the long average is at most twice the target.
#[test]
fn a_timeslice_does_not_grow_after_excess() {
    let processor = Shared::new(1);
    let manager = processor.manager();
    manager.client(0, share("20/100")).expect("it fits");
    let period = |used: i64| {
        let mut processor = processor.lock();
        processor.now += 100_000_000;
        processor.processes[0].used += used * 1_000_000;
        drop(processor);
        manager.tick().expect("a tick");
        manager.state().expect("it is open").processes[0]
    };
    for _ in 0..40 {
        period(90);
    }
    let mut last = period(90);
    assert!(last.average > 80_000 && last.slice == 1000, "{last:?}");
    let mut grown = 0;
    for _ in 0..60 {
        let next = period(0);
        if next.slice > last.slice {
            assert!(next.average <= 40_000, "{next:?}");
            grown += 1;
        }
        last = next;
    }
    assert!(grown > 0, "{last:?}");
}

#[test]
fn late_ticks_are_told() {
    let (processor, manager) = clients(&["10/100"], false);
    run(&processor, &manager, 1000, true);
    for _ in 0..450 {
        processor.lock().run();
    }
    manager.tick().expect("a tick");
    let state = manager.state().expect("it is open");
    assert_eq!(state.processes[0].late, 1);
    assert_eq!(state.widest, 460_000_000 - 10_000_000);
    run(&processor, &manager, 3000, true);
    assert_near(&run(&processor, &manager, 3000, true), &["10/100"], 1.0);
}

#[test]
fn processes_that_end_are_left_alone() {
    let (processor, manager) = clients(&PAPER, true);
    manager.background(3).expect("it fits");
    run(&processor, &manager, 1000, true);
    processor.lock().processes[0].ended = true;
    processor.lock().processes[3].ended = true;
    run(&processor, &manager, 3000, true);
    let state = manager.state().expect("it is open");
    let kinds: Vec<Kind> = state.processes[..5].iter().map(|p| p.kind).collect();
    assert_eq!(
        kinds,
        [
            Kind::Ended,
            Kind::Client,
            Kind::Client,
            Kind::Ended,
            Kind::None
        ]
    );
    assert_near(
        &run(&processor, &manager, 4000, true)[1..],
        &PAPER[1..],
        1.0,
    );
    // What has ended cannot be begun; another process can have the number.
    assert!(manager.client(0, share("40/400")).is_err());
    processor.lock().processes[0].ended = false;
    manager
        .client(0, share("40/400"))
        .expect("it is there again");
    manager.forget(1).expect("it is there");
    assert_eq!(
        manager.state().expect("it is open").processes[1].kind,
        Kind::None
    );
}

#[test]
fn refused_quotas_are_tried_again() {
    let processor = Shared::new(1);
    let manager = processor.manager();
    processor.lock().status = -13;
    manager.client(0, share("50/100")).expect("it fits");
    run(&processor, &manager, 1000, true);
    let refused = manager.state().expect("it is open").processes[0].refused;
    assert!(refused >= 10, "{refused}");
    processor.lock().status = 0;
    run(&processor, &manager, 8000, true);
    assert_near(&run(&processor, &manager, 2000, true), &["50/100"], 1.0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let processor = Shared::new(MOST);
    let manager = processor.manager();
    let big = u64::MAX;
    for (target, period) in [
        (0, 0),
        (0, 100_000),
        (1000, 0),
        (999, 1000),
        (2000, 1000),
        (1000, 1_000_001),
        (big, big),
        (1000, big),
        (1 << 63, 1_000_000),
    ] {
        let wrong = manager.client(0, Share { target, period });
        assert!(wrong.is_err(), "{target} of {period}");
    }
    for number in 0..MOST {
        manager.client(number, share("1/1")).expect("it fits");
    }
    for number in [MOST, MOST + 1, u32::MAX as usize] {
        assert!(manager.client(number, share("1/1")).is_err());
        assert!(manager.background(number).is_err());
        assert!(manager.forget(number).is_err());
    }
    for gains in [[-1, 0, 0], [0, 4097, 0], [0, 0, i32::MAX], [i32::MIN; 3]] {
        assert!(manager.gains(gains).is_err());
    }
    manager.gains([4096; 3]).expect("just so");
    run(&processor, &manager, 500, true);
    // The largest gains swing, within the bounds that the processor asserts.
    assert_eq!(
        manager.state().expect("it is open").processes[15].kind,
        Kind::Client
    );
}

/// Whatever clocks show, and whatever another process has written into the state, quotas stay
/// within their bounds and no tick faults.
#[test]
fn nonsense_stays_within_bounds() {
    let random = Mutex::new(fastrand::Rng::with_seed(7));
    let number = move || {
        let mut random = random.lock().expect("nobody panics with it");
        match random.u32(0..8) {
            0 => random.i64(..),
            1 => i64::MAX - random.i64(0..3),
            2 => i64::MIN + random.i64(0..3),
            3 => random.i64(-2..3),
            _ => random.i64(0..2_000_000_000_000),
        }
    };
    let number = std::sync::Arc::new(number);
    let (time, used, thread) = (number.clone(), number.clone(), number.clone());
    let builder = Domain::builder(&image())
        .service("manager_time", move |_: &Caller<'_>| time())
        .service("thread_time", move |_: &Caller<'_>| thread())
        .service("process_time", move |_: &Caller<'_>, _: u32| used())
        .service(
            "set_quota",
            |_: &Caller<'_>, process: u32, slice: u64, period: u64| {
                assert!((process as usize) < MOST);
                assert!((1000..=1_000_000).contains(&period), "{period}");
                assert!((1000..=period).contains(&slice), "{slice} of {period}");
                0i32
            },
        )
        .service("set_background", |_: &Caller<'_>, process: u32| {
            assert!((process as usize) < MOST);
            -1i32
        });
    let manager = Manager::build(builder).expect("a manager");
    let (place, size) = manager.place();
    for round in 0..3000 {
        for client in 0..MOST {
            // Some clocks of these say that there is no such process.
            let _ = manager.client(client, share("40/400"));
            let _ = (client % 4 == 3).then(|| manager.background(client));
        }
        for _ in 0..4 {
            manager.tick().expect("no tick faults");
        }
        if round % 2 == 1 {
            let words: Vec<u8> = (0..size / 8)
                .flat_map(|n| {
                    let word = if n % 15 == 9 { number() & 3 } else { number() };
                    word.to_le_bytes()
                })
                .collect();
            manager
                .domain()
                .write(place, &words)
                .expect("it is memory of the domain's");
            manager.tick().expect("no tick faults");
        }
    }
}

/// A tick whose thread has to wait in the middle keeps others away for 50 ms, and not for longer.
#[test]
fn a_turn_lapses() {
    static NOW: AtomicI64 = AtomicI64::new(1_000_000_000);
    let (stops, stopped) = mpsc::channel::<()>();
    let (goes_on, waits) = mpsc::channel::<()>();
    let hold = Mutex::new(Some((stops, waits)));
    let builder = Domain::builder(&image())
        .service("manager_time", |_: &Caller<'_>| NOW.load(Ordering::SeqCst))
        .service("thread_time", |_: &Caller<'_>| 0i64)
        .service("process_time", move |_: &Caller<'_>, _: u32| {
            if NOW.load(Ordering::SeqCst) > 2_000_000_000 {
                let held = hold.lock().expect("nobody panics with it").take();
                if let Some((stops, waits)) = held {
                    stops.send(()).expect("somebody waits");
                    waits.recv().expect("somebody tells");
                }
            }
            0i64
        })
        .service("set_quota", |_: &Caller<'_>, _: u32, _: u64, _: u64| 0i32)
        .service("set_background", |_: &Caller<'_>, _: u32| 0i32);
    let manager = Manager::build(builder).expect("a manager");
    for number in 0..3 {
        manager.client(number, share("10/100")).expect("it fits");
    }
    NOW.store(3_000_000_000, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| manager.tick());
        stopped.recv().expect("it stops");
        NOW.fetch_add(10_000_000, Ordering::SeqCst);
        manager.tick().expect("a tick");
        let state = manager.state().expect("it is open");
        assert_eq!((state.skipped, state.lapsed), (1, 0));
        assert_eq!(state.processes[1].periods, 0);
        NOW.fetch_add(50_000_000, Ordering::SeqCst);
        manager.tick().expect("a tick");
        let state = manager.state().expect("it is open");
        assert_eq!((state.skipped, state.lapsed), (1, 1));
        assert_eq!(state.processes[1].periods, 1);
        goes_on.send(()).expect("it waits");
        first.join().expect("no panic").expect("a tick");
    });
    let state = manager.state().expect("it is open");
    assert_eq!((state.ticks, state.processes[2].periods), (3, 1));
    // Nobody has the turn.
    NOW.fetch_add(1_000_000, Ordering::SeqCst);
    manager.tick().expect("a tick");
    assert_eq!(manager.state().expect("it is open").skipped, 1);
}

/// A manager that was closed can still be read.
#[test]
fn a_closed_manager_can_be_read() {
    let (processor, manager) = clients(&["10/100"], false);
    run(&processor, &manager, 1000, true);
    let poisoned = Domain::builder(&image())
        .service("manager_time", |caller: &Caller<'_>| {
            caller.abort("no time");
            0i64
        })
        .service("thread_time", |_: &Caller<'_>| 0i64)
        .service("process_time", |_: &Caller<'_>, _: u32| 0i64)
        .service("set_quota", |_: &Caller<'_>, _: u32, _: u64, _: u64| 0i32)
        .service("set_background", |_: &Caller<'_>, _: u32| 0i32);
    let poisoned = Manager::build(poisoned).expect("a manager");
    let error = poisoned.tick().expect_err("it has no time").to_string();
    assert!(error.contains("no time"), "{error}");
    assert_eq!(poisoned.state().expect("it can be read").ticks, 0);
}
