//! An experiment: processes are started, held to their shares, sampled, and ended. Whatever
//! happens, no process and no control group is there afterwards.

use crate::controls::{self, Controls};
use crate::disturbance::{self, Burst};
use crate::error::Error;
use crate::groups::Groups;
use crate::manager::{MOST, Manager};
use crate::report::{self, EVERY, Run, Sample};
use crate::roles::ARGUMENT;
use crate::setup::{Common, Process, Quota, Ready, Role, Setup, Ticks};
use crate::share::Share;
use crate::trusted::{self, Scheduling};
use postern::{CommonMemory, Image, Way, Ways};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// The real-time priority of the manager, and of the disturbance when a burst begins.
const PRIORITY: u32 = 50;
/// The nice value of clients that have quotas.
const FIRST: i32 = -15;
/// Seconds after which processes end by themselves, behind the time of the experiment.
const SPARE: u32 = 30;

/// Where the manager is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A real-time process of its own, which reads `/proc` every tick.
    Process,
    /// A real-time thread of the host, which calls the domain every tick.
    Thread,
    /// A handler that interrupts whichever process is current.
    Upcall,
}

impl Placement {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Process => "process",
            Placement::Thread => "thread",
            Placement::Upcall => "upcall",
        }
    }
}

/// How the disturbance is scheduled when a burst begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// As the manager, by priority.
    Fifo,
    /// The same, in turns.
    RoundRobin,
    /// As everybody.
    Other,
}

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the manager is.
    pub placement: Placement,
    /// How long, in seconds, from 1.
    pub seconds: u64,
    /// A client for each.
    pub shares: Vec<Share>,
    /// Seed and policy of the disturbance, if there is one.
    pub disturbance: Option<(u64, Policy)>,
    /// Milliseconds between two ticks.
    pub tick: u64,
    /// What they are made of; a process of the manager's own sleeps in any case.
    pub ticks: Ticks,
    /// Gains in 256ths, if not the manager's own.
    pub gains: Option<[i32; 3]>,
    /// The processor on which all of it happens; else the last one that is allowed.
    pub cpu: Option<usize>,
    /// Clients that end early, and after how many milliseconds.
    pub ends: Vec<(usize, u64)>,
    /// The program that plays roles: this one.
    pub program: PathBuf,
    /// The extension.
    pub extension: PathBuf,
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Options(text));
        if !(1..=600).contains(&self.seconds) {
            return wrong(format!(
                "{} s: an experiment takes 1 to 600 s",
                self.seconds
            ));
        }
        if !(1..=1000).contains(&self.tick) {
            return wrong(format!("{} ms: ticks are 1 to 1000 ms apart", self.tick));
        }
        // One number is the disturbance's.
        if self.shares.is_empty() || self.shares.len() >= MOST {
            let most = MOST - 1;
            return wrong(format!(
                "{} clients: there are 1 to {most}",
                self.shares.len()
            ));
        }
        let whole: f64 = self.shares.iter().map(|share| share.part()).sum();
        if whole > 0.95 {
            let whole = whole * 100.0;
            return wrong(format!(
                "the shares are {whole:.0} % of the processor together: at most 95 can be held"
            ));
        }
        match self
            .ends
            .iter()
            .find(|(client, _)| *client >= self.shares.len())
        {
            Some((client, _)) => wrong(format!("there is no client {client} that could end")),
            None => Ok(()),
        }
    }
}

