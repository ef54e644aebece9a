//! Results, rings, types, authority.

use crate::guest::{Entry, ask, caller, calling, data_with, error, plain, serving};
use crate::support::{code, cold};
use postern::{
    Asked, BindError, Caller, Decider, Domain, InstantiateError, Limits, PeerError, Question,
    SymbolError, Verdict,
};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

#[test]
fn a_peer_is_called_and_returns() {
    let b = plain();
    let a = calling(&b.peer_export("add").unwrap());
    let entry = a.func::<fn(i64) -> i64>("call").unwrap();
    for x in 0..1000 {
        assert_eq!(entry.call(x).unwrap(), x + 1);
    }
    assert_eq!(
        a.func::<fn(i64) -> i64>("twice").unwrap().call(4).unwrap(),
        10
    );
    // A jump to the slot: the peer returns to the host's gate.
    let raw = a.func::<fn(i64) -> i64>("raw").unwrap();
    for x in 0..100 {
        assert_eq!(raw.call(x).unwrap() + entry.call(x).unwrap(), 2 * x + 2);
    }
    assert_eq!(b.counters().calls, 1202);
    assert_eq!(a.counters().calls, 1201);
    assert_eq!(a.counters().services["peer"], 1202);
    // The called domain stays alive without its host's handle.
    drop(b);
    assert_eq!(entry.call(1).unwrap(), 2);
    assert_eq!(postern::nesting(), 0);
}

/// Two domains whose `f(n)` asks the other one for `n - 1`, and says the reason of a refusal.
fn ring(depths: [Option<u32>; 2]) -> [Domain; 2] {
    let image = code(
        &[
            ("next", "l(l)"),
            ("__postern_peer_error", "i()"),
            ("seen", "v(i)"),
        ],
        &[("f", "l(l)")],
        "f: testq %rdi,%rdi
            je 1f
            PUSH %rdi
            decq %rdi
            call next
            PUSH %rax
            call __postern_peer_error
            movl %eax,%edi
            call seen
            POP %rax
            POP %rdi
            addq %rdi,%rax
            ret
         1: xorl %eax,%eax
            ret",
    )
    .image();
    let domains = depths.map(|depth| {
        let mut limits = Limits::default();
        limits.call_depth = depth;
        cold(&image)
            .limits(limits)
            .peer_open("next")
            .service("seen", |_: &Caller<'_>, e: i32| {
                SEEN.with(|s| s.set(s.get() | 1 << e));
            })
            .build()
            .unwrap()
    });
    for i in [0, 1] {
        let export = domains[1 - i].peer_export("f").unwrap();
        domains[i].bind_peer("next", &export).unwrap();
    }
    domains
}

thread_local! {
    static SEEN: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

#[test]
fn peers_in_a_ring_up_to_the_limit() {
    for depths in [[None, None], [Some(1000), None], [Some(1000), Some(1000)]] {
        let [a, b] = ring(depths);
        let f = a.func::<fn(i64) -> i64>("f").unwrap();
        for n in [0, 1, 2, 3, 10, 64] {
            SEEN.set(0);
            assert_eq!(f.call(n).unwrap(), n * (n + 1) / 2, "{depths:?}");
            assert_eq!(SEEN.get(), u32::from(n != 0), "{depths:?} {n}");
        }
        // The 65th call from a call is refused; nobody is poisoned, and all others get their
        // answers.
        SEEN.set(0);
        assert_eq!(f.call(100).unwrap(), (36..=100).sum::<i64>(), "{depths:?}");
        assert_eq!(SEEN.get(), 1 | 1 << PeerError::TooDeep as u32);
        assert!(!a.is_poisoned() && !b.is_poisoned());
        assert_eq!(f.call(10).unwrap(), 55);
        a.reset().unwrap();
        b.reset().unwrap();
        drop(b);
        SEEN.set(0);
        assert_eq!(f.call(1).unwrap(), 1);
        assert_eq!(SEEN.get(), 1 << PeerError::Closed as u32);
    }
}

/// A ring whose host's services take part, with a domain that calls itself.
#[test]
fn peers_services_and_a_domain_that_calls_itself() {
    let entry: Arc<OnceLock<Entry>> = Arc::default();
    let image = code(
        &[("next", "l(l)"), ("host", "l(l)")],
        &[("f", "l(l)")],
        "f: testq %rdi,%rdi
            je 1f
            PUSH %rdi
            decq %rdi
            testl $1,%edi
            je 2f
            call next
            jmp 3f
         2: call host
         3: POP %rdi
            addq %rdi,%rax
            ret
         1: xorl %eax,%eax
            ret",
    )
    .image();
    let e = entry.clone();
    let d = cold(&image)
        .peer_open("next")
        .service("host", move |c: &Caller<'_>, n: i64| {
            assert!(c.domain().base() != 0);
            e.get().unwrap().call(n).unwrap()
        })
        .build()
        .unwrap();
    d.bind_peer("next", &d.peer_export("f").unwrap()).unwrap();
    let f = d.func::<fn(i64) -> i64>("f").unwrap();
    assert!(entry.set(f.clone()).is_ok());
    for n in [1, 2, 3, 30, 60] {
        assert_eq!(f.call(n).unwrap(), n * (n + 1) / 2);
    }
}

