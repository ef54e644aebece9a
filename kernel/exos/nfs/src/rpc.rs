//! Remote procedure calls (RFC 5531): a call has a number, and so has its answer.
//!
//! What comes with another number is an answer to somebody else, or one that came too late, and
//! is passed by. What does not come in time is asked for again under the same number, so that a
//! server that remembers answers (RFC 1813, section 4.5) does nothing twice.

use alloc::vec::Vec;

use postern_exos_abi::errno::{self, Errno};

use crate::xdr::{Reader, Writer};

/// Who carries messages to one port of a host, and back. Nothing of what comes back is believed.
pub trait Transport {
    /// Sends a message whole.
    fn send(&mut self, message: &[u8]) -> Result<(), Errno>;

    /// Waits for a message at most so many milliseconds. False: none has come.
    fn receive(&mut self, wait: u64, message: &mut Vec<u8>) -> Result<bool, Errno>;

    /// Milliseconds since any time.
    fn now(&mut self) -> u64;

    /// Bytes of a message at most, in both directions.
    fn limit(&self) -> usize;

    /// Milliseconds until a message that may be lost is sent again; none for streams, which lose
    /// nothing as long as they are connected.
    fn patience(&self) -> Option<u64>;

    /// Begins anew after an error: a stream is connected again, in so many milliseconds or not.
    fn reconnect(&mut self, wait: u64) -> Result<(), Errno>;

    /// Lets so many milliseconds pass.
    fn rest(&mut self, wait: u64);
}

/// How long answers are waited for. A call that fails by that makes the server a silent one, which
/// is asked only [`SILENT`] times as long as nothing comes from it: who works through a folder of a
/// dead server does not wait anew for each of its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// Milliseconds of the first wait for a message that may be lost, and of each by a stream.
    pub first: Option<u64>,
    /// Times that a call is sent, or that a stream is waited for so long, before it has failed.
    pub tries: Option<u32>,
}

/// Times that a message which may be lost is sent.
const TRIES: u32 = 6;

/// Milliseconds of patience at most with messages that may be lost.
const LONGEST: u64 = 5_000;

/// Milliseconds that a stream may be silent before it is connected again.
const SILENCE: u64 = 15_000;

/// Times that a stream may be silent.
const SILENCES: u32 = 3;

/// Times that a silent server is asked, and milliseconds of each at most.
const SILENT: (u32, u64) = (2, 1_500);

/// Milliseconds between two attempts to connect, at first and at most.
const AGAIN: (u64, u64) = (100, 2_000);

/// Messages of other numbers that are passed by during a call.
const STRANGERS: u32 = 256;

/// Milliseconds until a server that asked for time is asked again.
const PAUSE: u64 = 500;

const CALL: u32 = 0;
const REPLY: u32 = 1;
const RPC_VERSION: u32 = 2;
const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;

/// Bytes of a credential or verifier at most (section 8.2).
const AUTHORITY: usize = 400;

/// Who calls (AUTH_SYS, appendix A).
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The machine's name, of which 64 bytes are said.
    pub machine: &'a [u8],
    /// The user's number there.
    pub user: u32,
    /// The group's.
    pub group: u32,
}

/// Calls to one program at one port.
pub struct Client<T> {
    transport: T,
    program: (u32, u32),
    credential: Vec<u8>,
    number: u32,
    patience: Patience,
    was_repeated: bool,
    /// The stream has ended, or has said nonsense.
    is_broken: bool,
    is_silent: bool,
    request: Writer,
    answer: Vec<u8>,
}

impl<T: Transport> Client<T> {
    /// For a program and its version; `number` is that of the first call, best a random one.
    pub fn new(transport: T, program: (u32, u32), caller: Option<Caller<'_>>, number: u32) -> Self {
        let mut credential = Writer::default();
        match caller {
            None => {
                credential.word(AUTH_NONE);
                credential.opaque(&[]);
            }
            Some(caller) => {
                let mut body = Writer::default();
                body.word(number);
                // No longer, so that there is room for what is read and written.
                body.opaque(caller.machine.get(..64).unwrap_or(caller.machine));
                body.word(caller.user);
                body.word(caller.group);
                body.word(0);
                credential.word(AUTH_SYS);
                credential.opaque(&body.bytes);
            }
        }
        // The verifier of a call by either is none.
        credential.word(AUTH_NONE);
        credential.opaque(&[]);
        Client {
            transport,
            program,
            credential: credential.bytes,
            number,
            patience: Patience::default(),
            was_repeated: false,
            is_broken: false,
            is_silent: false,
            request: Writer::default(),
            answer: Vec::new(),
        }
    }

