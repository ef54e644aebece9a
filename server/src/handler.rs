//! Handlers: a path, a program, and a way to run it.

use crate::admission::Admission;
use crate::answer::Answer;
use crate::body::Body;
use crate::components::{ProcessProgram, Processes};
use crate::counters::Counters;
use crate::failure::{Failure, FailureId};
use crate::file_stamp::{FileStamp, stamps};
use crate::in_process::{InProcess, Workers};
use crate::log::Log;
use crate::program::{BuildFolder, sources};
use crate::program_log::ProgramLog;
use crate::registry::Registry;
use crate::request_body::RequestBody;
use crate::settings::HandlerSettings;
use crate::timeouts::Timeouts;
use crate::variables::{Peers, Variables};
use http::{Method, Request, Response};
use hyper::body::Incoming;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;
use tokio::sync::oneshot;

/// A handler cannot be made: what the compiler, the verifier or the linker says.
#[derive(Debug, Error)]
#[error("{}: {message}", path)]
pub struct HandlerError {
    /// Its path.
    pub path: String,
    /// Why.
    pub message: String,
}

/// What all handlers of a server have in common.
pub struct HandlerContext {
    /// Builds their programs.
    pub builds: Arc<BuildFolder>,
    /// Threads on which quick ones are called.
    pub workers: Arc<Workers>,
    /// Where their domains are known.
    pub registry: Arc<Registry>,
    /// Runs those in processes.
    pub processes: Option<Arc<dyn Processes>>,
    /// Where failures are told.
    pub log: Arc<Log>,
    /// With clients whose bodies are due.
    pub timeouts: Timeouts,
}

enum Program {
    InProcess(Arc<InProcess>),
    Process(Box<dyn ProcessProgram>),
}

/// A program behind a path.
pub struct Handler {
    settings: Arc<HandlerSettings>,
    /// The files of the program as it was built last.
    seen: Mutex<Vec<FileStamp>>,
    program: Program,
    admission: Admission,
    builds: Arc<BuildFolder>,
    log: Arc<Log>,
    timeouts: Timeouts,
    /// What it did so far.
    pub counters: Arc<Counters>,
}

impl Handler {
    /// Builds the program, if it is a source, and makes what runs it.
    ///
    /// # Errors
    /// It cannot be built or loaded.
    pub fn new(
        settings: &Arc<HandlerSettings>,
        context: &HandlerContext,
    ) -> Result<Handler, HandlerError> {
        let HandlerContext {
            builds,
            workers,
            registry,
            processes,
            log,
            timeouts,
        } = context;
        let error = |message: String| HandlerError {
            path: settings.path.clone(),
            message,
        };
        // Before the compiler looks: what changes later is seen as a change.
        let seen = Mutex::new(stamps(sources(settings)));
        let file = builds.build(settings).map_err(|e| error(e.to_string()))?;
        let said = Arc::new(ProgramLog::new(log, &settings.path, settings.log_lines));
        let program = match processes.as_ref().filter(|_| settings.run.is_process()) {
            Some(processes) => {
                let program = processes.program(settings, &file, builds.folder(), &said);
                Program::Process(program.map_err(|e| error(e.to_string()))?)
            }
            None => {
                let program = InProcess::new(settings, &file, workers, registry, &said);
                forget(settings, &file);
                Program::InProcess(Arc::new(program.map_err(|e| error(e.to_string()))?))
            }
        };
        Ok(Handler {
            admission: Admission::new(settings.instances, settings.waiting, settings.wait),
            settings: settings.clone(),
            seen,
            program,
            builds: builds.clone(),
            log: log.clone(),
            timeouts: *timeouts,
            counters: Arc::default(),
        })
    }

    /// How it is run.
    pub fn settings(&self) -> &HandlerSettings {
        &self.settings
    }

