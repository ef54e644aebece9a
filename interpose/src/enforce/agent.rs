//! The agent in the supervisor: an extension in a domain of this process's, and what it may call.
//!
//! Its services are those of agents in programs, but they answer from the memory of the thread
//! whose call it is asked about, and first of all from what was copied from there: what it is told
//! of a path or an address is what is used. A system call of its own is one of a few that read.

use super::caller::Caller;
use postern::{CallError, Domain, Func, Image, Offset, with_state};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, pread, write};
use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};
use std::cell::Cell;
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A call as the agent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Linux's number.
    pub number: u64,
    /// Its words.
    pub arguments: [u64; 6],
}

/// Bytes of a record: number, six words, result, note.
const RECORD: usize = 72;

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call is made.
    Pass,
    /// So is it, and the agent is called again behind it.
    PassAfter,
    /// It has this result.
    Answer(i64),
}

/// Where the agent finds copies, and where it finds itself: no addresses of programs.
const COPIES: u64 = 0xffff_8000_0000_0000;
const COPY: u64 = 64 << 10;
const OWN: u64 = 0xffff_9000_0000_0000;

/// Bytes that one service copies, at most.
const MOST: u32 = 1 << 20;

/// What was copied from a program for one question.
#[derive(Debug, Default)]
pub struct Copies(Vec<Vec<u8>>);

impl Copies {
    /// Adds one, behind which there are zeros: where the agent finds it.
    pub fn add(&mut self, bytes: Vec<u8>) -> u64 {
        self.0.push(bytes);
        COPIES + (self.0.len() as u64 - 1) * COPY
    }

    fn read(&self, from: u64, bytes: usize) -> Option<Vec<u8>> {
        let at = from
            .checked_sub(COPIES)
            .filter(|at| from < OWN && *at < OWN)?;
        let copy = self.0.get((at / COPY) as usize)?;
        let start = (at % COPY) as usize;
        let mut all = vec![0; bytes];
        let there = copy.get(start..).unwrap_or(&[]);
        let there = &there[..there.len().min(bytes)];
        all[..there.len()].copy_from_slice(there);
        (start + bytes <= COPY as usize).then_some(all)
    }
}

/// What services know of the question.
struct Question {
    caller: Caller,
    copies: Copies,
    process: Cell<u32>,
}

impl Question {
    fn process(&self) -> u32 {
        if self.process.get() == 0 {
            let status = self.caller.status();
            self.process.set(status.map_or(0, |status| status.process));
        }
        self.process.get()
    }
}

/// The agent.
pub struct Agent {
    domain: Domain,
    ask: Func<fn(Offset) -> i32>,
    after: Option<Func<fn(Offset)>>,
    output: Arc<OwnedFd>,
    failed: AtomicBool,
}

/// A record for one thread's questions.
pub struct Seat(Offset);

/// What all services have.
struct Host {
    arguments: Vec<Vec<u8>>,
    output: Arc<OwnedFd>,
    files: Mutex<HashMap<i32, OwnedFd>>,
}

impl Agent {
    /// Loads one. `Err` says why not.
    pub fn load(
        image: &[u8],
        arguments: Vec<Vec<u8>>,
        output: OwnedFd,
        deadline: Option<Duration>,
    ) -> Result<Agent, String> {
        let image = Image::from_bytes(image).map_err(|error| error.to_string())?;
        let output = Arc::new(output);
        let host = Arc::new(Host {
            arguments,
            output: output.clone(),
            files: Mutex::default(),
        });
        let domain = build(&image, &host, deadline)?;
        if domain
            .func_unchecked::<fn(u64) -> Offset>("malloc")
            .is_err()
        {
            let why = "it has no malloc, from which --enforce has records: link it by postern cc, \
                       without -nostdlib";
            return Err(why.to_owned());
        }
        let ask = domain.func("pt_agent");
        Ok(Agent {
            ask: ask.map_err(|error| error.to_string())?,
            after: domain.func("pt_agent_after").ok(),
            output,
            failed: AtomicBool::new(false),
            domain,
        })
    }

    /// Before the first call. Whether it goes on.
    pub fn begin(&self) -> bool {
        if let Err(error) = self.run("pt_agent_begin") {
            self.fail(&error.to_string());
        }
        !self.has_failed()
    }

    /// The last process has ended.
    pub fn last_words(&self) {
        if !self.has_failed()
            && let Err(error) = self.run("pt_agent_end")
        {
            self.fail(&error.to_string());
        }
    }

    fn run(&self, name: &str) -> Result<(), CallError> {
        match self.domain.func::<fn()>(name) {
            Ok(function) => function.call(),
            Err(_) => Ok(()),
        }
    }

    /// Room for a thread's questions.
    pub fn seat(&self) -> Result<Seat, String> {
        let at = self.domain.alloc(RECORD);
        at.map(Seat).map_err(|error| error.to_string())
    }

