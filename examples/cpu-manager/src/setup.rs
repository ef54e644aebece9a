//! What a process of an experiment is told on its standard input, a line of JSON, and what it says
//! when it is ready.

use crate::disturbance::Burst;
use crate::trusted::Scheduling;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// By what a client is held to its timeslice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quota {
    /// `cpu.max` of its control group, version 2.
    Max(PathBuf),
    /// `cpu.cfs_quota_us` and `cpu.cfs_period_us` in the folder of its control group, version 1.
    Cfs(PathBuf),
    /// Its nice value, which can be lowered again.
    Nice,
    /// Nothing: its nice value was chosen once, or it is no client.
    None,
}

/// A process that the manager knows; its number is its place in the list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Process {
    /// The kernel's number.
    pub pid: i32,
    /// How it is held.
    pub quota: Quota,
}

/// The manager's domain, for processes that have it in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Common {
    /// `manager.px`
    pub extension: PathBuf,
    /// The memory file: `/proc/PID/fd/N` of the process that made it.
    pub memory: PathBuf,
    /// All processes that the manager knows.
    pub processes: Vec<Process>,
    /// Read processor times from `/proc/PID/schedstat`, not from their clocks.
    pub proc: bool,
    /// Nanoseconds between two ticks.
    pub tick: u64,
    /// What ticks are made of.
    pub ticks: Ticks,
}

/// What interrupts processes, or has the host's thread call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ticks {
    /// A timer of each interrupted thread's own processor time; a thread of the host sleeps.
    Timer,
    /// The library's events: a timer of each process's that has the domain, by the best way.
    Event,
}

/// What a process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Computes, for so many milliseconds.
    Client(u64),
    /// Computes in bursts, each begun with this scheduling.
    Disturbance(Scheduling, Vec<Burst>),
    /// Calls the manager at every tick, with this scheduling.
    Manager(Scheduling),
}

/// All that a process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    /// What it does.
    pub role: Role,
    /// On which processor.
    pub cpu: usize,
    /// After how many seconds it ends in any case.
    pub seconds: u32,
    /// The manager's domain, for who calls it, or is interrupted by it.
    pub common: Option<Common>,
}

/// What a process says when it can begin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// The scheduling that it could not have, and why.
    pub refused: Option<String>,
    /// The way that events go to it, if it has any.
    pub way: Option<String>,
}
