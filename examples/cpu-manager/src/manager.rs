//! The manager's domain: its functions, and its state as the host reads it.

use crate::controls::{Controls, SERVICES};
use crate::error::Error;
use crate::share::Share;
use crate::trusted;
use postern::{
    Attachment, Client, CommonMemory, Domain, DomainBuilder, Event, Func, Image, Offset,
    Subscription, Ways,
};
use serde::Serialize;
use std::time::Duration;

/// No tick is ended: it is over when its thread has run, however long others keep it waiting.
const LONGEST: Duration = Duration::from_secs(3600);
/// Processes that a manager knows at most.
pub const MOST: usize = 16;
/// Words of `struct manager` in front of its processes, and of each.
const FRONT: usize = 9;
const WORDS: usize = 15;

/// What the manager knows of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// Nothing.
    None,
    /// A client.
    Client,
    /// One that gives way.
    Background,
    /// One that has ended.
    Ended,
}

/// What the manager did for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessState {
    /// What it is.
    pub kind: Kind,
    /// Its timeslice now, in microseconds.
    pub slice: i64,
    /// What it used in a period, over the last 16, in microseconds.
    pub average: i64,
    /// Periods that were looked at.
    pub periods: i64,
    /// Looks that came a period too late.
    pub late: i64,
    /// Acts that the system refused.
    pub refused: i64,
    /// How often it was put behind all others.
    pub lowered: i64,
}

/// What the manager did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    /// Ticks.
    pub ticks: i64,
    /// Ticks that found another one at work, and left the clients to it.
    pub skipped: i64,
    /// Ticks that stopped in the middle for so long that another one took over.
    pub lapsed: i64,
    /// Nanoseconds of processor time in ticks.
    pub busy: i64,
    /// Longest time between two ticks, in nanoseconds.
    pub widest: i64,
    /// The processes, by their numbers.
    pub processes: Vec<ProcessState>,
}

/// A domain of the manager's.
pub struct Manager {
    domain: Domain,
    tick: Func<fn(u32, u64)>,
    client: Func<fn(u32, u64, u64) -> i32>,
    background: Func<fn(u32) -> i32>,
    forget: Func<fn(u32) -> i32>,
    gains: Func<fn(i32, i32, i32) -> i32>,
    state: Offset,
}

impl Manager {
    /// Joins the manager that other processes have in common. Its events go one of these ways.
    ///
    /// # Errors
    /// The image is another one, or the system refuses a domain.
    pub fn join(
        image: &Image,
        memory: &CommonMemory,
        controls: Controls,
        ways: Ways,
    ) -> Result<Manager, Error> {
        let builder = Domain::builder(image).common(memory).ways(ways);
        // Each reaches the clients and nothing else, whoever has it used.
        let granted = SERVICES
            .into_iter()
            .fold(builder, DomainBuilder::grant_to_all);
        Manager::build(controls.grant(granted))
    }

    /// A manager with the services that its domain's builder has.
    ///
    /// # Errors
    /// As [`Manager::join`]; a service is missing.
    pub fn build(builder: DomainBuilder) -> Result<Manager, Error> {
        let domain = builder.deadline(Some(LONGEST)).build();
        let domain = domain.map_err(Error::domain)?;
        let state = domain.func::<fn() -> Offset>("manager_state");
        let state = state.map_err(Error::domain)?;
        Ok(Manager {
            tick: domain.func("tick").map_err(Error::domain)?,
            client: domain.func("manager_client").map_err(Error::domain)?,
            background: domain.func("manager_background").map_err(Error::domain)?,
            forget: domain.func("manager_forget").map_err(Error::domain)?,
            gains: domain.func("manager_gains").map_err(Error::domain)?,
            state: state.call().map_err(Error::domain)?,
            domain,
        })
    }

    /// The domain.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// One tick, by the calling thread.
    ///
    /// # Errors
    /// The call was ended, or another process has closed the domain.
    pub fn tick(&self) -> Result<(), Error> {
        self.tick.call(0, 0).map_err(Error::domain)
    }

