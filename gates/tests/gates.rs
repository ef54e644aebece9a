//! The gates without domains: a window with a little verified text, a control block, an entry, and a table of functions that does
//! little more than note what it is told.

use postern_gates::above::{self, Above, Ended, Failure, Held};
use postern_gates::control::{Block, Control, ServiceEntry, Terms};
use postern_gates::enter::{self, Returned};
use postern_gates::entry::Entry;
use postern_gates::entry::Manner;
use postern_gates::gate::{STATUS_ENDED, STATUS_OK};
use postern_gates::guard::{Answer, Decide, GuardedCall};
use postern_gates::inside::{self, Target};
use postern_gates::lifecycle::Phase;
use postern_gates::map::Prot;
use postern_gates::outcome::{self, RawFault, Refusal};
use postern_gates::peer::PeerError;
use postern_gates::shim::{self, Body};
use postern_gates::text::Text;
use postern_gates::window::Window;
use postern_gates::{machine, register, signal, thread};
use postern_image::{ImageBuilder, ImageFile, Type};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

const REFUSED: u32 = 2;

thread_local! {
    /// Whether deadlines can be kept.
    static WATCHED: Cell<bool> = const { Cell::new(true) };
    /// Offset of the top of the data stack that this thread is given next.
    static STACK: Cell<u32> = const { Cell::new(0) };
    static REFUSALS: RefCell<Vec<Refusal>> = const { RefCell::new(Vec::new()) };
    static ENDS: RefCell<Vec<(RawFault, Option<String>)>> = const { RefCell::new(Vec::new()) };
    /// Calls that were refused, and may try another entry.
    static INSTEAD: Cell<u32> = const { Cell::new(0) };
}

static FORGOTTEN: AtomicUsize = AtomicUsize::new(0);

fn watch() -> std::io::Result<()> {
    match WATCHED.get() {
        true => Ok(()),
        false => Err(std::io::ErrorKind::OutOfMemory.into()),
    }
}

fn give_data_stack(control: &Control, index: usize) -> Result<(), Refusal> {
    let top = STACK.get();
    control.give_data_stack(index, top);
    match top {
        0 => Err(Refusal::NoDataStack),
        _ => Ok(()),
    }
}

fn instead(_: &Entry, refusal: Refusal) -> Result<&Entry, Refusal> {
    INSTEAD.set(INSTEAD.get() + 1);
    Err(refusal)
}

fn ended(held: Option<Held>, ended: Ended) {
    assert!(held.is_none());
    ENDS.with_borrow_mut(|ends| ends.push((ended.fault, ended.message)));
}

static ABOVE: Above = Above {
    watch,
    wake: || {},
    give_data_stack,
    move_window: |_| {},
    instead,
    refused: |refusal| REFUSALS.with_borrow_mut(|all| all.push(refusal)),
    hold: |_| None,
    ended,
    failure: || Failure::Error(PeerError::Fault),
    renew_thread: |_| {},
    forgotten: || {
        FORGOTTEN.fetch_add(1, Ordering::SeqCst);
    },
    thread_exited: || {},
};

fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        above::give(&ABOVE);
        register::prepare(8 << 20).unwrap();
        machine::register_barrier().unwrap();
        signal::start(libc::SIGRTMAX() - 3, true, false).unwrap();
    });
}

/// What a domain would be made of.
struct Small {
    control: Block,
    text: Arc<Text>,
    services: Arc<[ServiceEntry]>,
    _window: Window,
}

impl Small {
    /// Text whose first instruction is a function's, with these services at its gate slots.
    fn new(text: &[u8], services: Vec<ServiceEntry>) -> Small {
        start();
        let mut builder = ImageBuilder::new(text);
        for number in 0..services.len() {
            builder.import(format!("service{number}"), None);
        }
        let file = builder.build().unwrap();
        let image = ImageFile::parse(&file).unwrap();
        let text = Text::verify(&image, services.len() as u32, &[]).unwrap();
        let (text, layout) = (Arc::new(text), image.layout());
        let window = Window::take().unwrap();
        let pin = window.pin();
        pin.map_text(&text).unwrap();
        pin.part(layout.stack, layout.data)
            .map(Prot::ReadWrite)
            .unwrap();
        let control = Block::take().unwrap();
        let services: Arc<[ServiceEntry]> = services.into();
        pin.furnish(&control, services.clone(), &Terms::default())
            .unwrap();
        drop(pin);
        control.lifecycle().open();
        STACK.set(layout.data);
        Small {
            control,
            text,
            services,
            _window: window,
        }
    }

