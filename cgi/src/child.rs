//! Processes of programs: started by a thread that lives as long as the server, and ended with
//! their groups.
//!
//! Invariants: no process that was started here outlives the server, however that ends. A group is
//! ended only while its leader was not waited for, so that its number is no other group's.

use crate::trusted::spawn::{SpawnPlan, spawn, watched};
use postern_server::HandlerSettings;
use postern_server::ProgramLog;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, mpsc};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Longest line of standard error in the log.
const LINE: u64 = 4096;

/// What is to be started, and who waits for it.
type Job = (SpawnPlan, oneshot::Sender<io::Result<UnreapedChild>>);

/// Starts processes. They end with it.
#[derive(Debug)]
pub struct Spawner(mpsc::Sender<Job>);

impl Spawner {
    /// With a thread of its own.
    ///
    /// # Errors
    /// There are no more threads.
    pub fn new() -> io::Result<Arc<Spawner>> {
        let (sender, jobs) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("postern-spawn".to_owned())
            .spawn(move || {
                for (plan, answer) in jobs {
                    let started = spawn(&plan).and_then(|(process, descriptor)| {
                        let leader = Pid::from_raw(process).ok_or_else(gone)?;
                        Ok(UnreapedChild {
                            leader,
                            descriptor,
                            ended: false,
                        })
                    });
                    // One that nobody wants any more ends again.
                    let _ = answer.send(started);
                }
            })?;
        Ok(Arc::new(Spawner(sender)))
    }

    /// Starts a handler's program in its own folder, with these variables and no others but `PATH`,
    /// with standard input and output. What it says on standard error goes to the log.
    ///
    /// # Errors
    /// It cannot be run.
    pub async fn start<'a>(
        &self,
        settings: &HandlerSettings,
        file: &Path,
        variables: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        (stdin, stdout): (OwnedFd, OwnedFd),
        log: &Arc<ProgramLog>,
    ) -> io::Result<Child> {
        let (words, stderr) = pipe()?;
        let path = (&b"PATH"[..], &b"/usr/local/bin:/usr/bin:/bin"[..]);
        let environment = variables
            .chain([path])
            .map(|(name, value)| CString::new([name, b"=", value].concat()));
        let plan = SpawnPlan {
            program: name(file)?,
            environment: environment.collect::<Result<_, _>>()?,
            folder: settings.program.parent().map(name).transpose()?,
            files: [stdin, stdout, stderr],
        };
        let words = Receiver::from_owned_fd(words)?;
        let (answer, started) = oneshot::channel();
        self.0.send((plan, answer)).map_err(|_| gone())?;
        let ending = started.await.map_err(|_| gone())??;
        tokio::spawn(tell(words, log.clone()));
        Ok(Child {
            end: watched(ending.descriptor.try_clone()?)?,
            ending: Some(ending),
        })
    }
}

fn name(path: &Path) -> io::Result<CString> {
    let path = std::path::absolute(path)?;
    Ok(CString::new(path.into_os_string().into_vec())?)
}

/// Puts what a process says on standard error into the log.
async fn tell(words: Receiver, log: Arc<ProgramLog>) {
    let mut reader = BufReader::new(words);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => log.say(&String::from_utf8_lossy(line.trim_ascii_end())),
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("what starts processes is gone")
}

/// The two ends of a pipe: what is written into the second comes out of the first.
///
/// # Errors
/// No descriptors are left.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// The end of everything that is written into it, and of all reading.
///
/// # Errors
/// No descriptors are left.
pub fn nothing() -> io::Result<OwnedFd> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    Ok(file.into())
}

/// A process that was not waited for. It is ended and waited for when this is dropped.
#[derive(Debug)]
struct UnreapedChild {
    leader: Pid,
    descriptor: OwnedFd,
    ended: bool,
}

impl UnreapedChild {
    fn kill(&self) {
        // Whoever is gone need not be ended.
        let _ = kill_process_group(self.leader, Signal::KILL);
    }

    /// Takes the status of a process that has ended, and ends what is left of its group; `None` if
    /// it has not.
    fn reap(&mut self) -> io::Result<Option<ExitStatus>> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if waitid(WaitId::PidFd(self.descriptor.as_fd()), look)?.is_none() {
            return Ok(None);
        }
        self.kill();
        self.take(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }

    fn take(&mut self, how: WaitIdOptions) -> io::Result<Option<ExitStatus>> {
        let status = waitid(WaitId::PidFd(self.descriptor.as_fd()), how)?;
        self.ended |= status.is_some();
        Ok(status.map(as_std))
    }
}

impl Drop for UnreapedChild {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
            // What was killed ends soon.
            let _ = self.take(WaitIdOptions::EXITED);
        }
    }
}

fn as_std(status: WaitIdStatus) -> ExitStatus {
    let raw = match status.terminating_signal() {
        Some(signal) => signal | if status.dumped() { 0x80 } else { 0 },
        None => status.exit_status().unwrap_or_default() << 8,
    };
    ExitStatus::from_raw(raw)
}

/// A process that is running. With this, it ends, and its group.
#[derive(Debug)]
pub struct Child {
    /// Until it was waited for.
    ending: Option<UnreapedChild>,
    /// Readable when it has ended.
    end: AsyncFd<OwnedFd>,
}

impl Child {
    /// Waits until it has ended by itself.
    ///
    /// # Errors
    /// The system does not say.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            let mut ready = self.end.readable().await?;
            let Some(ending) = &mut self.ending else {
                return Err(io::Error::other("it was waited for already"));
            };
            if let Some(status) = ending.reap()? {
                self.ending = None;
                return Ok(status);
            }
            ready.clear_ready();
        }
    }

    /// Whether it runs still.
    pub fn is_running(&mut self) -> bool {
        let reaped = self.ending.as_mut().map(UnreapedChild::reap);
        matches!(reaped, Some(Ok(None)))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let Some(ending) = self.ending.take() else {
            return;
        };
        ending.kill();
        // Others need not wait until it has given back its memory.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || drop(ending));
        }
    }
}
