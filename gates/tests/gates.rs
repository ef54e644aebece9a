//! The gates without domains: a window with a little verified text, a control block, an entry, and
//! a table of functions that does little more than note what it is told.

#[allow(dead_code, reason = "each test program uses another part")]
mod small;

use postern_gates::block::{Block, Terms};
use postern_gates::code::{CodeArena, Plan};
use postern_gates::control::Control;
use postern_gates::enter;
use postern_gates::entry::{Entry, Manner};
use postern_gates::gate::{STATUS_ENDED, STATUS_OK};
use postern_gates::guard::{Answer, Decide, GuardedCall};
use postern_gates::inside;
use postern_gates::jump::{self, JumpError};
use postern_gates::lifecycle::Phase;
use postern_gates::map::{MapError, Prot};
use postern_gates::outcome::{self, Refusal};
use postern_gates::switch::{Destinations, Route, Switch};
use postern_gates::window::Window;
use postern_gates::{shim, signal, stale, thread};
use small::{
    ADD, FORGOTTEN, INSTEAD, REFUSED, SPIN, STACK, Small, TRAP, WATCHED, calls_a_service, last_end,
    last_refusal, table, triple,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    small.control.open();
    assert_eq!(small.control.lifecycle().now(), Phase::Poisoned);
    let exclusive = small.control.lifecycle().begin_exclusive(None).unwrap();
    exclusive.end(Phase::Open);
    assert_eq!(small.call(1, 2).integer, 3);
    let exclusive = small.control.lifecycle().begin_exclusive(None).unwrap();
    assert_eq!(refused(&small), Refusal::Busy);
    exclusive.end(Phase::Open);
    assert_eq!(small.call(1, 2).integer, 3);
    small.control.lifecycle().close();
    small.control.open();
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
    let whole = inside::while_empty(&small.control, |_| ((), false));
    assert_eq!(whole, Some(()));
    assert_eq!(small.control.lifecycle().now(), Phase::Poisoned);
}

fn while_quiet<R>(small: &Small, work: impl FnOnce(&inside::Quiescent) -> R) -> R {
    let mut work = Some(work);
    let mut done = None;
    assert!(inside::while_quiescent(&small.control, |nobody| {
        done = work.take().map(|work| work(nobody));
    }));
    done.unwrap()
}

/// Where its text is mapped, too, a window may change places with that of a domain that nobody is
/// inside.
#[test]
fn windows_are_exchanged_with_proof_only() {
    let (small, other) = (Small::new(ADD, Vec::new()), Small::new(ADD, Vec::new()));
    let exchange = |to: &mut Window, nobody: &inside::Quiescent| {
        let done = small
            .window
            .unpinned(|here| here.exchange(to, &small.control, nobody));
        done.unwrap()
    };
    let mut to = Window::take().unwrap();
    let refused = |done| assert!(matches!(done, Err(MapError::Taken | MapError::Code)));
    // Another domain's text, or none, would be entered where this one's may be.
    refused(while_quiet(&small, |nobody| exchange(&mut to, nobody)));
    to.pin().map_text(&other.text).unwrap();
    refused(while_quiet(&small, |nobody| exchange(&mut to, nobody)));
    let mut to = Window::take().unwrap();
    to.pin().map_text(&small.text).unwrap();
    // That nobody is inside another domain says nothing.
    refused(while_quiet(&other, |nobody| exchange(&mut to, nobody)));
    // Somebody's part would be left behind.
    let layout = small.text.layout();
    let part = small.window.owned_part(layout.stack, layout.data);
    refused(while_quiet(&small, |nobody| exchange(&mut to, nobody)));
    drop(part);
    let before = small.window.base();
    while_quiet(&small, |nobody| exchange(&mut to, nobody)).unwrap();
    assert_eq!((to.base(), small.call(1, 2).integer), (before, 3));
    // A window that is another domain's.
    let mut others = other.window;
    refused(while_quiet(&small, |nobody| exchange(&mut others, nobody)));
}

/// A code area has its pages for itself: no part of them was there before.
#[test]
fn code_comes_where_nobody_has_a_part() {
    let (small, other) = (Small::new(ADD, Vec::new()), Small::new(ADD, Vec::new()));
    let plan = Plan {
        start: 64 << 20,
        slots: 128,
        text: 64 << 10,
        constants: 4096,
    };
    let area = || CodeArena::new(plan, &small.window, &small.control);
    let part = small.window.owned_part(plan.start, plan.start + 4096);
    part.part().map(Prot::ReadWrite).unwrap();
    assert!(matches!(area(), Err(MapError::Taken)));
    drop(part);
    assert!(matches!(
        CodeArena::new(plan, &small.window, &other.control),
        Err(MapError::Taken)
    ));
    let mut area = area().unwrap();
    assert!(area.make_slots());
    let at = plan.text().start + 32;
    let function = [0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 7, 0, 0, 0, 0xc3].to_vec();
    let judged = area.judge(at, function).unwrap();
    assert!(area.place(judged));
    area.barrier().unwrap();
    area.open_pads(at);
    assert!(area.link(0, Some(at)));
    let signature = "i()".parse().unwrap();
    let entry = small
        .control
        .entry(plan.slot(0), &signature, Manner::default());
    assert_eq!(enter::integers(&entry, [0; 6]).integer, 7);
    assert!(area.link(0, None));
    // Text goes when nobody is inside this domain, and not when nobody is inside another.
    while_quiet(&other, |nobody| assert!(!area.remove(at, nobody)));
    while_quiet(&small, |nobody| assert!(area.remove(at, nobody)));
    // Gates of this domain leave x87 registers to the host.
    let judged = area.judge(at, vec![0xd9, 0xe8, 0xdd, 0xd8, 0xc3]);
    assert!(!area.place(judged.unwrap()));
}

