//! Spans of `tracing`, as a subscriber of the host's sees them.
use super::support::{cold, succeeds_in_child};
use super::{extension, nothing};
use postern::{HotWindow, Placement, hot_window};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
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
