//! How long a touch of a page that is not there takes until its contents are: filled by a handler
//! of a domain, beside a plain thread that reads a userfaultfd, and a signal handler.

use super::image::TOLD;
use crate::clock::median_and_90;
use crate::figure::Figure;
use crate::trusted::pages::{PAGE, SignalPages, ThreadPages};
use crate::trusted::process;
use postern::{Caller, Domain, Event, EventError, Image, Placement, Shared, Way, Ways};
use std::time::Instant;

/// Pages of each kind.
const PAGES: usize = 1000;

/// The figures; none where the kernel tells nobody of missing pages.
pub fn figures(image: &Image) -> Result<Vec<Figure>, String> {
    // With all threads that it starts.
    let _pinned = process::Pinned::new();
    let Some(by_domain) = by_domain(image)? else {
        return Ok(Vec::new());
    };
    let thread = ThreadPages::new(PAGES)?;
    let by_thread = times(|page| Ok(thread.touch(page)))?;
    let signal = SignalPages::new(PAGES)?;
    let by_signal = times(|page| Ok(signal.touch(page)))?;
    let rows = [
        ("handler", by_domain, "a handler of a domain"),
        ("signal", by_signal, "a signal handler, with mprotect"),
        ("thread", by_thread, "a plain thread with userfaultfd"),
    ];
    let figures = rows.into_iter().flat_map(|(name, times, what)| {
        let shares = [
            ("median", times.0, by_thread.0),
            ("90", times.1, by_thread.1),
        ];
        shares.map(|(share, time, base)| {
            let how = format!(
                "{share} of {PAGES}: from the touch of a missing page to its contents, by {what} \
                 on the same core, over a plain thread with userfaultfd"
            );
            let name = format!("upcalls.page.{name}.{share}");
            Figure::plain(name, time, "us", how).against(base)
        })
    });
    Ok(figures.collect())
}

fn by_domain(image: &Image) -> Result<Option<(f64, f64)>, String> {
    let builder = Domain::builder(image).placement(Placement::Cold);
    let builder = builder.service(TOLD, |_: &Caller<'_>, _: u32, _: u64| ());
    let domain = builder.ways(Ways::at_most(Way::Plain)).build();
    let domain = domain.map_err(|error| error.to_string())?;
    let area = Shared::new(PAGES * PAGE).map_err(|error| error.to_string())?;
    let pager = match domain.on(Event::missing_pages(&area), "fills") {
        Err(error @ EventError::Userfault(_)) => {
            eprintln!("upcalls.page is left out: {error}");
            return Ok(None);
        }
        pager => pager.map_err(|error| error.to_string())?,
    };
    let times = times(|page| {
        let mut first = [0];
        let read = area.read(page * PAGE, &mut first);
        read.map(|()| first[0]).map_err(|error| error.to_string())
    });
    drop(pager);
    times.map(Some)
}

/// Median and 90 % of the time that a touch takes, in µs; an error if a page has other contents.
fn times(touch: impl Fn(usize) -> Result<u8, String>) -> Result<(f64, f64), String> {
    let mut times = Vec::with_capacity(PAGES);
    for page in 0..PAGES {
        let begun = Instant::now();
        let found = touch(page)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
        if found != 1 {
            return Err(format!("page {page} is not filled"));
        }
    }
    Ok(median_and_90(times))
}