    fn start(&self) -> u32 {
        self.text.layout().text
    }

    fn entry(&self) -> Entry {
        assert!(self.text.is_start(self.start()));
        let signature = "l(ll)".parse().unwrap();
        self.control
            .entry(self.start(), &signature, Manner::default())
    }

    fn call(&self, a: u64, b: u64) -> Returned {
        enter::integers(&self.entry(), [a, b, 0, 0, 0, 0])
    }

    fn occupied(&self) -> bool {
        inside::occupied(Target::domain(&self.control), |_| true)
    }
}

fn last_end() -> (RawFault, Option<String>) {
    ENDS.with_borrow_mut(|ends| ends.pop()).unwrap()
}

fn last_refusal() -> Refusal {
    REFUSALS.with_borrow_mut(|all| all.pop()).unwrap()
}

/// mov eax, edi; add eax, esi; ret
const ADD: &[u8] = &[0x89, 0xf8, 0x01, 0xf0, 0xc3];
/// ud2
const TRAP: &[u8] = &[0x0f, 0x0b];
/// jmp to itself
const SPIN: &[u8] = &[0xeb, 0xfe];

/// call to the first gate slot; ret
fn calls_a_service() -> Vec<u8> {
    let mut builder = ImageBuilder::new([0xcc]);
    builder.import("service0", None);
    let distance = builder
        .slot_offset(0)
        .wrapping_sub(builder.text_offset() + 5);
    let mut text = vec![0xe8];
    text.extend(distance.to_le_bytes());
    text.push(0xc3);
    text
}

/// A service that gives three times its first argument.
struct Triple;

impl Body for Triple {
    fn invoke(&self, _: &Control, integers: &[u64; 6], _: &[u64; 8]) -> u64 {
        match integers[0] {
            u64::MAX => panic!("of the host's"),
            n => 3 * n,
        }
    }
}

static TRIPLE: Triple = Triple;

fn triple() -> ServiceEntry {
    let function = shim::address::<Triple>(Some(Type::I64));
    let (context, stack) = (&raw const TRIPLE as usize, shim::DEFAULT_STACK);
    // SAFETY: the shim of its type, and a static.
    unsafe { ServiceEntry::new(function, context, stack, Some(Type::I64), true) }
}

#[test]
fn a_call_returns() {
    let small = Small::new(ADD, Vec::new());
    for n in 0..1000 {
        let returned = small.call(n, 2);
        assert_eq!((returned.status, returned.integer), (STATUS_OK, n + 2));
    }
    assert!(!small.occupied());
    assert_eq!(small.control.calls(), 1000);
}

#[test]
fn a_fault_is_told_in_raw_facts() {
    let small = Small::new(TRAP, Vec::new());
    for _ in 0..3 {
        assert_eq!(small.call(1, 2).status, STATUS_ENDED);
        let (fault, message) = last_end();
        assert_eq!((fault.kind, fault.signal), (outcome::SIGNAL, libc::SIGILL));
        let rip = small.control.address(small.start()) as u64;
        assert_eq!((fault.registers[15], fault.depth), (rip, 0));
        assert!(fault.located && message.is_none());
        // What becomes of the domain is not for the gates to say.
        assert_eq!(small.control.lifecycle().now(), Phase::Open);
        assert!(!small.occupied());
    }
}

#[test]
fn another_thread_ends_a_call() {
    let small = Small::new(SPIN, Vec::new());
    let stack = STACK.get();
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            STACK.set(stack);
            let status = small.call(0, 0).status;
            (status, last_end().0)
        });
        while !small.occupied() {
            std::thread::yield_now();
        }
        let here: *const Control = &*small.control;
        while small.occupied() {
            let registry = thread::registry();
            for (_, t) in registry.iter() {
                if let Some((sequence, control)) = t.innermost_call()
                    && std::ptr::eq(control, here)
                {
                    signal::request_end(t, sequence, outcome::INTERRUPT);
                    signal::remind(t);
                }
            }
            drop(registry);
            std::thread::yield_now();
        }
        let (status, fault) = inside.join().unwrap();
        assert_eq!((status, fault.kind), (STATUS_ENDED, outcome::INTERRUPT));
        assert_eq!(
            fault.registers[15],
            small.control.address(small.start()) as u64
        );
    });
    // It had ended with its thread, without calls left behind or with: either way this was told.
    assert!(FORGOTTEN.load(Ordering::SeqCst) > 0);
}

