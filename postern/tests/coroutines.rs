//! Coroutines of one thread, each in a service of a call of its own: calls that end in the reverse
//! order of their beginning are ordinary nested calls; one that would end out of turn is ended with
//! the reason, and the others keep theirs.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{CallError, Caller, Domain, FaultKind, Func, Image};
use std::cell::Cell;
use std::sync::OnceLock;
use support::{code, cold};

/// A function on a stack of its own, that gives way and is resumed.
struct Coroutine {
    own: Box<libc::ucontext_t>,
    back: Box<libc::ucontext_t>,
    body: Option<Box<dyn FnOnce()>>,
    done: Cell<bool>,
    _stack: Vec<u8>,
}

thread_local! {
    static RUNNING: Cell<*mut Coroutine> = const { Cell::new(std::ptr::null_mut()) };
}

// Coroutines may go on on another thread, where they look for its variables anew.
#[inline(never)]
fn running() -> *mut Coroutine {
    std::hint::black_box(RUNNING.get())
}

impl Coroutine {
    fn new(body: impl FnOnce() + 'static) -> Box<Coroutine> {
        Coroutine::on(vec![0; 256 << 10], body)
    }

    fn on(mut stack: Vec<u8>, body: impl FnOnce() + 'static) -> Box<Coroutine> {
        extern "C" fn main() {
            let me = running();
            let body = unsafe { (*me).body.take() }.unwrap();
            body();
            unsafe { (*me).done.set(true) };
            give_way(me);
        }
        let mut own: Box<libc::ucontext_t> = Box::new(unsafe { std::mem::zeroed() });
        unsafe { libc::getcontext(&mut *own) };
        own.uc_stack.ss_sp = stack.as_mut_ptr().cast();
        own.uc_stack.ss_size = stack.len();
        unsafe { libc::makecontext(&mut *own, main, 0) };
        Box::new(Coroutine {
            own,
            back: Box::new(unsafe { std::mem::zeroed() }),
            body: Some(Box::new(body)),
            done: Cell::new(false),
            _stack: stack,
        })
    }

    /// Runs it until it gives way, or to its end: then true.
    fn resume(self: &mut Box<Self>) -> bool {
        let before = RUNNING.replace(&mut **self);
        unsafe { libc::swapcontext(&mut *self.back, &*self.own) };
        RUNNING.set(before);
        self.done.get()
    }
}

fn give_way(me: *mut Coroutine) {
    unsafe { libc::swapcontext(&mut *(*me).own, &*(*me).back) };
}

/// The coroutine that runs gives way to whoever resumed it.
fn wait() {
    give_way(running());
}

type Entry = Func<fn(i64) -> i64>;

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| image_with(|_| {}))
}

fn image_with(change: impl FnOnce(&mut support::Code)) -> Image {
    let mut code = code(
        &[("s", "l(l)")],
        &[("f", "l(l)")],
        "f: PUSH %rdi
            call s
            POP %rcx
            imulq $100,%rcx,%rcx
            addq %rcx,%rax
            ret",
    );
    change(&mut code);
    code.image()
}

/// `f(x)` gives 100 x and what its service gives for x, after it has given way: 10 more.
fn domain() -> Domain {
    of(image())
}

fn of(image: &Image) -> Domain {
    let waits = |_: &Caller<'_>, x: i64| {
        wait();
        x + 10
    };
    cold(image)
        .deadline(None)
        .service("s", waits)
        .build()
        .unwrap()
}

fn entry(domain: &Domain) -> Entry {
    domain.func("f").unwrap()
}

fn good(entry: Entry, x: i64) -> Box<Coroutine> {
    Coroutine::new(move || assert_eq!(entry.call(x).unwrap(), 101 * x + 10))
}

/// One whose call ends because it comes out of turn.
fn ended(entry: Entry, x: i64) -> Box<Coroutine> {
    Coroutine::new(move || out_of_turn(entry.call(x)))
}

fn out_of_turn(result: Result<i64, CallError>) {
    let error = result.unwrap_err();
    let fault = error.fault().unwrap();
    assert_eq!(fault.kind, FaultKind::Aborted, "{error}");
    assert!(error.to_string().contains("reverse order"), "{error}");
}

#[test]
fn calls_that_end_in_the_reverse_order_are_nested_calls() {
    let (a, b) = (domain(), domain());
    for (x, y) in [(&a, &b), (&a, &a)] {
        let (mut one, mut two) = (good(entry(x), 1), good(entry(y), 2));
        assert!(!one.resume() && !two.resume());
        assert_eq!(postern::nesting(), 2);
        assert!(two.resume() && one.resume());
        assert_eq!(postern::nesting(), 0);
    }
}

#[test]
fn a_call_out_of_turn_is_ended_and_the_other_goes_on() {
    let (a, b) = (domain(), domain());
    for _ in 0..3 {
        let (mut one, mut two) = (ended(entry(&a), 1), good(entry(&b), 2));
        assert!(!one.resume() && !two.resume());
        assert!(one.resume());
        assert_eq!(postern::nesting(), 1);
        assert!(a.is_poisoned() && !b.is_poisoned());
        // Nobody is inside any more, and who is meanwhile does not notice.
        a.reset().unwrap();
        assert!(b.reset().is_err());
        let mut again = good(entry(&a), 3);
        assert!(!again.resume() && again.resume());
        assert!(two.resume());
        assert_eq!(postern::nesting(), 0);
        b.reset().unwrap();
    }
}

