//! Random accepted code through the real gates: images of random sequences, services that call on,
//! many threads, deadlines, interrupts and signals at random moments. After every call the host's
//! registers, stack and control words are as before.
//!
//! `POSTERN_SOUNDNESS_SECONDS=n` goes on for n seconds with other seeds.

use fastrand::Rng;
use postern::{CallError, Caller, Domain, Image, Limits, Placement};
use postern_image::ImageBuilder;
use postern_soundness::host::{self, HostCall};
use postern_soundness::instruction::Encoder;
use postern_soundness::random::Draw;
use postern_soundness::snippet;
use postern_soundness::window::{DATA, DATA_END, IMPORTS};
use postern_verifier::window::text_start;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, RwLock};
use std::time::{Duration, Instant};

const THREADS: usize = 4;
const FUNCTIONS: usize = 24;
const CALLS: usize = 400;

static SIGNALS: AtomicU64 = AtomicU64::new(0);
static CANARIES: [AtomicU64; 512] = [const { AtomicU64::new(CANARY) }; 512];
const CANARY: u64 = 0xca9a_41e5_0000_1111;
/// Domains that all threads call, and that services call.
static SHARED: RwLock<Vec<Domain>> = RwLock::new(Vec::new());

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// A host's handler that uses every kind of register, as compiled code may, and some stack.
extern "C" fn on_signal(_: i32) {
    let n = SIGNALS.load(Ordering::Relaxed);
    let x = (n as f64).sqrt().mul_add(1.5, 2.5).sin();
    let mut words = [x; 32];
    words[n as usize % 32] += std::hint::black_box(x);
    std::hint::black_box(words);
}

fn install() {
    let compiled = on_signal as *const ();
    let handlers = [
        (
            libc::SIGUSR1,
            host::scribbler(),
            libc::SA_RESTART | libc::SA_ONSTACK,
        ),
        (libc::SIGUSR2, compiled, libc::SA_RESTART | libc::SA_ONSTACK),
    ];
    for (signal, handler, flags) in handlers {
        // SAFETY: the handlers only compute, in registers that the system restores and in their own
        // frames.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = flags;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// An image of random functions f0, f1, …, and `ok`, which adds one.
fn image(random: &mut Rng, encoder: &Encoder) -> Image {
    let mut builder = ImageBuilder::new([]);
    for k in 0..IMPORTS {
        builder.import(format!("s{k}"), None);
    }
    let mut text = Vec::new();
    for f in 0..FUNCTIONS {
        let position = text.len() as u32;
        builder.export(format!("f{f}"), position, None);
        text.extend(snippet::sequence(encoder, random, text_start(IMPORTS) + position).bytes);
    }
    builder.export("ok", text.len() as u32, Some("i(i)".parse().unwrap()));
    text.extend([0x8d, 0x47, 0x01, 0xc3]);
    builder.text(text).x87(true).stack_log2(16);
    Image::from_bytes(&builder.build().unwrap())
        .unwrap_or_else(|e| panic!("accepted alone, refused together: {e}"))
}

/// Calls some function of a domain from a service, if the nesting is not deep already.
fn call_on(domain: &Domain, a: i64, b: i64) -> i64 {
    let depth = DEPTH.get();
    if depth >= 3 {
        return a ^ b;
    }
    DEPTH.set(depth + 1);
    let name = format!("f{}", a.unsigned_abs() as usize % FUNCTIONS);
    let result = domain
        .func_unchecked::<fn(i64, i64) -> i64>(&name)
        .unwrap()
        .call(b, a);
    DEPTH.set(depth);
    result.unwrap_or(-1)
}

fn domain(image: &Image, random: &mut Rng) -> Domain {
    let mut limits = Limits::default();
    limits.heap = Some(u64::from(DATA_END));
    limits.deadline = Some(Duration::from_millis(3));
    limits.call_depth = random.chance(25).then_some(64);
    let builder = Domain::builder(image)
        .limits(limits)
        .placement(random.pick(&[Placement::Hot, Placement::Cold]))
        .service("s0", |_: &Caller<'_>, a: i64| a.wrapping_mul(3))
        .service("s1", |_: &Caller<'_>, a: f64, b: f32| a + f64::from(b))
        .service("s2", |caller: &Caller<'_>, a: i64, b: i64| {
            call_on(&caller.domain(), a, b)
        })
        .service("s3", |_: &Caller<'_>, a: i64, b: i64| {
            let shared = SHARED.read().unwrap().clone();
            call_on(&shared[b.unsigned_abs() as usize % shared.len()], a, b)
        })
        .service("s4", |caller: &Caller<'_>, a: i32| {
            if a & 7 == 0 {
                caller.exit(a);
            }
        })
        .service("s5", |caller: &Caller<'_>, a: i32| {
            if a & 15 == 1 {
                caller.abort("by the service");
            }
        })
        .service(
            "s6",
            |caller: &Caller<'_>, at: postern::Offset, len: u32| {
                let bytes = caller.domain().read_vec(at, len as usize % 64);
                bytes.map_or(0, |b| b.len() as u32)
            },
        );
    // SAFETY: the function takes anything, from any thread, and only returns.
    let builder =
        unsafe { builder.service_c("s7", host::scribbler(), "l(l)".parse().unwrap(), 4096) };
    builder.build().unwrap()
}

