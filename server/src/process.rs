//! Programs by CGI/1.1 (RFC 3875): a process for each request.
//!
//! Invariant: no process outlives its request. It leads a group of its own, which is ended with the request.

use crate::config::Settings;
use crate::failure::Failure;
use crate::input::Input;
use crate::log::Log;
use crate::outlet::Outlet;
use crate::seat::Answer;
use crate::variables::Variables;
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::time::timeout;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// What a program wrote goes to the client when nothing follows for so long.
pub const SOON: Duration = Duration::from_millis(5);
/// Longest line of standard error in the log.
const LINE: u64 = 4096;

/// A program that is run anew for each request.
pub struct Process {
    settings: Arc<Settings>,
    file: Mutex<PathBuf>,
    log: Arc<Log>,
}

/// Ends the whole group when the request ends, however that is.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Whoever is gone need not be ended.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// What comes of `work`, a process's, unless it takes longer than this: then the process ends with it.
pub async fn in_time(
    limit: Duration,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let late = |_| Failure::Late(limit, "the process was ended".to_owned());
    timeout(limit, work).await.map_err(late)?
}

impl Process {
    /// A program of a file.
    pub fn new(settings: &Arc<Settings>, file: &Path, log: &Arc<Log>) -> Process {
        Process {
            settings: settings.clone(),
            file: Mutex::new(file.to_owned()),
            log: log.clone(),
        }
    }

    /// From now on another file.
    pub fn replace(&self, file: &Path) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file.to_owned();
    }

    /// Serves a request; the result is why the answer was cut off, if it was.
    pub async fn serve(
        &self,
        variables: &Variables,
        input: Input,
        answer: Answer,
    ) -> Option<Failure> {
        let mut outlet = Outlet::new(answer);
        let converse = self.converse(variables, input, &mut outlet);
        let result = in_time(self.settings.call, converse).await;
        outlet.finish(result).await
    }

    async fn converse(
        &self,
        variables: &Variables,
        input: Input,
        outlet: &mut Outlet,
    ) -> Result<(), Failure> {
        let (mut child, group) = self
            .start(variables, &input)
            .map_err(|e| Failure::Run(e.to_string()))?;
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(tell(stderr, self.log.clone(), self.settings.path.clone()));
        }
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let Some(stdout) = stdout else {
            return Err(Failure::Run("it has no output".to_owned()));
        };
        let (fed, drained) = {
            let mut feeding = std::pin::pin!(feed(stdin, input));
            let mut draining = std::pin::pin!(drain(stdout, outlet));
            tokio::select! {
                fed = &mut feeding => (fed, draining.await),
                drained = &mut draining => (Ok(()), drained),
            }
        };
        // A body that fails is why the program could not do better.
        fed?;
        let any = drained?;
        let status = child
            .wait()
            .await
            .map_err(|e| Failure::Run(e.to_string()))?;
        drop(group);
        match (status.code(), any) {
            (Some(0), _) => Ok(()),
            (Some(_), true) => Ok(()),
            (Some(code), false) => Err(Failure::Status(code.into())),
            (None, _) => Err(Failure::Fault(status.to_string())),
        }
    }

    fn start(&self, variables: &Variables, input: &Input) -> std::io::Result<(Child, Group)> {
        let file = self
            .file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let file = std::path::absolute(file)?;
        let mut command = Command::new(&file);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        for (name, value) in variables.pairs() {
            command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
        }
        if let Some(folder) = self.settings.program.parent() {
            command.current_dir(std::path::absolute(folder)?);
        }
        command.stdin(if input.is_end() {
            Stdio::null()
        } else {
            Stdio::piped()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
        Ok((child, group))
    }
}

/// Gives a process the body.
async fn feed(stdin: Option<ChildStdin>, mut input: Input) -> Result<(), Failure> {
    let Some(mut stdin) = stdin else {
        return Ok(());
    };
    while let Some(piece) = input.next(PIECE).await? {
        // A program need not read all of it.
        if stdin.write_all(&piece).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Whether there was any output.
async fn drain(mut stdout: impl AsyncRead + Unpin, outlet: &mut Outlet) -> Result<bool, Failure> {
    let mut any = false;
    loop {
        let mut bytes = bytes::BytesMut::with_capacity(PIECE);
        let reading = stdout.read_buf(&mut bytes);
        let read = match outlet.holds() {
            true => match timeout(SOON, reading).await {
                Ok(read) => read,
                Err(_) => {
                    if !outlet.begin().await? {
                        return Ok(any);
                    }
                    stdout.read_buf(&mut bytes).await
                }
            },
            false => reading.await,
        };
        match read {
            Ok(0) | Err(_) => return Ok(any),
            Ok(_) => any = true,
        }
        if !outlet.push(Bytes::from(bytes)).await? {
            return Ok(any);
        }
    }
}

/// Puts what a process says on standard error into the log.
pub async fn tell(stderr: ChildStderr, log: Arc<Log>, name: String) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => log.error(&format!(
                "{name}: {}",
                String::from_utf8_lossy(line.trim_ascii_end())
            )),
        }
    }
}
