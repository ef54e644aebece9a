//! What imports lead to is the block's: it stays as long as a call is inside, and is for the block
//! that it was made for.

#[allow(dead_code, reason = "each test program uses another part")]
mod small;

use postern_gates::block::{Block, Terms};
use postern_gates::callee::{Callee, ServiceTable};
use postern_gates::control::Control;
use postern_gates::enter;
use postern_gates::gate::{FACT_XMM, STATUS_ENDED, STATUS_OK};
use postern_gates::map::MapError;
use postern_gates::outcome::{self, Refusal};
use postern_gates::peer::Peer;
use postern_gates::shim::Body;
use postern_gates::window::Window;
use postern_image::Type;
use small::{ADD, REFUSED, Small, calls_a_service, last_end, last_refusal, table, triple};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Whoever drops a domain's parts when, a call inside finds all that it uses, its own closure too.
#[test]
fn a_closure_stays_as_long_as_it_runs() {
    static GONE: AtomicBool = AtomicBool::new(false);
    static PARTS: Mutex<Option<(Block, Window)>> = Mutex::new(None);
    struct Dropping(Box<u64>);
    impl Body for Dropping {
        fn invoke(&self, _: &Control, _: &[u64; 6], _: &[u64; 8]) -> u64 {
            drop(PARTS.lock().unwrap().take());
            assert!(!GONE.load(Ordering::SeqCst));
            *self.0
        }
    }
    impl Drop for Dropping {
        fn drop(&mut self) {
            GONE.store(true, Ordering::SeqCst);
        }
    }
    let closure = Callee::closure(Dropping(Box::new(21)), Some(Type::I64));
    let small = Small::new(&calls_a_service(), vec![closure]);
    let (entry, base, number) = (small.entry(), small.window.base(), small.control.number());
    *PARTS.lock().unwrap() = Some((small.control, small.window));
    drop((small.text, small.services));
    // The call comes back into its own text.
    let returned = enter::integers(&entry, [0; 6]);
    assert_eq!((returned.status, returned.integer), (STATUS_OK, 21));
    let next = Small::new(ADD, Vec::new());
    assert_ne!((next.window.base(), next.control.number()), (base, number));
    assert_eq!(enter::integers(&entry, [0; 6]).status, REFUSED);
    assert_eq!(last_refusal(), Refusal::Closed);
}

/// And goes with the domain otherwise.
#[test]
fn a_closure_goes_with_its_domain() {
    struct Counted(#[allow(dead_code, reason = "counted")] Arc<()>);
    impl Body for Counted {
        fn invoke(&self, _: &Control, _: &[u64; 6], _: &[u64; 8]) -> u64 {
            0
        }
    }
    let count = Arc::new(());
    let closure = Callee::closure(Counted(count.clone()), None);
    let small = Small::new(&calls_a_service(), vec![closure]);
    assert_eq!(
        (small.call(1, 2).status, Arc::strong_count(&count)),
        (STATUS_OK, 2)
    );
    drop(small);
    assert_eq!(Arc::strong_count(&count), 1);
}

/// However much stack a service is said to need, the gates do not take it for a peer.
#[test]
fn a_service_that_needs_all_stack_is_no_peer() {
    let small = Small::new(&calls_a_service(), vec![triple()]);
    let needy = Callee::clone(&triple());
    let all = ServiceTable::new([(&needy, usize::MAX, Some(Type::I64))]);
    let other = Block::take().unwrap();
    drop(small.control);
    let pin = small.window.pin();
    pin.furnish(&other, Arc::new(all), &Terms::default())
        .unwrap();
    drop(pin);
    other.open();
    let signature = "l(ll)".parse().unwrap();
    let entry = other.entry(small.text.layout().text, &signature, Default::default());
    assert_eq!(enter::integers(&entry, [1; 6]).status, STATUS_ENDED);
    assert_eq!(last_end().0.kind, outcome::SERVICE_STACK);
}

/// A peer clears what its caller can read: of a caller with other facts it would be too little.
#[test]
fn a_peer_is_for_callers_of_its_facts() {
    let called = Small::new(ADD, Vec::new());
    let peer = |facts| {
        let signature = "l(ll)".parse().unwrap();
        Peer::new(
            &called.control,
            called.start(),
            &signature,
            facts,
            0,
            16 << 10,
        )
    };
    let caller = Small::new(&calls_a_service(), vec![Callee::peer(peer(0), ())]);
    assert_eq!(caller.call(20, 22).integer, 42);
    // Text that reads vectors is another caller, and so is one that does not.
    let wrong = Callee::peer(peer(FACT_XMM), ());
    let small = Small::new(ADD, Vec::new());
    let (text, window) = (small.text.clone(), small.window);
    drop((small.control, text));
    let made = |facts, callee: &Callee| {
        let (block, table) = (
            Block::take().unwrap(),
            Arc::new(table(std::slice::from_ref(callee))),
        );
        let terms = Terms {
            facts,
            ..Terms::default()
        };
        window.pin().furnish(&block, table, &terms)
    };
    assert!(matches!(made(0, &wrong), Err(MapError::Taken)));
    assert!(made(FACT_XMM, &wrong).is_ok());
    let right = Callee::peer(peer(0), ());
    assert!(matches!(made(FACT_XMM, &right), Err(MapError::Taken)));
    assert!(made(0, &right).is_ok());
    // The same of what is bound later, and nothing is bound to what is no peer's.
    assert!(caller.control.bind(0, peer(0)).is_ok());
    assert!(caller.control.bind(0, peer(FACT_XMM)).is_err());
    assert!(caller.control.bind(1, peer(0)).is_err());
    assert_eq!(caller.call(20, 23).integer, 43);
    let plain = Small::new(&calls_a_service(), vec![triple()]);
    assert!(plain.control.bind(0, peer(0)).is_err());
    assert_eq!(plain.call(5, 0).integer, 15);
}
