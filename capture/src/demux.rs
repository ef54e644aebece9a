//! One stream of packets for many consumers. A set of filters, compiled to one program in a domain
//! of its own, says who gets a packet where it lies; only consumers that are files or sockets have
//! it copied.

use crate::error::SourceError;
use crate::filter::ExtensionError;
use crate::handler::Handler;
use crate::packet::PacketRef;
use crate::program::ProgramError;
use crate::ring::Sender;
use crate::rules::{Consumer, Rules, Target};
use crate::socket::SocketSink;
use crate::source::Source;
use crate::writer::{Format, Writer};
use postern::{CallError, Image};
use postern_filter::Link;
use postern_filter::classifier::{Classifier, ClassifierError};
use postern_filter::set::{Claim, Id, Scratch, SetError};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why packets cannot be spread.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemuxError {
    /// A consumer would get packets of another one.
    #[error(
        "consumer `{name}` could take packets of `{other}`, which belongs to `{owner}`: lower its priority, or give it `may_steal`"
    )]
    Steals {
        /// Who.
        name: String,
        /// Whose.
        other: String,
        /// Whose they both are not.
        owner: String,
    },
    /// The set takes no more.
    #[error(transparent)]
    Claim(SetError),
    /// A file or socket cannot be used.
    #[error("consumer `{name}`: cannot write {}: {error}", path.display())]
    Output {
        /// Which.
        name: String,
        /// Where its packets go.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A handler's source or file cannot be used.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A handler does not become a domain, or has no room for packets.
    #[error(transparent)]
    Extension(#[from] ExtensionError),
    /// The set does not become a program, or that failed.
    #[error(transparent)]
    Set(#[from] ClassifierError),
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// What was counted of a consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that it was given.
    pub packets: u64,
    /// Their bytes, as far as they were captured.
    pub bytes: u64,
    /// Packets that a socket did not take.
    pub dropped: u64,
    /// Frames that a handler answered with.
    pub answers: u64,
    /// Faults of a handler.
    pub faults: u64,
}

enum Sink {
    File(Writer),
    Socket(SocketSink),
    Handler(Handler),
}

struct Output {
    name: String,
    path: PathBuf,
    sink: Sink,
    tally: Tally,
}

/// The set of a demultiplexer, without outputs.
pub struct ConsumerSet {
    classifier: Classifier,
    numbers: BTreeMap<Id, usize>,
    scratch: Scratch,
}

/// A demultiplexer at work.
pub struct Demux {
    set: ConsumerSet,
    outputs: Vec<Output>,
    sender: Option<Sender>,
    /// What packets begin with that the filters are for.
    link: Link,
    everybody: bool,
    bytes: Vec<u8>,
    unclaimed: u64,
}

impl ConsumerSet {
    /// A set of the consumers' filters.
    ///
    /// # Errors
    /// A consumer would get packets of another owner's, or the set does not become a program.
    pub fn new(consumers: &[Consumer]) -> Result<ConsumerSet, DemuxError> {
        let mut owners = BTreeMap::new();
        let mut numbers: BTreeMap<Id, usize> = BTreeMap::new();
        let mut classifier = Classifier::new();
        classifier.hold(true);
        for (number, consumer) in consumers.iter().enumerate() {
            let next = owners.len() as u32;
            let owner = *owners.entry(&consumer.owner).or_insert(next);
            let claim = Claim {
                owner,
                priority: consumer.priority,
                may_steal: consumer.may_steal,
            };
            let inserted = classifier.insert(&consumer.filter, claim);
            let id = inserted.map_err(|error| match error {
                SetError::Steals { id, .. } => {
                    let other = numbers.get(&id).and_then(|other| consumers.get(*other));
                    DemuxError::Steals {
                        name: consumer.name.clone(),
                        other: other.map(|other| other.name.clone()).unwrap_or_default(),
                        owner: other.map(|other| other.owner.clone()).unwrap_or_default(),
                    }
                }
                other => DemuxError::Claim(other),
            })?;
            numbers.insert(id, number);
        }
        classifier.hold(false);
        classifier.ready()?;
        Ok(ConsumerSet {
            classifier,
            numbers,
            scratch: Scratch::default(),
        })
    }

    /// Who gets a packet that lies in the source's area.
    fn first(&mut self, seen: &PacketRef) -> Result<Option<usize>, ClassifierError> {
        let ready = self.classifier.ready()?;
        let id = ready.find_at(seen.at, seen.wire, seen.captured)?;
        Ok(id.and_then(|id| self.numbers.get(&id).copied()))
    }

    /// All who want a packet, the one who gets it first.
    fn all(&mut self, bytes: &[u8], wire: u32) -> Vec<usize> {
        let ids = self.classifier.set().all(bytes, wire, &mut self.scratch);
        let numbers = ids.iter().filter_map(|id| self.numbers.get(id).copied());
        numbers.collect()
    }
}

fn unwritten(name: &str, path: &Path, error: io::Error) -> DemuxError {
    DemuxError::Output {
        name: name.to_owned(),
        path: path.to_owned(),
        error,
    }
}

impl std::fmt::Display for ConsumerSet {
    /// The decision program of all filters.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.classifier.fmt(f)
    }
}

impl Demux {
    /// As [`Demux::with_loader`]; handlers may be source code.
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "compile")]
    pub fn new(rules: &Rules, source: &mut Source, everybody: bool) -> Result<Demux, DemuxError> {
        Demux::with_loader(rules, source, everybody, crate::load)
    }

    /// Opens the consumers' files and sockets and loads their handlers with `load`; every packet of
    /// `source` may be spread then. The rules' filters are compiled for its link
    /// ([`Source::link`]); nobody gets packets of another. With `everybody` all who want a packet
    /// get it, not only the first.
    ///
    /// # Errors
    /// A consumer would get packets of another owner's, or cannot be used.
    pub fn with_loader(
        rules: &Rules,
        source: &mut Source,
        everybody: bool,
        load: impl Fn(&Path) -> Result<Image, ProgramError>,
    ) -> Result<Demux, DemuxError> {
        let mut set = ConsumerSet::new(&rules.consumers)?;
        let ready = set.classifier.ready()?;
        source.watch(ready.domain()).map_err(ExtensionError::from)?;
        source.only_any_of(set.classifier.set());
        let mut outputs = Vec::new();
        for consumer in &rules.consumers {
            let (Target::File(path) | Target::Socket(path) | Target::Handler(path)) =
                &consumer.target;
            let failed = |error| unwritten(&consumer.name, path, error);
            let sink = match &consumer.target {
                Target::File(path) => {
                    let format = match source.is_micro() {
                        true => Format::of(path).of_micro(),
                        false => Format::of(path),
                    };
                    let writer =
                        Writer::create_of(path, format, source.link(), source.interfaces());
                    Sink::File(writer.map_err(failed)?)
                }
                Target::Socket(path) => {
                    let outlet = SocketSink::new(path, consumer.queue, consumer.block);
                    Sink::Socket(outlet.map_err(failed)?)
                }
                Target::Handler(path) => {
                    let handler = Handler::new(&load(path)?, &consumer.name, None)?;
                    handler.watch(source)?;
                    Sink::Handler(handler)
                }
            };
            outputs.push(Output {
                name: consumer.name.clone(),
                path: path.clone(),
                sink,
                tally: Tally::default(),
            });
        }
        Ok(Demux {
            set,
            outputs,
            sender: source.sender(),
            link: source.link(),
            everybody,
            bytes: Vec::new(),
            unclaimed: 0,
        })
    }

    /// Gives a packet to who wants it. A handler that does not take it leaves it to the next.
    /// `faulted` is told of faults of handlers, with their consumer and how many it had.
    ///
    /// # Errors
    /// A file cannot be written, or the packet is not there any more.
    pub fn packet(
        &mut self,
        source: &mut Source,
        seen: &PacketRef,
        faulted: &mut dyn FnMut(&str, u64, &CallError),
    ) -> Result<(), DemuxError> {
        self.bytes.clear();
        if seen.origin.link != self.link {
            self.unclaimed += 1;
            return Ok(());
        }
        let first = match self.set.first(seen) {
            Ok(first) => first,
            Err(error) => {
                // If the packet is gone that is no fault of the set's.
                self.copy(source, seen)?;
                return Err(error.into());
            }
        };
        let Some(first) = first else {
            self.unclaimed += 1;
            return Ok(());
        };
        let done = self.give(first, source, seen, faulted)?;
        if done && !self.everybody {
            return Ok(());
        }
        self.copy(source, seen)?;
        for number in self.set.all(&self.bytes, seen.wire) {
            if number == first {
                continue;
            }
            if self.give(number, source, seen, faulted)? && !self.everybody {
                return Ok(());
            }
        }
        if !self.everybody {
            self.unclaimed += 1;
        }
        Ok(())
    }

    fn copy(&mut self, source: &mut Source, seen: &PacketRef) -> Result<(), SourceError> {
        match self.bytes.len() == seen.captured as usize {
            true => Ok(()),
            false => source.read(seen, &mut self.bytes),
        }
    }

    /// Gives a packet to one consumer; whether it took it.
    fn give(
        &mut self,
        number: usize,
        source: &mut Source,
        seen: &PacketRef,
        faulted: &mut dyn FnMut(&str, u64, &CallError),
    ) -> Result<bool, DemuxError> {
        if !matches!(self.outputs.get(number), Some(output) if matches!(output.sink, Sink::Handler(_)))
        {
            self.copy(source, seen)?;
        }
        let Some(output) = self.outputs.get_mut(number) else {
            return Ok(false);
        };
        output.tally.packets += 1;
        output.tally.bytes += u64::from(seen.captured);
        match &mut output.sink {
            Sink::File(writer) => {
                writer.micro(source.is_micro());
                writer.origin(source.interface(seen), seen.origin.direction);
                let written = writer.packet(seen.time, &self.bytes, seen.wire);
                written.map_err(|error| unwritten(&output.name, &output.path, error))?;
                Ok(true)
            }
            Sink::Socket(outlet) => {
                outlet.packet(seen.time, &self.bytes, seen.wire);
                Ok(true)
            }
            Sink::Handler(handler) => match handler.run(seen) {
                Ok((taken, answers)) => {
                    for frame in answers.frames() {
                        let sender = self.sender.as_ref();
                        let sent = sender.is_some_and(|sender| sender.answer(seen, frame).is_ok());
                        output.tally.answers += u64::from(sent);
                    }
                    Ok(taken)
                }
                Err(error) => {
                    faulted(&output.name, handler.faults(), &error);
                    Ok(false)
                }
            },
        }
    }

    /// When no packet comes: files are brought up to date, and sockets get what waits for them.
    ///
    /// # Errors
    /// A file cannot be written; the others are up to date.
    pub fn idle(&mut self) -> Result<(), DemuxError> {
        self.settle(Writer::flush, SocketSink::drain)
    }

    /// The end: as [`Demux::idle`], and sockets have some time to take what waits for them.
    ///
    /// # Errors
    /// As there.
    pub fn finish(&mut self) -> Result<(), DemuxError> {
        self.settle(Writer::finish, SocketSink::finish)
    }

    /// Does this for each, whatever becomes of the others; the first error.
    fn settle(
        &mut self,
        file: fn(&mut Writer) -> io::Result<()>,
        socket: fn(&mut SocketSink),
    ) -> Result<(), DemuxError> {
        let mut first = Ok(());
        for output in &mut self.outputs {
            match &mut output.sink {
                Sink::File(writer) => {
                    let done = file(writer);
                    let done = done.map_err(|error| unwritten(&output.name, &output.path, error));
                    first = first.and(done);
                }
                Sink::Socket(outlet) => socket(outlet),
                Sink::Handler(_) => {}
            }
        }
        first
    }

    /// The set of the consumers' filters.
    pub fn set(&self) -> &ConsumerSet {
        &self.set
    }

    /// Packets that nobody wanted or took.
    pub fn unclaimed(&self) -> u64 {
        self.unclaimed
    }

    /// What was counted of each consumer, in the order of the rules.
    pub fn tallies(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.outputs.iter().map(|output| {
            let mut tally = output.tally;
            match &output.sink {
                Sink::Socket(outlet) => tally.dropped = outlet.dropped,
                Sink::Handler(handler) => tally.faults = handler.faults(),
                Sink::File(_) => {}
            }
            (&*output.name, tally)
        })
    }
}
