//! What the processes of an experiment do: a client, the disturbance, the manager as a process.
//!
//! Each reads its [`Setup`], says [`Ready`], and begins when it is told the time of the start.

use crate::controls::Controls;
use crate::disturbance::{Burst, LONGEST};
use crate::error::Error;
use crate::manager::Manager;
use crate::setup::{Common, Ready, Role, Setup, Ticks};
use crate::trusted::{self, OwnTimer, Scheduling};
use postern::{Attachment, Client, CommonMemory, Image, Subscription, Ways};
use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::Write;

/// The argument that makes this program a process of an experiment.
pub const ARGUMENT: &str = "--role";

/// Plays the role that standard input tells, to its end.
///
/// # Errors
/// What it was told cannot be read, or it cannot be done.
pub fn play() -> Result<(), Error> {
    let mut input = std::io::stdin().lines();
    let mut line = || {
        let line = input.next().transpose();
        let line = line.map_err(|error| Error::system("standard input", error))?;
        line.ok_or_else(|| Error::Options("standard input ended".to_owned()))
    };
    let text = line()?;
    let setup: Setup = serde_json::from_str(&text)
        .map_err(|error| Error::Options(format!("standard input is no setup: {error}")))?;
    // Twice the longest burst: more is a mistake.
    let ends = trusted::end_in_time(LONGEST * 2000, setup.seconds);
    ends.map_err(|error| Error::system("the process's limits", error))?;
    let manager = setup.common.as_ref().map(join).transpose()?;
    // Only now: the threads of the library stay where others are.
    let pinned = trusted::pin(setup.cpu);
    pinned.map_err(|error| Error::system(format!("processor {}", setup.cpu), error))?;
    let (wanted, interrupted) = match &setup.role {
        Role::Client(_) => (None, true),
        Role::Disturbance(scheduling, _) => (Some(*scheduling), true),
        Role::Manager(scheduling) => (Some(*scheduling), false),
    };
    let common = setup.common.as_ref().filter(|_| interrupted);
    let upcalls = match (&manager, common) {
        (Some(manager), Some(common)) => Some(interrupt(manager, common)?),
        _ => None,
    };
    let refused = wanted.and_then(|scheduling| {
        let error = trusted::schedule(0, scheduling).err()?;
        Some(format!("{scheduling}: {error}"))
    });
    let way = upcalls.as_ref().and_then(Interrupts::way);
    let ready = serde_json::to_string(&Ready { refused, way });
    let ready = ready.map_err(|error| Error::Options(error.to_string()))?;
    let mut output = std::io::stdout();
    writeln!(output, "{ready}")
        .and_then(|()| output.flush())
        .map_err(|error| Error::system("standard output", error))?;
    let start: u64 = line()?
        .parse()
        .map_err(|_| Error::Options("standard input is no time".to_owned()))?;
    match &setup.role {
        Role::Client(milliseconds) => {
            trusted::sleep_until(start);
            compute_until(start + milliseconds * 1_000_000);
        }
        Role::Disturbance(scheduling, bursts) => disturb(start, *scheduling, bursts),
        Role::Manager(_) => {
            let Some((manager, common)) = manager.zip(setup.common.as_ref()) else {
                return Err(Error::Options("a manager needs its domain".to_owned()));
            };
            for tick in 1.. {
                trusted::sleep_until(start + tick * common.tick);
                manager.tick()?;
            }
        }
    }
    Ok(())
}

fn join(common: &Common) -> Result<Manager, Error> {
    let image = Image::load(&common.extension).map_err(Error::domain)?;
    let memory = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&common.memory);
    let memory = memory.map_err(|error| Error::file(&common.memory, error))?;
    let memory = CommonMemory::join(memory.into()).map_err(Error::domain)?;
    let controls = Controls::open(&common.processes, common.proc)?;
    Manager::join(&image, &memory, controls, Ways::BEST)
}

/// The calling thread is interrupted until this is dropped.
enum Interrupts {
    /// Each time that it has run for a tick. Of all attached threads, that is the current one.
    Timer {
        _timer: OwnTimer,
        _attachment: Attachment,
    },
    /// By a timer of the process's. Another process's timer interrupts that one.
    Event { tick: Subscription, _client: Client },
}

impl Interrupts {
    fn way(&self) -> Option<String> {
        match self {
            Interrupts::Timer { .. } => None,
            Interrupts::Event { tick, .. } => Some(tick.way().to_string()),
        }
    }
}

fn interrupt(manager: &Manager, common: &Common) -> Result<Interrupts, Error> {
    if common.ticks == Ticks::Event {
        let _client = manager.attach_to_events()?;
        let tick = manager.every(common.tick)?;
        return Ok(Interrupts::Event { tick, _client });
    }
    let _attachment = manager.attach()?;
    let signal = postern::Config::default().upcall_signal;
    let timer = OwnTimer::start(signal, common.tick);
    let _timer = timer.map_err(|error| Error::system("a timer of the thread's own", error))?;
    Ok(Interrupts::Timer {
        _timer,
        _attachment,
    })
}

/// Integers, until the monotonic clock shows so many nanoseconds.
fn compute_until(end: u64) {
    let mut x = 1u64;
    while trusted::now() < end {
        for _ in 0..10_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        black_box(x);
    }
}

/// Takes all that it can get, at times. Each burst begins with the same scheduling; whoever lowers
/// it does so until the end of that burst.
fn disturb(start: u64, scheduling: Scheduling, bursts: &[Burst]) {
    let time = |milliseconds: u64| start + milliseconds * 1_000_000;
    for burst in bursts {
        // Somewhat before: who was lowered may have to wait for the processor.
        trusted::sleep_until(time(burst.start).saturating_sub(50_000_000));
        // A system that refuses it has said so at the start.
        let _ = trusted::schedule(0, scheduling);
        trusted::sleep_until(time(burst.start));
        compute_until(time(burst.end));
    }
}
