//! Counters and their text form, which a strict reader of the format takes.
use super::support::{cold, succeeds_in_child};
use super::{extension, nothing};
use postern::{Domain, Metrics, Offset, metrics};
use std::collections::{BTreeMap, BTreeSet};

/// Samples by name and labels.
type Samples = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// Reads the text exposition format, version 0.0.4, and panics where a text is none: each family
/// once, with HELP and TYPE before its samples, names and labels of the allowed characters, no
/// sample twice, counters ending in `_total`.
fn read(text: &str) -> Samples {
    let name_is_good = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let (mut samples, mut families) = (Samples::new(), BTreeSet::new());
    let (mut helped, mut family, mut kind) = (String::new(), String::new(), String::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a text");
            assert!(!help.is_empty() && !help.contains('\\'));
            helped = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, what) = rest.split_once(' ').expect("a type");
            assert!(name_is_good(name) && name == helped && families.insert(name.to_owned()));
            assert!(what == "counter" || what == "gauge", "{line}");
            assert_eq!(what == "counter", name.ends_with("_total"), "{line}");
            (family, kind) = (name.to_owned(), what.to_owned());
        } else {
            let (name, labels, value) = sample(line);
            assert_eq!(name, family, "{line}");
            assert!(labels.keys().all(|label| name_is_good(label)), "{line}");
            assert!(kind != "counter" || value >= 0.0, "{line}");
            assert!(samples.insert((name, labels), value).is_none(), "{line}");
        }
    }
    samples
}

/// `name{label="value",…} number`
fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let Some((name, mut rest)) = line.split_once('{') else {
        let (name, value) = line.split_once(' ').expect("a value");
        return (
            name.to_owned(),
            BTreeMap::new(),
            value.parse().expect("a number"),
        );
    };
    let mut labels = BTreeMap::new();
    loop {
        let (label, after) = rest.split_once("=\"").expect("a label");
        let (mut value, mut characters) = (String::new(), after.chars());
        loop {
            match characters.next().expect("the value ends") {
                '"' => break,
                '\\' => match characters.next() {
                    Some('n') => value.push('\n'),
                    Some(c @ ('\\' | '"')) => value.push(c),
                    other => panic!("escaped {other:?} in {line}"),
                },
                c => value.push(c),
            }
        }
        assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
        rest = characters.as_str();
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => break,
        }
    }
    let value = rest.strip_prefix("} ").expect("a value");
    (name.to_owned(), labels, value.parse().expect("a number"))
}

fn value(samples: &Samples, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let own = |(n, l): &&(String, BTreeMap<String, String>)| {
        n == name
            && labels
                .iter()
                .all(|(k, v)| l.get(*k).is_some_and(|x| x == v))
    };
    let mut found = samples.keys().filter(own);
    let first = found.next()?;
    assert!(
        found.next().is_none(),
        "{name} {labels:?} is not one sample"
    );
    Some(samples[first])
}

fn call(domain: &Domain, name: &str) -> bool {
    domain.func_unchecked::<fn()>(name).unwrap().call().is_ok()
}

