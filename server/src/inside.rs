//! Programs that are called in the server's own process: as extensions, one domain for each instance, or as shared objects.
//!
//! A call is a task of its own. A program that has been quick so far runs on the worker thread that took the request; one that takes
//! long or waits for the client runs on a thread that may be kept busy. Invariant: one worker thread at least is inside no program.

use crate::config::{Recycle, Settings};
use crate::exchange::{Exchange, PIECE};
use crate::failure::Failure;
use crate::input::Input;
use crate::log::Log;
use crate::seat::{Answer, Seat};
use crate::status::{Member, Roster};
use crate::trusted::library::Library;
use crate::variables::Variables;
use bytes::Bytes;
use postern::policy::{Access, Sink};
use postern::{
    CallError, Caller, Domain, FaultKind, Func, Image, Lendable, Offset, Policy, Pool, PoolError,
    Pooled, RestartPolicy, Rules,
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
/// Calls that must have been quick, one after the other, before the next is made on a worker thread.
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
struct Slot {
    domain: Domain,
    serve: Func<fn(Offset) -> i64>,
    seat: Arc<Seat>,
    member: Arc<Member>,
}

impl Lendable for Slot {
    fn domain(&self) -> &Domain {
        &self.domain
    }
}

/// Instances of a shared object that are not in use.
struct Shelf(Mutex<Vec<Library>>);

/// An instance of a shared object on loan.
struct Taken {
    library: Option<Library>,
    shelf: Arc<Shelf>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let library = self.library.take();
        self.shelf
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(library);
    }
}

enum Instances {
    Confined(Pool<Slot>),
    Native(Mutex<Arc<Shelf>>),
}

/// An instance that is lent for one request.
enum Lent {
    Confined(Pooled<'static, Slot>),
    Native(Taken),
}

/// What a request has until its answer was sent: an instance, and the right to one. Given back in this order.
struct Held {
    lent: Lent,
    _permit: OwnedSemaphorePermit,
}

/// A program with its instances.
pub struct Inside {
    settings: Arc<Settings>,
    instances: Instances,
    workers: Arc<Workers>,
    roster: Arc<Roster>,
    log: Arc<Log>,
    /// Quick calls since the last that was not.
    quick: AtomicU32,
}

impl Inside {
    /// Loads a program.
    ///
    /// # Errors
    /// It cannot be loaded, or wants what it is not given.
    pub fn new(
        settings: &Arc<Settings>,
        file: &Path,
        workers: &Arc<Workers>,
        roster: &Arc<Roster>,
        log: &Arc<Log>,
    ) -> Result<Inside, Anything> {
        let instances = match settings.confined() {
            true => Instances::Confined(pool(settings, file, roster, log)?),
            false => Instances::Native(Mutex::new(shelf(settings, file, log)?)),
        };
        Ok(Inside {
            settings: settings.clone(),
            instances,
            workers: workers.clone(),
            roster: roster.clone(),
            log: log.clone(),
            quick: AtomicU32::new(0),
        })
    }

