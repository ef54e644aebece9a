//! A supervisor: a filter of the kernel's has the calls of a tree wait that acquire something, and
//! this process asks the agent about them and makes them in their callers' place.
//!
//! Invariant: what the agent is asked about is what is done. Words in a program's memory are copied
//! once; paths are walked to files that are held, and the call is made on these; the kernel is told
//! to make a call only where the decision is about numbers in it. The one exception is a program
//! that is executed, whose path the kernel reads again.
//!
//! Any number of calls may wait at once, for a pipe or a connection: whichever thread has a call to
//! do leaves another to wait for the next.

mod agent;
mod caller;
mod calls;
mod files;
mod filter;
mod left;
mod named;
mod reach;
mod sockets;
mod walk;

use crate::trusted::foreign;
use crate::trusted::seccomp::{self, Listener, Notification};
pub use agent::Agent;
use agent::{Asked, Copies, Seat, Verdict};
use caller::Caller;
use files::Made;
use left::{Place, Places};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal};
use rustix::process::{pidfd_getfd, pidfd_open, pidfd_send_signal};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Calls that may wait at once.
const THREADS: usize = 512;
/// How often a file that comes and goes is looked for.
const TRIES: usize = 64;

/// Whether this kernel has what a supervisor needs: if not, why.
pub fn is_there() -> Result<(), Errno> {
    seccomp::is_there()
}

/// Whether `/proc` tells of this process and its children.
pub fn has_processes() -> bool {
    walk::is_own_namespace()
}

/// Runs a program and waits for all that it starts. With `restricted`, what it executes is.
///
/// # Errors
/// It cannot be started.
pub fn run(agent: Agent, mut command: Command, restricted: bool) -> std::io::Result<ExitStatus> {
    const FAILED: i32 = 125 << 8;
    let agent = Arc::new(agent);
    if !agent.begin() {
        return Ok(ExitStatus::from_raw(FAILED));
    }
    left::begin()?;
    let (told, tells) = std::io::pipe()?;
    let (goes, go) = std::io::pipe()?;
    seccomp::filter(
        &mut command,
        filter::program(restricted),
        tells.as_raw_fd(),
        goes.as_raw_fd(),
    );
    let with = agent.clone();
    // Starting waits for the program's execution, about which the supervisor is asked.
    let first = thread::Builder::new().name("supervisor".into());
    let first = first.spawn(move || supervise(with, told, go))?;
    let child = command.spawn();
    drop((command, tells, goes));
    let status = child.and_then(|mut child| child.wait());
    let supervised = first.join().map_err(|_| Errno::IO)?;
    match supervised {
        // Until the last process of the tree has ended, and nobody is in the agent.
        Ok(looks) => looks.join().map_err(|_| Errno::IO)?,
        // The child has said why it did not get so far.
        Err(Errno::CANCELED) => {}
        Err(error) => return Err(error.into()),
    }
    agent.last_words();
    if agent.has_failed() {
        return Ok(ExitStatus::from_raw(FAILED));
    }
    status
}

/// Takes the notifications of the process that tells of them, and serves.
fn supervise(
    agent: Arc<Agent>,
    mut told: PipeReader,
    mut go: PipeWriter,
) -> Result<JoinHandle<()>, Errno> {
    let mut bytes = [0; 8];
    told.read_exact(&mut bytes).map_err(|_| Errno::CANCELED)?;
    let word = |at: usize| i32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
    // What each thread that serves needs, before the program waits for one.
    let able = foreign::have_own_folder().and(agent.seat().map_err(|_| Errno::NOMEM));
    let taken = able.and_then(|_| take(word(0), word(4)));
    let _ = go.write_all(&[u8::from(taken.is_ok())]);
    let (root, listener) = taken?;
    let supervisor = Arc::new(Supervisor {
        agent,
        listener: Arc::new(listener),
        root,
        turn: Mutex::new(()),
        waiting: AtomicUsize::new(0),
        threads: AtomicUsize::new(0),
        places: Places::default(),
    });
    supervisor.start()?;
    let thread = thread::Builder::new().name("supervisor".into());
    let looks = move || {
        let Supervisor {
            places,
            listener,
            threads,
            ..
        } = &*supervisor;
        places.look(listener, threads);
    };
    thread.spawn(looks).map_err(|_| Errno::AGAIN)
}

