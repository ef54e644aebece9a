//! Policy modules: domains that decide about other domains' calls.
//!
//! A question is a block of bytes below the module's data stack, a copy of its own: nobody else
//! sees it, and the host reads of it only what the module says with its verdict, once. The form is
//! that of `struct postern_request` in `postern/policy.h`.

use super::{Asked, Decider, DeciderKind, DecisionError, Question};
use crate::system::{Request, SYSTEM_CALLS};
use crate::{Domain, Offset, SymbolError, Verdict, call};
use postern_gates::enter;
use postern_gates::entry::Entry;
use postern_gates::gate::STATUS_OK;
use postern_gates::payload::CallPayload;
use postern_gates::thread;
use std::sync::Arc;

/// Words of the block's head.
const HEAD: usize = 24;
/// Where the module's words about its verdict begin.
const VERDICT: usize = 19;
const _: () = assert!(HEAD * 8 == 192);

const SERVICE: u64 = 1;
const SYSTEM_CALL: u64 = 2;

const ALLOW: i64 = 0;
const EMULATE: i64 = -1;
const KILL: i64 = -2;
/// Errnos are below this.
const ERRNOS: i64 = 4096;

/// Bytes of a reason that are read.
const REASON: usize = 4096;

impl Decider {
    /// Another domain, by its export `decide`: `long decide(struct postern_request *)` of
    /// `postern/policy.h`. Its own deadline bounds the time that an answer may take. The decider
    /// keeps the domain alive.
    ///
    /// # Errors
    /// No such export, or its type is another.
    pub fn module(domain: &Domain) -> Result<Decider, SymbolError> {
        let module = Module::new(domain)?;
        Ok(Decider(Arc::new(DeciderKind::Module {
            name: domain.name().to_owned(),
            ask: Box::new(move |question, texts| module.ask(question, texts)),
        })))
    }
}

/// A domain that decides.
struct Module {
    domain: Domain,
    entry: Box<Entry>,
}

impl Module {
    fn new(domain: &Domain) -> Result<Module, SymbolError> {
        Ok(Module {
            entry: Box::new(domain.freight_entry("decide", "l(p)")?),
            domain: domain.clone(),
        })
    }

    fn name(&self) -> &str {
        self.domain.name()
    }

    fn ask(&self, question: &Question<'_>, texts: &[u8]) -> Result<Verdict, DecisionError> {
        let control = &*self.domain.0.control;
        if thread::is_inside(control) {
            return Err(DecisionError::Circular {
                module: self.name().to_owned(),
            });
        }
        let more;
        let (head, texts) = match question.call {
            Asked::Service {
                number,
                integers,
                floats,
                ..
            } => (of_service(question, number, integers, floats, texts), texts),
            Asked::SystemCall(request) => {
                let (head, texts) = of_system_call(question, request);
                more = texts;
                (head, &*more)
            }
        };
        let mut payload = CallPayload::new([enter::bytes_of(&head), texts]);
        let returned = enter::with(&self.entry, [0; 6], &mut payload);
        if returned.status != STATUS_OK {
            return Err(DecisionError::Unanswered {
                module: self.name().to_owned(),
                error: call::failed(),
            });
        }
        match returned.integer as i64 {
            ALLOW => Ok(Verdict::Allow),
            errno @ 1..ERRNOS => Ok(Verdict::Deny(errno as i32)),
            answer => self.answered(answer, payload.at, question),
        }
    }

    /// The verdicts with which the module says more.
    #[cold]
    fn answered(
        &self,
        answer: i64,
        block: u32,
        question: &Question<'_>,
    ) -> Result<Verdict, DecisionError> {
        let nonsense = || DecisionError::Nonsense {
            module: self.name().to_owned(),
            answer,
        };
        let mut words = [0; (HEAD - VERDICT) * 8];
        let at = Offset(block.wrapping_add(VERDICT as u32 * 8));
        self.domain.read(at, &mut words).map_err(|_| nonsense())?;
        let word = |n: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&words[n * 8..][..8]);
            u64::from_le_bytes(bytes)
        };
        let [value, bytes, length, reason] = [0, 1, 2, 3].map(word);
        match answer {
            EMULATE => {
                let room = match question.call {
                    Asked::SystemCall(request) => request.room,
                    Asked::Service { .. } => 0,
                };
                let length = usize::try_from(length).unwrap_or(usize::MAX).min(room);
                let bytes = match length {
                    0 => Vec::new(),
                    _ => self
                        .domain
                        .read_vec(Offset(bytes as u32), length)
                        .map_err(|_| nonsense())?,
                };
                Ok(Verdict::Emulate(value as i64, bytes))
            }
            KILL => {
                let reason = match reason as u32 {
                    0 => Ok(format!("the policy module `{}` says no", self.name())),
                    offset => self.domain.read_c_string(Offset(offset), REASON),
                };
                reason.map(Verdict::Kill).map_err(|_| nonsense())
            }
            _ => Err(nonsense()),
        }
    }
}

/// Two numbers of 32 bits.
fn pair(low: usize, high: usize) -> u64 {
    low as u32 as u64 | (high as u64) << 32
}

/// `texts` are the domain's name and the service's.
fn of_service(
    question: &Question<'_>,
    number: usize,
    integers: &[u64],
    floats: &[u64],
    texts: &[u8],
) -> [u64; HEAD] {
    let mut head = [0; HEAD];
    head[0] = pair(HEAD * 8 + texts.len(), SERVICE as usize);
    head[1] = number as u64;
    head[2..2 + integers.len()].copy_from_slice(integers);
    head[8..8 + floats.len()].copy_from_slice(floats);
    head[16] = pair(integers.len(), floats.len());
    head[17] = pair(HEAD * 8, HEAD * 8 + question.domain.len() + 1);
    head
}

fn of_system_call(question: &Question<'_>, request: &Request) -> ([u64; HEAD], Vec<u8>) {
    let mut texts = Vec::with_capacity(256);
    let mut text = |bytes: &[u8]| {
        let at = HEAD * 8 + texts.len();
        texts.extend_from_slice(bytes);
        texts.push(0);
        at
    };
    let name = SYSTEM_CALLS.binary_search_by_key(&request.number, |c| c.number);
    let domain = text(question.domain.as_bytes());
    let name = text(name.map_or("", |place| SYSTEM_CALLS[place].name).as_bytes());
    let paths = request.call.paths().map(|path| path.map_or(0, &mut text));
    let mut head = [0; HEAD];
    head[0] = pair(HEAD * 8 + texts.len(), SYSTEM_CALL as usize);
    head[1] = request.number as u64;
    head[2..7].copy_from_slice(&request.words);
    head[16] = pair(request.words.len(), 0);
    head[17] = pair(domain, name);
    head[18] = pair(paths[0], paths[1]);
    head[HEAD - 1] = request.room as u64;
    (head, texts)
}