#[derive(Default)]
struct Tally(BTreeMap<String, u64>);

impl Tally {
    fn note(&mut self, error: Option<&CallError>) {
        let what = match error {
            None => "returned".to_string(),
            Some(CallError::Fault(fault)) => format!("{:?}", fault.kind),
            Some(CallError::Exited(_)) => "Exited".to_string(),
            Some(other) => format!("{other:?}"),
        };
        *self.0.entry(what).or_default() += 1;
    }
}

/// One worker's life: image after image, call after call.
fn work(seed: u64, rounds: impl Fn(u64) -> bool) -> Tally {
    let encoder = Encoder::default();
    let mut random = Rng::with_seed(seed);
    let mut tally = Tally::default();
    let mut round = 0;
    while rounds(round) {
        round += 1;
        let image = image(&mut random, &encoder);
        let own = domain(&image, &mut random);
        if random.chance(10) {
            let place = random.usize(..SHARED.read().unwrap().len());
            let old = std::mem::replace(&mut SHARED.write().unwrap()[place], own.clone());
            drop(old);
        }
        for _ in 0..CALLS {
            let shared = random.chance(15).then(|| random.pick(&[0, 1]));
            let domain = shared.map_or_else(|| own.clone(), |i| SHARED.read().unwrap()[i].clone());
            call(&domain, &mut random, &mut tally);
            if domain.is_poisoned() {
                // Others may be inside a shared one.
                let _ = domain.reset();
            }
        }
        // Whatever happened in it, the domain works after a reset, if nobody shares it.
        while own.reset().is_err() {
            std::thread::yield_now();
        }
        let ok = own.func::<fn(i32) -> i32>("ok").unwrap();
        match ok.call(41) {
            Ok(value) => assert_eq!(value, 42),
            // The storm of interrupts, or another thread in a shared one.
            Err(error) => tally.note(Some(&error)),
        }
    }
    tally
}