#[test]
fn types_are_compared_when_a_peer_is_bound() {
    let b = plain();
    assert!(matches!(
        b.peer_export("none"),
        Err(SymbolError::Missing { .. })
    ));
    for name in ["seven", "nine"] {
        assert!(matches!(
            b.peer_export(name),
            Err(SymbolError::Parameters(_))
        ));
    }
    let floats = b.peer_export("add_float").unwrap();
    let refused = cold(&caller()).peer("peer", &floats).build().unwrap_err();
    assert!(matches!(
        refused.cause(),
        InstantiateError::Signature { .. }
    ));
    let refused = cold(&caller()).build().unwrap_err();
    assert!(matches!(refused.cause(), InstantiateError::Unresolved(_)));
    let a = cold(&caller()).peer_open("peer").build().unwrap();
    assert!(matches!(
        a.bind_peer("peer", &floats),
        Err(BindError::Signature { .. })
    ));
    let add = b.peer_export("add").unwrap();
    for name in ["__postern_peer_error", "call", "other"] {
        assert!(matches!(
            a.bind_peer(name, &add),
            Err(BindError::NotOpen(_))
        ));
    }
    // Bound anew, calls go there.
    a.bind_peer("peer", &add).unwrap();
    assert_eq!(ask(&a, 1).unwrap(), 2);
    let other = serving(|_, x| x * 7);
    a.bind_peer("peer", &other.peer_export("service").unwrap())
        .unwrap();
    assert_eq!(ask(&a, 2).unwrap(), 14);
    // That does not keep it alive.
    drop(other);
    assert_eq!(ask(&a, 2).unwrap(), error(PeerError::Closed));
}

/// Each has its own authority and its own memory.
#[test]
fn a_peer_runs_with_its_own_authority_and_stack() {
    let b = code(
        &[("who", "l()")],
        &[("f", "l(p)")],
        // Its own memory at the offset, and its own service.
        "f: movq %gs:(%edi),%rbx
            call who
            leaq (%rax,%rbx),%rax
            movl %r15d,%ecx
            shrl $18,%ecx
            ret
         .data
         .quad 70",
    );
    let (ours, theirs): (Arc<OnceLock<u64>>, Arc<OnceLock<u64>>) = Default::default();
    let who = |base: &Arc<OnceLock<u64>>, n: i64| {
        let base = base.clone();
        move |c: &Caller<'_>| {
            assert_eq!(c.domain().base(), *base.get().unwrap());
            n
        }
    };
    let b = cold(&b.image())
        .service("who", who(&theirs, 7))
        .build()
        .unwrap();
    theirs.set(b.base()).unwrap();
    let image = code(
        &[("f", "l(p)"), ("who", "l()")],
        &[("g", "l(p)")],
        "g: call f
            PUSH %rax
            call who
            POP %rcx
            leaq (%rax,%rcx),%rax
            ret
         .data
         .quad 500",
    );
    let a = cold(&image.image())
        .peer("f", &b.peer_export("f").unwrap())
        .service("who", who(&ours, 1000))
        .build()
        .unwrap();
    ours.set(a.base()).unwrap();
    let data = data_with(&a, 500);
    assert_eq!(data, data_with(&b, 70));
    for _ in 0..3 {
        let g = a.func::<fn(postern::Offset) -> i64>("g").unwrap();
        assert_eq!(g.call(data).unwrap(), 1077);
    }
}

/// The caller's decider is asked about calls of peers as about services, and nothing goes by it.
#[test]
fn deciders_and_peers() {
    let b = plain();
    let asked: Arc<AtomicU32> = Arc::default();
    let n = asked.clone();
    let a = calling(&b.peer_export("add").unwrap());
    for x in 0..3 {
        assert_eq!(ask(&a, x).unwrap(), x + 1);
    }
    let decide = move |_: &Caller<'_>, question: &Question<'_>| {
        n.fetch_add(1, SeqCst);
        match question.call {
            Asked::Service { name, integers, .. } => {
                assert_eq!((name, integers.len()), ("peer", 1));
                match integers[0] {
                    7 => Verdict::Deny(13),
                    8 => Verdict::Emulate(99, Vec::new()),
                    _ => Verdict::Allow,
                }
            }
            _ => panic!("no call of the system"),
        }
    };
    a.set_decider(Some(Decider::closure(decide)));
    for x in 0..3 {
        assert_eq!(ask(&a, x).unwrap(), x + 1);
    }
    let calls = b.counters().calls;
    assert_eq!(ask(&a, 7).unwrap(), error(PeerError::Denied));
    assert_eq!(ask(&a, 8).unwrap(), 99);
    assert_eq!(b.counters().calls, calls);
    assert_eq!(asked.load(SeqCst), 5);
    a.set_decider(None);
    assert_eq!(ask(&a, 7).unwrap(), 8);
    assert_eq!(asked.load(SeqCst), 5);
}

/// The header for extensions has the same numbers.
#[test]
fn the_header_names_every_error() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../toolchain/include/postern/extension.h"
    );
    let header = std::fs::read_to_string(path).unwrap();
    for (name, error) in [
        ("FAULT", PeerError::Fault),
        ("POISONED", PeerError::Poisoned),
        ("BUSY", PeerError::Busy),
        ("CLOSED", PeerError::Closed),
        ("UNBOUND", PeerError::Unbound),
        ("TOO_DEEP", PeerError::TooDeep),
        ("NO_ROOM", PeerError::NoRoom),
        ("TIME", PeerError::Time),
        ("INTERRUPTED", PeerError::Interrupted),
        ("EXITED", PeerError::Exited),
        ("THREAD", PeerError::Thread),
        ("DENIED", PeerError::Denied),
    ] {
        let line = format!("POSTERN_PEER_{name} = {}", error as u32);
        assert_eq!(header.matches(&line).count(), 1, "{line}");
    }
}
