//! Thread-local variables: one set for each thread of the host inside a domain, fresh ones for new
//! threads and after a reset.
mod support;
use postern::{CallError, Caller, Domain, FaultKind, Image, Offset, Placement};
use std::sync::{Arc, Barrier, OnceLock};

type Counting = postern::Func<fn(i32) -> i32>;

const SOURCE: &str = r#"
__thread int counter = 5;
static __thread long zeros[100];
__thread char aligned[64] __attribute__((aligned(64))) = "text";
__thread long huge[20000];
extern int again(int);

int count(void) { return counter++; }
int *where(void) { return &counter; }
int through(int *p) { return ++*p; }
int fresh(void) {
    long sum = counter - 5;
    for (int i = 0; i < 100; i++) sum |= zeros[i];
    for (int i = 0; i < 20000; i += 7) sum |= huge[i];
    for (int i = 0; i < 64; i++) sum |= aligned[i] ^ (i < 4 ? "text"[i] : 0);
    return sum == 0 && (unsigned long)aligned % 64 == 0;
}
void spoil(int with) {
    counter = with;
    for (int i = 0; i < 100; i++) zeros[i] = with;
    for (int i = 0; i < 20000; i++) huge[i] = with;
    aligned[63] = (char)with;
}
int spoilt(int with) {
    int same = counter == with && aligned[63] == (char)with;
    for (int i = 0; i < 100; i++) same &= zeros[i] == with;
    for (int i = 0; i < 20000; i++) same &= huge[i] == with;
    return same;
}
/* Another call of the same thread uses the same variables. */
int nested(int n) { return n ? again(n - 1) : counter++; }
/* Uses the stack down to its end. */
int deep(int n) { volatile char page[4096]; page[n % 4096] = 1; return n ? deep(n - 1) + page[n % 4096] : counter; }
"#;

fn image(flags: &[&str], source: &str) -> Image {
    support::compile("threads.c", source, flags)
}

fn domain() -> Domain {
    let again: Arc<OnceLock<Counting>> = Arc::default();
    let inner = again.clone();
    let d = Domain::builder(&image(&["-O2", "-fpostern-stack=1M"], SOURCE))
        .service("again", move |_: &Caller<'_>, n: i32| {
            inner.get().unwrap().call(n).unwrap()
        })
        .build()
        .unwrap();
    assert!(again.set(d.func("nested").unwrap()).is_ok());
    d
}

fn int(d: &Domain, name: &str) -> i32 {
    d.func::<fn() -> i32>(name).unwrap().call().unwrap()
}

fn with(d: &Domain, name: &str, value: i32) -> i32 {
    d.func_unchecked::<fn(i32) -> i32>(name)
        .unwrap()
        .call(value)
        .unwrap()
}

#[test]
fn every_thread_has_its_own() {
    const THREADS: i32 = 24;
    let d = domain();
    let meet = Arc::new(Barrier::new(THREADS as usize));
    std::thread::scope(|scope| {
        for me in 1..=THREADS {
            let (d, meet) = (&d, meet.clone());
            scope.spawn(move || {
                assert_eq!(int(d, "fresh"), 1);
                meet.wait();
                with(d, "spoil", me);
                meet.wait();
                assert_eq!(with(d, "spoilt", me), 1);
                for i in 0..100 {
                    assert_eq!(int(d, "count"), me + i);
                }
            });
        }
    });
}

#[test]
fn a_pointer_to_one_works_in_every_thread() {
    let d = domain();
    let where_ = d.func::<fn() -> Offset>("where").unwrap();
    let through = d.func::<fn(Offset) -> i32>("through").unwrap();
    let mine = where_.call().unwrap();
    let (d2, through2) = (d.clone(), through.clone());
    std::thread::spawn(move || {
        let theirs = d2.func::<fn() -> Offset>("where").unwrap().call().unwrap();
        assert_ne!(theirs, mine);
        assert_eq!(through2.call(mine).unwrap(), 6);
        assert_eq!(int(&d2, "count"), 5);
    })
    .join()
    .unwrap();
    assert_eq!(int(&d, "count"), 6);
    assert_eq!(where_.call().unwrap(), mine);
}

#[test]
fn fresh_ones_for_a_thread_that_takes_an_ended_ones_place() {
    let d = domain();
    with(&d, "spoil", 3);
    for round in 0..20 {
        let d = d.clone();
        std::thread::spawn(move || {
            assert_eq!(int(&d, "fresh"), 1, "{round}");
            with(&d, "spoil", 9);
        })
        .join()
        .unwrap();
    }
    assert_eq!(with(&d, "spoilt", 3), 1);
}

