//! Resets of domains that several threads use: none overlaps a call, whoever calls when, and each
//! thread that comes afterwards finds what the first one of a new domain would.
mod support;

use fastrand::Rng;
use postern::{CallError, Domain, Func, Image, Offset};
use postern_verifier::window::PAGE;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use support::{code, cold};

const HEAP: u32 = 1 << 20;

/// `stay` returns its argument, which lay on the data stack meanwhile, or -1 if the data began anew
/// while it ran.
fn stays() -> Domain {
    let image = code(
        &[],
        &[("stay", "i(i)")],
        ".data
         mark: .long 0
         .text
         stay: PUSH %rdi
            movl $7,%gs:mark(,%eiz,1)
            movl $20000,%ecx
         1: cmpl $7,%gs:mark(,%eiz,1)
            jne 2f
            decl %ecx
            jnz 1b
            POP %rax
            ret
         2: POP %rax
            movl $-1,%eax
            ret",
    );
    cold(&image.image()).build().unwrap()
}

#[test]
fn no_reset_overlaps_a_call() {
    const THREADS: i32 = 4;
    let domain = stays();
    let (calls, resets) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = |number: i32| {
        let mut random = Rng::with_seed(number as u64);
        let stay = domain.func::<fn(i32) -> i32>("stay").unwrap();
        for _ in 0..4_000 {
            for _ in 0..random.u8(0..3) {
                match stay.call(number) {
                    Ok(result) => {
                        assert_eq!(result, number);
                        calls.fetch_add(1, SeqCst);
                    }
                    Err(error) => assert!(matches!(error, CallError::Busy), "{error}"),
                }
            }
            resets.fetch_add(usize::from(domain.reset().is_ok()), SeqCst);
        }
    };
    std::thread::scope(|scope| {
        for number in 1..=THREADS {
            scope.spawn(move || work(number));
        }
    });
    let (calls, resets) = (calls.into_inner(), resets.into_inner());
    assert!(calls > 100 && resets > 100, "{calls} {resets}");
}

/// A thread that has never been inside comes in at the very moment of a reset.
#[test]
fn no_reset_overlaps_a_first_call() {
    for round in 0..200 {
        let domain = stays();
        let stay = domain.func::<fn(i32) -> i32>("stay").unwrap();
        let (together, over) = (Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                together.wait();
                for _ in 0..round % 7 {
                    std::hint::spin_loop();
                }
                for _ in 0..20 {
                    if let Ok(result) = stay.call(round) {
                        assert_eq!(result, round);
                    }
                }
                over.store(true, SeqCst);
            });
            together.wait();
            while !over.load(SeqCst) {
                let _ = domain.reset();
            }
        });
    }
}

/// Nor one that another extension makes by the peer gate, the first of its thread or a later one.
#[test]
fn no_reset_overlaps_a_call_of_a_peer() {
    let caller = code(&[("stay", "i(i)")], &[("go", "i(i)")], "go: jmp stay");
    let caller = caller.image();
    let (mut calls, mut resets) = (0, 0);
    for round in 1..60 {
        let callee = stays();
        let export = callee.peer_export("stay").unwrap();
        let domain = cold(&caller).peer("stay", &export).build().unwrap();
        let over = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let (domain, over) = (&domain, &over);
            let work = move |number: i32| {
                let go = domain.func::<fn(i32) -> i32>("go").unwrap();
                let (mut tried, mut made) = (0, 0);
                while tried < 30 || made < 3 {
                    let result = go.call(number).unwrap();
                    // 0 is the gate's: the callee was busy.
                    assert!(result == number || result == 0, "{result} in {round}");
                    tried += 1;
                    made += usize::from(result == number);
                }
                over.fetch_add(1, SeqCst);
                made
            };
            let threads: Vec<_> = (1..3).map(|n| scope.spawn(move || work(n))).collect();
            while over.load(SeqCst) < 2 {
                resets += usize::from(callee.reset().is_ok());
                // Where resets follow each other closely, hardly a call finds its way between.
                for _ in 0..round * 20 {
                    std::hint::spin_loop();
                }
            }
            calls += threads
                .into_iter()
                .map(|t| t.join().unwrap())
                .sum::<usize>();
        });
    }
    assert!(calls > 100 && resets > 100, "{calls} {resets}");
}

