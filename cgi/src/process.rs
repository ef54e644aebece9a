//! Programs by CGI/1.1 (RFC 3875): a process for each request.
//!
//! Invariant: no process outlives its request. (It leads a group of its own, which is ended with
//! it.)

use crate::child::{self, Child, Spawner};
use crate::conversation::{self, Conversation, SOON};
use crate::response_writer::ResponseWriter;
use bytes::Bytes;
use postern_server::Answer;
use postern_server::HandlerSettings;
use postern_server::ProgramLog;
use postern_server::RequestBody;
use postern_server::Variables;
use postern_server::{BoxFuture, Failure, ProcessProgram};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::time::timeout;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// A program that is run anew for each request.
pub struct Process {
    settings: Arc<HandlerSettings>,
    spawner: Arc<Spawner>,
    file: Mutex<PathBuf>,
    log: Arc<ProgramLog>,
}

impl Process {
    /// A program of a file.
    pub fn new(
        settings: &Arc<HandlerSettings>,
        file: &Path,
        spawner: &Arc<Spawner>,
        log: &Arc<ProgramLog>,
    ) -> Process {
        Process {
            settings: settings.clone(),
            spawner: spawner.clone(),
            file: Mutex::new(file.to_owned()),
            log: log.clone(),
        }
    }

    async fn start(
        &self,
        variables: &Variables,
        input: &RequestBody,
    ) -> io::Result<(Child, Option<pipe::Sender>, pipe::Receiver)> {
        let file = self
            .file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (stdin, to) = match input.is_end() {
            true => (child::nothing()?, None),
            false => {
                let (stdin, to) = child::pipe()?;
                (stdin, Some(pipe::Sender::from_owned_fd(to)?))
            }
        };
        let (from, stdout) = child::pipe()?;
        let child = self.spawner.start(
            &self.settings,
            &file,
            variables.pairs(),
            (stdin, stdout),
            &self.log,
        );
        let child = child.await?;
        Ok((child, to, pipe::Receiver::from_owned_fd(from)?))
    }
}

impl Conversation for Process {
    fn limit(&self) -> Duration {
        self.settings.call
    }

    async fn converse(
        &self,
        variables: &Variables,
        input: RequestBody,
        writer: &mut ResponseWriter,
    ) -> Result<(), Failure> {
        let started = self.start(variables, &input).await;
        let (mut child, stdin, stdout) = started.map_err(|e| Failure::of_run(&e))?;
        let (fed, drained) = {
            let mut feeding = std::pin::pin!(feed(stdin, input));
            let mut draining = std::pin::pin!(drain(stdout, writer));
            tokio::select! {
                fed = &mut feeding => (fed, draining.await),
                drained = &mut draining => (Ok(()), drained),
            }
        };
        // A body that fails is why the program could not do better.
        fed?;
        let any = match drained? {
            End::Unwanted => return Ok(()),
            End::Closed { any } => any,
        };
        let status = child.wait().await.map_err(|e| Failure::of_run(&e))?;
        match (status.code(), any) {
            (Some(0), _) => Ok(()),
            (Some(_), true) => Ok(()),
            (Some(code), false) => Err(Failure::Status(code.into())),
            (None, _) => Err(Failure::Fault(status.to_string())),
        }
    }
}

impl ProcessProgram for Process {
    fn serve<'a>(
        &'a self,
        variables: &'a Variables,
        input: RequestBody,
        answer: Answer,
    ) -> BoxFuture<'a, Option<Failure>> {
        conversation::serve(self, variables, input, answer)
    }

    fn replace(&self, file: &Path) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file.to_owned();
    }

    fn started(&self) -> Option<u64> {
        None
    }
}

/// How a program's output ended.
enum End {
    /// The client is gone: whatever the program does now is no failure of it.
    Unwanted,
    /// The program wrote all that it wanted.
    Closed { any: bool },
}

/// Gives a process the body.
async fn feed(stdin: Option<pipe::Sender>, mut input: RequestBody) -> Result<(), Failure> {
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

/// Takes the output to the client.
async fn drain(mut stdout: pipe::Receiver, writer: &mut ResponseWriter) -> Result<End, Failure> {
    let mut any = false;
    loop {
        let mut bytes = bytes::BytesMut::with_capacity(PIECE);
        let reading = stdout.read_buf(&mut bytes);
        let read = match writer.holds() {
            true => match timeout(SOON, reading).await {
                Ok(read) => read,
                Err(_) => {
                    if !writer.begin().await? {
                        return Ok(End::Unwanted);
                    }
                    stdout.read_buf(&mut bytes).await
                }
            },
            false => reading.await,
        };
        match read {
            Ok(0) | Err(_) => return Ok(End::Closed { any }),
            Ok(_) => any = true,
        }
        if !writer.push(Bytes::from(bytes)).await? {
            return Ok(End::Unwanted);
        }
    }
}