fn call(domain: &Domain, random: &mut Rng, tally: &mut Tally) {
    let name = format!("f{}", random.usize(..FUNCTIONS));
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = match random.u32(..6) {
            0 => random.u64(..),
            1 => u64::from(random.u32(..256)),
            2 => std::ptr::from_ref(&CANARIES) as u64 + u64::from(random.u32(..4096)),
            3 => std::ptr::from_ref(argument) as u64,
            _ => u64::from(DATA + (1 << 20) + random.u32(..1 << 17)),
        };
    }
    if random.chance(20) {
        let func = domain
            .func_unchecked::<fn(u64, f64, u64, f32) -> f64>(&name)
            .unwrap();
        let result = func.call(arguments[0], 1.5, arguments[1], 2.5);
        tally.note(result.as_ref().err());
        return;
    }
    let signature = random
        .pick(&["l(llllll)", "i(iiii)", "d(ddddll)", "v(fh)"])
        .parse()
        .unwrap();
    let pointer = domain.function_pointer(&name, &signature).unwrap();
    let mut call = HostCall::new(pointer, &arguments, &[1.5, -2.5, f64::NAN]).with_flags();
    postern::clear_last_error();
    // SAFETY: the stub takes all its arguments in registers.
    unsafe { call.run() };
    if let Err(what) = call.intact() {
        panic!("{name}: {what}");
    }
    tally.note(postern::last_error().as_ref());
}

/// Signals to the workers and interrupts to the shared domains, until all work is done.
fn storm(workers: &Mutex<Vec<libc::pthread_t>>, done: &AtomicUsize, stop: &AtomicBool) {
    let mut random = Rng::with_seed(99);
    while done.load(Ordering::SeqCst) < THREADS && !stop.load(Ordering::SeqCst) {
        for &worker in workers.lock().unwrap().iter() {
            let signal = random.pick(&[libc::SIGUSR1, libc::SIGUSR2]);
            // SAFETY: workers live until the storm is over.
            unsafe { libc::pthread_kill(worker, signal) };
            SIGNALS.fetch_add(1, Ordering::Relaxed);
        }
        if random.chance(30) {
            let shared = SHARED.read().unwrap().clone();
            shared[random.usize(..shared.len())].interrupt();
        }
        std::thread::sleep(Duration::from_micros(u64::from(random.u32(..300))));
    }
}

fn campaign(seed: u64, rounds: impl Fn(u64) -> bool + Sync) {
    install();
    let encoder = Encoder::default();
    let mut random = Rng::with_seed(seed);
    let shared: Vec<_> = (0..2)
        .map(|_| domain(&image(&mut random, &encoder), &mut random))
        .collect();
    *SHARED.write().unwrap() = shared;
    let (workers, done, stop) = (
        Mutex::new(Vec::new()),
        AtomicUsize::new(0),
        AtomicBool::new(false),
    );
    let end = Barrier::new(THREADS + 1);
    let mut total = Tally::default();
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..THREADS)
            .map(|i| {
                let (workers, done, end, rounds, stop) = (&workers, &done, &end, &rounds, &stop);
                scope.spawn(move || {
                    // SAFETY: pthread_self has no preconditions.
                    workers
                        .lock()
                        .unwrap()
                        .push(unsafe { libc::pthread_self() });
                    let work = || work(seed * 100 + i as u64, rounds);
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                    done.fetch_add(1, Ordering::SeqCst);
                    stop.fetch_or(result.is_err(), Ordering::SeqCst);
                    end.wait();
                    result
                })
            })
            .collect();
        storm(&workers, &done, &stop);
        end.wait();
        for handle in handles {
            for (what, count) in handle.join().unwrap().expect("a worker found something").0 {
                *total.0.entry(what).or_default() += count;
            }
        }
    });
    SHARED.write().unwrap().clear();
    let calls: u64 = total.0.values().sum();
    println!(
        "seed {seed}: {calls} calls, {} signals; {:?}",
        SIGNALS.load(Ordering::Relaxed),
        total.0
    );
    assert!(
        CANARIES.iter().all(|c| c.load(Ordering::Relaxed) == CANARY),
        "a canary of the host changed"
    );
    assert!(total.0["returned"] > calls / 20, "hardly anything returns");
}

#[test]
fn random_code_through_the_gates() {
    campaign(7, |round| round < 300);
    let seconds = std::env::var("POSTERN_SOUNDNESS_SECONDS");
    if let Some(seconds) = seconds.ok().and_then(|s| s.parse().ok()) {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let end = Instant::now() + Duration::from_secs(seconds);
        campaign(now.as_secs(), |_| Instant::now() < end);
    }
}