#[test]
fn every_counter_is_in_the_text() {
    succeeds_in_child("metrics::every_counter_is_in_the_text", || {
        let image = extension();
        let name = "a \"name\" with \\ and\nlines";
        let d = cold(&image)
            .name(name)
            .service("s", nothing)
            .build()
            .unwrap();
        let twin = cold(&image)
            .name(name)
            .service("s", nothing)
            .build()
            .unwrap();
        for _ in 0..3 {
            assert!(call(&d, "next") && call(&d, "serve"));
        }
        for kind in ["trap", "null", "null"] {
            assert!(!call(&d, kind));
            d.reset().unwrap();
        }
        assert!(!call(&d, "trap") && d.is_poisoned());
        assert!(call(&twin, "next"));

        let samples = read(&metrics(&Metrics::default()));
        let of = |name: &str, more: &[(&str, &str)]| {
            let labels = [&[("domain", "a \"name\" with \\ and\nlines")], more].concat();
            value(&samples, name, &labels)
        };
        assert_eq!(of("postern_calls_total", &[]), Some(10.0));
        assert_eq!(of("postern_service_calls_total", &[]), Some(3.0));
        assert_eq!(of("postern_faults_total", &[("kind", "trap")]), Some(2.0));
        assert_eq!(
            of("postern_faults_total", &[("kind", "null-pointer")]),
            Some(2.0)
        );
        assert_eq!(of("postern_faults_total", &[("kind", "deadline")]), None);
        assert_eq!(
            of("postern_denied_total", &[("kind", "system-call")]),
            Some(0.0)
        );
        assert_eq!(
            of("postern_denied_total", &[("kind", "service")]),
            Some(0.0)
        );
        assert_eq!(of("postern_poisoned", &[("image", "image")]), Some(1.0));
        assert!(of("postern_time_inside_seconds_total", &[]).is_some());
        assert!(of("postern_time_hot_seconds_total", &[]).is_some());
        assert_eq!(of("postern_moves_total", &[]), Some(0.0));
        assert_eq!(of("postern_private_pages", &[]), None);
        assert_eq!(value(&samples, "postern_domains", &[]), Some(2.0));
        let free = value(&samples, "postern_hot_window", &[("state", "taken")]);
        assert_eq!(free, Some(0.0));

        // By image nothing is forgotten when domains go, and it does not grow with them.
        let before = read(&metrics(&Metrics::by_image()));
        drop((d, twin));
        let after = read(&metrics(&Metrics::by_image()));
        for name in ["postern_calls_total", "postern_service_calls_total"] {
            assert_eq!(value(&before, name, &[]), value(&after, name, &[]));
        }
        assert_eq!(value(&after, "postern_calls_total", &[]), Some(11.0));
        assert_eq!(value(&after, "postern_image_domains", &[]), Some(0.0));
        let lines = metrics(&Metrics::by_image()).lines().count();
        let many: Vec<_> = (0..500)
            .map(|_| cold(&image).service("s", nothing).build().unwrap())
            .collect();
        assert_eq!(metrics(&Metrics::by_image()).lines().count(), lines);
        let all = read(&metrics(&Metrics::default()));
        assert_eq!(value(&all, "postern_domains", &[]), Some(500.0));
        drop(many);
        // A namespace is counted by its own name, also when it is gone: its image is the library's.
        let space = postern::Namespace::builder()
            .name("clients")
            .build()
            .unwrap();
        space.create("a", "int g(void) { return 1; }").unwrap();
        assert_eq!(space.func::<fn() -> i32>("g").unwrap().call().unwrap(), 1);
        let clients = [("image", "clients")];
        let calls = || {
            value(
                &read(&metrics(&Metrics::by_image())),
                "postern_calls_total",
                &clients,
            )
        };
        assert_eq!(calls(), Some(1.0));
        drop(space);
        assert_eq!(calls(), Some(1.0));
    });
}

#[test]
fn pages_are_those_that_were_written() {
    let d = cold(&extension()).service("s", nothing).build().unwrap();
    let heap = Offset(d.image().tables().layout.heap_start);
    let fill = d.func::<fn(Offset, i64)>("fill").unwrap();
    fill.call(heap, 1).unwrap();
    let before = d.pages().unwrap();
    fill.call(heap, 101).unwrap();
    let after = d.pages().unwrap();
    let all = |p: postern::Pages| p.private + p.swapped;
    assert_eq!(all(after), all(before) + 100);
    // Reading touches nothing of its own.
    d.read_vec(Offset(heap.0 + (1 << 20)), 1 << 20).unwrap();
    assert_eq!(all(d.pages().unwrap()), all(after));
    let mut which = Metrics::default();
    which.pages = true;
    let samples = read(&metrics(&which));
    let shown = |name| value(&samples, name, &[("domain", d.name())]).unwrap();
    let (private, swapped) = (
        shown("postern_private_pages"),
        shown("postern_swapped_pages"),
    );
    assert_eq!(private + swapped, all(after) as f64);
    d.reset().unwrap();
    assert_eq!(all(d.pages().unwrap()), 0);
}

#[test]
fn pages_of_shared_areas_are_counted_apart() {
    let d = cold(&extension()).service("s", nothing).build().unwrap();
    let fill = d.func::<fn(Offset, i64)>("fill").unwrap();
    let area = postern::Shared::builder()
        .name("a")
        .zeroed(64 * 4096)
        .unwrap();
    let at = d.share(&area, postern::Prot::ReadWrite).unwrap();
    let before = d.pages().unwrap();
    assert_eq!(before.shared, 0);
    fill.call(at, 64).unwrap();
    let after = d.pages().unwrap();
    assert_eq!(after.shared, 64);
    d.unshare(&area).unwrap();
    assert_eq!(d.pages().unwrap().shared, 0);
}
