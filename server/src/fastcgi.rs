//! Programs by FastCGI: processes of the server's own that serve one request after the other, each behind a Unix socket in a folder
//! that nobody else can enter.
//!
//! Invariant: a process serves one request at a time. One whose conversation did not come to its end is not used again.

mod record;

use crate::child::{self, Child, Spawner};
use crate::config::Settings;
use crate::failure::Failure;
use crate::input::Input;
use crate::log::Log;
use crate::outlet::Outlet;
use crate::process::{SOON, in_time};
use crate::seat::Answer;
use crate::variables::Variables;
use bytes::Bytes;
use record::{Kind, Reader, begin, parameters, record};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// Most bytes of a body in one record.
const PIECE: usize = 32 << 10;

/// One process, and the connection to it.
struct Member {
    child: Child,
    reader: Reader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    generation: u64,
}

struct State {
    file: PathBuf,
    generation: u64,
    idle: Vec<Member>,
    started: u64,
}

/// A program with its processes.
pub struct FastCgi {
    settings: Arc<Settings>,
    spawner: Arc<Spawner>,
    folder: tempfile::TempDir,
    state: Mutex<State>,
    log: Arc<Log>,
}

impl FastCgi {
    /// A program of a file; its sockets are made in the folder.
    pub fn new(
        settings: &Arc<Settings>,
        file: &Path,
        folder: tempfile::TempDir,
        spawner: &Arc<Spawner>,
        log: &Arc<Log>,
    ) -> FastCgi {
        FastCgi {
            settings: settings.clone(),
            spawner: spawner.clone(),
            folder,
            state: Mutex::new(State {
                file: file.to_owned(),
                generation: 0,
                idle: Vec::new(),
                started: 0,
            }),
            log: log.clone(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on another file. Processes that serve go on until they are done.
    pub fn replace(&self, file: &Path) {
        let mut state = self.state();
        state.file = file.to_owned();
        state.generation += 1;
        state.idle.clear();
    }

    /// How many processes were started.
    pub fn started(&self) -> u64 {
        self.state().started
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
        let mut member = self
            .member()
            .await
            .map_err(|e| Failure::Run(e.to_string()))?;
        let (fed, drained) = {
            let mut feeding = std::pin::pin!(feed(&mut member.writer, variables, input));
            let mut draining = std::pin::pin!(self.drain(&mut member.reader, outlet));
            tokio::select! {
                fed = &mut feeding => match fed {
                    Ok(_) => (fed, draining.await),
                    Err(failure) => return Err(failure),
                },
                drained = &mut draining => (Ok(false), drained),
            }
        };
        match drained? {
            End::Ended { status } => {
                // What it did not read of the body would be taken for the next request's.
                if fed? {
                    self.give_back(member);
                }
                if status != 0 {
                    return Err(Failure::Status(status.into()));
                }
                Ok(())
            }
            End::Unwanted => Ok(()),
            End::Closed => {
                let how = timeout(SOON * 20, member.child.wait()).await;
                Err(Failure::Fault(match how {
                    Ok(Ok(status)) => {
                        format!("the process ended in the middle of the answer ({status})")
                    }
                    _ => "the process closed the connection in the middle of the answer".to_owned(),
                }))
            }
        }
    }

    async fn drain(
        &self,
        reader: &mut Reader<OwnedReadHalf>,
        outlet: &mut Outlet,
    ) -> Result<End, Failure> {
        loop {
            let next = match outlet.holds() {
                true => match timeout(SOON, reader.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        if !outlet.begin().await? {
                            return Ok(End::Unwanted);
                        }
                        reader.next().await
                    }
                },
                false => reader.next().await,
            };
            let Ok(Some((kind, content))) = next else {
                return Ok(End::Closed);
            };
            match kind {
                Kind::Stdout if content.is_empty() => {}
                Kind::Stdout => {
                    if !outlet.push(content).await? {
                        return Ok(End::Unwanted);
                    }
                }
                Kind::Stderr => {
                    for line in String::from_utf8_lossy(&content).lines() {
                        self.log.error(&format!("{}: {line}", self.settings.path));
                    }
                }
                Kind::End => {
                    let status = content
                        .get(..4)
                        .map_or(0, |s| u32::from_be_bytes([s[0], s[1], s[2], s[3]]));
                    return Ok(End::Ended { status });
                }
                Kind::Other => {}
            }
        }
    }

    /// An idle process, or a new one.
    async fn member(&self) -> io::Result<Member> {
        loop {
            let idle = self.state().idle.pop();
            match idle {
                // One that has ended meanwhile is no use.
                Some(mut member) => {
                    if member.child.is_running() {
                        return Ok(member);
                    }
                }
                None => return self.start().await,
            }
        }
    }

    fn give_back(&self, member: Member) {
        let mut state = self.state();
        if member.generation == state.generation {
            state.idle.push(member);
        }
    }

    async fn start(&self) -> io::Result<Member> {
        let (file, generation, number) = {
            let mut state = self.state();
            state.started += 1;
            (state.file.clone(), state.generation, state.started)
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
        Ok(Member {
            child,
            reader: Reader::new(reader),
            writer,
            generation,
        })
    }
}

/// How a conversation ended.
enum End {
    /// As it should, with the program's status.
    Ended { status: u32 },
    /// The client is gone.
    Unwanted,
    /// The program is.
    Closed,
}

/// Sends a request; true if all of it was.
async fn feed(
    writer: &mut OwnedWriteHalf,
    variables: &Variables,
    mut input: Input,
) -> Result<bool, Failure> {
    let mut bytes = begin();
    parameters(&mut bytes, variables.pairs());
    loop {
        let piece = input.next(PIECE).await?.unwrap_or_else(Bytes::new);
        let last = piece.is_empty() || input.is_end();
        if !piece.is_empty() {
            record(&mut bytes, Kind::STDIN, &piece);
        }
        if last {
            record(&mut bytes, Kind::STDIN, &[]);
        }
        if writer.write_all(&bytes).await.is_err() {
            // The other direction says why.
            return Ok(false);
        }
        bytes.clear();
        if last {
            return Ok(true);
        }
    }
}