/// A process of the experiment, killed with this.
struct Player {
    name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Player {
    fn start(program: &Path, name: String) -> Result<Player, Error> {
        let child = Command::new(program)
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| Error::file(program, error))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Player {
                name,
                child,
                input,
                output: BufReader::new(output),
            }),
            _ => Err(Error::Process {
                name,
                what: "has no pipes".to_owned(),
            }),
        }
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn tell(&mut self, line: &str) -> Result<(), Error> {
        writeln!(self.input, "{line}").map_err(|error| self.lost(&error.to_string()))
    }

    fn set_up(&mut self, setup: &Setup) -> Result<(), Error> {
        let text = serde_json::to_string(setup);
        self.tell(&text.map_err(|error| Error::Options(error.to_string()))?)
    }

    fn ready(&mut self) -> Result<Ready, Error> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        read.map_err(|error| self.lost(&error.to_string()))?;
        serde_json::from_str(&line).map_err(|_| self.lost("ended, or is not ready"))
    }

    fn lost(&self, what: &str) -> Error {
        Error::Process {
            name: self.name.clone(),
            what: what.to_owned(),
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // One that has ended needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All processes and groups of an experiment, in the order in which they end.
struct Cast {
    /// The manager, if it is a process of its own.
    manager: Option<Player>,
    disturbance: Option<Player>,
    clients: Vec<Player>,
    groups: Option<Groups>,
}

impl Cast {
    fn players(&mut self) -> impl Iterator<Item = &mut Player> {
        let others = self.disturbance.iter_mut().chain(&mut self.manager);
        self.clients.iter_mut().chain(others)
    }
}

impl Drop for Cast {
    fn drop(&mut self) {
        if let Some(groups) = &self.groups {
            groups.lift();
        }
    }
}

/// How clients are held: in control groups, or else by their nice values.
fn hold(clients: &[Player], shares: &[Share]) -> (Option<Groups>, Vec<Quota>, String) {
    let processes: Vec<i32> = clients.iter().map(Player::pid).collect();
    let why = match Groups::make(&processes) {
        Ok(groups) => {
            let quotas: Vec<Quota> = (0..clients.len()).filter_map(|n| groups.quota(n)).collect();
            // Before what else runs here, where that is allowed: quotas hold them back.
            for &pid in &processes {
                let _ = trusted::set_nice(pid, FIRST);
            }
            let files = match quotas.first() {
                Some(Quota::Max(_)) => "`cpu.max` of control groups (version 2)",
                _ => "`cpu.cfs_quota_us` of control groups (version 1)",
            };
            return (Some(groups), quotas, format!("held by {files}"));
        }
        Err(error) => error,
    };
    let mut free = true;
    for (&pid, share) in processes.iter().zip(shares) {
        let nice = controls::nice(share.target, share.period);
        // Lowering is allowed to everybody; whether it can be taken back, who asks is told.
        free &= trusted::set_nice(pid, nice).is_ok();
        free &= trusted::set_nice(pid, (nice + 1).min(19)).is_ok();
        free &= trusted::set_nice(pid, nice).is_ok();
    }
    let (quota, how) = if free {
        (Quota::Nice, "held by nice values")
    } else {
        (
            Quota::None,
            "nice values, chosen once (CAP_SYS_NICE could change them)",
        )
    };
    let text = format!("{how}, for there are no control groups: {why}");
    (None, vec![quota; clients.len()], text)
}

/// Runs one experiment, and tells `progress` each second that is over.
///
/// # Errors
/// The options make no sense, a process could not be started or ended early, or the domain was
/// closed before it began.
pub fn run(options: &Options, mut progress: impl FnMut(u64)) -> Result<Run, Error> {
    options.check()?;
    let allowed = trusted::cpus().map_err(|error| Error::system("processors", error))?;
    let cpu = options.cpu.or(allowed.last().copied()).unwrap_or(0);
    // Whoever samples is not among those that wait.
    let others: Vec<usize> = allowed
        .iter()
        .copied()
        .filter(|&other| other != cpu)
        .collect();
    if !others.is_empty() {
        trusted::pin_to(&others).map_err(|error| Error::system("processors", error))?;
    }
    let result = perform(options, cpu, &mut progress);
    // As it was; if that is refused, the program is where it may be.
    let _ = trusted::pin_to(&allowed);
    result
}

fn perform(options: &Options, cpu: usize, progress: &mut dyn FnMut(u64)) -> Result<Run, Error> {
    let image = Image::load(&options.extension).map_err(Error::domain)?;
    let memory = CommonMemory::new(&image).map_err(Error::domain)?;
    let start = |name: String| Player::start(&options.program, name);

    let clients = (0..options.shares.len()).map(|n| start(format!("client {n}")));
    let mut cast = Cast {
        manager: None,
        disturbance: None,
        clients: clients.collect::<Result<Vec<_>, _>>()?,
        groups: None,
    };
    let (groups, quotas, held) = hold(&cast.clients, &options.shares);
    cast.groups = groups;
    if options.disturbance.is_some() {
        cast.disturbance = Some(start("disturbance".to_owned())?);
    }
    if options.placement == Placement::Process {
        cast.manager = Some(start("manager".to_owned())?);
    }
    let pids = cast
        .clients
        .iter()
        .chain(&cast.disturbance)
        .map(Player::pid);
    let quotas = quotas.into_iter().chain([Quota::None]);
    let processes = pids.zip(quotas).map(|(pid, quota)| Process { pid, quota });
    let descriptor = memory.descriptor().as_raw_fd();
    let common = Common {
        extension: options.extension.clone(),
        memory: format!("/proc/{}/fd/{descriptor}", std::process::id()).into(),
        processes: processes.collect(),
        proc: options.placement == Placement::Process,
        tick: options.tick * 1_000_000,
        ticks: options.ticks,
    };
    let interrupted = (options.placement == Placement::Upcall).then(|| common.clone());
    let seconds = options.seconds as u32 + SPARE;
    let setup = |role, common| Setup {
        role,
        cpu,
        seconds,
        common,
    };

    let controls = Controls::open(&common.processes, false)?;
    let ways = Ways::at_most(Way::RealTime).priority(PRIORITY as i32);
    let manager = Manager::join(&image, &memory, controls, ways)?;
    if let Some(gains) = options.gains {
        manager.gains(gains)?;
    }
    for (number, share) in options.shares.iter().enumerate() {
        manager.client(number, *share)?;
    }
    let mut bursts: Vec<Burst> = Vec::new();
    for (number, client) in cast.clients.iter_mut().enumerate() {
        let early = options.ends.iter().find(|(ends, _)| *ends == number);
        let time = early.map_or(options.seconds * 1000 + 500, |(_, time)| *time);
        client.set_up(&setup(Role::Client(time), interrupted.clone()))?;
    }
    if let (Some(player), Some((seed, policy))) = (&mut cast.disturbance, options.disturbance) {
        bursts = disturbance::bursts(seed, options.seconds);
        let scheduling = match policy {
            Policy::Fifo => Scheduling::Fifo(PRIORITY),
            Policy::RoundRobin => Scheduling::RoundRobin(PRIORITY),
            Policy::Other => Scheduling::Other(0),
        };
        let role = Role::Disturbance(scheduling, bursts.clone());
        player.set_up(&setup(role, interrupted.clone()))?;
        manager.background(options.shares.len())?;
    }
    if let Some(own) = &mut cast.manager {
        let role = Role::Manager(Scheduling::Fifo(PRIORITY));
        own.set_up(&setup(role, Some(common.clone())))?;
    }
    let mut notes = Vec::new();
    for player in cast.players() {
        let ready = player.ready()?;
        let way = ready.way.map(|way| format!("events are handled by {way}"));
        notes.extend(way.filter(|way| !notes.contains(way)));
        if let Some(refused) = ready.refused {
            notes.push(format!(
                "{} is SCHED_OTHER; it may not have {refused}",
                player.name
            ));
        }
    }

    // All are there by then.
    let begin = trusted::now() + 50_000_000;
    for player in cast.players() {
        player.tell(&begin.to_string())?;
    }
    let over = AtomicBool::new(false);
    let (samples, thread_time) = std::thread::scope(|scope| {
        let thread = (options.placement == Placement::Thread).then(|| {
            let work = || keep_calling(&manager, cpu, begin, &common, &over);
            scope.spawn(work)
        });
        let samples = sample(options, begin, &mut cast, progress);
        over.store(true, Ordering::Relaxed);
        (samples, thread.map(|thread| thread.join()))
    });
    let own = cast.manager.as_ref().map(Player::pid);
    let mut manager_time = own.and_then(trusted::process_time);
    if let Some(thread) = thread_time {
        let thread = thread.map_err(|_| Error::Domain("its thread panicked".to_owned()))?;
        manager_time = thread.time;
        notes.extend(thread.notes);
    }
    if let Some(poison) = manager.domain().poison() {
        notes.push(format!("the manager was closed: {poison}"));
    }
    if let Some(own) = &mut cast.manager
        && let Ok(Some(status)) = own.child.try_wait()
    {
        notes.push(format!("the manager's process has ended early: {status}"));
    }
    let state = manager.state()?;
    let deviations = report::deviations(&samples, &options.shares);
    let tick = options.tick;
    Ok(Run {
        placement: options.placement.name().to_owned(),
        ticks: match options.placement {
            Placement::Process => format!("a process of its own looks every {tick} ms"),
            Placement::Thread => match options.ticks {
                Ticks::Timer => format!("a thread of the host calls every {tick} ms"),
                Ticks::Event => format!("an event every {tick} ms"),
            },
            Placement::Upcall => match options.ticks {
                Ticks::Timer => format!("whoever is current is interrupted every {tick} ms"),
                Ticks::Event => format!("each process has an event every {tick} ms"),
            },
        },
        held,
        notes,
        shares: options.shares.clone(),
        bursts,
        samples,
        deviations,
        manager: state,
        manager_time,
    })
}

/// What became of the manager's thread.
struct OfThread {
    /// Its processor time; of events it is not known.
    time: Option<u64>,
    notes: Vec<String>,
}

/// The manager as a thread: calls it at every tick, or has the library's thread do so, until it is
/// over.
fn keep_calling(
    manager: &Manager,
    cpu: usize,
    begin: u64,
    common: &Common,
    over: &AtomicBool,
) -> OfThread {
    let mut notes = Vec::new();
    let pinned = trusted::pin(cpu);
    // The library's thread is where the one is that begins.
    let event = match common.ticks {
        Ticks::Timer => None,
        Ticks::Event => match manager.every(common.tick) {
            Ok(event) => Some(event),
            Err(error) => {
                notes.push(format!("a thread of the host's own calls: {error}"));
                None
            }
        },
    };
    if let Some(event) = &event {
        notes.push(format!("events are handled by {}", event.way()));
    } else {
        let scheduling = Scheduling::Fifo(PRIORITY);
        if let Err(error) = pinned.and_then(|()| trusted::schedule(0, scheduling)) {
            notes.push(format!(
                "the manager's thread is SCHED_OTHER; it may not have {scheduling}: {error}"
            ));
        }
    }
    for n in 1.. {
        trusted::sleep_until(begin + n * common.tick);
        if over.load(Ordering::Relaxed) {
            break;
        }
        if event.is_some() {
            continue;
        }
        if let Err(error) = manager.tick() {
            notes.push(format!("the manager's thread has ended early: {error}"));
            break;
        }
    }
    let time = event.is_none().then(trusted::thread_time);
    OfThread { time, notes }
}

/// Reads all processor times every 100 ms, to the end. A client that has ended keeps its last one.
fn sample(
    options: &Options,
    begin: u64,
    cast: &mut Cast,
    progress: &mut dyn FnMut(u64),
) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    // For less waiting, where it is allowed.
    let _ = trusted::schedule(0, Scheduling::Fifo(PRIORITY));
    for number in 0..=options.seconds * 1000 / EVERY {
        trusted::sleep_until(begin + number * EVERY * 1_000_000);
        let before = samples.last();
        let used = cast.clients.iter().enumerate().map(|(n, client)| {
            let last = before.map_or(0, |sample| sample.clients[n]);
            trusted::process_time(client.pid()).unwrap_or(last)
        });
        let clients_used = used.collect();
        let last = before.map_or(0, |sample| sample.disturbance);
        let disturbance = cast.disturbance.as_ref().map(Player::pid);
        let time = disturbance.and_then(trusted::process_time);
        samples.push(Sample {
            time: trusted::now().saturating_sub(begin),
            clients: clients_used,
            disturbance: time.unwrap_or(last),
        });
        for client in &mut cast.clients {
            // Whoever has ended is no process any more: the manager sees that.
            let _ = client.child.try_wait();
        }
        if number > 0 && number % (1000 / EVERY) == 0 {
            progress(number * EVERY / 1000);
        }
    }
    let _ = trusted::schedule(0, Scheduling::Other(0));
    samples
}
