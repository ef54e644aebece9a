//! What handlers may call.

use super::{domain, number, victim, while_flooded, with_service};
use postern::CallError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn handlers_call_what_they_are_allowed() {
    let domain = domain();
    let upcall = domain.upcall("serves").unwrap();
    {
        let attachment = upcall.attach().unwrap();
        attachment.send(41, 0);
        assert_eq!(attachment.counters().ended, 1);
        let error = attachment.take_fault().unwrap();
        assert!(error.to_string().contains("Upcall::allow"), "{error}");
        domain.reset().unwrap();
    }
    let attachment = unsafe { upcall.allow("s") }.attach().unwrap();
    attachment.send(41, 0);
    assert_eq!(number(&domain, "latest"), 42);
    while_flooded(&attachment, 500, |_| {
        std::hint::black_box(vec![1; 100]);
    });
}

#[test]
fn services_of_handlers_enter_no_domain() {
    static REFUSED: AtomicU64 = AtomicU64::new(0);
    let victim = victim();
    let add = victim.func::<fn(i32, i32) -> i32>("add").unwrap();
    let domain = with_service(move |_, x| {
        match add.call(x, 1) {
            Err(CallError::InsideExtension) => REFUSED.fetch_add(1, SeqCst),
            _ => 0,
        };
        assert!(!unsafe { postern::unwind(0) });
        7
    });
    let attachment = unsafe { domain.upcall("serves").unwrap().allow("s") }
        .attach()
        .unwrap();
    for n in 1..20 {
        attachment.send(1, 1);
        assert_eq!(REFUSED.load(SeqCst), n);
        assert_eq!(number(&domain, "latest"), 7);
    }
}
