//! Counters of the server, as Prometheus reads them; those of the domains follow.

use crate::counters::{BOUNDS, Counters};
use crate::handler::Handler;
use crate::log::Log;
use postern::Metrics;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// All of it as text.
///
/// `others` are those who answer besides: name, kind, and what they did.
pub fn text(
    handlers: &[Arc<Handler>],
    others: &[(&str, &str, &Counters)],
    (connections, refused): (usize, u64),
    log: &Log,
) -> String {
    let mut text = String::with_capacity(16 << 10);
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let all = || {
        let handlers = handlers.iter();
        let handlers =
            handlers.map(|h| (&*h.settings().path, h.settings().run.name(), &*h.counters));
        handlers.chain(others.iter().copied())
    };
    let mut family = |name: &str, kind: &str, help: &str, lines: &mut dyn FnMut(&mut String)| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        lines(&mut text);
    };
    family(
        "postern_serve_connections",
        "gauge",
        "Connections that are open.",
        &mut |text| {
            let _ = writeln!(text, "postern_serve_connections {connections}");
        },
    );
    family(
        "postern_serve_refused_total",
        "counter",
        "Connections that were closed at once, since their address had enough.",
        &mut |text| {
            let _ = writeln!(text, "postern_serve_refused_total {refused}");
        },
    );
    family(
        "postern_serve_log_dropped_total",
        "counter",
        "Lines of a log that nobody took in time.",
        &mut |text| {
            for (name, lines) in log.dropped() {
                let _ = writeln!(
                    text,
                    "postern_serve_log_dropped_total{{log=\"{name}\"}} {lines}"
                );
            }
        },
    );
    family(
        "postern_serve_log_left_out_total",
        "counter",
        "Lines of programs beyond what they may say in the error log.",
        &mut |text| {
            let _ = writeln!(text, "postern_serve_log_left_out_total {}", log.left_out());
        },
    );
    family(
        "postern_serve_answers_total",
        "counter",
        "Answers by the first digit of their status.",
        &mut |text| {
            for (path, run, counters) in all() {
                for (digit, count) in counters.answers.iter().enumerate().skip(2) {
                    let _ = writeln!(
                        text,
                        "postern_serve_answers_total{{handler=\"{path}\",run=\"{run}\",status=\"{digit}xx\"}} {}",
                        load(count)
                    );
                }
            }
        },
    );
    type Get = fn(&Counters) -> &AtomicU64;
    let counters: [(&str, &str, Get); 4] = [
        ("faults", "Programs that faulted.", |c| &c.faults),
        (
            "cut",
            "Answers that were cut off because their program failed.",
            |c| &c.cut,
        ),
        (
            "left",
            "Requests whose client left, or broke its body off, before the answer's end.",
            |c| &c.left,
        ),
        ("bytes", "Bytes of answers' bodies.", |c| &c.bytes),
    ];
    for (name, help, get) in counters {
        let name = format!("postern_serve_{name}_total");
        family(&name, "counter", help, &mut |text| {
            for (path, run, counters) in all() {
                let _ = writeln!(
                    text,
                    "{name}{{handler=\"{path}\",run=\"{run}\"}} {}",
                    load(get(counters))
                );
            }
        });
    }
    family(
        "postern_serve_seconds",
        "histogram",
        "Time from a request's head to the end of its answer.",
        &mut |text| {
            for (path, run, counters) in all() {
                let mut sum = 0;
                let bounds = BOUNDS.iter().map(|b| (*b as f64 / 1e6).to_string());
                for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&counters.times) {
                    sum += load(count);
                    let _ = writeln!(
                        text,
                        "postern_serve_seconds_bucket{{handler=\"{path}\",run=\"{run}\",le=\"{bound}\"}} {sum}"
                    );
                }
                let seconds = load(&counters.microseconds) as f64 / 1e6;
                let _ = writeln!(
                    text,
                    "postern_serve_seconds_sum{{handler=\"{path}\",run=\"{run}\"}} {seconds}"
                );
                let _ = writeln!(
                    text,
                    "postern_serve_seconds_count{{handler=\"{path}\",run=\"{run}\"}} {sum}"
                );
            }
        },
    );
    family(
        "postern_serve_waiting",
        "gauge",
        "Requests that wait for an instance.",
        &mut |text| {
            for handler in handlers {
                let _ = writeln!(
                    text,
                    "postern_serve_waiting{{handler=\"{}\"}} {}",
                    handler.settings().path,
                    handler.state().waiting
                );
            }
        },
    );
    family(
        "postern_serve_instances",
        "gauge",
        "Domains of a handler, by what they do.",
        &mut |text| {
            for handler in handlers {
                if let Some(pool) = handler.state().pool {
                    for (state, count) in [("busy", pool.in_use), ("idle", pool.idle)] {
                        let _ = writeln!(
                            text,
                            "postern_serve_instances{{handler=\"{}\",state=\"{state}\"}} {count}",
                            handler.settings().path
                        );
                    }
                }
            }
        },
    );
    family(
        "postern_serve_restarts_total",
        "counter",
        "Domains that began anew after a fault, and processes that were started.",
        &mut |text| {
            for handler in handlers {
                let state = handler.state();
                if let Some(count) = state.pool.map(|pool| pool.restarts).or(state.processes) {
                    let _ = writeln!(
                        text,
                        "postern_serve_restarts_total{{handler=\"{}\"}} {count}",
                        handler.settings().path
                    );
                }
            }
        },
    );
    let mut domains = Metrics::by_image();
    domains.pages = true;
    text + &postern::metrics(&domains)
}
