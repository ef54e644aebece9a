//! All counters as text in the exposition format of Prometheus, version 0.0.4.
//!
//! Invariant: counters of an image never decrease, so what domains have counted when they go is
//! kept by image. At most [`IMAGES`] names are kept; others are summed up.

use super::Totals;
use crate::domain::{self, Domain, DomainInner, let_go};
use crate::fault::FaultKind;
use postern_gates::window::{HotWindow, hot_window};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};

/// Names of images whose gone domains are remembered apart.
const IMAGES: usize = 256;
/// The name of all others.
const OTHERS: &str = "(others)";

/// What the lines are about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum By {
    /// Live domains, each with labels `domain` and `image`: some fifteen lines for each.
    #[default]
    Domain,
    /// Images by name, each with all domains that it has and had: short, however many domains there
    /// are. A namespace is counted by its own name.
    Image,
}

/// Which counters [`metrics`] shows. `Metrics::default()` is by domain, without pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Domains or images.
    pub by: By,
    /// Whether pages are counted, which takes time: see [`Domain::pages`].
    pub pages: bool,
}

impl Metrics {
    /// For many domains.
    pub fn by_image() -> Metrics {
        Metrics {
            by: By::Image,
            ..Metrics::default()
        }
    }
}

pub(crate) type Gone = BTreeMap<String, Totals>;
static GONE: Mutex<Gone> = Mutex::new(Gone::new());

/// What domains had counted that are gone, by the image's name.
pub(crate) fn gone() -> MutexGuard<'static, Gone> {
    GONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// The name under which a domain is counted: its image's, or its own if it is a namespace, whose
/// image is the library's and tells nobody anything.
fn counted_as(inner: &DomainInner) -> &str {
    match inner.code.get() {
        Some(_) => &inner.name,
        None => &inner.image.name,
    }
}

/// Keeps what a domain has counted.
pub(crate) fn keep(inner: &DomainInner) {
    let totals = Totals::of(inner);
    let mut gone = gone();
    let own = counted_as(inner);
    let name = match gone.contains_key(own) || gone.len() < IMAGES {
        true => own,
        false => OTHERS,
    };
    match gone.get_mut(name) {
        Some(sum) => sum.add(&totals),
        None => drop(gone.insert(name.to_owned(), totals)),
    }
}

/// One set of labels, and its values.
struct Row {
    labels: String,
    totals: Totals,
    alive: u64,
    poisoned: u64,
    hot: u64,
    private: u64,
    swapped: u64,
}

impl Row {
    fn new(labels: String) -> Row {
        Row {
            labels,
            totals: Totals::default(),
            alive: 0,
            poisoned: 0,
            hot: 0,
            private: 0,
            swapped: 0,
        }
    }

    fn add(&mut self, domain: &Domain, pages: bool) {
        self.totals.add(&Totals::of(&domain.0));
        self.alive += 1;
        self.poisoned += u64::from(domain.is_poisoned());
        self.hot += u64::from(domain.is_hot());
        if pages && let Ok(pages) = domain.pages() {
            self.private += pages.private;
            self.swapped += pages.swapped;
        }
    }
}

/// The counters of the process's domains as Prometheus reads them. Serve it as `text/plain;
/// version=0.0.4`.
pub fn metrics(which: &Metrics) -> String {
    let live: Vec<Arc<DomainInner>> = domain::domains()
        .iter()
        .filter_map(|d| d.upgrade())
        .collect();
    let live: Vec<Domain> = live.into_iter().map(Domain).collect();
    let rows = match which.by {
        By::Domain => by_domain(&live, which.pages),
        By::Image => by_image(&live, which.pages),
    };
    let text = render(&rows, which, live.len());
    live.into_iter().for_each(|domain| let_go(domain.0));
    text
}

fn by_domain(live: &[Domain], pages: bool) -> Vec<Row> {
    let mut seen = BTreeSet::new();
    let row = |domain: &Domain| {
        // Hosts may give a name twice; a set of labels must not come twice.
        let mut name = domain.name().to_owned();
        if !seen.insert(name.clone()) {
            let _ = write!(name, " #{}", domain.id());
            seen.insert(name.clone());
        }
        let image = escape(&domain.0.image.name);
        let mut row = Row::new(format!("domain=\"{}\",image=\"{image}\"", escape(&name)));
        row.add(domain, pages);
        row
    };
    live.iter().map(row).collect()
}

