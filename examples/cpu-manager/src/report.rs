//! What an experiment found: the processes' times, their shares, and how far they are from the
//! targets.

use crate::disturbance::Burst;
use crate::manager::State;
use crate::share::Share;
use serde::Serialize;
use std::fmt::Write;

/// Milliseconds between two samples.
pub const EVERY: u64 = 100;
/// Samples in front, while the controller begins, that are in no error.
const WARM_UP: usize = 10;

/// Processor times of all processes at one moment, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// From the start.
    pub time: u64,
    /// Of the clients, in order.
    pub clients: Vec<u64>,
    /// Of the disturbance.
    pub disturbance: u64,
}

/// How far a client is from its target, in hundredths of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// Mean of the absolute errors.
    pub mean: f64,
    /// The largest one.
    pub worst: f64,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Where the manager was.
    pub placement: String,
    /// Who calls it, and when.
    pub ticks: String,
    /// How clients are held to their timeslices.
    pub held: String,
    /// What the system refused, and what was done instead.
    pub notes: Vec<String>,
    /// The targets.
    pub shares: Vec<Share>,
    /// When the disturbance was active.
    pub bursts: Vec<Burst>,
    /// Every 100 ms.
    pub samples: Vec<Sample>,
    /// For each client.
    pub deviations: Vec<Deviation>,
    /// What the manager did.
    pub manager: State,
    /// Processor time that a process or thread of the manager's own took, in nanoseconds.
    pub manager_time: Option<u64>,
}

/// Part of the processor between two samples, 0 to 1.
fn part(used: (u64, u64), time: (u64, u64)) -> f64 {
    let (used, time) = (used.1.saturating_sub(used.0), time.1.saturating_sub(time.0));
    if time == 0 {
        return 0.0;
    }
    used as f64 / time as f64
}

/// A client's share at each sample but the first ones: over the last period of its own.
///
/// Gives pairs of seconds and parts.
pub fn client_series(samples: &[Sample], client: usize, share: Share) -> Vec<(f64, f64)> {
    let window = (share.period as usize)
        .div_ceil(EVERY as usize * 1000)
        .max(1);
    series(samples, window, |sample| {
        sample.clients.get(client).copied().unwrap_or(0)
    })
}

/// The disturbance's share at each sample but the first one.
pub fn disturbance_series(samples: &[Sample]) -> Vec<(f64, f64)> {
    series(samples, 1, |sample| sample.disturbance)
}

fn series(samples: &[Sample], window: usize, used: impl Fn(&Sample) -> u64) -> Vec<(f64, f64)> {
    samples
        .windows(window + 1)
        .map(|w| {
            let (a, b) = (&w[0], &w[window]);
            let share = part((used(a), used(b)), (a.time, b.time));
            (b.time as f64 / 1e9, share)
        })
        .collect()
}

/// How far all clients are from their targets, after a second. Without samples, 0.
pub fn deviations(samples: &[Sample], shares: &[Share]) -> Vec<Deviation> {
    let settled = samples.get(WARM_UP..).unwrap_or_default();
    let deviation = |(client, &share): (usize, &Share)| {
        let series = client_series(settled, client, share);
        let errors = series
            .iter()
            .map(|(_, part)| (part - share.part()).abs() * 100.0);
        let (sum, worst) = errors.fold((0.0, 0.0f64), |(sum, worst), e| (sum + e, worst.max(e)));
        let mean = sum / series.len().max(1) as f64;
        Deviation { mean, worst }
    };
    shares.iter().enumerate().map(deviation).collect()
}

/// All series as comma-separated values, with a line of names.
pub fn csv(runs: &[Run]) -> String {
    let mut text = "placement,process,seconds,share,target\n".to_owned();
    for run in runs {
        let mut lines = |process: &str, target: f64, series: Vec<(f64, f64)>| {
            for (seconds, part) in series {
                let placement = &run.placement;
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "{placement},{process},{seconds:.3},{part:.4},{target:.4}"
                );
            }
        };
        for (client, &share) in run.shares.iter().enumerate() {
            let series = client_series(&run.samples, client, share);
            lines(&client.to_string(), share.part(), series);
        }
        lines("disturbance", 0.0, disturbance_series(&run.samples));
    }
    text
}

/// The figures as a table, for people.
pub fn table(runs: &[Run]) -> String {
    let mut text = String::new();
    for run in runs {
        let _ = writeln!(text, "{}: {}; {}", run.placement, run.ticks, run.held);
        for note in &run.notes {
            let _ = writeln!(text, "  {note}");
        }
        for ((client, share), deviation) in run.shares.iter().enumerate().zip(&run.deviations) {
            let state = run.manager.processes.get(client);
            let late = state.map_or(0, |state| state.late);
            let (mean, worst) = (deviation.mean, deviation.worst);
            let share = share.to_string();
            let _ = writeln!(
                text,
                "  client {client}, {share:>11}: off by {mean:5.2} % of the processor in the mean, \
                 {worst:5.2} at worst; {late} periods late"
            );
        }
        let state = &run.manager;
        let seconds = run.samples.last().map_or(0.0, |s| s.time as f64 / 1e9);
        let each = |time: i64| time as f64 / 1e3 / state.ticks.max(1) as f64;
        let _ = write!(
            text,
            "  {} ticks in {seconds:.1} s, {:.0} ms apart at most",
            state.ticks,
            state.widest as f64 / 1e6
        );
        match run.manager_time {
            Some(time) => {
                let _ = writeln!(
                    text,
                    ", {:.1} us of processor time for each",
                    each(time as i64)
                );
            }
            None => {
                let _ = writeln!(text, ", {:.1} us in each", each(state.busy));
            }
        }
    }
    text
}
