//! Handlers: a path, a program, and a way to run it.

use crate::body::Body;
use crate::child::Spawner;
use crate::config::{Run, Settings};
use crate::failure::{Failure, Id};
use crate::fastcgi::FastCgi;
use crate::gate::Gate;
use crate::input::Input;
use crate::inside::{Inside, Workers};
use crate::log::Log;
use crate::metrics::Counted;
use crate::patience::Patience;
use crate::process::Process;
use crate::program::Workshop;
use crate::reload::{Look, look, sources};
use crate::seat::Answer;
use crate::status::Roster;
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
pub struct Means {
    /// Builds their programs.
    pub workshop: Arc<Workshop>,
    /// Threads on which quick ones are called.
    pub workers: Arc<Workers>,
    /// Where their domains are known.
    pub roster: Arc<Roster>,
    /// Starts their processes.
    pub spawner: Arc<Spawner>,
    /// Where failures are told.
    pub log: Arc<Log>,
    /// With clients whose bodies are due.
    pub patience: Patience,
}

enum Kind {
    Inside(Arc<Inside>),
    Cgi(Process),
    FastCgi(FastCgi),
}

/// A program behind a path.
pub struct Handler {
    settings: Arc<Settings>,
    /// The files of the program as it was built last.
    seen: Mutex<Vec<Look>>,
    kind: Kind,
    gate: Gate,
    workshop: Arc<Workshop>,
    log: Arc<Log>,
    patience: Patience,
    /// What it did so far.
    pub counted: Arc<Counted>,
}

impl Handler {
    /// Builds the program, if it is a source, and makes what runs it.
    ///
    /// # Errors
    /// It cannot be built or loaded.
    pub fn new(settings: &Arc<Settings>, means: &Means) -> Result<Handler, HandlerError> {
        let Means {
            workshop,
            workers,
            roster,
            spawner,
            log,
            patience,
        } = means;
        let error = |message: String| HandlerError {
            path: settings.path.clone(),
            message,
        };
        // Before the compiler looks: what changes later is seen as a change.
        let seen = Mutex::new(look(sources(settings)));
        let file = workshop.build(settings).map_err(|e| error(e.to_string()))?;
        let kind = match settings.run {
            Run::Protected | Run::Unprotected => {
                let inside = Inside::new(settings, &file, workers, roster, log);
                forget(settings, &file);
                Kind::Inside(Arc::new(inside.map_err(|e| error(e.to_string()))?))
            }
            Run::Cgi => Kind::Cgi(Process::new(settings, &file, spawner, log)),
            Run::Fastcgi => {
                let folder = workshop.private().map_err(|e| error(e.to_string()))?;
                Kind::FastCgi(FastCgi::new(settings, &file, folder, spawner, log))
            }
        };
        Ok(Handler {
            gate: Gate::new(settings.instances, settings.waiting, settings.wait),
            settings: settings.clone(),
            seen,
            kind,
            workshop: workshop.clone(),
            log: log.clone(),
            patience: *patience,
            counted: Arc::default(),
        })
    }

    /// How it is run.
    pub fn settings(&self) -> &Settings {
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
        *self.seen() = look(sources(&self.settings));
        let file = self
            .workshop
            .build(&self.settings)
            .map_err(|e| error(e.to_string()))?;
        match &self.kind {
            Kind::Inside(inside) => {
                let replaced = inside.replace(&file);
                forget(&self.settings, &file);
                replaced.map_err(|e| error(e.to_string()))?;
            }
            Kind::Cgi(process) => process.replace(&file),
            Kind::FastCgi(processes) => processes.replace(&file),
        }
        Ok(())
    }

    /// Whether what the program is made of is not what it was when it was built.
    pub fn has_changed(&self) -> bool {
        *self.seen() != look(sources(&self.settings))
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Look>> {
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
        let input = Input::new(body, self.settings.body_bytes, self.patience)?;
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
        let permit = self.gate.enter().await?;
        let (to, answered) = oneshot::channel();
        let brief = head.method == Method::HEAD;
        let answer = Answer { to, brief };
        let handler = self.clone();
        match &self.kind {
            Kind::Inside(inside) => {
                let done = move |untold| handler.note(untold);
                inside.serve(variables, input, answer, permit, done).await;
            }
            Kind::Cgi(_) | Kind::FastCgi(_) => drop(tokio::spawn(async move {
                let untold = match &handler.kind {
                    Kind::Cgi(process) => process.serve(&variables, input, answer).await,
                    Kind::FastCgi(processes) => processes.serve(&variables, input, answer).await,
                    Kind::Inside(_) => None,
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

    /// An answer that was cut off is nobody's to tell but the log's. One that its client broke off is no matter for that.
    fn note(&self, untold: Option<Failure>) {
        if let Some(failure) = untold.filter(Failure::is_ours) {
            self.counted.cut();
            self.log.error(&format!(
                "{}: id {}: the answer was cut off: {failure}",
                self.settings.path,
                Id::new()
            ));
        }
    }

    /// For the metrics: requests that wait, and what is known of the instances.
    pub fn state(&self) -> State {
        State {
            waiting: self.gate.waiting(),
            pool: match &self.kind {
                Kind::Inside(inside) => inside.counters(),
                _ => None,
            },
            processes: match &self.kind {
                Kind::FastCgi(processes) => Some(processes.started()),
                _ => None,
            },
        }
    }
}

/// Removes what was compiled and is loaded now. (Files of processes stay: one may be about to start.)
fn forget(settings: &Settings, file: &Path) {
    if Workshop::is_source(&settings.program) {
        let _ = std::fs::remove_file(file);
    }
}

/// How a handler is now.
pub struct State {
    /// Requests that wait for an instance.
    pub waiting: usize,
    /// The pool of domains, if it has one.
    pub pool: Option<postern::PoolCounters>,
    /// FastCGI processes that were started.
    pub processes: Option<u64>,
}
