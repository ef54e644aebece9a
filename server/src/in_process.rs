//! Programs that are called in the server's own process: as extensions, one domain for each
//! instance, or as shared objects.
//!
//! A call is a task of its own. A program that has been quick so far runs on the worker thread that
//! took the request; one that takes long or waits for the client runs on a thread that may be kept
//! busy. Invariant: one worker thread at least is inside no program.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::program_log::ProgramLog;
use crate::registry::{RegisteredDomain, Registry};
use crate::request_body::RequestBody;
use crate::session::Session;
use crate::settings::{HandlerSettings, Recycle};
use crate::shared_buffer::{PIECE, SharedBuffer};
use crate::trusted::library::Library;
use crate::variables::Variables;
use bytes::Bytes;
use postern::policy::{Access, Sink};
use postern::{
    CallError, Caller, CommonMemory, Domain, FaultKind, Func, Image, Lendable, Offset, Policy,
    Pool, PoolError, Pooled, RestartPolicy, Rules,
};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

type Anything = Box<dyn Error + Send + Sync>;

/// A call that was shorter is quick.
const QUICK: Duration = Duration::from_millis(1);
/// Calls that must have been quick, one after the other, before the next is made on a worker
/// thread.
const TRUSTED_AFTER: u32 = 4;

/// How many calls may be on worker threads at once, and are.
#[derive(Debug)]
pub struct Workers {
    most: usize,
    busy: AtomicUsize,
}

impl Workers {
    /// For a runtime of so many worker threads.
    pub fn new(threads: usize) -> Workers {
        Workers {
            most: threads.saturating_sub(1),
            busy: AtomicUsize::new(0),
        }
    }

    fn enter(self: &Arc<Self>) -> Option<Busy> {
        let busy = Busy(self.clone());
        (self.busy.fetch_add(1, Ordering::Relaxed) < self.most).then_some(busy)
    }
}