    /// Whether it has failed: it answers nothing any more.
    pub fn has_failed(&self) -> bool {
        self.failed.load(SeqCst)
    }

    fn fail(&self, why: &str) {
        if !self.failed.swap(true, SeqCst) {
            let line = format!("postern: the agent failed: {why}\n");
            let _ = write(&*self.output, line.as_bytes());
        }
    }

    /// Asks about a call. One that fails, or would have other words made, is a refusal.
    pub fn ask(&self, seat: &Seat, caller: &Caller, asked: Asked, copies: Copies) -> Answer<'_> {
        let question = Rc::new(Question {
            caller: caller.clone(),
            copies,
            process: Cell::new(0),
        });
        let mut answer = Answer {
            agent: self,
            question,
            at: seat.0,
            verdict: Verdict::Answer(-i64::from(libc::EPERM)),
        };
        match answer.decide(asked) {
            Ok(verdict) => answer.verdict = verdict,
            Err(why) => self.fail(&why),
        }
        answer
    }
}

/// What it said, and what it is told behind the call.
pub struct Answer<'a> {
    agent: &'a Agent,
    question: Rc<Question>,
    at: Offset,
    /// The verdict.
    pub verdict: Verdict,
}

impl Answer<'_> {
    fn decide(&self, asked: Asked) -> Result<Verdict, String> {
        const PASS: i32 = 0;
        const ANSWER: i32 = 1;
        const PASS_AFTER: i32 = 2;
        let domain = &self.agent.domain;
        let mut words = [0_u64; RECORD / 8];
        words[0] = asked.number;
        words[1..7].copy_from_slice(&asked.arguments);
        let bytes = words.map(u64::to_le_bytes);
        let wrong = |error: postern::MemoryError| error.to_string();
        domain.write(self.at, bytes.as_flattened()).map_err(wrong)?;
        let ask = || self.agent.ask.call(self.at);
        let said = with_state(self.question.clone(), ask).map_err(|error| error.to_string())?;
        let mut bytes = [0; RECORD];
        domain.read(self.at, &mut bytes).map_err(wrong)?;
        let same = bytes[..56] == *words.map(u64::to_le_bytes)[..7].as_flattened();
        let result = i64::from_le_bytes(bytes[56..64].try_into().map_err(|_| "a record")?);
        Ok(match said {
            ANSWER => Verdict::Answer(result),
            PASS if same => Verdict::Pass,
            PASS_AFTER if same && self.agent.after.is_some() => Verdict::PassAfter,
            PASS | PASS_AFTER if !same => Verdict::Answer(-i64::from(libc::EPERM)),
            _ => return Err("it said none of what it may say".into()),
        })
    }

    /// Calls it behind the call: the result that the program finds.
    pub fn after(&self, result: i64) -> i64 {
        let domain = &self.agent.domain;
        let place = Offset(self.at.0 + 56);
        let Some(after) = &self.agent.after else {
            return result;
        };
        let mut bytes = result.to_le_bytes();
        let told = domain.write(place, &bytes);
        let called = with_state(self.question.clone(), || after.call(self.at));
        match (told, called, domain.read(place, &mut bytes)) {
            (Ok(()), Ok(()), Ok(())) => i64::from_le_bytes(bytes),
            (_, Err(error), _) => {
                self.agent.fail(&error.to_string());
                -i64::from(libc::EPERM)
            }
            _ => result,
        }
    }
}

fn code(result: Result<(), Errno>) -> i32 {
    result.map_or_else(|error| -error.raw_os_error(), |()| 0)
}