fn by_image(live: &[Domain], pages: bool) -> Vec<Row> {
    let mut rows = BTreeMap::new();
    let label = |name: &str| Row::new(format!("image=\"{}\"", escape(name)));
    for (name, totals) in gone().iter() {
        let row = rows.entry(name.clone()).or_insert_with(|| label(name));
        row.totals.add(totals);
    }
    for domain in live {
        let name = counted_as(&domain.0);
        let row = match rows.contains_key(name) || rows.len() < 2 * IMAGES {
            true => rows.entry(name.to_owned()).or_insert_with(|| label(name)),
            false => rows
                .entry(OTHERS.to_owned())
                .or_insert_with(|| label(OTHERS)),
        };
        row.add(domain, pages);
    }
    rows.into_values().collect()
}

/// A label's value.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

/// Collects families of lines.
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            _ => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }
}

/// A counter of whole numbers: name, help, value.
type Count = (&'static str, &'static str, fn(&Totals) -> u64);

const COUNTS: [Count; 6] = [
    ("postern_calls_total", "Calls that entered.", |t| t.calls),
    (
        "postern_service_calls_total",
        "Calls of services by extensions.",
        |t| t.services,
    ),
    (
        "postern_system_calls_total",
        "System calls that the policy granted.",
        |t| t.system_calls,
    ),
    (
        "postern_decision_failures_total",
        "Questions that a decider did not answer as it must.",
        |t| t.decision_failures,
    ),
    (
        "postern_restarts_total",
        "Times that the restart policy began a domain anew.",
        |t| t.restarts,
    ),
    (
        "postern_moves_total",
        "Moves into the hot window and out of it.",
        |t| t.moves,
    ),
];

fn render(rows: &[Row], which: &Metrics, live: usize) -> String {
    let mut text = Text(String::new());
    for (name, help, value) in COUNTS {
        text.family(name, "counter", help);
        for row in rows {
            text.line(name, &row.labels, value(&row.totals));
        }
    }
    let name = "postern_denied_total";
    text.family(
        name,
        "counter",
        "Calls that were denied, of services and of the system.",
    );
    for row in rows {
        for (kind, value) in [
            ("service", row.totals.denied_services),
            ("system-call", row.totals.refused_system_calls),
        ] {
            text.line(name, &format!("{},kind=\"{kind}\"", row.labels), value);
        }
    }
    let name = "postern_faults_total";
    text.family(name, "counter", "Calls that ended in a fault, by its kind.");
    for row in rows {
        for (kind, &count) in FaultKind::ALL.iter().zip(&row.totals.faults) {
            if count != 0 {
                let labels = format!("{},kind=\"{}\"", row.labels, kind.name());
                text.line(name, &labels, count);
            }
        }
    }
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let times: [Count; 2] = [
        (
            "postern_time_inside_seconds_total",
            "Time inside, sampled by the watchdog.",
            |t| t.time_inside,
        ),
        (
            "postern_time_hot_seconds_total",
            "Time inside in the hot window, sampled by the watchdog.",
            |t| t.time_hot,
        ),
    ];
    for (name, help, value) in times {
        text.family(name, "counter", help);
        for row in rows {
            text.line(name, &row.labels, seconds(value(&row.totals)));
        }
    }
    gauges(&mut text, rows, which, live);
    text.0
}

/// A gauge: name, help, value.
type Gauge = (&'static str, &'static str, fn(&Row) -> u64);

fn gauges(text: &mut Text, rows: &[Row], which: &Metrics, live: usize) {
    let mut gauges: Vec<Gauge> = vec![
        (
            "postern_poisoned",
            "Domains that an earlier fault closed.",
            |r| r.poisoned,
        ),
        ("postern_hot", "Domains in the hot window.", |r| r.hot),
    ];
    if which.by == By::Image {
        gauges.push(
            ("postern_image_domains", "Live domains of the image.", |r| {
                r.alive
            }),
        );
    }
    if which.pages {
        gauges.push((
            "postern_private_pages",
            "Pages in memory that only the domain has.",
            |r| r.private,
        ));
        gauges.push((
            "postern_swapped_pages",
            "Pages of the domain on swap.",
            |r| r.swapped,
        ));
    }
    for (name, help, value) in gauges {
        text.family(name, "gauge", help);
        for row in rows {
            text.line(name, &row.labels, value(row));
        }
    }
    let name = "postern_domains";
    text.family(name, "gauge", "Live domains.");
    text.line(name, "", live);
    let name = "postern_hot_window";
    text.family(
        name,
        "gauge",
        "1 for the state of the low 4 GiB, 0 for the others.",
    );
    for state in HotWindow::ALL {
        let value = u8::from(state == hot_window());
        text.line(name, &format!("state=\"{}\"", state.name()), value);
    }
}