    /// From now on requests go to a program of another file; those that are being served go on.
    ///
    /// # Errors
    /// As of [`Inside::new`]; then nothing has changed.
    pub fn replace(&self, file: &Path) -> Result<(), Anything> {
        match &self.instances {
            Instances::Confined(pool) => {
                pool.replace(maker(&self.settings, file, &self.roster, &self.log)?)?;
            }
            Instances::Native(current) => {
                let new = shelf(&self.settings, file, &self.log)?;
                *current.lock().unwrap_or_else(PoisonError::into_inner) = new;
            }
        }
        self.quick.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The pool's counters, if it is one.
    pub fn counters(&self) -> Option<postern::PoolCounters> {
        match &self.instances {
            Instances::Confined(pool) => Some(pool.counters()),
            Instances::Native(_) => None,
        }
    }

    /// Serves a request: `answer` gets the response. `done` is called when the program has ended, with why the answer was cut off, if
    /// it was.
    pub async fn serve(
        self: &Arc<Self>,
        variables: Variables,
        mut input: Input,
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
        input: Input,
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
        let (seat, domain, functions) = match &held.lent {
            Lent::Confined(slot) => (&slot.seat, Some(&slot.domain), [0; 4]),
            Lent::Native(taken) => match &taken.library {
                Some(library) => (library.seat(), None, library.functions()),
                None => return None,
            },
        };
        let written = seat.exchange.begin(
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
        seat.begin(
            input,
            answer,
            held.clone(),
            (began + self.settings.call).into(),
        );
        let result = match &held.lent {
            Lent::Confined(slot) => self.judge(slot, began),
            Lent::Native(taken) => taken.library.as_ref().map_or(Ok(0), |l| returned(l.call())),
        };
        let finished = seat.finish(result);
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
            Instances::Native(shelf) => {
                let shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let library = shelf.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
                match library {
                    Some(library) => Ok(Lent::Native(Taken {
                        library: Some(library),
                        shelf,
                    })),
                    None => Err(Failure::Busy(Duration::ZERO)),
                }
            }
        }
    }

    /// Calls an extension, and says what became of it.
    fn judge(&self, slot: &Slot, began: Instant) -> Result<usize, Failure> {
        let place = Offset(slot.seat.exchange.place() as u32);
        let result = {
            let _call = slot.member.call();
            slot.serve.call(place)
        };
        match result {
            Ok(value) => returned(value),
            Err(CallError::Fault(fault)) if fault.kind == FaultKind::Deadline => {
                Err(Failure::Late(began.elapsed(), fault.to_string()))
            }
            Err(CallError::Exited(status)) => {
                // It left its own data as they were in the middle of it.
                let _ = slot.domain.reset();
                Err(Failure::Status(status.into()))
            }
            Err(error) => Err(Failure::Fault(error.to_string())),
        }
    }
}

fn returned(value: i64) -> Result<usize, Failure> {
    usize::try_from(value).map_err(|_| Failure::Status((-1i64).saturating_sub(value)))
}

fn pool(
    settings: &Arc<Settings>,
    file: &Path,
    roster: &Arc<Roster>,
    log: &Arc<Log>,
) -> Result<Pool<Slot>, Anything> {
    let builder = Pool::builder(maker(settings, file, roster, log)?)
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

/// Tokio's signal handlers are installed without `SA_ONSTACK`, and programs run on threads that take signals. If a host that serves
/// beside other things has configured Postern already, it is for it to say; anything else that is wrong the first load says, too.
fn start() {
    let mut config = postern::Config::default();
    config.adopt_handlers = true;
    let _ = postern::init(config);
}

/// What makes an instance of a file.
fn maker(
    settings: &Arc<Settings>,
    file: &Path,
    roster: &Arc<Roster>,
    log: &Arc<Log>,
) -> Result<impl Fn() -> Result<Slot, Anything> + Send + Sync + use<>, Anything> {
    start();
    let image = Image::load(file)?;
    let (settings, roster, log) = (settings.clone(), roster.clone(), log.clone());
    let made = AtomicUsize::new(0);
    Ok(move || {
        let number = 1 + made.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}#{number}", settings.path);
        slot(&image, name, &settings, &roster, &log)
    })
}

fn slot(
    image: &Image,
    name: String,
    settings: &Settings,
    roster: &Roster,
    log: &Arc<Log>,
) -> Result<Slot, Anything> {
    let exchange = Exchange::new(&settings.path, settings.buffer, true)?;
    let seat = Arc::new(Seat::new(exchange, log.clone(), &settings.path));
    let [giver, asker, speaker] = [(); 3].map(|()| seat.clone());
    let mut builder = Domain::builder(image)
        .name(name)
        .deadline(Some(settings.call))
        .policy(policy(settings, &seat)?)
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
    let domain = builder.build()?;
    seat.exchange.share(&domain)?;
    Ok(Slot {
        serve: domain.func("libcgi_serve")?,
        member: roster.join(&domain, "handler", "site"),
        domain,
        seat,
    })
}

/// Clocks, random bytes, the files that were granted for reading, and the error log.
fn policy(settings: &Settings, seat: &Arc<Seat>) -> Result<Policy, Anything> {
    let mut rules = Rules::new();
    for folder in &settings.files {
        let folder = std::path::absolute(folder)?;
        let name = folder
            .to_str()
            .ok_or("a folder of `files` has a name that is not UTF-8")?;
        rules = rules.grant(name, &folder, Access::Read)?;
    }
    let seat = seat.clone();
    let speak = Sink::function(move |bytes: &[u8]| {
        for line in String::from_utf8_lossy(bytes).lines() {
            seat.say(line);
        }
    });
    Ok(Policy::files(rules).stdout(speak.clone()).stderr(speak))
}

/// A copy of the file for each instance, since a file is loaded once.
fn shelf(settings: &Settings, file: &Path, log: &Arc<Log>) -> Result<Arc<Shelf>, Anything> {
    let folder = tempfile::tempdir()?;
    let libraries = (0..settings.instances).map(|number| -> Result<Library, Anything> {
        let copy: PathBuf = folder.path().join(format!("{number}.so"));
        std::fs::copy(file, &copy)?;
        let exchange = Exchange::new(&settings.path, settings.buffer, false)?;
        let seat = Arc::new(Seat::new(exchange, log.clone(), &settings.path));
        Ok(Library::open(&copy, seat)?)
    });
    let libraries = libraries.collect::<Result<_, _>>()?;
    Ok(Arc::new(Shelf(Mutex::new(libraries))))
}
