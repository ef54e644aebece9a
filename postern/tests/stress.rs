//! Everything at once, at random but repeatable: threads, faults, restarts, resets, interrupts,
//! closes, reloads, pools, shared areas, forks, nested calls. Afterwards everything still holds and
//! nothing has leaked.
//!
//! Each worker takes a fixed number of steps; `POSTERN_STRESS_SECONDS` lets them go on for so long
//! (`make stress` says 60), and `POSTERN_STRESS_SEED` makes them others.
mod support;
use fastrand::Rng;
use postern::{
    CallError, Caller, Domain, DomainBuilder, FaultKind, Image, Limits, Module, Placement, Pool,
    PoolError, Prot, Recycle, ReplaceError, RestartPolicy, Shared,
};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::{Duration, Instant};
use support::{code, succeeds_in_child};

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
    /// One whose domains stay as they are and belong to threads, one whose domains are reset.
    pools: [Pool; 2],
    module: Module,
    areas: Vec<Shared>,
    stop: AtomicBool,
    calls: AtomicU64,
    odd: Mutex<Option<String>>,
}

impl World {
    fn odd(&self, what: String) {
        self.odd.lock().unwrap().get_or_insert(what);
    }
}

fn make(world: &Weak<World>, image: &Image, choice: u64) -> Domain {
    configure(world, Domain::builder(image), choice)
        .build()
        .unwrap()
}

fn configure(world: &Weak<World>, builder: DomainBuilder, choice: u64) -> DomainBuilder {
    let mut limits = Limits::default();
    limits.heap = Some(64 << 10);
    limits.deadline = Some(Duration::from_millis(3 + choice % 5));
    limits.call_depth = choice.is_multiple_of(3).then_some(5000);
    let seed = AtomicU64::new(choice);
    let world = world.clone();
    builder
        .limits(limits)
        .restart(match choice % 2 {
            0 => RestartPolicy::Never,
            _ => RestartPolicy::Immediate,
        })
        .placement(if choice.is_multiple_of(4) {
            Placement::Hot
        } else {
            Placement::Cold
        })
        .service("hop", move |caller: &Caller<'_>| -> i64 {
            let Some(world) = world.upgrade() else {
                return 0;
            };
            let mut random = Rng::with_seed(seed.fetch_add(1, SeqCst) ^ choice);
            match random.usize(..12) {
                0 => caller.exit(3),
                1 => caller.abort("enough"),
                2 => std::panic::resume_unwind(Box::new("panic of a service")),
                3 => call_module(&world, &mut random),
                4..7 => {
                    // Somewhere else, or the same domain again.
                    let place = random.usize(..world.places.len());
                    let other = world.places[place].read().unwrap().clone();
                    let _ = act(&world, &other, &mut random);
                }
                _ => {}
            }
            1
        })
}

/// One call of the module's present version: it may fail for reasons of the call's own, never
/// because of a replacement.
fn call_module(world: &World, random: &mut Rng) {
    world.calls.fetch_add(1, SeqCst);
    let (a, b) = (random.u64(..) as i64 >> 20, random.u64(..) as i64 >> 20);
    let m = &world.module;
    let result = match random.usize(..30) {
        0 => m.func::<fn() -> i64>("trap").unwrap().call().map(|_| 0),
        1 => m.func::<fn() -> i64>("spin").unwrap().call().map(|_| 0),
        2 => m
            .func::<fn() -> i64>("count")
            .unwrap()
            .call()
            .map(|_| a + b),
        _ => m.func::<fn(i64, i64) -> i64>("add").unwrap().call(a, b),
    };
    match result {
        Ok(sum) if sum == a + b => {}
        Err(CallError::Fault(_) | CallError::Busy | CallError::TooDeep) => {}
        Err(CallError::Poisoned) => {
            let _ = m.domain().reset();
        }
        other => world.odd(format!("the module: {other:?}")),
    }
}

/// Replaces the module's version, with or without a hand-over.
fn reload(world: &World, random: &mut Rng) {
    let m = &world.module;
    let mut replacement = m
        .replacement(&world.images[random.usize(..2)])
        .probation(random.u32(..6))
        .drain(Duration::from_millis(random.u64(..4)));
    if random.bool() {
        replacement = replacement.end_stragglers();
    }
    if random.bool() {
        replacement = replacement.hand_over(|old, new| -> Result<(), CallError> {
            let count = |d: &Domain| d.func::<fn() -> i64>("count").unwrap().call();
            count(new)?;
            count(old).map(drop)
        });
    }
    match replacement.apply() {
        Ok(_) if random.usize(..4) == 0 => {
            m.roll_back();
        }
        Ok(_)
        | Err(ReplaceError::InProgress | ReplaceError::Busy(_) | ReplaceError::HandOver(_)) => {}
        Err(other) => world.odd(format!("a replacement: {other}")),
    }
}

