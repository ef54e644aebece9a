//! Symbols of domains for tools that look at the process: `perf` and GDB. Off unless the configuration or the environment says so.
//!
//! A domain is shown when it is made and again whenever it is moved; GDB is told when it goes. What is shown is read from the
//! image's file with the same bounds as for faults, and nothing here can make a domain fail.

mod jitdump;
mod map;

use crate::domain::DomainInner;
use crate::engine;
use postern_gates::debugger;
use postern_image::debug::{Function, LineTable, Lines, Listing, Symbols};
use std::sync::{Mutex, MutexGuard};

/// How `perf` learns the names of functions in extensions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Perf {
    /// Not at all.
    #[default]
    Off,
    /// `/tmp/perf-PID.map`: names by address, for the last domain that lay there.
    Map,
    /// `jit-PID.dump` in the current directory: names, lines and code by time and address, for `perf inject --jit`.
    Jitdump,
}

impl Perf {
    /// What the environment variable `POSTERN_PERF` says: `map` or `jitdump`.
    pub(crate) fn from_environment() -> Perf {
        match std::env::var("POSTERN_PERF").as_deref() {
            Ok("map") => Perf::Map,
            Ok("jitdump") => Perf::Jitdump,
            _ => Perf::Off,
        }
    }
}

/// Whether the environment variable `POSTERN_GDB` is set to something else than 0.
pub(crate) fn debugger_from_environment() -> bool {
    std::env::var_os("POSTERN_GDB").is_some_and(|value| !value.is_empty() && value != "0")
}

/// The files that are written, opened at first use by each process.
#[derive(Default)]
pub(crate) struct Files {
    process: u32,
    map: Option<std::fs::File>,
    dump: Option<jitdump::Dump>,
}

static FILES: Mutex<Option<Files>> = Mutex::new(None);

pub(crate) fn files() -> MutexGuard<'static, Option<Files>> {
    FILES.lock().unwrap_or_else(|e| e.into_inner())
}

/// A domain's functions and lines, and where they are.
struct Shown<'a> {
    base: u64,
    domain: &'a str,
    functions: Vec<Function<'a>>,
    lines: LineTable,
    /// Text, and the offset at which it begins.
    text: (u32, Vec<u8>),
}

impl<'a> Shown<'a> {
    /// Of a domain whose image's file is `file`.
    fn of(inner: &'a DomainInner, file: &'a [u8], with_lines: bool) -> Shown<'a> {
        let (start, text) = inner.image.text.bytes();
        let mut lines = if with_lines {
            Lines::parse(file)
                .map(|lines| lines.table())
                .unwrap_or_default()
        } else {
            LineTable::default()
        };
        // Functions that the linker left out have lines at low offsets.
        let end = u64::from(start) + text.len() as u64;
        let kept = |offset: u32| offset >= start && u64::from(offset) < end;
        lines.rows.retain(|row| kept(row.offset));
        let mut functions: Vec<Function<'_>> = Symbols::parse(file).iter().collect();
        // Of labels at one place the first; none reaches into the next one.
        functions.dedup_by_key(|f| f.start);
        for i in 1..functions.len() {
            functions[i - 1].end = functions[i - 1].end.min(functions[i].start);
        }
        Shown {
            base: inner.instance.base(),
            domain: &inner.name,
            functions,
            lines,
            text: (start, text),
        }
    }

    /// The bytes of a function.
    fn code(&self, function: &Function<'_>) -> &[u8] {
        let (start, text) = &self.text;
        let at = |offset: u32| offset.saturating_sub(*start) as usize;
        text.get(at(function.start)..at(function.end))
            .unwrap_or_default()
    }
}

/// A name for tools: the function's and, since many domains have the same, the domain's. In one line.
fn name(shown: &Shown<'_>, function: &Function<'_>) -> String {
    let name = format!("{} [{}]", function.name, shown.domain);
    name.replace(char::is_control, "?")
}

/// Shows a domain where it lies now.
pub(crate) fn show(inner: &DomainInner) {
    let config = engine::config();
    if config.perf == Perf::Off && !config.debugger {
        return;
    }
    let file = inner.image.file_bytes();
    let with_lines = config.perf == Perf::Jitdump || config.debugger;
    let shown = Shown::of(inner, &file, with_lines);
    if config.debugger {
        let number = inner.control.number();
        let (start, text) = &shown.text;
        let listing = Listing {
            name: shown.domain,
            base: shown.base,
            text: (*start, *start + text.len() as u32),
            functions: &shown.functions,
            lines: &shown.lines,
        };
        debugger::show(number, listing.object());
    }
    if let Err(error) = write(config.perf, &shown) {
        tracing::warn!(%error, "perf will not know the names of extensions' functions");
    }
}

fn write(perf: Perf, shown: &Shown<'_>) -> std::io::Result<()> {
    let mut guard = files();
    let files = guard.get_or_insert_default();
    let process = std::process::id();
    if files.process != process {
        // Those of the parent are the parent's.
        *files = Files {
            process,
            ..Files::default()
        };
    }
    match perf {
        Perf::Off => Ok(()),
        Perf::Map => {
            let file = match &mut files.map {
                Some(file) => file,
                None => files.map.insert(map::open(process)?),
            };
            map::write(file, shown)
        }
        Perf::Jitdump => {
            let dump = match &mut files.dump {
                Some(dump) => dump,
                None => files.dump.insert(jitdump::Dump::open(process)?),
            };
            dump.write(shown)
        }
    }
}

/// The domain goes, or goes elsewhere. True if a debugger knew of it.
pub(crate) fn hide(inner: &DomainInner) -> bool {
    let number = inner.control.number();
    debugger::hide(number)
}