fn take(process: i32, number: i32) -> Result<(OwnedFd, Listener), Errno> {
    let process = Pid::from_raw(process).ok_or(Errno::SRCH)?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    let listener = pidfd_getfd(&process, number, PidfdGetfdFlags::empty())?;
    Ok((process, Listener::new(listener)))
}

/// Who decides about a tree's calls.
struct Supervisor {
    agent: Arc<Agent>,
    listener: Arc<Listener>,
    /// The tree's first process.
    root: OwnedFd,
    /// Whose turn it is to wait for a call.
    turn: Mutex<()>,
    /// Threads that wait for their turn, or have it, and threads.
    waiting: AtomicUsize,
    threads: AtomicUsize,
    /// What they do.
    places: Places,
}

impl Supervisor {
    /// Starts one more thread.
    ///
    /// # Errors
    /// There are as many as may be, or as the user may have.
    fn start(self: &Arc<Self>) -> Result<(), Errno> {
        if self.threads.fetch_add(1, SeqCst) >= THREADS {
            self.threads.fetch_sub(1, SeqCst);
            return Err(Errno::AGAIN);
        }
        self.waiting.fetch_add(1, SeqCst);
        let own = self.clone();
        let thread = thread::Builder::new().name("supervisor".into());
        let started = thread.spawn(move || {
            // Without a folder and a mask of its own, a thread makes no calls for others.
            match (foreign::have_own_folder(), own.agent.seat()) {
                (Ok(()), Ok(seat)) => own.serve(&seat),
                _ => drop(own.waiting.fetch_sub(1, SeqCst)),
            }
            own.threads.fetch_sub(1, SeqCst);
        });
        if started.is_err() {
            self.threads.fetch_sub(1, SeqCst);
            self.waiting.fetch_sub(1, SeqCst);
        }
        started.map(drop).map_err(|_| Errno::AGAIN)
    }

    fn serve(self: &Arc<Self>, seat: &Seat) {
        let place = self.places.take();
        loop {
            let call = {
                let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                self.listener.receive()
            };
            let others = self.waiting.fetch_sub(1, SeqCst) - 1;
            let Some(call) = call else {
                return;
            };
            // Without another thread, all other calls wait until this one is done.
            let alone = others == 0 && self.start().is_err();
            self.handle(seat, &place, &call, alone);
            self.waiting.fetch_add(1, SeqCst);
        }
    }