const SOURCE: &str = r#"
static int data[5000] = {1, 2, 3};
static char zeros[30000];
static __thread int counter = 5;
static __thread long more[50];

int next(void) { return counter++ + (int)more[7]; }
void fill(char *page, int with) {
    page = (char *)((unsigned long)page & ~4095ul);
    for (int i = 0; i < 4096; i++) page[i] = (char)with;
}
int use(int n) {
    volatile char room[2000];
    for (int i = 0; i < 2000; i++) room[i] = (char)n;
    data[n * 40] = zeros[n * 40] = (char)n;
    more[n % 50] = n;
    return n ? use(n - 1) + room[n] : room[0];
}
/* What lies on the data stack below. */
int dirt(void) {
    volatile char room[100000];
    int found = 0;
    for (int i = 0; i < 99000; i++) found |= room[i];
    return found;
}
"#;

fn make(image: &Image) -> Domain {
    cold(image).heap(HEAP.into()).build().unwrap()
}

/// Everything that the image and its heap have, which the domain can write.
fn everything(domain: &Domain) -> Vec<u8> {
    let layout = domain.image().tables().layout;
    let bytes = layout.heap_start + HEAP - layout.stack;
    domain
        .read_vec(Offset(layout.stack), bytes as usize)
        .unwrap()
}

#[test]
fn whoever_comes_after_a_reset_finds_a_new_domain() {
    let image = support::compile("use.c", SOURCE, &["-O1", "-fpostern-stack=256K"]);
    let layout = image.tables().layout;
    let first = everything(&make(&image));
    let domain = make(&image);
    let next: Func<fn() -> i32> = domain.func("next").unwrap();
    let dirt: Func<fn() -> i32> = domain.func("dirt").unwrap();
    let spoil: Func<fn(i32) -> i32> = domain.func("use").unwrap();
    let fill: Func<fn(Offset, i32)> = domain.func("fill").unwrap();
    let seen = || {
        // Twice: the second time it is the thread's own.
        assert_eq!((dirt.call().unwrap(), next.call().unwrap()), (0, 5));
        assert_eq!(next.call().unwrap(), 6);
    };
    let mut random = Rng::with_seed(3);
    for round in 0..60 {
        let threads = random.usize(0..4);
        let pages = [0, 3, 20, 62, 200][random.usize(0..5)];
        let seed = random.u64(..);
        let dirty = |number: usize| {
            let mut random = Rng::with_seed(seed + number as u64);
            seen();
            spoil.call(random.i32(1..100)).unwrap();
            for _ in 0..pages {
                let at = random.u32(layout.data..layout.heap_start + HEAP);
                fill.call(Offset(at / PAGE * PAGE), -1).unwrap();
            }
        };
        // All have their data stacks at once; one of them resets, or one that has none.
        let (inside, used) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
        let resets = random.usize(0..threads + 1);
        std::thread::scope(|scope| {
            for number in 1..=threads {
                let (domain, dirty) = (&domain, &dirty);
                let (inside, used) = (&inside, &used);
                scope.spawn(move || {
                    next_alone(inside, || dirty(number));
                    used.wait();
                    if resets == number {
                        domain.reset().unwrap();
                    }
                    used.wait();
                });
            }
            next_alone(&inside, || ());
            spoil.call(7).unwrap();
            used.wait();
            if resets == 0 {
                domain.reset().unwrap();
            }
            used.wait();
        });
        assert!(everything(&domain) == first, "round {round}");
        seen();
        std::thread::scope(|scope| {
            scope.spawn(seen);
        });
        domain.reset().unwrap();
        assert!(everything(&domain) == first, "round {round}");
    }
}

/// What is written goes over other threads' variables, too, so one is at it after the other.
fn next_alone(inside: &Barrier, work: impl FnOnce()) {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    inside.wait();
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    work();
}