    /// Has a process held to a share.
    ///
    /// # Errors
    /// There is no process of this number, or the manager refuses the share.
    pub fn client(&self, number: usize, share: Share) -> Result<(), Error> {
        let status = self.client.call(number as u32, share.target, share.period);
        accepted(status.map_err(Error::domain)?, number)
    }

    /// Has a process give way whenever it runs.
    ///
    /// # Errors
    /// There is no process of this number.
    pub fn background(&self, number: usize) -> Result<(), Error> {
        let status = self.background.call(number as u32).map_err(Error::domain)?;
        accepted(status, number)
    }

    /// Leaves a process alone from now on.
    ///
    /// # Errors
    /// There is no such number.
    pub fn forget(&self, number: usize) -> Result<(), Error> {
        let status = self.forget.call(number as u32).map_err(Error::domain)?;
        accepted(status, number)
    }

    /// Sets the controller's gains: proportional, integral, derivative, in 256ths, 0 to 4096.
    ///
    /// # Errors
    /// One is out of range.
    pub fn gains(&self, gains: [i32; 3]) -> Result<(), Error> {
        let [p, i, d] = gains;
        match self.gains.call(p, i, d).map_err(Error::domain)? {
            0 => Ok(()),
            _ => Err(Error::Options(format!(
                "the manager refuses the gains {p}, {i}, {d}: each is 0 to 4096"
            ))),
        }
    }

    /// What it did so far, also after it was closed.
    ///
    /// # Errors
    /// The memory cannot be read.
    pub fn state(&self) -> Result<State, Error> {
        let bytes = self.domain.read_vec(self.state, (FRONT + MOST * WORDS) * 8);
        let bytes = bytes.map_err(Error::domain)?;
        let words: Vec<i64> = bytes
            .chunks_exact(8)
            .map(|word| i64::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect();
        let process = |words: &[i64]| ProcessState {
            kind: match words[0] {
                1 => Kind::Client,
                2 => Kind::Background,
                3 => Kind::Ended,
                _ => Kind::None,
            },
            slice: words[3],
            average: words[10] / 16,
            periods: words[11],
            late: words[12],
            refused: words[13],
            lowered: words[14],
        };
        Ok(State {
            ticks: words[0],
            skipped: words[1],
            lapsed: words[2],
            busy: words[3],
            widest: words[4],
            processes: words[FRONT..].chunks_exact(WORDS).map(process).collect(),
        })
    }

    /// Where its state lies, and how many bytes it has.
    pub fn place(&self) -> (Offset, usize) {
        (self.state, (FRONT + MOST * WORDS) * 8)
    }

    /// Lets ticks interrupt the calling thread, until the attachment is dropped.
    ///
    /// # Errors
    /// The thread cannot have upcalls.
    pub fn attach(&self) -> Result<Attachment, Error> {
        let upcall = self.domain.upcall("tick").map_err(Error::domain)?;
        let upcall = trusted::allow(upcall.longest(LONGEST));
        upcall.attach().map_err(Error::domain)
    }

    /// Lets ticks that are events interrupt the calling thread, until the client is dropped.
    ///
    /// # Errors
    /// The thread cannot have upcalls.
    pub fn attach_to_events(&self) -> Result<Client, Error> {
        let client = trusted::allow_events(self.domain.client().longest(LONGEST));
        client.attach().map_err(Error::domain)
    }

    /// A tick every so many nanoseconds, by a timer of this process's, until the result is dropped.
    ///
    /// # Errors
    /// There can be no events.
    pub fn every(&self, tick: u64) -> Result<Subscription, Error> {
        let event = Event::every(Duration::from_nanos(tick));
        self.domain.on(event, "tick").map_err(Error::domain)
    }
}

fn accepted(status: i32, number: usize) -> Result<(), Error> {
    match status {
        0 => Ok(()),
        _ => Err(Error::Options(format!(
            "the manager refuses process {number}: it knows processes 0 to {}, that run, with \
             1 ms <= target <= period <= 1 s",
            MOST - 1
        ))),
    }
}
