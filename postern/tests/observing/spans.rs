//! Spans of `tracing`, as a subscriber of the host's sees them.
use super::support::{code, cold, succeeds_in_child};
use super::{extension, nothing};
use postern::{HotWindow, Placement, hot_window};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Spans by name, each with its fields.
static SEEN: Mutex<Vec<(&str, BTreeMap<&str, String>)>> = Mutex::new(Vec::new());

struct Collector(AtomicU64);

struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("postern")
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(BTreeMap::new());
        span.record(&mut fields);
        SEEN.lock()
            .unwrap()
            .push((span.metadata().name(), fields.0));
        Id::from_u64(self.0.fetch_add(1, Ordering::SeqCst))
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The one span of this name since the last question.
fn only(name: &str) -> BTreeMap<&'static str, String> {
    let mut seen = SEEN.lock().unwrap();
    let (mut found, rest): (Vec<_>, Vec<_>) = seen.drain(..).partition(|(n, _)| *n == name);
    *seen = rest;
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    found.remove(0).1
}

#[test]
fn a_subscriber_sees_what_happens() {
    succeeds_in_child("spans::a_subscriber_sees_what_happens", || {
        tracing::subscriber::set_global_default(Collector(AtomicU64::new(1))).unwrap();
        let image = extension();
        let load = only("postern.load");
        assert_eq!(load["image"], "image");
        assert!(load["bytes"].parse::<u64>().unwrap() > 1000);
        let builder = cold(&image).name("worker").service("s", nothing);
        let d = builder.build().unwrap();
        let made = only("postern.instantiate");
        assert_eq!((&*made["image"], &*made["domain"]), ("image", "worker"));
        d.func::<fn()>("trap").unwrap().call().unwrap_err();
        let fault = only("postern.fault");
        assert_eq!((&*fault["domain"], &*fault["image"]), ("worker", "image"));
        assert_eq!(fault["kind"], "\"trap\"");
        assert!(fault["offset"].parse::<u32>().unwrap() > 0);
        d.reset().unwrap();
        assert_eq!(only("postern.reset")["domain"], "worker");
        if hot_window() == HotWindow::Free {
            d.set_placement(Placement::Hot);
            let moved = only("postern.move");
            assert_eq!(
                (&*moved["domain"], &*moved["to"]),
                ("worker", "\"hot window\"")
            );
            assert!(moved["micros"].parse::<u64>().is_ok());
            d.set_placement(Placement::Cold);
            assert_eq!(only("postern.move")["to"], "\"other window\"");
        }
        assert!(SEEN.lock().unwrap().is_empty());
    });
}

/// Moves may be made by a call, in the gate, where nobody could take a panic.
#[test]
fn panics_about_moves_go_no_further() {
    struct Panics;
    impl Subscriber for Panics {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.name() == "postern.move"
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            panic!("on purpose")
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }
    succeeds_in_child("spans::panics_about_moves_go_no_further", || {
        tracing::subscriber::set_global_default(Panics).unwrap();
        let image = code(
            &[("s", "v()")],
            &[("served", "v()"), ("one", "i(i)")],
            "served: call s\nret\none: movl $1,%eax\nret",
        )
        .image();
        if hot_window() != HotWindow::Free {
            return;
        }
        let (inside, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (a, b) = (inside.clone(), go.clone());
        let waits = move |_: &postern::Caller<'_>| {
            a.wait();
            b.wait();
        };
        let builder = postern::Domain::builder(&image).deadline(None);
        let auto = builder.service("s", waits).build().unwrap();
        let (d, one) = (auto.clone(), auto.func::<fn(i32) -> i32>("one").unwrap());
        let thread = std::thread::spawn(move || d.func::<fn()>("served").unwrap().call().unwrap());
        inside.wait();
        let builder = postern::Domain::builder(&image).placement(Placement::Hot);
        let hot = builder.service("s", |_: &postern::Caller<'_>| {});
        let hot = hot.build().unwrap();
        assert!(auto.is_hot() && !hot.is_hot());
        go.wait();
        thread.join().unwrap();
        while !hot.is_hot() {
            assert_eq!(one.call(0).unwrap(), 1);
        }
        assert_eq!(one.call(0).unwrap(), 1);
    });
}
