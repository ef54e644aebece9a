//! Programs by FastCGI: processes of the server's own that serve one request after the other, each
//! behind a Unix socket in a folder that nobody else can enter.
//!
//! Invariant: a process serves one request at a time. One whose conversation did not come to its
//! end, or that says more behind it, is not used again: nobody gets what belongs to another
//! request.

mod record;

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
use record::{Reader, RecordKind, RequestId, begin, parameters, record};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// Most bytes of a body in one record.
const PIECE: usize = 32 << 10;

/// One process, and the connection to it.
struct Worker {
    child: Child,
    reader: Reader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    generation: u64,
    /// Of its request, or of the next one.
    request: RequestId,
}

impl Worker {
    /// Whether it can serve a request: it runs, is connected, and says nothing unasked.
    fn is_ready(&mut self) -> bool {
        let quiet = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let stream = self.reader.source().as_ref();
        self.child.is_running()
            && self.reader.is_empty()
            && stream.try_read(&mut [0]).is_err_and(quiet)
    }
}

/// What there is to serve with.
struct ProcessPool {
    file: PathBuf,
    /// Of the file: a process of an older one is not used again.
    generation: u64,
    idle: Vec<Worker>,
    started: u64,
}

/// A program with its processes.
pub struct FastCgi {
    settings: Arc<HandlerSettings>,
    spawner: Arc<Spawner>,
    folder: tempfile::TempDir,
    pool: Mutex<ProcessPool>,
    log: Arc<ProgramLog>,
}

impl FastCgi {
    /// A program of a file; its sockets are made in the folder.
    pub fn new(
        settings: &Arc<HandlerSettings>,
        file: &Path,
        folder: tempfile::TempDir,
        spawner: &Arc<Spawner>,
        log: &Arc<ProgramLog>,
    ) -> FastCgi {
        FastCgi {
            settings: settings.clone(),
            spawner: spawner.clone(),
            folder,
            pool: Mutex::new(ProcessPool {
                file: file.to_owned(),
                generation: 0,
                idle: Vec::new(),
                started: 0,
            }),
            log: log.clone(),
        }
    }

    fn pool(&self) -> MutexGuard<'_, ProcessPool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn drain(
        &self,
        reader: &mut Reader<OwnedReadHalf>,
        request: RequestId,
        writer: &mut ResponseWriter,
    ) -> Result<End, Failure> {
        let mut early = true;
        loop {
            let next = match writer.holds() {
                true => match timeout(SOON, reader.next(request)).await {
                    Ok(next) => next,
                    Err(_) => {
                        if !writer.begin().await? {
                            return Ok(End::Unwanted);
                        }
                        reader.next(request).await
                    }
                },
                false => reader.next(request).await,
            };
            let (kind, content) = match next {
                Ok(Some(record)) => record,
                Err(error) if error.kind() == io::ErrorKind::Other => {
                    let wrong = Some(error.to_string());
                    return Ok(End::Closed { early, wrong });
                }
                Ok(None) | Err(_) => return Ok(End::Closed { early, wrong: None }),
            };
            early &= kind == RecordKind::Other;
            match kind {
                RecordKind::Stdout if content.is_empty() => {}
                RecordKind::Stdout => {
                    if !writer.push(content).await? {
                        return Ok(End::Unwanted);
                    }
                }
                RecordKind::Stderr => {
                    for line in String::from_utf8_lossy(&content).lines() {
                        self.log.say(line);
                    }
                }
                RecordKind::End => {
                    let status = content
                        .get(..4)
                        .map_or(0, |s| u32::from_be_bytes([s[0], s[1], s[2], s[3]]));
                    return Ok(End::Ended { status });
                }
                RecordKind::Other => {}
            }
        }
    }

    /// An idle process, or a new one.
    async fn worker(&self) -> io::Result<Worker> {
        loop {
            let idle = self.pool().idle.pop();
            match idle {
                // One that has ended meanwhile is no use.
                Some(mut worker) => {
                    if worker.is_ready() {
                        return Ok(worker);
                    }
                }
                None => return self.start().await,
            }
        }
    }

    fn give_back(&self, mut worker: Worker) {
        worker.request = worker.request.next();
        let mut pool = self.pool();
        if worker.generation == pool.generation {
            pool.idle.push(worker);
        }
    }

    async fn start(&self) -> io::Result<Worker> {
        let (file, generation, number) = {
            let mut pool = self.pool();
            pool.started += 1;
            (pool.file.clone(), pool.generation, pool.started)
        };
        let path = self.folder.path().join(number.to_string());
        let listener = UnixListener::bind(&path)?;
        let variables = self.settings.env.iter();
        let variables = variables.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        // The protocol's way to hand over the socket.
        let files = (OwnedFd::from(listener), child::nothing()?);
        let child = self
            .spawner
            .start(&self.settings, &file, variables, files, &self.log)
            .await;
        if child.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        let child = child?;
        let stream = UnixStream::connect(&path).await;
        // Who is connected needs the name no more.
        let _ = std::fs::remove_file(&path);
        let (reader, writer) = stream?.into_split();
        Ok(Worker {
            child,
            reader: Reader::new(reader),
            writer,
            generation,
            request: RequestId::FIRST,
        })
    }
}