    /// The rest of a decoded path, if the handler serves it.
    pub fn serves<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        let rest = path.strip_prefix(self.settings.path.as_bytes())?;
        matches!(rest.first(), None | Some(b'/')).then_some(rest)
    }

    /// Builds the program again; requests go to the new one from then on.
    ///
    /// # Errors
    /// As of [`Handler::new`]; the old program goes on.
    pub fn reload(&self) -> Result<(), HandlerError> {
        let error = |message: String| HandlerError {
            path: self.settings.path.clone(),
            message,
        };
        *self.seen() = stamps(sources(&self.settings));
        let file = self
            .builds
            .build(&self.settings)
            .map_err(|e| error(e.to_string()))?;
        match &self.program {
            Program::InProcess(program) => {
                let replaced = program.replace(&file);
                forget(&self.settings, &file);
                replaced.map_err(|e| error(e.to_string()))?;
            }
            Program::Process(program) => program.replace(&file),
        }
        Ok(())
    }

    /// Whether what the program is made of is not what it was when it was built.
    pub fn has_changed(&self) -> bool {
        *self.seen() != stamps(sources(&self.settings))
    }

    fn seen(&self) -> MutexGuard<'_, Vec<FileStamp>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a request whose path goes on with `rest`.
    ///
    /// # Errors
    /// There is no answer of the program's.
    pub async fn serve(
        self: &Arc<Self>,
        request: Request<Incoming>,
        rest: &[u8],
        peers: &Peers,
    ) -> Result<Response<Body>, Failure> {
        let (head, body) = request.into_parts();
        let input = RequestBody::new(body, self.settings.body_bytes, self.timeouts)?;
        let script = (&*self.settings.path, rest);
        let mut variables = Variables::of(
            &head.method,
            &head.uri,
            head.version,
            &head.headers,
            script,
            peers,
        );
        if let Some(length) = input.length().filter(|length| *length > 0) {
            variables.set_shown("CONTENT_LENGTH", length);
        }
        for (name, value) in &self.settings.env {
            variables.set(name, value.as_bytes());
        }
        let permit = self.admission.enter().await?;
        let (to, answered) = oneshot::channel();
        let brief = head.method == Method::HEAD;
        let answer = Answer { to, brief };
        let handler = self.clone();
        match &self.program {
            Program::InProcess(program) => {
                let done = move |untold| handler.note(untold);
                program.serve(variables, input, answer, permit, done).await;
            }
            Program::Process(_) => drop(tokio::spawn(async move {
                let untold = match &handler.program {
                    Program::Process(program) => program.serve(&variables, input, answer).await,
                    Program::InProcess(_) => None,
                };
                drop(permit);
                handler.note(untold);
            })),
        }
        match answered.await {
            Ok(response) => response,
            Err(_) => Err(Failure::Run("the thread that ran it is gone".to_owned())),
        }
    }

    /// An answer that was cut off is nobody's to tell but the log's. One that its client broke off
    /// is no matter for that.
    fn note(&self, untold: Option<Failure>) {
        if let Some(failure) = untold.filter(Failure::is_ours) {
            self.counters.cut();
            self.log.error(&format!(
                "{}: id {}: the answer was cut off: {failure}",
                self.settings.path,
                FailureId::new()
            ));
        }
    }

    /// For the metrics: requests that wait, and what is known of the instances.
    pub fn state(&self) -> HandlerState {
        let (pool, processes) = match &self.program {
            Program::InProcess(program) => (program.pool_counters(), None),
            Program::Process(program) => (None, program.started()),
        };
        HandlerState {
            waiting: self.admission.waiting(),
            pool,
            processes,
        }
    }
}

/// Removes what was compiled and is loaded now. (Files of processes stay: one may be about to
/// start.)
fn forget(settings: &HandlerSettings, file: &Path) {
    if BuildFolder::is_source(&settings.program) {
        let _ = std::fs::remove_file(file);
    }
}

/// How a handler is now.
pub struct HandlerState {
    /// Requests that wait for an instance.
    pub waiting: usize,
    /// The pool of domains, if it has one.
    pub pool: Option<postern::PoolCounters>,
    /// FastCGI processes that were started.
    pub processes: Option<u64>,
}