    fn handle(&self, seat: &Seat, place: &Place, call: &Notification, alone: bool) {
        let caller = Caller::new(&self.listener, call);
        for _ in 0..TRIES {
            match self.decide(seat, place, &caller, call, alone) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => self
                    .listener
                    .answer(call.id, (-error.raw_os_error()).into()),
            }
            return;
        }
        self.listener.answer(call.id, -i64::from(libc::EAGAIN));
    }

    /// Asks about a call and makes it; one that may wait for others is not made by the only thread
    /// that there is for all calls, among them those that it would wait for. False: once more.
    fn decide(
        &self,
        seat: &Seat,
        place: &Place,
        caller: &Caller,
        call: &Notification,
        alone: bool,
    ) -> Result<bool, Errno> {
        let (number, mut words) = (call.number as i64, call.arguments);
        reach::spares_us(caller, number, &words)?;
        if let Some(process) = calls::is_about(number, &words) {
            if process != 0 && !reach::is_own(caller, process)? {
                return Err(Errno::PERM);
            }
            self.listener.pass(call.id);
            return Ok(true);
        }
        if number == libc::SYS_setpgid {
            self.listener.pass(call.id);
            return Ok(true);
        }
        let paths = calls::paths(number, &words);
        // Pointers of calls with paths are whole words.
        let pointers = paths.map_or(&[][..], |(paths, _)| paths);
        let text_at = calls::text_word(number);
        for word in calls::halves(number) {
            if text_at != Some(*word) && pointers.iter().all(|(path, ..)| path != word) {
                words[*word] = words[*word] as i32 as u64;
            }
        }
        let mut copies = Copies::default();
        let mut asked = Asked {
            number: call.number,
            arguments: words,
        };
        let mut places = Vec::new();
        let text = files::text(caller, number, &words)?;
        let deed = match paths {
            Some((paths, name)) => {
                for path in paths {
                    places.push(files::place(caller, &words, *path)?);
                }
                asked = tell(name, &words, paths, &places, &text, &mut copies)?;
                None
            }
            None => sockets::copy(caller, number, &words, &mut copies)?,
        };
        let deed = deed.map(|(deed, name, words)| {
            asked = Asked {
                number: name as u64,
                arguments: words,
            };
            deed
        });
        let answer = self.agent.ask(seat, caller, asked, copies);
        if self.agent.has_failed() {
            let _ = pidfd_send_signal(&self.root, Signal::KILL);
            caller.signal(Signal::KILL)?;
        }
        let after = match answer.verdict {
            Verdict::Answer(result) => {
                self.listener.answer(call.id, result);
                return Ok(true);
            }
            Verdict::Pass => false,
            Verdict::PassAfter => true,
        };
        caller.still()?;
        let waits = deed.as_ref().is_some_and(|deed| deed.may_wait())
            || places.iter().any(|place| place.may_wait());
        if alone && waits {
            return Err(Errno::AGAIN);
        }
        let made = place.within(call.id, || match (deed, paths) {
            (Some(deed), _) => deed.make(caller, words[0] as i32),
            (None, Some(_)) => files::make(caller, number, &words, &places, &text),
            (None, None) => Ok(Made::ByKernel),
        });
        let failed = |error: Errno| i64::from(-error.raw_os_error());
        let result = match made {
            Ok(Made::Again) => return Ok(false),
            Ok(Made::ByKernel) => {
                self.listener.pass(call.id);
                return Ok(true);
            }
            Ok(Made::File(file, closes)) => {
                use std::os::fd::AsFd;
                let handed = self.listener.hand(call.id, file.as_fd(), closes, !after);
                match handed {
                    Ok(_) if !after => return Ok(true),
                    Ok(number) => number,
                    Err(error) => failed(error),
                }
            }
            Ok(Made::Result(result)) => result,
            Err(error) => failed(error),
        };
        let result = if after { answer.after(result) } else { result };
        self.listener.answer(call.id, result);
        Ok(true)
    }
}

/// The words that the agent finds in the place of a call's: paths are copies, from the root on.
fn tell(
    number: i64,
    words: &[u64; 6],
    paths: &[calls::PathOf],
    places: &[walk::Place],
    text: &[u8],
    copies: &mut Copies,
) -> Result<Asked, Errno> {
    const HERE: u64 = libc::AT_FDCWD as i64 as u64;
    let mut told = *words;
    for ((word, begin, _), place) in paths.iter().zip(places) {
        let at = copies.add(place.path()?);
        match begin {
            calls::Begin::Here => {}
            calls::Begin::Folder(folder) | calls::Begin::Descriptor(folder) => {
                told[*folder] = HERE;
            }
            // `fchmod` and `fchown`, as if with a path.
            calls::Begin::File(_) => told = [HERE, 0, words[1], words[2], 0, 0],
        }
        told[*word] = at;
    }
    if let Some(word) = calls::text_word(number) {
        // Where there are no times, the word is null.
        if !text.is_empty() || words[word] != 0 {
            told[word] = copies.add(text.to_vec());
        }
    }
    Ok(Asked {
        number: number as u64,
        arguments: told,
    })
}
