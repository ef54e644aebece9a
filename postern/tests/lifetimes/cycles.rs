//! Services that end each other's domains: on two threads and on three, in a ring, or in one
//! domain. Somebody goes on, and then all do.

use crate::scene::{Owned, Scene, Way, guarded, image};
use postern::{CallError, Caller, Domain, Module, Placement, Pool};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};

type Holders<T> = Arc<[Mutex<Option<T>>]>;

/// So many threads, each in a service of a domain of its own. All at once, each lets `end` loose on
/// what holds the next one's.
fn ring<T: Send + 'static>(
    count: usize,
    make: impl Fn(Box<dyn Fn() + Send + Sync>) -> (T, *const ()),
    end: impl Fn(T) + Send + Sync + Copy + 'static,
) {
    let holders: Holders<T> = (0..count).map(|_| Mutex::new(None)).collect();
    let start = Arc::new(Barrier::new(count));
    let threads: Vec<_> = (0..count)
        .map(|me| {
            let (holders, start) = (holders.clone(), start.clone());
            let owned = Scene::new(Way::Drop).owned();
            let next = holders.clone();
            let called = AtomicBool::new(false);
            let service = move || {
                // Whoever is asked to end by a thread that does not wait may get to its next
                // service before it is.
                if called.swap(true, Ordering::SeqCst) {
                    return;
                }
                start.wait();
                let holder = next[(me + 1) % count].lock().unwrap().take();
                end(holder.expect("each is ended once"));
                Owned::check(&owned);
            };
            let (holder, pointer) = make(Box::new(service));
            *holders[me].lock().unwrap() = Some(holder);
            pointer as usize
        })
        .collect();
    let threads: Vec<_> = threads
        .into_iter()
        .map(|pointer| {
            std::thread::spawn(move || {
                let call: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(pointer) };
                assert_eq!(call(5), 0);
                let ended = match postern::last_error() {
                    Some(CallError::Fault(fault)) => {
                        fault.kind == postern::FaultKind::AnotherThread
                    }
                    // It was done before anybody asked for its end.
                    None => true,
                    error => matches!(error, Some(CallError::Closed)),
                };
                assert!(ended);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn guarded_ring<T: Send + 'static>(
    test: &str,
    make: impl Fn(Box<dyn Fn() + Send + Sync>) -> (T, *const ()),
    end: impl Fn(T) + Send + Sync + Copy + 'static,
) {
    guarded(test, || {
        // Who waits for ever is ended.
        unsafe { libc::alarm(60) };
        for round in 0..40 {
            ring(2 + round % 2, &make, end);
        }
    });
}

fn domain(service: Box<dyn Fn() + Send + Sync>) -> (Domain, *const ()) {
    let builder = Domain::builder(image()).placement(Placement::Cold);
    let builder = builder.peer_open("p");
    let domain = builder
        .deadline(None)
        .service("s", move |_: &Caller<'_>, x: i64| {
            service();
            x
        })
        .build()
        .unwrap();
    let pointer = domain
        .function_pointer("f", &domain.signature("f").unwrap())
        .unwrap();
    (domain, pointer)
}

#[test]
fn services_that_close_each_others_domains() {
    let test = "cycles::services_that_close_each_others_domains";
    guarded_ring(test, domain, |domain| domain.close());
}

#[test]
fn services_that_drop_each_others_domains() {
    let test = "cycles::services_that_drop_each_others_domains";
    guarded_ring(test, domain, drop);
}

#[test]
fn services_that_reset_each_others_domains_are_refused() {
    let test = "cycles::services_that_reset_each_others_domains_are_refused";
    guarded_ring(test, domain, |domain| {
        assert!(domain.reset().is_err());
        drop(domain);
    });
}

#[test]
fn services_that_drop_each_others_modules() {
    let test = "cycles::services_that_drop_each_others_modules";
    let make = |service: Box<dyn Fn() + Send + Sync>| {
        let service = Arc::new(service);
        let module = Module::new(image(), move |builder| {
            let service = service.clone();
            builder
                .placement(Placement::Cold)
                .peer_open("p")
                .deadline(None)
                .service("s", move |_: &Caller<'_>, x: i64| {
                    service();
                    x
                })
        })
        .unwrap();
        let pointer = module
            .function_pointer("f", &module.domain().signature("f").unwrap())
            .unwrap();
        (module, pointer)
    };
    guarded_ring(test, make, |module| {
        // The old version is ended, with whoever is inside; then the module goes.
        let replacement = module.replacement(image()).probation(0).end_stragglers();
        let replaced = replacement
            .drain(std::time::Duration::ZERO)
            .apply()
            .unwrap();
        assert!(replaced.drained);
        drop(module);
    });
}

#[test]
fn services_that_give_each_others_domains_back_to_pools() {
    let test = "cycles::services_that_give_each_others_domains_back_to_pools";
    let make = |service: Box<dyn Fn() + Send + Sync>| {
        let service = Mutex::new(Some(service));
        let make = move || {
            let service = service.lock().unwrap().take();
            Ok::<_, std::convert::Infallible>(domain(service.unwrap_or(Box::new(|| {}))).0)
        };
        let pool = Pool::builder(make).size(1).build().unwrap();
        let pooled = pool.get_owned().unwrap();
        let pointer = pooled
            .function_pointer("f", &pooled.signature("f").unwrap())
            .unwrap();
        ((pooled, pool), pointer)
    };
    guarded_ring(test, make, |(pooled, pool)| {
        drop(pooled);
        drop(pool);
    });
}

/// Both are inside the domain that both close; whoever is first waits for the other one, who waits
/// for it.
#[test]
fn two_services_that_close_their_own_domain() {
    guarded("cycles::two_services_that_close_their_own_domain", || {
        unsafe { libc::alarm(60) };
        for _ in 0..40 {
            let start = Arc::new(Barrier::new(2));
            let kept: Arc<Mutex<Option<Domain>>> = Arc::default();
            let (meet, last) = (start.clone(), kept.clone());
            let (domain, pointer) = domain(Box::new(move || {
                let domain = last.lock().unwrap().clone();
                meet.wait();
                drop(last.lock().unwrap().take());
                if let Some(domain) = domain {
                    domain.close();
                }
            }));
            *kept.lock().unwrap() = Some(domain);
            let pointer = pointer as usize;
            let threads = [(); 2].map(|()| {
                std::thread::spawn(move || {
                    let call: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(pointer) };
                    assert_eq!(call(5), 0);
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
        }
    });
}
