//! Each kind of function.

use crate::scene::{Scene, WAYS, Way, guarded};
use crate::support;
use postern::policy::{Input, Request, Sink};
use postern::{Asked, Caller, Decider, Domain, DomainBuilder, Fault, Policy, Question, Verdict};
use std::sync::{Arc, Mutex};

fn nothing(builder: DomainBuilder) -> DomainBuilder {
    builder.service("s", |_: &Caller<'_>, x: i64| x)
}

/// Plays every way with one kind of function.
fn every_way(test: &str, function: &str, argument: i64, kind: impl Fn(&Arc<Scene>) -> Configure) {
    guarded(test, || {
        for way in WAYS {
            let scene = Scene::new(way);
            let configure = kind(&scene);
            scene.play(function, argument, configure);
            scene.all_is_dropped();
        }
    });
}

type Configure = Box<dyn Fn(DomainBuilder) -> DomainBuilder + Send + Sync>;

#[test]
fn service_closures() {
    every_way("callbacks::service_closures", "f", 1, |scene| {
        let scene = scene.clone();
        Box::new(move |builder| {
            let (scene, owned) = (scene.clone(), scene.owned());
            builder.service("s", move |_: &Caller<'_>, x: i64| {
                scene.act(&owned);
                owned.check();
                x
            })
        })
    });
}

/// A C service has no closure of the domain's; what is used after it is the table, the guard and
/// the decider.
#[test]
fn c_services() {
    static NOW: Mutex<Option<Arc<Scene>>> = Mutex::new(None);
    extern "C" fn service(x: i64) -> i64 {
        let scene = NOW.lock().unwrap().clone().unwrap();
        let owned = Scene::new(Way::Drop).owned();
        scene.act(&owned);
        x
    }
    every_way("callbacks::c_services", "f", 1, |scene| {
        *NOW.lock().unwrap() = Some(scene.clone());
        let scene = scene.clone();
        Box::new(move |builder| {
            let owned = scene.owned();
            let types = "l(l)".parse().unwrap();
            let decider = Decider::closure(move |_: &Caller<'_>, _: &Question<'_>| {
                owned.check();
                Verdict::Allow
            });
            unsafe { builder.service_c("s", service as *const (), types, 64 << 10) }
                .decider(decider)
        })
    });
}

#[test]
fn functions_of_a_policy() {
    every_way("callbacks::functions_of_a_policy", "pid", 0, |scene| {
        let scene = scene.clone();
        Box::new(move |builder| {
            let (scene, owned) = (scene.clone(), scene.owned());
            let decide = move |_: &Caller<'_>, _: &Request| {
                scene.act(&owned);
                owned.check();
                Verdict::Allow
            };
            nothing(builder).policy(Policy::custom(Policy::compute(), decide))
        })
    });
}

#[test]
fn deciders_about_services_and_system_calls() {
    let test = "callbacks::deciders_about_services_and_system_calls";
    guarded(test, || {
        for (function, way) in WAYS.iter().flat_map(|&w| [("f", w), ("pid", w)]) {
            let scene = Scene::new(way);
            let by = scene.clone();
            scene.play(function, 1, move |builder| {
                let (scene, owned) = (by.clone(), by.owned());
                let decider = Decider::closure(move |caller, question| {
                    let system = matches!(question.call, Asked::SystemCall(_));
                    assert_eq!(system, function == "pid");
                    scene.act(&owned);
                    owned.check();
                    caller.abort("the decider has seen enough");
                    Verdict::Allow
                });
                nothing(builder).policy(Policy::compute()).decider(decider)
            });
            scene.all_is_dropped();
        }
    });
}

/// The decider is a domain whose own service ends the domain that it is asked about; or whose
/// service ends the decider.
#[test]
fn deciders_that_are_modules() {
    guarded("callbacks::deciders_that_are_modules", || {
        let image = support::code(
            &[("end", "v()")],
            &[("decide", "l(p)")],
            "decide: call end
                xorl %eax,%eax
                ret",
        )
        .image();
        // Who is inside the decider is inside the other domain, too: that one's handle is not the
        // last of both.
        for way in [Way::Drop, Way::Close, Way::Module, Way::Pool] {
            let scene = Scene::new(way);
            let (by, image) = (scene.clone(), image.clone());
            scene.play("f", 1, move |builder| {
                let (scene, owned) = (by.clone(), by.owned());
                let module = support::cold(&image)
                    .service("end", move |_: &Caller<'_>| {
                        if scene.calls() == 0 {
                            scene.act(&owned);
                        }
                        owned.check();
                    })
                    .build()
                    .unwrap();
                nothing(builder).decider(Decider::module(&module).unwrap())
            });
            scene.all_is_dropped();
        }
    });
}