/// A window is one domain's, and a C function pointer leads to a domain's own functions.
#[test]
fn what_is_a_domains_is_no_other_ones() {
    let (small, other) = (Small::new(ADD, Vec::new()), Small::new(ADD, Vec::new()));
    let second = Block::take().unwrap();
    let (pin, none) = (small.window.pin(), Arc::new(table(&[])));
    let made = pin.furnish(&second, none, &Terms::default());
    assert!(matches!(made, Err(MapError::Taken)));
    drop(pin);
    second.open();
    assert_eq!(second.lifecycle().now(), Phase::Closed);
    let entry = small.entry();
    assert!(matches!(
        other.control.pointer(entry.clone()),
        Err(MapError::Taken)
    ));
    let pointer = small.control.pointer(entry.clone()).unwrap();
    assert_eq!(small.control.pointer(entry).unwrap(), pointer);
    // For the next domain of the image, once this one is gone.
    let Small {
        control,
        text,
        window,
        ..
    } = small;
    drop(control);
    let next = Block::take().unwrap();
    let services = Arc::new(table(&[]));
    let terms = Terms::default();
    window.pin().furnish(&next, services, &terms).unwrap();
    next.open();
    STACK.set(text.layout().data);
    let signature = "l(ll)".parse().unwrap();
    let entry = next.entry(text.layout().text, &signature, Manner::default());
    assert_eq!(enter::integers(&entry, [1, 2, 0, 0, 0, 0]).integer, 3);
}

/// Eight integers, of which two are on the stack: none is read that no caller pushed.
#[test]
fn words_on_the_stack_are_the_callers() {
    // mov rax, gs:[r15d]; add rax, gs:[r15d + 8]; ret
    let text = [
        0x65, 0x67, 0x49, 0x8b, 0x07, 0x65, 0x67, 0x49, 0x03, 0x47, 0x08, 0xc3,
    ];
    let small = Small::new(&text, Vec::new());
    let signature = "l(llllllll)".parse().unwrap();
    let entry = small
        .control
        .entry(small.start(), &signature, Manner::default());
    let (none, words) = ([0; 6], [40u64, 2, 0]);
    for few in [&words[..0], &words[..1]] {
        let returned = enter::all(&entry, none, [0; 8], few);
        assert_eq!((returned.status, returned.integer), (REFUSED, 0));
    }
    assert_eq!(enter::integers(&entry, none).status, REFUSED);
    for enough in [&words[..2], &words[..]] {
        let returned = enter::all(&entry, none, [0; 8], enough);
        assert_eq!((returned.status, returned.integer), (STATUS_OK, 42));
    }
}

/// Nothing of a control stack is read or moved but by a service, in its own call.
#[test]
fn control_stacks_are_moved_in_services_only() {
    let small = Small::new(ADD, Vec::new());
    let nowhere = || {
        assert!(matches!(jump::mark(), Err(JumpError::NoService)));
        assert!(matches!(jump::jump(8), Err(JumpError::NoService)));
        assert!(matches!(jump::return_of(8), Err(JumpError::NoService)));
        shim::end_when_back(outcome::PANIC, 0, None);
        assert_eq!(stale::nesting(), 0);
        stale::forget_left();
    };
    nowhere();
    assert_eq!(small.call(1, 2).integer, 3);
    nowhere();
    assert_eq!(small.call(1, 2).integer, 3);
}

/// A switch may go anywhere: its entries find the way.
#[test]
fn a_switch_may_be_moved() {
    struct Nobody;
    impl Route for Nobody {
        fn route<'a>(&self, to: &'a Destinations, _: &Entry) -> Option<&'a Entry> {
            Some(to.real())
        }
    }
    let small = Small::new(ADD, Vec::new());
    let owner: Arc<dyn Route> = Arc::new(Nobody);
    let switch = Switch::new(Arc::downgrade(&owner), small.entry(), true);
    let moved = Box::new(switch);
    let to = moved.current().switch().unwrap();
    assert!(to.owner().is_some());
    assert_eq!(enter::integers(to.real(), [1, 2, 0, 0, 0, 0]).integer, 3);
    moved.ask(false);
    assert!(std::ptr::eq(moved.current(), to.real()));
}

#[test]
#[should_panic = "no such thread"]
fn slots_of_threads_that_never_were_are_not_touched() {
    let small = Small::new(ADD, Vec::new());
    small.control.data_stack(4000);
}