#[test]
fn two_calls_of_one_domain() {
    let a = domain();
    let (mut one, mut two) = (
        ended(entry(&a), 1),
        Coroutine::new({
            let entry = entry(&a);
            move || {
                // The fault of the first one closed the domain.
                let error = entry.call(2).unwrap_err();
                assert_eq!(error.fault().unwrap().kind, FaultKind::AnotherThread);
            }
        }),
    );
    assert!(!one.resume() && !two.resume());
    assert!(one.resume());
    assert!(two.resume());
    assert_eq!(postern::nesting(), 0);
    a.reset().unwrap();
}

#[test]
fn many_that_end_in_every_order() {
    let domains: Vec<Domain> = (0..4).map(|_| domain()).collect();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        let mut begun: Vec<(usize, Box<Coroutine>)> = Vec::new();
        let expected: std::rc::Rc<Cell<bool>> = Default::default();
        for (i, d) in domains.iter().enumerate() {
            let (entry, good) = (entry(d), expected.clone());
            let x = i as i64;
            let mut coroutine = Coroutine::new(move || match entry.call(x) {
                Ok(sum) => assert!(good.get() && sum == 101 * x + 10),
                result => {
                    assert!(!good.get());
                    out_of_turn(result);
                }
            });
            assert!(!coroutine.resume());
            begun.push((i, coroutine));
        }
        while !begun.is_empty() {
            let which = random.usize(..begun.len());
            expected.set(which + 1 == begun.len());
            let (i, mut coroutine) = begun.remove(which);
            assert!(coroutine.resume());
            assert_eq!(postern::nesting(), begun.len());
            assert_eq!(domains[i].is_poisoned(), !expected.get());
        }
        for d in &domains {
            d.reset().unwrap();
        }
    }
}

/// The first call is on the thread's own stack; its service starts the coroutine.
#[test]
fn the_threads_own_stack_out_of_turn() {
    for image in [
        image().clone(),
        image_with(|code| {
            code.builder.x87(true);
        }),
    ] {
        let b = domain();
        let two = std::sync::Arc::new(std::sync::Mutex::new(Held(good(entry(&b), 2))));
        let started = two.clone();
        let a = cold(&image)
            .service("s", move |_: &Caller<'_>, x: i64| {
                assert!(!started.lock().unwrap().0.resume());
                x
            })
            .build()
            .unwrap();
        out_of_turn(entry(&a).call(1));
        assert_eq!(postern::nesting(), 1);
        assert!(two.lock().unwrap().0.resume());
        assert_eq!(postern::nesting(), 0);
        a.reset().unwrap();
        b.reset().unwrap();
    }
}

/// One coroutine is given up in a service, and another one gets its stack: the call out of turn is
/// the later one.
#[test]
fn a_stack_that_was_left_and_is_used_again() {
    let (left, a, b) = (domain(), domain(), domain());
    let mut one = ended(entry(&left), 1);
    assert!(!one.resume());
    let stack = std::mem::take(&mut one._stack);
    let again = entry(&a);
    let mut two = Coroutine::on(stack, move || out_of_turn(again.call(1)));
    let mut three = good(entry(&b), 3);
    assert!(!two.resume() && !three.resume());
    assert_eq!(postern::nesting(), 3);
    assert!(two.resume());
    assert_eq!(postern::nesting(), 2);
    assert!(a.is_poisoned() && !left.is_poisoned());
    assert!(three.resume());
    assert!(unsafe { postern::unwind(0) });
    for domain in [left, a, b] {
        domain.reset().unwrap();
    }
}

struct Held(Box<Coroutine>);
// It stays on its thread.
unsafe impl Send for Held {}

/// A nested call of a coroutine's, and with it the calls that wait for it in the peer gate.
#[test]
fn calls_of_peers_go_with_the_one_they_wait_for() {
    let (inner, b) = (domain(), domain());
    let through = code(
        &[("p", "l(l)")],
        &[("f", "l(l)")],
        "f: call p
            addq $1000,%rax
            ret",
    )
    .image();
    let export = inner.peer_export("f").unwrap();
    let outer = cold(&through).peer("p", &export).build().unwrap();
    let in_turn = entry(&outer);
    let mut one = Coroutine::new(move || assert_eq!(in_turn.call(1).unwrap(), 1111));
    assert!(!one.resume() && one.resume());
    for _ in 0..3 {
        let (mut one, mut two) = (ended(entry(&outer), 1), good(entry(&b), 2));
        assert!(!one.resume() && !two.resume());
        assert_eq!(postern::nesting(), 3);
        assert!(one.resume());
        assert_eq!(postern::nesting(), 1);
        assert!(two.resume());
        outer.reset().unwrap();
        inner.reset().unwrap();
        b.reset().unwrap();
    }
}

/// A coroutine that goes on on another thread cannot be told from anything else that is wrong with
/// the stack.
#[test]
fn a_service_that_returns_on_another_thread_ends_the_process() {
    let test = "a_service_that_returns_on_another_thread_ends_the_process";
    let output = support::in_child(test, || {
        let a = domain();
        // The other thread has been in a service before, at the very same place.
        let mut one = Held(good(entry(&a), 1));
        assert!(!one.0.resume());
        let other = std::thread::spawn(move || {
            let one = &mut { one };
            let mut before = good(entry(&a), 2);
            assert!(!before.resume() && before.resume());
            one.0.resume();
        });
        let _ = other.join();
    });
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("must stay on its thread"), "{said}");
}
