//! What the server does now, as JSON: answers, and the domains in which programs run.
//!
//! Invariant: looking costs the server little, however many look. A report is made at most four
//! times a second, the table of a window by one at a time, and as many clients as [`STREAMS`] get
//! reports without asking again.

use crate::body::Body;
use crate::counters::Counters;
use crate::failure::Failure;
use crate::registry::{RegisteredDomain, Registry};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response};
use postern::{MemoryTable, memory_table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Where it is.
pub const PATH: &str = "/status";
/// A report is used again for so long.
const FRESH: Duration = Duration::from_millis(250);
/// Between two reports of a stream.
const EACH: Duration = Duration::from_secs(1);
/// Streams at once.
const STREAMS: usize = 64;

#[derive(Serialize)]
struct DomainReport<'a> {
    id: String,
    name: &'a str,
    kind: &'a str,
    owner: &'a str,
    calls: u64,
    busy_us: u64,
    faults: u64,
    resident_bytes: u64,
    state: &'a str,
}

impl<'a> DomainReport<'a> {
    fn of(registered: &'a RegisteredDomain) -> DomainReport<'a> {
        let domain = &registered.domain;
        let counters = domain.counters();
        let pages = domain.pages();
        DomainReport {
            id: registered.id(),
            name: domain.name(),
            kind: registered.kind,
            owner: &registered.owner,
            calls: counters.calls,
            busy_us: u64::try_from(registered.busy().as_micros()).unwrap_or(u64::MAX),
            faults: counters.faults.values().sum(),
            resident_bytes: 4096 * pages.map_or(0, |pages| pages.private + pages.shared),
            state: match () {
                () if domain.is_closed() => "closed",
                () if domain.is_poisoned() => "faulted",
                () if registered.is_active() => "running",
                () => "ready",
            },
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    requests: u64,
    answers: BTreeMap<&'static str, u64>,
    uptime_s: f64,
    heartbeat: Option<&'a str>,
    domains: Vec<DomainReport<'a>>,
}

#[derive(Serialize)]
struct Window<'a> {
    name: &'a str,
    areas: Vec<Area>,
}

#[derive(Serialize)]
struct Area {
    start: u32,
    end: u64,
    protection: String,
    what: String,
    bytes: u64,
}

/// Who knows what the server does.
pub struct Status {
    registry: Arc<Registry>,
    counters: Mutex<Vec<Arc<Counters>>>,
    heartbeat: Option<String>,
    began: Instant,
    last: Mutex<Option<(Instant, Bytes)>>,
    table: Mutex<()>,
    streams: AtomicUsize,
    ending: watch::Sender<bool>,
}

impl Status {
    /// Of these counters and domains. `heartbeat` is told to the page: a path that can be asked
    /// again and again.
    pub fn new(
        registry: &Arc<Registry>,
        counters: Vec<Arc<Counters>>,
        heartbeat: Option<String>,
    ) -> Status {
        Status {
            registry: registry.clone(),
            counters: Mutex::new(counters),
            heartbeat,
            began: Instant::now(),
            last: Mutex::default(),
            table: Mutex::default(),
            streams: AtomicUsize::new(0),
            ending: watch::Sender::new(false),
        }
    }

    /// The answer to a GET of a path below [`PATH`]; `None` if it is not there.
    pub fn serve(self: &Arc<Self>, path: &str) -> Option<Result<Response<Body>, Failure>> {
        let rest = path.strip_prefix(PATH)?;
        let id = rest.strip_prefix("/domains/");
        let id = id.and_then(|rest| rest.strip_suffix("/window"));
        match (rest, id) {
            ("", _) => Some(Ok(json(self.report()))),
            ("/events", _) => Some(self.stream()),
            (_, Some(id)) => Some(self.window(id).map(json).ok_or(Failure::NotFound)),
            _ => None,
        }
    }

    /// Answers of one more are counted; those of who is gone stay.
    pub fn add(&self, counters: &Arc<Counters>) {
        let mut all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(counters.clone());
    }

    /// No stream goes on: the server ends.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    fn report(&self) -> Bytes {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((when, report)) = &*last
            && when.elapsed() < FRESH
        {
            return report.clone();
        }
        let counters = self
            .counters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let names = ["2xx", "3xx", "4xx", "5xx"];
        let answers = names
            .iter()
            .zip(2..)
            .map(|(name, digit)| (*name, counters.iter().map(|one| one.answers(digit)).sum()));
        let answers: BTreeMap<_, u64> = answers.collect();
        let domains = self.registry.domains();
        let report = Report {
            requests: answers.values().sum(),
            answers,
            uptime_s: self.began.elapsed().as_secs_f64(),
            heartbeat: self.heartbeat.as_deref(),
            domains: domains.iter().map(|one| DomainReport::of(one)).collect(),
        };
        let bytes = Bytes::from(serde_json::to_vec(&report).unwrap_or_default());
        *last = Some((Instant::now(), bytes.clone()));
        bytes
    }

    /// What a domain may do with which range of its window, as the kernel has it.
    fn window(&self, id: &str) -> Option<Bytes> {
        let id = u64::from_str_radix(id, 16).ok()?;
        let domains = self.registry.domains();
        let domain = &domains.iter().find(|one| one.domain.id() == id)?.domain;
        let _one = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = memory_table().ok()?;
        let base = domain.base();
        table.retain(|other| other.base == base);
        let window = Window {
            name: domain.name(),
            areas: areas(&table),
        };
        serde_json::to_vec(&window).ok().map(Bytes::from)
    }

    /// A report each second, as an event stream of HTML.
    fn stream(self: &Arc<Self>) -> Result<Response<Body>, Failure> {
        if self.streams.fetch_add(1, Ordering::Relaxed) >= STREAMS {
            self.streams.fetch_sub(1, Ordering::Relaxed);
            return Err(Failure::Full(STREAMS));
        }
        let (sender, body) = Body::stream();
        let (status, mut ending) = (self.clone(), self.ending.subscribe());
        tokio::spawn(async move {
            while !*ending.borrow() {
                let event = [b"data: ", &*status.report(), b"\n\n"].concat();
                if sender.send(Ok(event.into())).await.is_err() {
                    break;
                }
                tokio::select! {
                    () = tokio::time::sleep(EACH) => {}
                    () = sender.closed() => break,
                    _ = ending.changed() => break,
                }
            }
            status.streams.fetch_sub(1, Ordering::Relaxed);
        });
        Ok(answer(body, "text/event-stream"))
    }
}

const FUNCTIONS: &str = "functions that came later";
const CONSTANTS: &str = "constants of functions that came later";
const VARIABLES: &str = "variables of functions that came later";

/// The areas of a table's first column. Its rows end where those of other windows do, and have
/// names of what is there: what fits this window, and goes on, is one area.
fn areas(table: &MemoryTable) -> Vec<Area> {
    let mut areas: Vec<Area> = Vec::new();
    for row in &table.rows {
        let cell = row.cell(0);
        let writes = |what: &str| what.contains("data") || what.contains("heap");
        let fits = |what: &&str| match (cell.execute, cell.write) {
            (true, _) => !writes(what) && *what != "constants",
            (_, true) => what.starts_with("area") || writes(what),
            (_, false) => !writes(what) && *what != "gate slots and text",
        };
        let fitting = row.what.split(" / ").filter(fits).last();
        let before = |last: &Area| {
            last.what == CONSTANTS || last.what == VARIABLES && last.end == u64::from(row.start)
        };
        // Only a namespace has shared memory that is no area: its code, and what belongs to that.
        let what = match (fitting.unwrap_or(&row.what), cell.execute) {
            ("shared", true) => FUNCTIONS,
            ("shared", false) => CONSTANTS,
            (_, false) if cell.write && areas.last().is_some_and(before) => VARIABLES,
            (what, _) => what,
        };
        let what = what.to_owned();
        let protection = cell.to_string();
        match areas.last_mut() {
            Some(last)
                if last.end == u64::from(row.start)
                    && (&last.protection, &last.what) == (&protection, &what) =>
            {
                last.end = row.end;
                last.bytes = last.end - u64::from(last.start);
            }
            _ => areas.push(Area {
                start: row.start,
                end: row.end,
                bytes: row.end - u64::from(row.start),
                protection,
                what,
            }),
        }
    }
    areas
}

fn json(bytes: Bytes) -> Response<Body> {
    answer(Body::whole(bytes), "application/json")
}

fn answer(body: Body, kind: &'static str) -> Response<Body> {
    let mut response = Response::new(body);
    *response.headers_mut() = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ]);
    response
}
