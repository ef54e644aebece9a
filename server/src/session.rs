//! A session: the memory of one instance of a program, and the conversation between it and the
//! server during a request.
//!
//! The program runs on one thread from the beginning of its answer to the end. What it hands over
//! before it ends goes to the client at once, and it waits until there is room for more: while one
//! half of the answer's memory is sent, and cannot be written, it fills the other. Invariant: there
//! is at most one call at a time, and what is sent of a half keeps the session from being lent.

use crate::answer::Answer;
use crate::body::{Body, Cut};
use crate::failure::Failure;
use crate::head::{self, Promise};
use crate::lease::{Lease, WriteHold};
use crate::program_log::ProgramLog;
use crate::request_body::RequestBody;
use crate::shared_buffer::{PIECE, SharedBuffer};
use bytes::Bytes;
use postern::Domain;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout_at};

/// Bytes in which a head is looked for first.
const SHORT: usize = 512;

/// The place of one instance.
pub struct Session {
    /// Its memory.
    pub buffer: SharedBuffer,
    halves: [Arc<Semaphore>; 2],
    call: Mutex<Option<Call>>,
    log: Arc<ProgramLog>,
}

/// How a call went.
#[derive(Default)]
pub struct Finished {
    /// Why it failed, if nobody was told: the answer had begun.
    pub untold: Option<Failure>,
    /// Whether it neither failed nor had to wait for the client.
    pub smooth: bool,
}

/// A request that is being served.
struct Call {
    runtime: Handle,
    until: Instant,
    input: RequestBody,
    lease: Lease,
    /// Where the head goes, until it went.
    answer: Option<Answer>,
    /// The request was for that only.
    brief: bool,
    half: usize,
    permit: Option<OwnedSemaphorePermit>,
    /// A head that was handed over before it was whole.
    begun: Vec<u8>,
    stream: Option<mpsc::Sender<Result<Bytes, Cut>>>,
    promise: Promise,
    failure: Option<Failure>,
    waited: bool,
    /// Whether the client is known to have left.
    gone: bool,
}

impl Session {
    /// An empty one.
    pub fn new(buffer: SharedBuffer, log: Arc<ProgramLog>) -> Session {
        Session {
            buffer,
            halves: [(); 2].map(|()| Arc::new(Semaphore::new(1))),
            call: Mutex::new(None),
            log,
        }
    }

    fn call(&self) -> MutexGuard<'_, Option<Call>> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call: the program may be entered then.
    pub fn begin(&self, input: RequestBody, answer: Answer, lease: Lease, until: Instant) {
        *self.call() = Some(Call {
            runtime: Handle::current(),
            until,
            input,
            lease,
            brief: answer.brief,
            answer: Some(answer),
            half: 0,
            permit: self.halves[0].clone().try_acquire_owned().ok(),
            begun: Vec::new(),
            stream: None,
            promise: Promise::default(),
            failure: None,
            waited: false,
            gone: false,
        });
    }

    /// Ends it: what the program left goes out, or why there is nothing.
    pub fn finish(&self, result: Result<usize, Failure>) -> Finished {
        let Some(mut call) = self.call().take() else {
            return Finished::default();
        };
        let result = match (call.failure.take(), result) {
            // The body's failure is why the program could not do better.
            (Some(failure), _) | (None, Err(failure)) => Err(failure),
            (None, Ok(size)) => call.last(self, size),
        };
        let smooth = result.is_ok() && !call.waited;
        let mut untold = result.err();
        if call.gone && matches!(untold, Some(Failure::Status(_))) {
            // That it could not write is no failure of the program.
            untold = None;
        }
        if let Some(failure) = &untold {
            if let Some(answer) = call.answer.take() {
                answer.send(Err(failure.clone()));
                untold = None;
            } else if let Some(stream) = call.stream.take() {
                call.send_last(stream, Err(Cut::from(failure)));
            }
        }
        Finished { untold, smooth }
    }

    /// For the program: hands over the first `size` bytes of its half, and gives it the other. 0,
    /// or -1.
    pub fn hand_over(&self, size: u64, domain: Option<&Domain>) -> i64 {
        let mut call = self.call();
        let Some(call) = call.as_mut() else {
            return -1;
        };
        let size = size.min(self.buffer.half() as u64) as usize;
        match call.hand_over(self, size, domain) {
            Ok(true) => 0,
            Ok(false) => -1,
            Err(failure) => {
                call.failure.get_or_insert(failure);
                -1
            }
        }
    }

    /// For the program: waits for more of the body. 1, 0 at the end, or -1.
    pub fn more(&self) -> i64 {
        let mut call = self.call();
        let Some(call) = call.as_mut() else {
            return -1;
        };
        let (runtime, until) = (call.runtime.clone(), call.until);
        call.waited = true;
        let next = match wait(&runtime, until, call.input.next(PIECE)) {
            Some(next) => next,
            // The deadline says the rest.
            None => return -1,
        };
        let (piece, result) = match next {
            Ok(Some(piece)) => (piece, 1),
            Ok(None) => (Bytes::new(), 0),
            Err(failure) => {
                call.failure.get_or_insert(failure);
                (Bytes::new(), -1)
            }
        };
        let more = result == 1 && !call.input.is_end();
        match self.buffer.next_body(&piece, more) {
            Ok(()) => result,
            Err(_) => -1,
        }
    }

