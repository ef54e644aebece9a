//! A program with all its children, under one agent.

use crate::trusted::landlock::Executable;
use crate::watch::Watch;
use crate::{enforce, files, trusted};
use postern_image::{ImageFile, ImageTables};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;
use thiserror::Error;

/// The variable by which a loader is told what to do, as `loader/src/exec.rs` has it.
const VARIABLE: &str = "POSTERN_INTERPOSE";

/// Why a program was not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InterposeError {
    /// The agent's file.
    #[error("{0}: {1}")]
    Agent(PathBuf, #[source] std::io::Error),
    /// There is no such program, or it may not be executed.
    #[error("{0:?}: no such program in $PATH")]
    Missing(OsString),
    /// What the agent is told.
    #[error("the agent's arguments are longer than 48 KiB")]
    Arguments,
    /// No supervisor is possible here.
    #[error(
        "this kernel has no notifications of system calls that only deadly signals interrupt: \
         --enforce needs Linux 5.19, built with CONFIG_SECCOMP_FILTER"
    )]
    NoNotifications,
    /// This process has a filter itself.
    #[error(
        "seccomp(2) is refused, by a filter of whoever started this process: --enforce cannot be \
         used in it: {0}"
    )]
    FilterRefused(#[source] std::io::Error),
    /// The supervisor's threads are taken out of calls by a signal.
    #[error("SIGRTMAX - 5 has a handler of this process's: --enforce needs it")]
    SignalTaken,
    /// A supervisor's filter cannot be installed: there is one of another's.
    #[error("another supervisor decides about this process's calls already: {0}")]
    Supervised(#[source] std::io::Error),
    /// A supervisor knows its callers by `/proc`.
    #[error("/proc is not there, or is another namespace's: --enforce needs it")]
    NoProcesses,
    /// A supervisor makes calls as its caller, so both are one user.
    #[error("--enforce needs a process whose real and effective user and group are the same")]
    Users,
    /// What may be executed cannot be restricted here.
    #[error("this kernel has no landlock, which --allow-exec needs (Linux 5.13): {0}")]
    NoLandlock(#[source] std::io::Error),
    /// What may be executed is not there.
    #[error("{0}, which may be executed: {1}")]
    AllowedExec(PathBuf, #[source] std::io::Error),
    /// A file for the tree.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] std::io::Error),
}

/// Programs to be run under an agent.
#[derive(Debug)]
pub struct Interposer {
    agent: PathBuf,
    arguments: Vec<OsString>,
    output: Option<OwnedFd>,
    wanted: u32,
    enforces: bool,
    executable: Vec<PathBuf>,
    deadline: Option<Duration>,
}

/// What a loader is to do instead of loading an open file: find the program by its path, or let the
/// agent say its last words.
const BY_PATH: i32 = -1;
const LAST_WORDS: i32 = -2;
const KEEP: i32 = -3;
/// The function that an agent's keeper runs.
const KEEPER: &str = "pt_agent_keep";

/// The status of a program whose agent has failed: 125.
const FAILED: i32 = 125 << 8;
/// How long an agent may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// What every loader of a tree is told, by number.
struct Tree {
    loader: OwnedFd,
    agent: OwnedFd,
    window: OwnedFd,
    output: OwnedFd,
    /// Both ends of what the tree and its keeper have in common.
    keeper: Option<(OwnedFd, OwnedFd)>,
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> InterposeError {
    move |error| InterposeError::System(what, error)
}

impl Interposer {
    /// With this agent.
    pub fn new(agent: impl Into<PathBuf>) -> Interposer {
        Interposer {
            agent: agent.into(),
            arguments: Vec::new(),
            output: None,
            wanted: 0,
            enforces: false,
            executable: Vec::new(),
            deadline: None,
        }
    }

    /// Gives the agent one more argument.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Interposer {
        self.arguments.push(argument.into());
        self
    }

    /// What the agent prints goes there, instead of the standard error.
    pub fn output(mut self, file: impl Into<OwnedFd>) -> Interposer {
        self.output = Some(file.into());
        self
    }

    /// Each call is stopped by the kernel; none of the program's instructions are rewritten.
    pub fn slow(mut self) -> Interposer {
        self.wanted |= files::SLOW;
        self
    }

    /// How long the agent may take for one answer: 10 seconds where this is not said, of the
    /// processor's time, in which it waits for nothing. The process in which it takes longer is
    /// killed. With [`Self::enforce`] it is one second, and the agent has failed then.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// How many places of the programs were rewritten, and how many calls the kernel stopped, is
    /// printed at the end, behind what the agent prints.
    pub fn stats(mut self) -> Interposer {
        self.wanted |= files::STATS;
        self
    }

    /// Programs are not told of the kernel's vDSO: they ask for the time by calls, which the agent
    /// sees.
    pub fn no_vdso(mut self) -> Interposer {
        self.wanted |= files::NO_VDSO;
        self
    }

    /// The agent decides, in this process, about the calls that acquire something; these cannot be
    /// made without it, whatever the program does. It sees no others, and changes none: one that it
    /// lets pass with other words has `EPERM`. What is said of rewritten places does not apply.
    /// `SIGRTMAX - 5` gets a handler that does nothing.
    pub fn enforce(mut self) -> Interposer {
        self.enforces = true;
        self
    }

    /// With [`Self::enforce`], the tree executes only this file or what is below this folder, and
    /// what else is given so: the kernel sees to that, and no path can change before. The dynamic
    /// linker is executed, too.
    pub fn allow_exec(mut self, path: impl Into<PathBuf>) -> Interposer {
        self.executable.push(path.into());
        self
    }

    /// Runs a program, found as shells do, and waits for it and all that it started: its own
    /// status.
    ///
    /// # Errors
    /// The agent's file cannot be read, there is no such program, or the system's own. What a
    /// loader finds wrong, it says on the standard error, and ends with status 125 to 127.
    pub fn run(
        &self,
        program: &OsStr,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<ExitStatus, InterposeError> {
        let path = find(program).ok_or_else(|| InterposeError::Missing(program.to_owned()))?;
        if self.enforces {
            return self.supervise(&path, program, arguments);
        }
        let mut tree = self.tree()?;
        let (mut ends, alive) = std::io::pipe().map_err(system("make a pipe"))?;
        // The other number is closed, or the end would never come.
        let alive = {
            let low = OwnedFd::from(alive);
            files::high(low.as_fd()).map_err(system("make a pipe"))?
        };
        let mut command = tree.command(BY_PATH, Some(&alive), path.as_os_str());
        command.arg0(program).args(arguments);
        let mut child = command.spawn().map_err(system("start the loader"))?;
        drop(command);
        drop(alive);
        let keeper = tree.keep().map_err(system("start the loader"))?;
        let shared = |file: &OwnedFd| file.try_clone().map_err(system("watch the agent"));
        let watch = Watch::new(shared(&tree.window)?, shared(&tree.output)?);
        let deadline = self.deadline.unwrap_or(DEADLINE);
        let (status, late) = watch.during(deadline, || {
            let status = child.wait().map_err(system("wait for the program"))?;
            let status = match watch.why_in_agent(child.id(), status) {
                true => ExitStatus::from_raw(FAILED),
                false => status,
            };
            // The last process that has the other end closes it.
            let _ = ends.read(&mut [0]);
            if let Some(mut keeper) = keeper {
                keeper.wait().map_err(system("wait for the keeper"))?;
            }
            let mut last = tree.command(LAST_WORDS, None, OsStr::new(""));
            last.status().map_err(system("start the loader"))?;
            Ok(status)
        });
        match late.contains(&child.id()) {
            true => Ok(ExitStatus::from_raw(FAILED)),
            false => status,
        }
    }

    /// Runs a program whose calls a supervisor decides about.
    fn supervise(
        &self,
        path: &Path,
        program: &OsStr,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<ExitStatus, InterposeError> {
        enforce::is_there().map_err(|error| match error {
            Errno::PERM | Errno::ACCESS => InterposeError::FilterRefused(error.into()),
            _ => InterposeError::NoNotifications,
        })?;
        if !enforce::has_processes() {
            return Err(InterposeError::NoProcesses);
        }
        use rustix::process::{getegid, geteuid, getgid, getuid};
        if getuid() != geteuid() || getgid() != getegid() {
            return Err(InterposeError::Users);
        }
        let wrong = |error: std::io::Error| InterposeError::Agent(self.agent.clone(), error);
        let image = std::fs::read(&self.agent).map_err(wrong)?;
        let output = match &self.output {
            Some(file) => file.try_clone(),
            None => std::io::stderr().as_fd().try_clone_to_owned(),
        };
        let output = output.map_err(system("make a file for what is printed"))?;
        let told = self.arguments.iter().map(|word| word.as_bytes().to_vec());
        let agent = enforce::Agent::load(&image, told.collect(), output, self.deadline);
        let agent = agent.map_err(|why| wrong(std::io::Error::other(why)))?;
        let mut command = Command::new(path);
        command.arg0(program).args(arguments);
        if !self.executable.is_empty() {
            let all = Executable::new().map_err(InterposeError::NoLandlock)?;
            for path in &self.executable {
                let missing = |error| InterposeError::AllowedExec(path.clone(), error);
                all.allow(path).map_err(missing)?;
            }
            all.restrict(&mut command);
        }
        enforce::run(agent, command, !self.executable.is_empty()).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::EBUSY) => InterposeError::Supervised(error),
                Some(libc::EUSERS) => InterposeError::SignalTaken,
                _ => InterposeError::System("start the program", error),
            }
        })
    }

    fn tree(&self) -> Result<Tree, InterposeError> {
        let made = system("make a file for the programs");
        let bytes = std::fs::read(&self.agent);
        let bytes = bytes.map_err(|error| InterposeError::Agent(self.agent.clone(), error))?;
        let told = self.arguments.iter().map(|a| a.as_bytes());
        let window = files::window(told, self.wanted).map_err(&made)?;
        let window = window.ok_or(InterposeError::Arguments)?;
        let output = match &self.output {
            Some(file) => files::high(file.as_fd()),
            None => files::high(std::io::stderr().as_fd()),
        };
        let high = |file: std::io::Result<OwnedFd>| {
            file.and_then(|file| files::high(file.as_fd()))
                .map_err(&made)
        };
        let keeps = ImageFile::parse(&bytes)
            .is_ok_and(|image| ImageTables::from(&image).export(KEEPER).is_some());
        let keeper = match keeps {
            true => Some(files::pair().map_err(&made)?),
            false => None,
        };
        Ok(Tree {
            keeper,
            loader: high(files::loader())?,
            agent: high(files::fixed("postern-agent-image", &bytes))?,
            window: high(Ok(window))?,
            output: output.map_err(&made)?,
        })
    }
}

impl Tree {
    /// A loader that is told to load this.
    fn command(&self, what: i32, alive: Option<&OwnedFd>, path: &OsStr) -> Command {
        let number = |file: &OwnedFd| file.as_raw_fd();
        let keeper = self.keeper.as_ref().map_or(-1, |(tree, _)| number(tree));
        let numbers = [&self.loader, &self.agent, &self.window, &self.output].map(number);
        let [loader, agent, window, output] = numbers;
        let alive = alive.map_or(-1, number);
        let mut told: OsString =
            format!("{loader},{agent},{window},{output},{alive},{keeper},{what},").into();
        told.push(path);
        let mut command = Command::new(format!("/proc/self/fd/{loader}"));
        command.env(VARIABLE, told);
        trusted::give(
            &mut command,
            numbers.into_iter().chain([alive, keeper]).collect(),
        );
        command
    }

    /// Starts the keeper, if the agent has one: a loader whose standard input is the other end.
    /// When all processes of the tree have ended, that has an end, and so has the keeper.
    fn keep(&mut self) -> std::io::Result<Option<Child>> {
        let Some((tree, other)) = self.keeper.take() else {
            return Ok(None);
        };
        drop(tree);
        let mut command = self.command(KEEP, None, OsStr::new(""));
        command.stdin(other);
        command.spawn().map(Some)
    }
}

/// The program that shells mean by a name.
fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    let candidates =
        std::env::split_paths(&path).map(|folder| match folder.as_os_str().is_empty() {
            true => Path::new(".").join(program),
            false => folder.join(program),
        });
    let may = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    candidates.into_iter().find(may)
}
