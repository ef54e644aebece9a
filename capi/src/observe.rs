//! What can be seen of domains: `pt_domain_counters`, `pt_metrics`, and who has the hot window.

use crate::boundary::{CountersOut, Target};
use crate::domain::{DomainKind, handle_of};
use crate::failure::{self, Code, Failure};
use crate::handle::Handle;
use crate::options::placement;
use crate::structures::CCounters;
use postern::{Metrics, metrics};
use std::ffi::{c_char, c_int};

const BY_IMAGE: u32 = 1;
const PAGES: u32 = 2;

/// Names in C and values, for the test that the header agrees.
pub const METRICS: [(&str, i32); 2] =
    [("PT_BY_IMAGE", BY_IMAGE as i32), ("PT_PAGES", PAGES as i32)];

/// `pt_domain_counters`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_counters(
    domain: Handle<DomainKind>,
    counters: CountersOut<'_>,
) -> c_int {
    failure::code(|| {
        let domain = domain.get()?;
        let (found, waiting) = (domain.domain.counters(), domain.domain.sandbox_threads());
        counters.put(CCounters {
            size: 0,
            calls: found.calls,
            faults: found.faults.values().sum(),
            inside_ns: found.time_inside.as_nanos() as u64,
            hot_ns: found.time_hot.as_nanos() as u64,
            moves: found.moves,
            services: found.services.values().sum(),
            denied: found.denied_services.values().sum(),
            system_calls: found.system_calls,
            refused: found.refused_system_calls,
            promoted: waiting.promoted,
            spawned: waiting.spawned,
            resumed: waiting.resumed,
            skipped: waiting.skipped,
            full: waiting.full,
            busy: waiting.busy.into(),
            longest: waiting.longest.into(),
            ended: waiting.ended,
        })
    })
}

/// `pt_domain_pages`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_pages(domain: Handle<DomainKind>) -> i64 {
    failure::number(|| {
        let pages = domain.get()?.domain.pages();
        let pages = pages.map_err(|e| Failure::new(Code::System, e.to_string()))?;
        Ok((pages.private + pages.swapped) as i64)
    })
}

/// `pt_domain_shared_pages`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_shared_pages(domain: Handle<DomainKind>) -> i64 {
    failure::number(|| {
        let pages = domain.get()?.domain.pages();
        let pages = pages.map_err(|e| Failure::new(Code::System, e.to_string()))?;
        Ok(pages.shared as i64)
    })
}

/// `pt_metrics`
#[unsafe(no_mangle)]
pub extern "C" fn pt_metrics(buffer: Target<'_>, size: usize, flags: u32) -> i64 {
    failure::number(|| {
        if flags & !(BY_IMAGE | PAGES) != 0 {
            let wrong = format!("{flags:#x} are no flags; PT_BY_IMAGE and PT_PAGES are");
            return Err(Failure::new(Code::Argument, wrong));
        }
        let mut which = match flags & BY_IMAGE {
            0 => Metrics::default(),
            _ => Metrics::by_image(),
        };
        which.pages = flags & PAGES != 0;
        buffer.text().fill(size, &metrics(&which))
    })
}

/// `pt_domain_set_placement`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_set_placement(domain: Handle<DomainKind>, wanted: c_int) -> c_int {
    failure::code(|| {
        let wanted = placement(wanted)?;
        domain.get()?.domain.set_placement(wanted);
        Ok(())
    })
}

/// `pt_domain_hot`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_hot(domain: Handle<DomainKind>) -> c_int {
    failure::number(|| Ok(i64::from(domain.get()?.domain.is_hot()))) as c_int
}

/// `pt_hot_window_domain`
#[unsafe(no_mangle)]
pub extern "C" fn pt_hot_window_domain() -> Handle<DomainKind> {
    failure::or(Handle::NULL, || {
        let domain = postern::hot_domain();
        Ok(domain.as_ref().and_then(handle_of).unwrap_or(Handle::NULL))
    })
}

/// `pt_hot_window_state`
#[unsafe(no_mangle)]
pub extern "C" fn pt_hot_window_state() -> *const c_char {
    let name = match postern::hot_window() {
        postern::HotWindow::Free => c"free",
        postern::HotWindow::Taken => c"taken",
        postern::HotWindow::Off => c"off",
        _ => c"occupied",
    };
    name.as_ptr()
}