#[test]
fn fresh_ones_after_a_reset_and_in_another_domain() {
    let d = domain();
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let (done, finished) = std::sync::mpsc::channel::<()>();
    let d2 = d.clone();
    let other = std::thread::spawn(move || {
        with(&d2, "spoil", 4);
        done.send(()).unwrap();
        receiver.recv().unwrap();
        assert_eq!(int(&d2, "fresh"), 1);
    });
    finished.recv().unwrap();
    with(&d, "spoil", 5);
    d.reset().unwrap();
    sender.send(()).unwrap();
    other.join().unwrap();
    assert_eq!(int(&d, "fresh"), 1);
    with(&d, "spoil", 6);
    let image = d.image();
    drop(d);
    // The window of the domain that is gone serves the next one.
    for _ in 0..3 {
        let next = Domain::builder(&image)
            .service("again", |_: &Caller<'_>, n: i32| n)
            .build()
            .unwrap();
        assert_eq!(int(&next, "fresh"), 1);
        with(&next, "spoil", 7);
    }
}

#[test]
fn nested_calls_share_them_and_frames_do_not_reach_them() {
    let d = domain();
    assert_eq!(with(&d, "nested", 10), 5);
    assert_eq!(int(&d, "count"), 6);
    with(&d, "spoil", 1);
    assert_eq!(with(&d, "deep", 150), 151);
    assert_eq!(with(&d, "spoilt", 1), 1);
    let error = d
        .func::<fn(i32) -> i32>("deep")
        .unwrap()
        .call(1000)
        .unwrap_err();
    assert_eq!(error.fault().unwrap().kind, FaultKind::DataStackOverflow);
}

/// Stacks of another size than the image was linked with lie elsewhere, for every thread, and their
/// variables are found there; after a reset, too.
#[test]
fn stacks_of_a_size_that_was_chosen() {
    let image = image(&["-O2", "-fpostern-stack=1M"], SOURCE);
    let domain = |size: u64| {
        Domain::builder(&image)
            .service("again", |_: &Caller<'_>, n: i32| n)
            .data_stack(size)
            .build()
    };
    // 160 KB of variables are a quarter of no smaller stack.
    let error = domain(300_000).unwrap_err().to_string();
    assert!(error.contains("too small"), "{error}");
    let error = domain((64 << 20) + 1).unwrap_err().to_string();
    assert!(error.contains("64 MiB"), "{error}");
    let smaller = support::compile(
        "small.c",
        "int f(void) { return 1; }",
        &["-fpostern-stack=4M"],
    );
    assert!(Domain::builder(&smaller).data_stack(1).build().is_ok());
    for size in [1u64 << 20, 5_000_000, 64 << 20] {
        let d = domain(size).unwrap();
        let stack = size.next_power_of_two();
        let fits = (stack / 4300 - 60) as i32;
        let run = || {
            assert_eq!(int(&d, "fresh"), 1);
            with(&d, "spoil", 1);
            assert_eq!(with(&d, "deep", fits), fits + 1);
            assert_eq!(with(&d, "spoilt", 1), 1);
        };
        run();
        let meet = Barrier::new(3);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    meet.wait();
                    run();
                });
            }
        });
        d.reset().unwrap();
        run();
        let deep = d.func::<fn(i32) -> i32>("deep").unwrap();
        let error = deep.call(stack as i32 / 4096 + 1).unwrap_err();
        assert_eq!(error.fault().unwrap().kind, FaultKind::DataStackOverflow);
        let says = format!("the stack has {} KiB, -fpostern-stack=SIZE", stack >> 10);
        assert!(error.to_string().contains(&says), "{error}");
        assert!(error.to_string().contains("--stack SIZE"), "{error}");
    }
    // The window of the last one does not serve a domain with the image's own stack.
    let d = Domain::builder(&image)
        .service("again", |_: &Caller<'_>, n: i32| n)
        .build()
        .unwrap();
    assert_eq!(int(&d, "fresh"), 1);
}