    /// Another patience than the usual one.
    pub fn with_patience(self, patience: Patience) -> Self {
        Client { patience, ..self }
    }

    /// Milliseconds since any time.
    pub fn now(&mut self) -> u64 {
        self.transport.now()
    }

    /// Bytes of a message at most.
    pub fn limit(&self) -> usize {
        self.transport.limit()
    }

    /// Whether the last call was sent more than once: a server that does not remember answers
    /// may have done it twice.
    pub fn was_repeated(&self) -> bool {
        self.was_repeated
    }

    /// Lets some time pass.
    pub fn pause(&mut self) {
        self.transport.rest(PAUSE);
    }

    /// Calls a procedure; the results.
    pub fn call(
        &mut self,
        procedure: u32,
        arguments: impl FnOnce(&mut Writer),
    ) -> Result<Reader<'_>, Errno> {
        self.number = self.number.wrapping_add(1);
        self.request.bytes.clear();
        let (program, version) = self.program;
        for word in [self.number, CALL, RPC_VERSION, program, version, procedure] {
            self.request.word(word);
        }
        self.request.bytes.extend(&self.credential);
        arguments(&mut self.request);
        if self.request.bytes.len() > self.transport.limit() {
            return Err(errno::MSGSIZE);
        }
        self.exchange()?;
        results(&self.answer)
    }

    /// Sends the request until its answer is there.
    fn exchange(&mut self) -> Result<(), Errno> {
        let (lossy, patience) = (self.transport.patience(), self.patience);
        let mut wait = patience.first.or(lossy).unwrap_or(SILENCE).max(1);
        let usual = if lossy.is_some() { TRIES } else { SILENCES };
        let mut tries = patience.tries.unwrap_or(usual).max(1);
        if self.is_silent {
            (tries, wait) = (tries.min(SILENT.0), wait.min(SILENT.1));
        }
        // Of a stream: until when it is connected again and again.
        let until = self
            .transport
            .now()
            .saturating_add(wait.saturating_mul(tries.into()));
        let (mut sent, mut strangers, mut pause) = (0, 0, AGAIN.0);
        let mut failure = errno::TIMEDOUT;
        self.was_repeated = false;
        while sent < tries {
            if self.is_broken {
                let left = until.saturating_sub(self.transport.now());
                if left == 0 {
                    break;
                }
                if self.transport.reconnect(left).is_err() {
                    failure = errno::TIMEDOUT;
                    self.transport.rest(pause.min(left));
                    pause = (2 * pause).min(AGAIN.1);
                    continue;
                }
                self.is_broken = false;
            }
            self.was_repeated = sent > 0;
            sent += 1;
            match self.attempt(wait, &mut strangers) {
                Ok(true) => {
                    self.is_silent = false;
                    return Ok(());
                }
                Ok(false) if lossy.is_some() => wait = (2 * wait).min(LONGEST.max(wait)),
                Err(errno::PROTO) => return Err(errno::PROTO),
                broken => {
                    self.is_broken = true;
                    failure = broken.err().unwrap_or(errno::TIMEDOUT);
                }
            }
        }
        self.is_silent = strangers == 0 && failure == errno::TIMEDOUT;
        Err(failure)
    }

    /// Sends the request once, and waits.
    fn attempt(&mut self, wait: u64, strangers: &mut u32) -> Result<bool, Errno> {
        self.transport.send(&self.request.bytes)?;
        let until = self.transport.now().saturating_add(wait);
        loop {
            let left = until.saturating_sub(self.transport.now());
            if left == 0 || !self.transport.receive(left, &mut self.answer)? {
                return Ok(false);
            }
            let mut reader = Reader::new(&self.answer);
            if (reader.word(), reader.word()) == (Ok(self.number), Ok(REPLY)) {
                return Ok(true);
            }
            *strangers += 1;
            if *strangers > STRANGERS {
                return Err(errno::PROTO);
            }
        }
    }
}

/// The results in an answer, if it has any (section 9).
fn results(answer: &[u8]) -> Result<Reader<'_>, Errno> {
    let mut reader = Reader::new(answer);
    reader.word()?;
    reader.word()?;
    let is_denied = reader.boolean()?;
    if is_denied {
        // Another version of RPC, or the caller is nobody that the server knows.
        return Err(if reader.boolean()? {
            errno::ACCES
        } else {
            errno::PROTO
        });
    }
    reader.word()?;
    reader.opaque(AUTHORITY)?;
    match reader.word()? {
        0 => Ok(reader),
        // No such program, version or procedure.
        1..=3 => Err(errno::NOTSUP),
        4 => Err(errno::INVAL),
        5 => Err(errno::IO),
        _ => Err(errno::PROTO),
    }
}