/// Borrows a domain of a pool for a few calls.
fn borrow(world: &World, random: &mut Rng) {
    match world.pools[random.usize(..2)].get() {
        Ok(lent) => {
            for _ in 0..random.usize(..4) {
                let _ = act(world, &lent, random);
            }
        }
        Err(PoolError::TimedOut(_)) => {}
        Err(other) => world.odd(format!("a pool: {other}")),
    }
}

/// One random call; what comes back must be possible.
fn act(world: &World, d: &Domain, random: &mut Rng) -> Result<(), CallError> {
    world.calls.fetch_add(1, SeqCst);
    let (a, b) = (random.u64(..) as i64 >> 20, random.u64(..) as i64 >> 20);
    let name = [
        "mix", "mix", "add", "add", "add", "count", "null", "trap", "recurse", "overflow", "spin",
        "jump", "vector",
    ][random.usize(..13)];
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
            .call(random.u32(..))
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

fn worker(world: Arc<World>, seed: u64, steps: Option<u32>) {
    let mut random = Rng::with_seed(seed);
    let mut done = 0;
    while !world.stop.load(SeqCst) && steps.is_none_or(|steps| done < steps) {
        done += 1;
        let place = random.usize(..world.places.len());
        let d = world.places[place].read().unwrap().clone();
        match random.usize(..40) {
            0 => d.interrupt(),
            1 => {
                let _ = d.reset();
            }
            2 => {
                let new = make(
                    &Arc::downgrade(&world),
                    &world.images[random.usize(..2)],
                    random.u64(..),
                );
                *world.places[place].write().unwrap() = new;
                if random.bool() {
                    d.close();
                }
            }
            3 => {
                let world = world.clone();
                let seed = random.u64(..);
                std::thread::spawn(move || {
                    let mut random = Rng::with_seed(seed);
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        act(&world, &d, &mut random)
                    }));
                })
                .join()
                .unwrap();
            }
            4 => {
                let _ = d.counters();
                let _ = d.read_vec(postern::Offset(random.u32(..)), 64);
                let _ = (world.pools[0].counters(), world.module.counters());
            }
            5 => {
                let area = &world.areas[random.usize(..world.areas.len())];
                if let Ok(at) = d.share(area, Prot::ReadWrite) {
                    let _ = d.write(at, b"seen");
                }
            }
            6 => reload(&world, &mut random),
            7..18 => {
                let called =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        match random.usize(..2) {
                            0 => borrow(&world, &mut random),
                            _ => call_module(&world, &mut random),
                        }
                    }));
                // A panic is a service's.
                drop(called);
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

fn world() -> Arc<World> {
    let images = [image(false), image(true)];
    Arc::new_cyclic(|world: &Weak<World>| {
        let pool = |image: &Image| {
            let (world, image, made) = (world.clone(), image.clone(), AtomicU64::new(0));
            Pool::builder(move || -> Result<Domain, postern::InstantiateError> {
                let choice = made.fetch_add(2, SeqCst);
                configure(&world, Domain::builder(&image), choice).build()
            })
            .size(3)
            .warm(0)
            .max_wait(Duration::from_millis(2))
        };
        let own = world.clone();
        let module = Module::new(&images[0], move |builder| configure(&own, builder, 8));
        World {
            places: (0..6)
                .map(|i| RwLock::new(make(world, &images[i % 2], i as u64)))
                .collect(),
            pools: [
                pool(&images[0]).build().unwrap(),
                pool(&images[1])
                    .per_thread()
                    .recycle(Recycle::Keep)
                    .build()
                    .unwrap(),
            ],
            module: module.unwrap(),
            areas: (0..4).map(|_| Shared::new(5000).unwrap()).collect(),
            images,
            stop: false.into(),
            calls: 0.into(),
            odd: Mutex::default(),
        }
    })
}