#[test]
fn standard_streams() {
    let test = "callbacks::standard_streams";
    guarded(test, || {
        for (number, way) in WAYS.iter().flat_map(|&w| [(0, w), (1, w), (2, w)]) {
            let scene = Scene::new(way);
            let by = scene.clone();
            let function = if number == 0 { "read" } else { "write" };
            scene.play(function, number, move |builder| {
                let (scene, owned) = (by.clone(), by.owned());
                let policy = Policy::compute();
                let act = move || {
                    scene.act(&owned);
                    owned.check();
                };
                let policy = match number {
                    0 => policy.stdin(Input::function(move |to: &mut [u8]| {
                        act();
                        to.fill(1);
                        to.len()
                    })),
                    1 => policy.stdout(Sink::function(move |_: &[u8]| act())),
                    _ => policy.stderr(Sink::function(move |_: &[u8]| act())),
                };
                nothing(builder).policy(policy)
            });
            scene.all_is_dropped();
        }
    });
}

/// The call has left the extension by then, so there is no caller to get a handle from.
#[test]
fn handlers_of_faults() {
    guarded("callbacks::handlers_of_faults", || {
        for way in [Way::Drop, Way::Module, Way::Pool, Way::OtherDropsFirst] {
            let scene = Scene::new(way);
            let by = scene.clone();
            scene.play("fault", 0, move |builder| {
                let (scene, owned) = (by.clone(), by.owned());
                nothing(builder).on_fault(move |_: &Fault| {
                    scene.act(&owned);
                    owned.check();
                })
            });
            scene.all_is_dropped();
        }
    });
}

/// A service of a peer's ends the caller, and the peer with it; bound for good, and bound later.
#[test]
fn services_of_peers() {
    guarded("callbacks::services_of_peers", || {
        for way in [Way::Drop, Way::Close, Way::Module, Way::Pool] {
            let scene = Scene::new(way);
            let by = scene.clone();
            scene.play("to_peer", 1, move |builder| {
                let (scene, owned) = (by.clone(), by.owned());
                let peer = support::cold(crate::scene::image())
                    .peer_open("p")
                    .service("s", move |_: &Caller<'_>, x: i64| {
                        if scene.calls() == 0 {
                            scene.act(&owned);
                        }
                        owned.check();
                        x
                    })
                    .build()
                    .unwrap();
                nothing(builder).peer("p", &peer.peer_export("f").unwrap())
            });
            scene.all_is_dropped();
        }
    });
}

/// The static constructors call a service: of a domain that nobody holds yet, and of one that
/// begins anew.
#[test]
fn constructors_and_panics() {
    guarded("callbacks::constructors_and_panics", || {
        let image = support::code(
            &[("s", "v()")],
            &[("__postern_init", "v()"), ("f", "v()")],
            "__postern_init: call s
                ret
             f: ud2",
        )
        .image();
        let scene = Scene::new(Way::Drop);
        let owned = scene.owned();
        let failed = support::cold(&image).service("s", move |caller: &Caller<'_>| {
            let domain = caller.domain();
            domain.close();
            drop(domain);
            owned.check();
        });
        assert!(failed.build().is_err());
        scene.all_is_dropped();

        // What the closure owns panics when it is dropped, under the gate: the panic goes on in the
        // host's call.
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("on the way out");
            }
        }
        let kept: Arc<Mutex<Option<Domain>>> = Arc::default();
        let (panics, last) = (Panics, kept.clone());
        let domain = support::cold(&image)
            .service("s", |_: &Caller<'_>| {})
            .on_fault(move |_: &Fault| {
                let _owns = &panics;
                drop(last.lock().unwrap().take());
            })
            .build()
            .unwrap();
        let pointer = domain
            .function_pointer("f", &domain.signature("f").unwrap())
            .unwrap();
        let call: extern "C" fn() = unsafe { std::mem::transmute(pointer) };
        *kept.lock().unwrap() = Some(domain);
        call();
        assert!(kept.lock().unwrap().is_none());
    });
}