/// A worker thread that is inside a program.
struct Busy(Arc<Workers>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An instance of an extension.
struct Instance {
    domain: Domain,
    serve: Func<fn(Offset) -> i64>,
    session: Arc<Session>,
    registered: Arc<RegisteredDomain>,
}

impl Lendable for Instance {
    fn domain(&self) -> &Domain {
        &self.domain
    }
}

/// Instances of a shared object that are not in use.
struct IdleLibraries(Mutex<Vec<Library>>);

/// An instance of a shared object on loan.
struct LentLibrary {
    library: Option<Library>,
    idle: Arc<IdleLibraries>,
}

impl Drop for LentLibrary {
    fn drop(&mut self) {
        let library = self.library.take();
        self.idle
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(library);
    }
}

enum Instances {
    Confined(Pool<Instance>),
    Native(Mutex<Arc<IdleLibraries>>),
}

/// An instance that is lent for one request.
enum Lent {
    Confined(Pooled<'static, Instance>),
    Native(LentLibrary),
}

/// What a request has until its answer was sent: an instance, and the right to one. Given back in
/// this order.
struct Held {
    lent: Lent,
    _permit: OwnedSemaphorePermit,
}

/// A program with its instances.
pub struct InProcess {
    settings: Arc<HandlerSettings>,
    instances: Instances,
    workers: Arc<Workers>,
    registry: Arc<Registry>,
    log: Arc<ProgramLog>,
    /// Quick calls since the last that was not.
    quick: AtomicU32,
}

impl InProcess {
    /// Loads a program.
    ///
    /// # Errors
    /// It cannot be loaded, or wants what it is not given.
    pub fn new(
        settings: &Arc<HandlerSettings>,
        file: &Path,
        workers: &Arc<Workers>,
        registry: &Arc<Registry>,
        log: &Arc<ProgramLog>,
    ) -> Result<InProcess, Anything> {
        let instances = match settings.confined() {
            true => Instances::Confined(pool(settings, file, registry, log)?),
            false => Instances::Native(Mutex::new(libraries(settings, file, log)?)),
        };
        Ok(InProcess {
            settings: settings.clone(),
            instances,
            workers: workers.clone(),
            registry: registry.clone(),
            log: log.clone(),
            quick: AtomicU32::new(0),
        })
    }

    /// From now on requests go to a program of another file; those that are being served go on.
    ///
    /// # Errors
    /// As of [`InProcess::new`]; then nothing has changed.
    pub fn replace(&self, file: &Path) -> Result<(), Anything> {
        match &self.instances {
            Instances::Confined(pool) => {
                pool.replace(maker(&self.settings, file, &self.registry, &self.log)?)?;
            }
            Instances::Native(current) => {
                let new = libraries(&self.settings, file, &self.log)?;
                *current.lock().unwrap_or_else(PoisonError::into_inner) = new;
            }
        }
        self.quick.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The pool's counters, if it is one.
    pub fn pool_counters(&self) -> Option<postern::PoolCounters> {
        match &self.instances {
            Instances::Confined(pool) => Some(pool.counters()),
            Instances::Native(_) => None,
        }
    }

    /// Serves a request: `answer` gets the response. `done` is called when the program has ended,
    /// with why the answer was cut off, if it was.
    pub async fn serve(
        self: &Arc<Self>,
        variables: Variables,
        mut input: RequestBody,
        answer: Answer,
        permit: OwnedSemaphorePermit,
        done: impl FnOnce(Option<Failure>) + Send + 'static,
    ) {
        let first = match input.first(PIECE).await {
            Ok(first) => first,
            Err(failure) => {
                answer.send(Err(failure));
                return;
            }
        };
        let program = self.clone();
        let run = move || done(program.run(&variables, &first, input, answer, permit));
        let busy = match self.quick.load(Ordering::Relaxed) >= TRUSTED_AFTER {
            true => self.workers.enter(),
            false => None,
        };
        match busy {
            Some(busy) => drop(tokio::spawn(async move {
                run();
                drop(busy);
            })),
            None => drop(tokio::task::spawn_blocking(run)),
        }
    }

    /// Runs the program on this thread.
    fn run(
        &self,
        variables: &Variables,
        first: &[Bytes],
        input: RequestBody,
        answer: Answer,
        permit: OwnedSemaphorePermit,
    ) -> Option<Failure> {
        let began = Instant::now();
        let lent = match self.lend() {
            Ok(lent) => lent,
            Err(failure) => {
                answer.send(Err(failure));
                return None;
            }
        };
        let held = Arc::new(Held {
            lent,
            _permit: permit,
        });
        let (session, domain, functions) = match &held.lent {
            Lent::Confined(instance) => (&instance.session, Some(&instance.domain), [0; 4]),
            Lent::Native(lent) => match &lent.library {
                Some(library) => (library.session(), None, library.functions()),
                None => return None,
            },
        };
        let written = session.buffer.begin(
            variables.as_bytes(),
            first,
            !input.is_end(),
            functions,
            domain,
        );
        if written.is_err() {
            answer.send(Err(Failure::Headers));
            return None;
        }
        session.begin(
            input,
            answer,
            held.clone(),
            (began + self.settings.call).into(),
        );
        let result = match &held.lent {
            Lent::Confined(instance) => self.call(instance, began),
            Lent::Native(lent) => lent.library.as_ref().map_or(Ok(0), |l| returned(l.call())),
        };
        let finished = session.finish(result);
        match finished.smooth && began.elapsed() < QUICK {
            true if self.quick.load(Ordering::Relaxed) >= TRUSTED_AFTER => {}
            true => drop(self.quick.fetch_add(1, Ordering::Relaxed)),
            false => self.quick.store(0, Ordering::Relaxed),
        }
        finished.untold
    }

    fn lend(&self) -> Result<Lent, Failure> {
        match &self.instances {
            Instances::Confined(pool) => {
                pool.get_owned()
                    .map(Lent::Confined)
                    .map_err(|error| match error {
                        PoolError::Resting(rest) => Failure::Resting(rest),
                        PoolError::Full(waiting) => Failure::Full(waiting),
                        PoolError::TimedOut(time) => Failure::Busy(time),
                        PoolError::Closed => Failure::Ending,
                        other => Failure::Run(other.to_string()),
                    })
            }
            Instances::Native(idle) => {
                let idle = idle.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let library = idle.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
                match library {
                    Some(library) => Ok(Lent::Native(LentLibrary {
                        library: Some(library),
                        idle,
                    })),
                    None => Err(Failure::Busy(Duration::ZERO)),
                }
            }
        }
    }

    /// Calls an extension, and says what became of it.
    fn call(&self, instance: &Instance, began: Instant) -> Result<usize, Failure> {
        let place = Offset(instance.session.buffer.address() as u32);
        let result = {
            let _call = instance.registered.call();
            instance.serve.call(place)
        };
        match result {
            Ok(value) => returned(value),
            Err(CallError::Fault(fault)) if fault.kind == FaultKind::Deadline => {
                Err(Failure::Late(began.elapsed(), fault.to_string()))
            }
            Err(CallError::Exited(status)) => {
                // It left its own data as they were in the middle of it.
                let _ = instance.domain.reset();
                Err(Failure::Status(status.into()))
            }
            // This request is not what closed it.
            Err(error) if self.settings.share.is_some() && is_elsewhere(&error) => {
                let poison = instance.domain.poison();
                let why = poison.map_or_else(|| error.to_string(), |poison| poison.to_string());
                Err(Failure::Shared(why))
            }
            Err(error) => Err(Failure::Fault(error.to_string())),
        }
    }
}

/// Whether a call of a shared domain failed for what others did.
fn is_elsewhere(error: &CallError) -> bool {
    match error {
        CallError::Fault(fault) => fault.kind == FaultKind::AnotherThread,
        error => matches!(error, CallError::Poisoned | CallError::Busy),
    }
}

fn returned(value: i64) -> Result<usize, Failure> {
    usize::try_from(value).map_err(|_| Failure::Status((-1i64).saturating_sub(value)))
}

fn pool(
    settings: &Arc<HandlerSettings>,
    file: &Path,
    registry: &Arc<Registry>,
    log: &Arc<ProgramLog>,
) -> Result<Pool<Instance>, Anything> {
    let builder = Pool::builder(maker(settings, file, registry, log)?)
        .size(settings.instances)
        .warm(1)
        .restart(RestartPolicy::Immediate)
        .max_wait(settings.wait)
        .recycle(match settings.recycle {
            Recycle::Keep => postern::Recycle::Keep,
            Recycle::Reset => postern::Recycle::Reset,
        });
    Ok(builder.per_thread().build()?)
}

/// Tokio's signal handlers are installed without `SA_ONSTACK`, and programs run on threads that
/// take signals. If a host that serves beside other things has configured Postern already, it is
/// for it to say; anything else that is wrong the first load says, too.
fn start() {
    let mut config = postern::Config::default();
    config.adopt_handlers = true;
    let _ = postern::init(config);
}

/// What makes an instance of a file.
fn maker(
    settings: &Arc<HandlerSettings>,
    file: &Path,
    registry: &Arc<Registry>,
    log: &Arc<ProgramLog>,
) -> Result<impl Fn() -> Result<Instance, Anything> + Send + Sync + use<>, Anything> {
    start();
    let image = Image::load(file)?;
    // Once: a broker that is started again has another state, and all instances have one.
    let memory = settings.share.as_deref().map(CommonMemory::from_broker);
    let memory = memory.transpose()?;
    let (settings, registry, log) = (settings.clone(), registry.clone(), log.clone());
    let made = AtomicUsize::new(0);
    Ok(move || {
        let number = 1 + made.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}#{number}", settings.path);
        make(&image, memory.as_ref(), name, &settings, &registry, &log)
    })
}

fn make(
    image: &Image,
    memory: Option<&CommonMemory>,
    name: String,
    settings: &HandlerSettings,
    registry: &Registry,
    log: &Arc<ProgramLog>,
) -> Result<Instance, Anything> {
    let buffer = SharedBuffer::new(&settings.path, settings.buffer, true)?;
    let session = Arc::new(Session::new(buffer, log.clone()));
    let [giver, asker, speaker] = [(); 3].map(|()| session.clone());
    let mut builder = Domain::builder(image)
        .name(name)
        .deadline(Some(settings.call))
        .policy(policy(settings, &session)?)
        .service("libcgi_hand_over", move |caller: &Caller<'_>, size: u64| {
            giver.hand_over(size, Some(&caller.domain()))
        })
        .service("libcgi_more", move |_: &Caller<'_>| asker.more())
        .service(
            "libcgi_log",
            move |caller: &Caller<'_>, text: Offset, size: u64| match caller
                .domain()
                .read_vec(text, size.min(4096) as usize)
            {
                Ok(text) => speaker.say(&String::from_utf8_lossy(&text)),
                Err(error) => caller.abort(error.to_string()),
            },
        );
    if let Some(heap) = settings.heap {
        builder = builder.heap(heap);
    }
    if let Some(memory) = memory {
        builder = builder.common(memory);
        // Who names a state that is shared says so.
        for service in ["libcgi_hand_over", "libcgi_more", "libcgi_log", "sys"] {
            builder = builder.grant_to_all(service);
        }
    }
    let domain = builder.build()?;
    session.buffer.share(&domain)?;
    Ok(Instance {
        serve: domain.func("libcgi_serve")?,
        registered: registry.add(&domain, "handler", "site"),
        domain,
        session,
    })
}

/// Clocks, random bytes, the files that were granted for reading, and the error log.
fn policy(settings: &HandlerSettings, session: &Arc<Session>) -> Result<Policy, Anything> {
    let mut rules = Rules::new();
    for folder in &settings.files {
        let folder = std::path::absolute(folder)?;
        let name = folder
            .to_str()
            .ok_or("a folder of `files` has a name that is not UTF-8")?;
        rules = rules.grant(name, &folder, Access::Read)?;
    }
    let session = session.clone();
    let speak = Sink::function(move |bytes: &[u8]| {
        for line in String::from_utf8_lossy(bytes).lines() {
            session.say(line);
        }
    });
    Ok(Policy::files(rules).stdout(speak.clone()).stderr(speak))
}

/// A copy of the file for each instance, since a file is loaded once.
fn libraries(
    settings: &HandlerSettings,
    file: &Path,
    log: &Arc<ProgramLog>,
) -> Result<Arc<IdleLibraries>, Anything> {
    let folder = tempfile::tempdir()?;
    let libraries = (0..settings.instances).map(|number| -> Result<Library, Anything> {
        let copy: PathBuf = folder.path().join(format!("{number}.so"));
        std::fs::copy(file, &copy)?;
        let buffer = SharedBuffer::new(&settings.path, settings.buffer, false)?;
        let session = Arc::new(Session::new(buffer, log.clone()));
        Ok(Library::open(&copy, session)?)
    });
    let libraries = libraries.collect::<Result<_, _>>()?;
    Ok(Arc::new(IdleLibraries(Mutex::new(libraries))))
}
