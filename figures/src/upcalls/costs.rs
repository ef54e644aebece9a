//! Cycles of an upcall beside those of signals (table 1 of the paper on user-level sandboxing), and
//! of one whose handler must wait.

use super::image::TOLD;
use crate::clock::{best_of, median_and_90};
use crate::figure::Figure;
use crate::trusted::notice::Answering;
use crate::trusted::signal::BareHandler;
use crate::trusted::{cycle, process};
use postern::{Caller, Domain, Image, Placement};
use std::time::{Duration, Instant};

const SIGNALS: u64 = 500;
const ROUNDS: usize = 20;
/// Handlers that wait, of which the median counts.
const PROMOTED: usize = 1000;

/// The figures.
pub fn figures(image: &Image) -> Result<Vec<Figure>, String> {
    let _pinned = process::Pinned::new();
    let builder = Domain::builder(image).placement(Placement::Cold);
    let builder = builder.service(TOLD, |_: &Caller<'_>, _: u32, _: u64| ());
    let domain = builder.sandbox_threads(1).build();
    let domain = domain.map_err(|error| error.to_string())?;
    let upcall = domain.upcall("on").map_err(|error| error.to_string())?;
    let attachment = upcall.attach().map_err(|error| error.to_string())?;
    let answering = Answering::new()?;
    let child = answering.child()?;
    let mut answered = Ok(());
    let times = best_of(
        ROUNDS,
        [
            &mut || cycle::chain(10 * SIGNALS),
            &mut || {
                for event in 0..SIGNALS {
                    attachment.send(1, event);
                }
            },
            &mut || {
                let handler = BareHandler::install();
                for _ in 0..SIGNALS {
                    handler.fault();
                }
            },
            &mut || answering.to_oneself(SIGNALS),
            &mut || {
                if answered.is_ok() {
                    answered = answering.to_child(&child, SIGNALS);
                }
            },
        ],
    );
    child.kill();
    drop(child);
    drop(attachment);
    answered?;
    let cycle = times[0] / 10.0;
    let [upcall, fault, own, other] = [1, 2, 3, 4].map(|index| times[index] / cycle);
    let row = |name: &str, value: f64, how: &str| {
        Figure::plain(format!("upcalls.{name}"), value, "cycles", how)
    };
    let sent = "an event that a thread sends itself, until its handler has returned, over";
    let mut figures = vec![
        row("send", upcall, &format!("{sent} a bare signal of a fault")).against(fault),
        row("self", upcall, &format!("{sent} a plain signal to itself")).against(own),
        row(
            "process",
            upcall,
            &format!(
                "{sent} a plain signal to another process on the same core, \
             until that has answered in shared memory"
            ),
        )
        .against(other),
    ];
    figures.push(promoted(&domain, cycle / SIGNALS as f64, upcall)?);
    Ok(figures)
}

/// An upcall whose handler calls a service that it may not call in the interrupted thread, until
/// that thread goes on; `cycle` in seconds, `pure` the cycles of one that need not wait.
fn promoted(domain: &Domain, cycle: f64, pure: f64) -> Result<Figure, String> {
    let upcall = domain.upcall("tells").map_err(|error| error.to_string())?;
    let attachment = upcall.attach().map_err(|error| error.to_string())?;
    let mut times = Vec::new();
    for n in 1..=PROMOTED as u64 {
        let begun = Instant::now();
        attachment.send(1, n);
        times.push(begun.elapsed().as_secs_f64() / cycle);
        while domain.sandbox_threads().resumed < n {
            if begun.elapsed() > Duration::from_secs(2) {
                return Err("a handler that waits is not resumed within two seconds".into());
            }
            std::thread::yield_now();
        }
    }
    let how = format!(
        "median of {PROMOTED}: an upcall until the interrupted thread goes on, where the handler \
         goes on on a sandbox thread of the same core, over one that need not"
    );
    let figure = Figure::plain("upcalls.promoted", median_and_90(times).0, "cycles", how);
    Ok(figure.against(pure))
}