/// A domain that nobody else uses works, after a reset if need be. A busy machine may miss a
/// deadline.
fn works(d: &Domain) {
    let add = d.func::<fn(i64, i64) -> i64>("add").unwrap();
    for _ in 0..100 {
        match add.call(40, 2) {
            Ok(sum) => return assert_eq!(sum, 42),
            Err(CallError::Poisoned) => {}
            Err(CallError::Fault(f)) if f.kind == FaultKind::Deadline => {}
            Err(other) => panic!("{other}"),
        }
        d.reset().unwrap();
    }
    panic!("it never meets its deadline");
}

/// In a child: new domains, the module and the pools work, whatever the parent's threads were
/// doing.
fn works_in_the_child(world: &World) -> bool {
    // SAFETY: ends a child that hangs.
    unsafe { libc::alarm(30) };
    let d = Domain::builder(&world.images[0])
        .service("hop", |_: &Caller<'_>| 1i64)
        .build()
        .unwrap();
    works(&d);
    let add = world.module.func::<fn(i64, i64) -> i64>("add").unwrap();
    match add.call(1, 2) {
        Ok(sum) => assert_eq!(sum, 3),
        Err(CallError::Poisoned) => {}
        Err(CallError::Fault(f)) => assert_eq!(f.kind, FaultKind::Deadline),
        Err(other) => panic!("{other}"),
    }
    works(&world.module.domain());
    for pool in &world.pools {
        works(&pool.get().unwrap());
    }
    true
}

/// What must hold when everybody has stopped.
fn check(world: &World) {
    assert_eq!(*world.odd.lock().unwrap(), None);
    // Nobody is inside: every domain can be reset, and works. (Some were closed on purpose, and
    // replaced.)
    let lent = world.pools.iter().map(|pool| pool.get().unwrap());
    let lent: Vec<Domain> = lent.map(|lent| lent.clone()).collect();
    world.module.confirm();
    let module = [world.module.domain()];
    let places = world
        .places
        .iter()
        .map(|place| place.read().unwrap().clone());
    for d in places.chain(module).chain(lent) {
        d.reset().unwrap();
        works(&d);
    }
    for pool in &world.pools {
        let c = pool.counters();
        assert_eq!((c.in_use, c.waiting), (0, 0), "{c:?}");
        assert_eq!(c.made, c.idle as u64 + c.abandoned, "{c:?}");
        assert!(c.idle <= c.size && c.size == 3, "{c:?}");
    }
    let c = world.module.counters();
    assert_eq!((c.draining, c.on_probation), (0, 0), "{c:?}");
    // The version is the last of those that were made, or one before that came back.
    assert!(
        c.version <= c.replaced + 1 && c.rolled_back <= c.replaced,
        "{c:?}"
    );
}

fn run(seconds: Option<u64>, steps: u32, seed: u64) {
    let world = world();
    let steps = seconds.is_none().then_some(steps);
    let left = Arc::new(AtomicUsize::new(8));
    let workers: Vec<_> = (0..8)
        .map(|i| {
            let (world, left) = (world.clone(), left.clone());
            std::thread::spawn(move || {
                worker(world, seed.wrapping_mul(100) + i, steps);
                left.fetch_sub(1, SeqCst);
            })
        })
        .collect();
    let until = seconds.map(|s| Instant::now() + Duration::from_secs(s));
    let mut forks = 0;
    while until.map_or(left.load(SeqCst) != 0, |until| Instant::now() < until) {
        assert_eq!(support::fork(|| works_in_the_child(&world)), 0);
        forks += 1;
        assert_eq!(*world.odd.lock().unwrap(), None);
        std::thread::sleep(Duration::from_millis(30));
    }
    world.stop.store(true, SeqCst);
    for w in workers {
        w.join().unwrap();
    }
    check(&world);
    let (calls, module) = (world.calls.load(SeqCst), world.module.counters());
    println!("{calls} calls, {forks} forks, {module:?}");
    println!("{:?}", world.pools[0].counters());
}

#[test]
fn everything_at_once() {
    succeeds_in_child("everything_at_once", || {
        let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse().ok());
        let seed = number("POSTERN_STRESS_SEED").unwrap_or(1);
        let count = || {
            (
                support::mappings(),
                support::descriptors(),
                support::threads(),
            )
        };
        run(None, 100, seed);
        let before = count();
        run(number("POSTERN_STRESS_SECONDS"), 300, seed + 1);
        let after = count();
        // Images keep some clean windows, and the heap of the host grows.
        assert!(after.0 <= before.0 + 60, "{before:?} {after:?}");
        assert!(
            after.1 <= before.1 && after.2 <= before.2,
            "{before:?} {after:?}"
        );
    });
}