/// They move with their domain, beside areas, and threads keep their variables.
#[test]
fn stacks_of_a_size_that_was_chosen_are_moved() {
    let image = image(&["-O2", "-fpostern-stack=1M"], SOURCE);
    let area = postern::Shared::new(65536).unwrap();
    for size in [2u64 << 20, 64 << 20] {
        let d = Domain::builder(&image)
            .service("again", |_: &Caller<'_>, n: i32| n)
            .data_stack(size)
            .build()
            .unwrap();
        d.share(&area, postern::Prot::ReadWrite).unwrap();
        let meet = Barrier::new(3);
        std::thread::scope(|scope| {
            for number in 0..3 {
                let (d, meet) = (&d, &meet);
                scope.spawn(move || {
                    assert_eq!(int(d, "count"), 5);
                    for round in 0..6 {
                        meet.wait();
                        if number == round % 3 {
                            let hot = round % 2 == 0;
                            d.set_placement(if hot { Placement::Hot } else { Placement::Cold });
                        }
                        meet.wait();
                        assert_eq!(int(d, "count"), 6 + round);
                        assert_eq!(with(d, "deep", 200), 6 + round + 1 + 200);
                    }
                });
            }
        });
        d.reset().unwrap();
        assert_eq!((int(&d, "fresh"), int(&d, "count")), (1, 5));
    }
}

/// The flag that code finds the size by itself is a claim: where it is wrong, that code misses its
/// own block, and nobody else notices.
#[test]
fn a_false_claim_about_the_stack_harms_its_maker_alone() {
    let mut code = support::code(
        &[],
        &[("put", "i(i)")],
        "put: movl %r15d,%eax
            orl $0x3ffff,%eax
            movl %edi,%gs:-16(%eax)
            movl %gs:-16(%eax),%eax
            ret",
    );
    code.builder.any_stack(true);
    let (image, other) = (code.image(), domain());
    for size in [4096, 1 << 18, 64 << 20] {
        let d = Domain::builder(&image).data_stack(size).build().unwrap();
        let put = d.func::<fn(i32) -> i32>("put").unwrap();
        std::thread::scope(|scope| {
            for number in 0..4 {
                let put = put.clone();
                scope.spawn(move || {
                    for _ in 0..20 {
                        match put.call(number) {
                            // Of small stacks many have one such place.
                            Ok(found) => assert!(size < 1 << 18 || found == number),
                            Err(CallError::Poisoned) => {}
                            Err(error) => assert!(size < 1 << 18, "{error}"),
                        }
                    }
                });
            }
        });
        assert_eq!(size < 1 << 18, d.is_poisoned());
        d.reset().unwrap();
        drop(d);
        assert_eq!(int(&other, "fresh"), 1);
    }
}

/// A frame that is larger than a stack and than its guard, and one of many threads that may enter.
#[test]
fn large_frames_and_few_stacks_of_a_size_that_was_chosen() {
    let source = "__attribute__((noinline)) void f(volatile char *a) { a[0] = 1; }\n\
        __attribute__((noinline)) void g(volatile char *a) { f(a); }\n\
        int small(void) { return 1; }\n\
        int frame(void) { volatile char a[40 << 20]; g(a); return a[0]; }";
    let image = support::compile("frame.c", source, &["-O1"]);
    let mut limits = postern::Limits::default();
    (limits.data_stack, limits.threads) = (Some(2 << 20), 1);
    let d = Domain::builder(&image).limits(limits).build().unwrap();
    let small = d.func::<fn() -> i32>("small").unwrap();
    assert_eq!(small.call().unwrap(), 1);
    let other = std::thread::spawn(move || small.call().map_err(|e| e.to_string()));
    assert!(other.join().unwrap().is_err());
    let error = d.func::<fn() -> i32>("frame").unwrap().call().unwrap_err();
    let kind = error.fault().map(|fault| fault.kind);
    assert_eq!(kind, Some(FaultKind::DataStackOverflow), "{error}");
    let d = Domain::builder(&image)
        .data_stack(64 << 20)
        .build()
        .unwrap();
    assert_eq!(d.func::<fn() -> i32>("frame").unwrap().call().unwrap(), 1);
}

/// Code that has the stack's size as a number of its own keeps the stack that was linked.
#[test]
fn code_that_knows_its_stack_keeps_it() {
    let source = "int size(void) { int n; __asm__(\"movl $__postern_stack_mask, %0\" : \"=r\"(n)); return n; }";
    let image = support::compile("knows.c", source, &["-O1"]);
    let d = Domain::builder(&image).build().unwrap();
    assert_eq!(int(&d, "size"), (256 << 10) - 1);
    let same = Domain::builder(&image).data_stack(200 << 10).build();
    assert!(same.is_ok());
    let error = Domain::builder(&image).data_stack(1 << 20).build();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("-fpostern-stack=SIZE"), "{error}");
}

const SMASH: &str = r#"
unsigned long word(void) { unsigned long v; __asm__ volatile("movq %%fs:40, %0" : "=r"(v)); return v; }
int f(int n) {
    volatile char text[16];
    for (int i = 0; i < n; i++) text[i] = 'x';
    return text[0];
}
"#;

/// The stack protector's word is found where compilers expect it, and an image without thread-local
/// variables gets it, too.
#[test]
fn the_stack_protector() {
    let image = image(&["-O1", "-fstack-protector-strong"], SMASH);
    let other = self::image(&["-O1", "-fstack-protector-strong", "-DOTHER"], SMASH);
    for image in [&image, &other] {
        let d = Domain::builder(image).build().unwrap();
        let word = d.func::<fn() -> u64>("word").unwrap();
        assert!(word.call().unwrap() != 0);
        let f = d.func::<fn(i32) -> i32>("f").unwrap();
        assert_eq!(f.call(15).unwrap(), i32::from(b'x'));
        let message = match f.call(25) {
            Err(error @ CallError::Fault(_)) => error.to_string(),
            result => panic!("{result:?}"),
        };
        assert!(message.contains("stack smashing detected"), "{message}");
        d.reset().unwrap();
        let threads = (0..4).map(|_| {
            let f = f.clone();
            std::thread::spawn(move || f.call(10).map(|_| ()))
        });
        for thread in threads.collect::<Vec<_>>() {
            thread.join().unwrap().unwrap();
        }
    }
}