    /// For the program: a line for the log.
    pub fn say(&self, text: &str) {
        self.log.say(text);
    }
}

/// Waits on a thread that may be one of the runtime's workers, whose other work goes on elsewhere
/// meanwhile.
fn wait<T>(runtime: &Handle, until: Instant, what: impl Future<Output = T>) -> Option<T> {
    let timed = async { timeout_at(until, what).await.ok() };
    tokio::task::block_in_place(|| runtime.block_on(timed))
}

impl Call {
    /// The bytes `[from, to)` of the current half, and what keeps others away until they are sent.
    fn bytes(&mut self, session: &Session, from: usize, to: usize) -> Bytes {
        let kept = WriteHold::new(self.permit.take(), self.lease.clone());
        session.buffer.view(self.half, from, to, kept)
    }

    /// Sends the head, if what was written so far has all of it: where the body begins in the
    /// current half.
    fn head(
        &mut self,
        session: &Session,
        size: usize,
    ) -> Result<Option<(head::Head, usize)>, Failure> {
        let before = self.begun.len();
        // Most heads are short: all that may be one is copied only if it is none so far.
        let mut head = None;
        for beginning in [SHORT, head::HEAD_LIMIT + 1] {
            self.begun.truncate(before);
            let beginning = size.min(beginning);
            self.begun.extend(session.buffer.copy(self.half, beginning));
            head = head::parse(&self.begun)?;
            if head.is_some() || beginning == size {
                break;
            }
        }
        let brief = self.brief;
        Ok(head.map(|mut head| {
            head.bare |= brief;
            let from = head.size.saturating_sub(before);
            (head, from)
        }))
    }

    /// Whether anybody wants the answer still.
    fn hand_over(
        &mut self,
        session: &Session,
        size: usize,
        domain: Option<&Domain>,
    ) -> Result<bool, Failure> {
        let mut from = 0;
        if self.answer.is_some() {
            let Some((head, body)) = self.head(session, size)? else {
                return Ok(true);
            };
            from = body;
            self.promise = Promise::of(&head);
            let (stream, body) = Body::stream();
            let response = head.response(body, None)?;
            let gone = self
                .answer
                .take()
                .is_none_or(|answer| !answer.send(Ok(response)));
            if gone {
                self.gone = true;
                return Ok(false);
            }
            self.stream = Some(stream);
        }
        let Some(stream) = self.stream.clone() else {
            return Ok(false);
        };
        if from >= size {
            return Ok(true);
        }
        self.promise.send(size - from)?;
        let bytes = match domain {
            Some(_) if !session.buffer.shut(self.half, domain) => {
                Bytes::from(session.buffer.copy(self.half, size)).slice(from..)
            }
            _ => self.bytes(session, from, size),
        };
        self.waited = true;
        let (runtime, other) = (self.runtime.clone(), 1 - self.half);
        let sent = wait(&runtime, self.until, stream.send(Ok(bytes)));
        if !matches!(sent, Some(Ok(()))) {
            self.gone = matches!(sent, Some(Err(_)));
            return Ok(false);
        }
        let free = session.halves[other].clone().acquire_owned();
        let Some(Ok(permit)) = wait(&runtime, self.until, free) else {
            return Ok(false);
        };
        session.buffer.open(other, domain);
        (self.half, self.permit) = (other, Some(permit));
        Ok(session.buffer.use_half(other).is_ok())
    }

    /// Sends what the program left in its half.
    fn last(&mut self, session: &Session, size: usize) -> Result<(), Failure> {
        if size > session.buffer.half() {
            return Err(Failure::Fault(
                "it wrote more than there is room for".to_owned(),
            ));
        }
        let Some(answer) = self.answer.take() else {
            // Who is gone misses nothing.
            let Some(stream) = self.stream.take_if(|stream| !stream.is_closed()) else {
                return Ok(());
            };
            let kept = self.promise.send(size).and_then(|()| self.promise.end());
            if let Err(error) = kept {
                self.stream = Some(stream);
                return Err(error.into());
            }
            if size > 0 {
                let bytes = self.bytes(session, 0, size);
                self.send_last(stream, Ok(bytes));
            }
            return Ok(());
        };
        let sized = match self.head(session, size) {
            Ok(Some((head, from))) => {
                let body = (size - from.min(size)) as u64;
                head.response((), Some(body))
                    .map(|response| (response, from))
                    .map_err(Failure::from)
            }
            Ok(None) => Err(crate::head::HeadError::Unfinished.into()),
            Err(failure) => Err(failure),
        };
        match sized {
            Ok((response, from)) => {
                let bytes = self.bytes(session, from, size);
                // A client that is gone misses nothing.
                answer.send(Ok(response.map(|()| Body::whole(bytes))));
                Ok(())
            }
            Err(failure) => {
                self.answer = Some(answer);
                Err(failure)
            }
        }
    }

    /// Sends without waiting here: the program has left.
    fn send_last(&self, stream: mpsc::Sender<Result<Bytes, Cut>>, piece: Result<Bytes, Cut>) {
        if let Err(mpsc::error::TrySendError::Full(piece)) = stream.try_send(piece) {
            self.runtime.spawn(async move {
                let _ = stream.send(piece).await;
            });
        }
    }
}