#[test]
fn who_may_not_enter_is_refused() {
    let small = Small::new(ADD, Vec::new());
    let refused = |small: &Small| {
        assert_eq!(small.call(1, 2).status, REFUSED);
        last_refusal()
    };
    assert!(small.control.lifecycle().poison());
    assert_eq!(
        (refused(&small), INSTEAD.replace(0)),
        (Refusal::Poisoned, 1)
    );
    small.control.lifecycle().open();
    assert_eq!(small.call(1, 2).integer, 3);
    let exclusive = small.control.lifecycle().begin_exclusive(None).unwrap();
    assert_eq!(refused(&small), Refusal::Busy);
    exclusive.end(Phase::Open);
    assert_eq!(small.call(1, 2).integer, 3);
    small.control.lifecycle().close();
    assert_eq!(refused(&small), Refusal::Closed);
    // An entry of a domain that is gone, whose block is another one's.
    let entry = small.entry();
    drop(small);
    let other = Small::new(ADD, Vec::new());
    assert_eq!(enter::integers(&entry, [0; 6]).status, REFUSED);
    assert_eq!(last_refusal(), Refusal::Closed);
    assert_eq!(other.call(1, 2).integer, 3);
}

#[test]
fn nobody_enters_without_a_watch_or_a_stack() {
    let small = Small::new(ADD, Vec::new());
    let stack = STACK.replace(0);
    assert_eq!(small.call(1, 2).status, REFUSED);
    assert_eq!(last_refusal(), Refusal::NoDataStack);
    STACK.set(stack);
    WATCHED.set(false);
    assert_eq!(small.call(1, 2).status, REFUSED);
    assert_eq!(last_refusal(), Refusal::NoWatchdog);
    WATCHED.set(true);
    assert_eq!(small.call(1, 2).integer, 3);
}

#[test]
fn services_are_called_and_their_panics_go_around() {
    let small = Small::new(&calls_a_service(), vec![triple()]);
    let returned = small.call(14, 0);
    assert_eq!((returned.status, returned.integer), (STATUS_OK, 42));
    assert_eq!(small.services[0].calls(), 1);
    assert_eq!(small.call(u64::MAX, 0).status, STATUS_ENDED);
    assert_eq!(last_end().0.kind, outcome::PANIC);
    assert_eq!(small.call(14, 0).integer, 42);
}

/// Denies even numbers, answers 7 itself, and lets the rest go on.
#[derive(Default)]
struct Odd {
    revoked: AtomicBool,
}

impl Decide for Odd {
    fn decide(&self, call: &GuardedCall<'_>) -> Answer {
        assert!(!call.lacks_stack(4096));
        match call.integers[0] {
            _ if self.is_revoked() => Answer::Denied(99),
            7 => Answer::Value(1),
            n if n % 2 == 0 => Answer::Denied(0),
            _ => Answer::GoOn,
        }
    }

    fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::SeqCst)
    }
}

#[test]
fn a_guard_is_asked_first() {
    let small = Small::new(&calls_a_service(), vec![triple()]);
    let odd = Arc::new(Odd::default());
    let results = || [2, 7, 9].map(|n| small.call(n, 0).integer);
    assert_eq!(results(), [6, 21, 27]);
    small.services[0].guarded(&odd, true);
    assert_eq!(results(), [0, 1, 27]);
    odd.revoked.store(true, Ordering::SeqCst);
    assert_eq!(results(), [99; 3]);
    small.services[0].guarded(&odd, false);
    assert_eq!(results(), [6, 21, 27]);
    drop(small);
    // The entry's was the only other one.
    assert_eq!(Arc::strong_count(&odd), 1);
}

#[test]
fn work_is_done_while_nobody_is_inside() {
    let small = Small::new(SPIN, Vec::new());
    let mut done = false;
    assert!(inside::while_quiescent(&small.control, |_| done = true));
    assert!(done);
    assert_eq!(small.control.lifecycle().now(), Phase::Open);
    let whole = inside::while_empty(&small.control, || ((), false));
    assert_eq!(whole, Some(()));
    assert_eq!(small.control.lifecycle().now(), Phase::Poisoned);
}
