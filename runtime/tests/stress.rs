//! Everything at once, at random but repeatable: threads, faults, resets, interrupts, closes, forks, nested calls. Afterwards
//! everything still holds and nothing has leaked.
//!
//! `POSTERN_STRESS_SECONDS` and `POSTERN_STRESS_SEED` make it longer and other.
mod support;
use postern::{CallError, Caller, Domain, FaultKind, Image, Limits, Placement};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::{Duration, Instant};
use support::{code, succeeds_in_child};

/// A small generator (splitmix64), so that a seed is all there is to repeat.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

const SOURCE: &str = "
    .data
    .balign 8
    n: .quad 0
    .text
    mix: PUSH %rdi
        PUSH %rsi
        call hop
        POP %rsi
        POP %rdi
        addq %rdi,%rax
        addq %rsi,%rax
        ret
    add: leaq (%rdi,%rsi),%rax
        ret
    count: movl $1,%eax
        lock xaddq %rax,%gs:n(,%eiz,1)
        ret
    null: movq %gs:16(,%eiz,1),%rax
        ret
    trap: ud2
    recurse: call recurse
        ret
    overflow: leaq -256(%r15),%r15
        movq %rdi,%gs:(%r15d)
        call overflow
        ret
    spin: jmp spin
    jump: GUARDED %edi, jmp
    vector: mulsd %xmm1,%xmm0
        ret
";

fn image(vectors: bool) -> Image {
    let mut exports = vec![
        ("mix", "l(ll)"),
        ("add", "l(ll)"),
        ("count", "l()"),
        ("null", "l()"),
        ("trap", "l()"),
        ("recurse", "l()"),
        ("overflow", "l()"),
        ("spin", "l()"),
        ("jump", "l(p)"),
    ];
    let source = if vectors {
        exports.push(("vector", "d(dd)"));
        SOURCE.to_owned()
    } else {
        SOURCE.split("vector:").next().unwrap().to_owned()
    };
    code(&[("hop", "l()")], &exports, &source).image()
}

/// The domains that all threads know.
struct World {
    images: [Image; 2],
    places: Vec<RwLock<Domain>>,
    stop: AtomicBool,
    calls: AtomicU64,
    odd: Mutex<Option<String>>,
}

fn make(world: &Weak<World>, image: &Image, choice: u64) -> Domain {
    let mut limits = Limits::default();
    limits.heap = Some(64 << 10);
    limits.deadline = Some(Duration::from_millis(3 + choice % 5));
    limits.call_depth = (choice % 3 == 0).then_some(5000);
    let seed = AtomicU64::new(choice);
    let world = world.clone();
    Domain::builder(image)
        .limits(limits)
        .placement(if choice % 4 == 0 {
            Placement::Hot
        } else {
            Placement::Cold
        })
        .service("hop", move |caller: &Caller<'_>| -> i64 {
            let Some(world) = world.upgrade() else {
                return 0;
            };
            let mut random = Random(seed.fetch_add(1, SeqCst) ^ choice);
            match random.below(12) {
                0 => caller.exit(3),
                1 => caller.abort("enough"),
                2 => std::panic::resume_unwind(Box::new("panic of a service")),
                3..7 => {
                    // Somewhere else, or the same domain again.
                    let place = random.below(world.places.len());
                    let other = world.places[place].read().unwrap().clone();
                    let _ = act(&world, &other, &mut random);
                }
                _ => {}
            }
            1
        })
        .build()
        .unwrap()
}

/// One random call; what comes back must be possible.
fn act(world: &World, d: &Domain, random: &mut Random) -> Result<(), CallError> {
    world.calls.fetch_add(1, SeqCst);
    let (a, b) = (random.next() as i64 >> 20, random.next() as i64 >> 20);
    let name = [
        "mix", "mix", "add", "add", "add", "count", "null", "trap", "recurse", "overflow", "spin",
        "jump", "vector",
    ][random.below(13)];
    let result = match name {
        "mix" => d
            .func::<fn(i64, i64) -> i64>("mix")
            .unwrap()
            .call(a, b)
            .map(|r| assert_eq!(r, a + b + 1)),
        "add" => d
            .func::<fn(i64, i64) -> i64>("add")
            .unwrap()
            .call(a, b)
            .map(|r| assert_eq!(r, a + b)),
        "count" => d.func::<fn() -> i64>("count").unwrap().call().map(|_| ()),
        "jump" => d
            .func_unchecked::<fn(u32) -> i64>("jump")
            .unwrap()
            .call(random.next() as u32)
            .map(|_| ()),
        "vector" => match d.func::<fn(f64, f64) -> f64>("vector") {
            Ok(f) => f.call(a as f64, 2.0).map(|r| assert_eq!(r, a as f64 * 2.0)),
            Err(_) => Ok(()),
        },
        name => d
            .func::<fn() -> i64>(name)
            .unwrap()
            .call()
            .map(|_| panic!("{name} returned")),
    };
    if let Err(CallError::Fault(f)) = &result {
        let own = match name {
            "null" => f.kind == FaultKind::NullPointer,
            "trap" => f.kind == FaultKind::Trap,
            "recurse" => f.kind == FaultKind::ControlStackOverflow,
            "overflow" => f.kind == FaultKind::DataStackOverflow,
            "jump" => matches!(f.kind, FaultKind::BadJump),
            "mix" => matches!(f.kind, FaultKind::Aborted | FaultKind::ServiceStack),
            _ => false,
        };
        // A deadline, an interrupt or another thread's fault can come at any time.
        let other = matches!(
            f.kind,
            FaultKind::Deadline | FaultKind::Interrupted | FaultKind::AnotherThread
        );
        if !own && !other {
            world
                .odd
                .lock()
                .unwrap()
                .get_or_insert(format!("{name}: {f}"));
        }
    }
    result
}

