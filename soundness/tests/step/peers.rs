//! Domains that call each other as peers.

use crate::fixture::*;
use postern::{Caller, Domain, DomainBuilder, Fault, FaultKind, Image, Placement};
use postern_image::ImageBuilder;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// The caller of a peer sees a 0, and this says why. (The watchdog may see a call before the gate
/// has looked at the domain's state.)
pub fn note(fault: &Fault) {
    use FaultKind::{AnotherThread, ServiceStack, Trap};
    if !matches!(fault.kind, Trap | AnotherThread | ServiceStack) {
        INNER.store(fault_kind(fault.kind), Ordering::Relaxed);
    }
}

/// A call of a domain whose import is another's `f`, each with its text and call depth.
pub fn peers(
    signature: &str,
    outer: (&[&[u8]], Option<u32>),
    inner: (&[&[u8]], Option<u32>),
    expected: Expected,
) -> Fixture {
    let domain = |(text, depth): (&[&[u8]], Option<u32>), import| {
        let mut limits = limits();
        limits.call_depth = depth;
        Domain::builder(&image(&text.concat(), import, signature))
            .limits(limits)
            .placement(Placement::Cold)
    };
    let inner = domain(inner, None).on_fault(note).build().unwrap();
    let outer = domain(outer, Some(signature))
        .peer("s", &inner.peer_export("f").unwrap())
        .build()
        .unwrap();
    let mut fixture = fixture(outer, &[20], &[20.0], expected);
    fixture.inner.push(inner);
    fixture
}

/// A domain whose service needs more stack than there is.
pub fn without_room(image: &Image) -> DomainBuilder {
    extern "C" fn never() {}
    let signature = "i(i)".parse().unwrap();
    let builder = Domain::builder(image)
        .limits(limits())
        .placement(Placement::Cold);
    // SAFETY: the function takes nothing and is never called.
    unsafe { builder.service_c("s", never as *const (), signature, 1 << 44) }
}

/// A peer whose service does something to the caller's domain.
pub fn peer_whose_service(acts: fn(&Domain), expected: Expected) -> Fixture {
    static OUTER: Mutex<Option<Domain>> = Mutex::new(None);
    *OUTER.lock().unwrap() = None;
    let text = [&CALL_SLOT[..], &PLUS_ONE].concat();
    let inner = Domain::builder(&image(&text, Some("i(i)"), "i(i)"))
        .limits(limits())
        .service("s", move |_: &Caller<'_>, x: i32| {
            let outer = OUTER.lock().unwrap().clone();
            outer.iter().for_each(acts);
            ACTED.store(true, Ordering::Relaxed);
            x
        })
        .on_fault(note)
        .build()
        .unwrap();
    let outer = Domain::builder(&image(&text, Some("i(i)"), "i(i)"))
        .limits(limits())
        .placement(Placement::Cold)
        .peer("s", &inner.peer_export("f").unwrap())
        .build()
        .unwrap();
    let mut fixture = fixture(outer, &[20], &[], expected);
    fixture.inner.push(inner);
    // Once in peace, so that the thread has its data stacks.
    assert_eq!(fixture.call(), 22);
    *OUTER.lock().unwrap() = Some(fixture.domain.clone());
    fixture
}

/// Two domains that call each other: the outer one's `f` the inner one's, that one the outer one's
/// `h`.
pub fn peers_in_a_ring() -> Fixture {
    let text = [&CALL_SLOT[..], &PLUS_ONE, &INCREMENT].concat();
    let signature = || Some("i(i)".parse().unwrap());
    let mut builder = ImageBuilder::new(&*text);
    builder.import("s", signature());
    builder.export("f", 0, signature());
    builder.export("h", 9, signature());
    let image = Image::from_bytes(&builder.build().unwrap()).unwrap();
    let domain = || {
        Domain::builder(&image)
            .limits(limits())
            .placement(Placement::Cold)
            .peer_open("s")
            .on_fault(note)
            .build()
            .unwrap()
    };
    let (outer, inner) = (domain(), domain());
    outer
        .bind_peer("s", &inner.peer_export("f").unwrap())
        .unwrap();
    inner
        .bind_peer("s", &outer.peer_export("h").unwrap())
        .unwrap();
    let mut fixture = fixture(outer, &[20], &[], Expected::Integer(23));
    fixture.inner.push(inner);
    fixture
}
