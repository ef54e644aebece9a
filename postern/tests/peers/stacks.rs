//! Stacks, threads and processes.

use crate::guest::{ask, calling, error, plain, serving};
use crate::support;
use crate::support::{code, cold};
use postern::{FaultKind, PeerError};
use std::sync::{Arc, Barrier};

/// What the caller lacks is the caller's fault, before the peer begins.
#[test]
fn the_stack_is_checked_before_the_peer_begins() {
    let b = plain();
    let a = calling(&b.peer_export("add").unwrap().stack(1 << 40));
    for _ in 0..3 {
        let e = ask(&a, 1).unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::ServiceStack);
        assert!(a.is_poisoned() && !b.is_poisoned());
        a.reset().unwrap();
    }
    assert_eq!(b.counters().calls, 0);
    // A recursion that calls the peer at each level runs out of stack before a gate, never in the
    // peer.
    let deep = code(
        &[("peer", "l(l)")],
        &[("f", "l(l)")],
        "f: call peer
            movq %rax,%rdi
            call f
            ret",
    )
    .image();
    let d = cold(&deep)
        .deadline(None)
        .peer("peer", &b.peer_export("add").unwrap())
        .build()
        .unwrap();
    for _ in 0..3 {
        let f = d.func::<fn(i64) -> i64>("f").unwrap();
        let e = f.call(1).unwrap_err();
        assert_eq!(e.fault().unwrap().kind, FaultKind::ServiceStack);
        d.reset().unwrap();
    }
    assert!(!b.is_poisoned() && b.counters().faults.is_empty());
    assert!(b.counters().calls > 1000);
}

/// The caller's own data stack pointer does not matter to the peer, and comes back.
#[test]
fn a_forged_data_stack_pointer_harms_nobody() {
    let b = plain();
    let a = code(
        &[("peer", "l(l)")],
        &[("f", "l(l)")],
        "f: movq %r15,%rbx
            movq %rdi,%r15
            call peer
            xorq %r15,%rax
            movq %rbx,%r15
            ret",
    );
    let a = cold(&a.image())
        .peer("peer", &b.peer_export("add").unwrap())
        .build()
        .unwrap();
    let f = a.func::<fn(i64) -> i64>("f").unwrap();
    for forged in [1, 0x1_0000, 0xffff_ffff, -16, i64::MAX] {
        for _ in 0..2 {
            // r15 comes back as it was, whole or cut to the 32 bits that count.
            let x = f.call(forged).unwrap();
            let whole = forged.wrapping_add(1) ^ forged;
            let cut = forged.wrapping_add(1) ^ i64::from(forged as u32);
            assert!(x == whole || x == cut, "{forged:#x}: {x:#x}");
        }
    }
    assert!(!b.is_poisoned());
}

#[test]
fn many_threads_and_new_ones() {
    let b = plain();
    let a = calling(&b.peer_export("add").unwrap());
    for _ in 0..3 {
        let workers: Vec<_> = (0..8)
            .map(|i| {
                let a = a.clone();
                std::thread::spawn(move || {
                    let call = a.func::<fn(i64) -> i64>("call").unwrap();
                    for x in 0..500 {
                        assert_eq!(call.call(i * 1000 + x).unwrap(), i * 1000 + x + 1);
                    }
                })
            })
            .collect();
        for w in workers {
            w.join().unwrap();
        }
    }
    assert_eq!(b.counters().calls, 3 * 8 * 500);
    a.reset().unwrap();
    b.reset().unwrap();
}

/// On a coroutine's stack, where the control stack is the runtime's own.
#[test]
fn on_a_coroutines_stack() {
    let b = plain();
    let a = calling(&b.peer_export("add").unwrap());
    let trap = calling(&b.peer_export("trap").unwrap());
    let mut stack = vec![0u8; 512 << 10];
    support::on_stack(&mut stack, || {
        for x in 0..50 {
            assert_eq!(ask(&a, x).unwrap(), x + 1);
        }
        assert_eq!(ask(&trap, 1).unwrap(), error(PeerError::Fault));
    });
    b.reset().unwrap();
    assert_eq!(ask(&a, 1).unwrap(), 2);
}

/// The child of a fork finds both as the parent left them; who waits in the parent's other threads
/// is poisoned there.
#[test]
fn fork_with_peers() {
    support::succeeds_in_child("stacks::fork_with_peers", || {
        let (enter, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (e, l) = (enter.clone(), leave.clone());
        let b = serving(move |_, x| {
            if x == 1 {
                e.wait();
                l.wait();
            }
            x
        });
        let a = calling(&b.peer_export("service").unwrap());
        assert_eq!(ask(&a, 2).unwrap(), 2);
        let mine = a.clone();
        let call = std::thread::spawn(move || ask(&mine, 1));
        enter.wait();
        let status = support::fork(|| {
            let poisoned = a.is_poisoned() && b.is_poisoned();
            let reset = a.reset().is_ok() && b.reset().is_ok();
            poisoned && reset && ask(&a, 7).unwrap() == 7
        });
        assert_eq!(status, 0);
        leave.wait();
        assert_eq!(call.join().unwrap().unwrap(), 1);
        // From within: the child goes on in the call.
        let b = serving(|_, x| {
            let status = support::fork(|| true);
            x + i64::from(status)
        });
        let a = calling(&b.peer_export("service").unwrap());
        assert_eq!(ask(&a, 5).unwrap(), 5);
    });
}
