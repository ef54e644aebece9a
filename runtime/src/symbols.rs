//! Symbols of domains for tools that look at the process: `perf` and GDB. Off unless the
//! configuration or the environment says so.
//!
//! A domain is shown when it is made and again whenever it is moved; GDB is told when it goes. What
//! is shown is read from the image's file with the same bounds as for faults, and nothing here can
//! make a domain fail.

mod jitdump;
mod map;
mod shown;

use crate::config::{self, Perf};
use crate::domain::DomainInner;
use postern_gates::debugger;
use postern_image::debug::Listing;
use shown::Shown;
use std::sync::{Mutex, MutexGuard};

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

/// Shows a domain where it lies now.
pub(crate) fn show(inner: &DomainInner) {
    let config = config::current();
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