fn worker(world: Arc<World>, seed: u64) {
    let mut random = Random(seed);
    while !world.stop.load(SeqCst) {
        let place = random.below(world.places.len());
        let d = world.places[place].read().unwrap().clone();
        match random.below(40) {
            0 => d.interrupt(),
            1 => {
                let _ = d.reset();
            }
            2 => {
                let new = make(
                    &Arc::downgrade(&world),
                    &world.images[random.below(2)],
                    random.next(),
                );
                *world.places[place].write().unwrap() = new;
                if random.below(2) == 0 {
                    d.close();
                }
            }
            3 => {
                let world = world.clone();
                let seed = random.next();
                std::thread::spawn(move || {
                    let mut random = Random(seed);
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        act(&world, &d, &mut random)
                    }));
                })
                .join()
                .unwrap();
            }
            4 => {
                let _ = d.counters();
                let _ = d.read_vec(postern::Offset(random.next() as u32), 64);
            }
            _ => {
                let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    act(&world, &d, &mut random)
                }));
                if matches!(called, Ok(Err(CallError::Fault(_) | CallError::Poisoned))) {
                    let _ = d.reset();
                }
            }
        }
    }
}

#[test]
fn everything_at_once() {
    succeeds_in_child("everything_at_once", || {
        let number = |name: &str, default| {
            std::env::var(name)
                .ok()
                .and_then(|v| v.parse().ok())
                .unwrap_or(default)
        };
        let seconds = number("POSTERN_STRESS_SECONDS", 20);
        let seed = number("POSTERN_STRESS_SEED", 1);
        let run = |seconds: u64, seed: u64| {
            let images = [image(false), image(true)];
            let world = Arc::new_cyclic(|world: &Weak<World>| World {
                places: (0..6)
                    .map(|i| RwLock::new(make(world, &images[i % 2], i as u64)))
                    .collect(),
                images,
                stop: false.into(),
                calls: 0.into(),
                odd: Mutex::default(),
            });
            let until = Instant::now() + Duration::from_secs(seconds);
            let workers: Vec<_> = (0..8)
                .map(|i| {
                    let world = world.clone();
                    std::thread::spawn(move || worker(world, seed.wrapping_mul(100) + i))
                })
                .collect();
            let mut forks = 0;
            while Instant::now() < until {
                std::thread::sleep(Duration::from_millis(100));
                let status = support::fork(|| {
                    // SAFETY: ends a child that hangs.
                    unsafe { libc::alarm(30) };
                    let d = Domain::builder(&world.images[0])
                        .service("hop", |_: &Caller<'_>| 1i64)
                        .build()
                        .unwrap();
                    d.func::<fn(i64, i64) -> i64>("mix")
                        .unwrap()
                        .call(20, 21)
                        .unwrap()
                        == 42
                });
                assert_eq!(status, 0);
                forks += 1;
                assert_eq!(*world.odd.lock().unwrap(), None);
            }
            world.stop.store(true, SeqCst);
            for w in workers {
                w.join().unwrap();
            }
            // Every domain works after a reset, or was closed on purpose and replaced.
            for place in &world.places {
                let d = place.read().unwrap().clone();
                d.reset().unwrap();
                assert_eq!(
                    d.func::<fn(i64, i64) -> i64>("add")
                        .unwrap()
                        .call(40, 2)
                        .unwrap(),
                    42
                );
                assert_eq!(d.func::<fn() -> i64>("count").unwrap().call().unwrap(), 0);
            }
            println!("{} calls, {forks} forks", world.calls.load(SeqCst));
            assert_eq!(*world.odd.lock().unwrap(), None);
        };
        run(1, seed);
        let before = (
            support::mappings(),
            support::descriptors(),
            support::threads(),
        );
        run(seconds, seed + 1);
        let after = (
            support::mappings(),
            support::descriptors(),
            support::threads(),
        );
        assert!(after.0 <= before.0 + 60, "{before:?} {after:?}");
        assert!(
            after.1 <= before.1 && after.2 <= before.2,
            "{before:?} {after:?}"
        );
    });
}