impl Conversation for FastCgi {
    fn limit(&self) -> Duration {
        self.settings.call
    }

    async fn converse(
        &self,
        variables: &Variables,
        mut input: RequestBody,
        writer: &mut ResponseWriter,
    ) -> Result<(), Failure> {
        let bare = input.is_end();
        let mut worker = self.worker().await.map_err(|e| Failure::of_run(&e))?;
        loop {
            let request = worker.request;
            let (fed, drained) = {
                let feed = feed(&mut worker.writer, request, variables, &mut input);
                let drain = self.drain(&mut worker.reader, request, writer);
                let (mut feeding, mut draining) = (std::pin::pin!(feed), std::pin::pin!(drain));
                tokio::select! {
                    // A process that takes nothing says so first.
                    biased;
                    fed = &mut feeding => match fed {
                        Ok(_) => (fed, draining.await),
                        Err(failure) => return Err(failure),
                    },
                    drained = &mut draining => (Ok(Fed::Part), drained),
                }
            };
            return match drained? {
                End::Ended { status } => {
                    // What it did not read of the body would be taken for the next request's.
                    if fed? == Fed::Whole {
                        self.give_back(worker);
                    }
                    match status {
                        0 => Ok(()),
                        status => Err(Failure::Status(status.into())),
                    }
                }
                End::Unwanted => Ok(()),
                // One that was done with its connection when the request came is not to blame. But
                // one that had the request may have done what it says before it ended.
                End::Closed { early: true, .. }
                    if bare
                        && request != RequestId::FIRST
                        && (is_idempotent(variables) || fed? == Fed::Nothing) =>
                {
                    worker = self.start().await.map_err(|e| Failure::of_run(&e))?;
                    continue;
                }
                End::Closed { wrong, .. } => Err(closed(&mut worker.child, wrong).await),
            };
        }
    }
}

impl ProcessProgram for FastCgi {
    fn serve<'a>(
        &'a self,
        variables: &'a Variables,
        input: RequestBody,
        answer: Answer,
    ) -> BoxFuture<'a, Option<Failure>> {
        conversation::serve(self, variables, input, answer)
    }

    /// Processes that serve go on until they are done.
    fn replace(&self, file: &Path) {
        let mut pool = self.pool();
        pool.file = file.to_owned();
        pool.generation += 1;
        pool.idle.clear();
    }

    fn started(&self) -> Option<u64> {
        Some(self.pool().started)
    }
}

/// How a conversation ended.
enum End {
    /// As it should, with the program's status.
    Ended { status: u32 },
    /// The client is gone.
    Unwanted,
    /// The program is, or says what is `wrong`; `early`: before anything of the answer.
    Closed { early: bool, wrong: Option<String> },
}

/// Why there is no more of an answer.
async fn closed(child: &mut Child, wrong: Option<String>) -> Failure {
    if let Some(wrong) = wrong {
        return Failure::Fault(wrong);
    }
    Failure::Fault(match timeout(SOON * 20, child.wait()).await {
        Ok(Ok(status)) => format!("the process ended in the middle of the answer ({status})"),
        _ => "the process closed the connection in the middle of the answer".to_owned(),
    })
}

/// What a process took of a request.
#[derive(PartialEq, Eq)]
enum Fed {
    Nothing,
    Part,
    Whole,
}

/// Whether a request may be made twice, by what its method means (RFC 9110, section 9.2.2).
fn is_idempotent(variables: &Variables) -> bool {
    let methods = [
        &b"GET"[..],
        b"HEAD",
        b"OPTIONS",
        b"TRACE",
        b"PUT",
        b"DELETE",
    ];
    let mut pairs = variables.pairs();
    let method = pairs.find(|(name, _)| *name == b"REQUEST_METHOD");
    method.is_some_and(|(_, method)| methods.contains(&method))
}

/// Sends a request.
async fn feed(
    writer: &mut OwnedWriteHalf,
    request: RequestId,
    variables: &Variables,
    input: &mut RequestBody,
) -> Result<Fed, Failure> {
    let mut bytes = begin(request);
    parameters(&mut bytes, request, variables.pairs());
    let mut fed = Fed::Nothing;
    loop {
        let piece = input.next(PIECE).await?.unwrap_or_else(Bytes::new);
        let last = piece.is_empty() || input.is_end();
        if !piece.is_empty() {
            record(&mut bytes, request, RecordKind::STDIN, &piece);
        }
        if last {
            record(&mut bytes, request, RecordKind::STDIN, &[]);
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match writer.write(rest).await {
                Ok(count @ 1..) => rest = rest.get(count..).unwrap_or_default(),
                // The other direction says why.
                Ok(0) | Err(_) => return Ok(fed),
            }
            fed = Fed::Part;
        }
        bytes.clear();
        if last {
            return Ok(Fed::Whole);
        }
    }
}