fn build(image: &Image, host: &Arc<Host>, deadline: Option<Duration>) -> Result<Domain, String> {
    let of = |caller: &postern::Caller<'_>| caller.state::<Question>();
    let (print, told, calls) = (host.clone(), host.clone(), host.clone());
    let builder = Domain::builder(image)
        .service(
            "pt_program_read",
            move |by: &postern::Caller<'_>, from: u64, to: Offset, bytes: u32| {
                let Some(question) = of(by) else {
                    return -libc::EFAULT;
                };
                if bytes > MOST {
                    return -libc::EINVAL;
                }
                let copy = match question.copies.read(from, bytes as usize) {
                    Some(copy) => copy,
                    None => {
                        let mut copy = vec![0; bytes as usize];
                        if let Err(error) = question.caller.read(from, &mut copy) {
                            return -error.raw_os_error();
                        }
                        copy
                    }
                };
                code(by.domain().write(to, &copy).map_err(|_| Errno::FAULT))
            },
        )
        .service(
            "pt_program_write",
            move |by: &postern::Caller<'_>, to: u64, from: Offset, bytes: u32| {
                let Some(question) = of(by) else {
                    return -libc::EFAULT;
                };
                if bytes > MOST {
                    return -libc::EINVAL;
                }
                let copy = by.domain().read_vec(from, bytes as usize);
                let copy = copy.map_err(|_| Errno::FAULT);
                code(copy.and_then(|copy| question.caller.write(to, &copy)))
            },
        )
        .service(
            "pt_print",
            move |by: &postern::Caller<'_>, from: Offset, bytes: u32| {
                if let Ok(text) = by.domain().read_vec(from, bytes.min(MOST) as usize) {
                    let _ = write(&*print.output, &text);
                }
            },
        )
        .service(
            "pt_argument",
            move |by: &postern::Caller<'_>, number: u32, to: Offset, room: u32| {
                let mut word = match told.arguments.get(number as usize) {
                    Some(word) => word.clone(),
                    None => return -1,
                };
                word.push(0);
                let fits = word.len() <= room as usize && by.domain().write(to, &word).is_ok();
                if fits { word.len() as i32 - 1 } else { -1 }
            },
        )
        .service("pt_process", move |by: &postern::Caller<'_>| {
            of(by).map_or_else(std::process::id, |question| question.process())
        })
        .service("pt_thread", move |by: &postern::Caller<'_>| {
            of(by).map_or_else(std::process::id, |question| question.caller.thread)
        })
        // A thread of the supervisor's has the lock then, also where the caller is gone.
        .service("pt_thread_lives", |_: &postern::Caller<'_>, _: u32| 1)
        .service("pt_address", |_: &postern::Caller<'_>, at: Offset| {
            OWN + u64::from(at.0)
        })
        .service(
            "pt_syscall",
            move |by: &postern::Caller<'_>, record: Offset| -> i64 {
                let mut bytes = [0; RECORD];
                if by.domain().read(record, &mut bytes).is_err() {
                    return -i64::from(libc::EFAULT);
                }
                let word = |at: usize| {
                    let word = bytes[8 * at..8 * at + 8].try_into();
                    word.map_or(0, u64::from_le_bytes)
                };
                let question = of(by);
                let made = calls.call(by, question.as_deref(), word(0), [1, 2, 3, 4].map(word));
                made.unwrap_or_else(|error| -i64::from(error.raw_os_error()))
            },
        );
    let builder = match deadline {
        Some(deadline) => builder.deadline(Some(deadline)),
        None => builder,
    };
    builder.build().map_err(|error| error.to_string())
}

impl Host {
    /// A system call of the agent's: it reads files, asks for the time and for its caller's name.
    fn call(
        &self,
        by: &postern::Caller<'_>,
        question: Option<&Question>,
        number: u64,
        [first, second, third, fourth]: [u64; 4],
    ) -> Result<i64, Errno> {
        const GET_NAME: u64 = 16;
        let own = |at: u64| {
            let at = at.checked_sub(OWN).and_then(|at| u32::try_from(at).ok());
            at.map(Offset).ok_or(Errno::FAULT)
        };
        let put = |at: u64, bytes: &[u8]| {
            let put = by.domain().write(own(at)?, bytes);
            put.map_err(|_| Errno::FAULT)
        };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        match number as i64 {
            libc::SYS_open if second & 3 == 0 => {
                let path = by.domain().read_c_bytes(own(first)?, super::caller::PATH);
                let path = path.map_err(|_| Errno::FAULT)?;
                let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
                let number = file.as_raw_fd();
                files.insert(number, file);
                Ok(number.into())
            }
            libc::SYS_pread64 => {
                let file = files.get(&(first as i32)).ok_or(Errno::BADF)?;
                let mut bytes = vec![0; third.min(MOST.into()) as usize];
                let got = pread(file, &mut bytes, fourth)?;
                put(second, &bytes[..got])?;
                Ok(got as i64)
            }
            libc::SYS_close => {
                let file = files.remove(&(first as i32));
                file.map(|_| 0).ok_or(Errno::BADF)
            }
            libc::SYS_clock_gettime => {
                let clock = match first {
                    0 => ClockId::Realtime,
                    1 => ClockId::Monotonic,
                    _ => return Err(Errno::INVAL),
                };
                let time = clock_gettime_dynamic(DynamicClockId::Known(clock))?;
                let words = [time.tv_sec, time.tv_nsec].map(i64::to_le_bytes);
                put(second, words.as_flattened())?;
                Ok(0)
            }
            libc::SYS_prctl if first == GET_NAME => {
                let name = question.ok_or(Errno::INVAL)?.caller.name()?;
                let mut bytes = [0; 16];
                let name = &name.trim_end().as_bytes()[..name.trim_end().len().min(15)];
                bytes[..name.len()].copy_from_slice(name);
                put(second, &bytes)?;
                Ok(0)
            }
            _ => Err(Errno::NOSYS),
        }
    }
}
