//! Where packets come from: a mapped file, a pipe, or a ring.

use crate::arriving::Arriving;
use crate::error::SourceError;
use crate::mapped::Mapped;
use crate::packet::{Counters, Next, PacketRef};
use crate::ring::{Live, Ring, Sender};
use postern::{Domain, ShareError};
use postern_filter::capture::{Bytes, Capture};
use postern_filter::set::Set;
use postern_filter::{Filter, Link};
use std::io;
use std::path::Path;

enum Backend {
    File(Capture<Mapped>),
    Stream(Capture<Arriving>),
    Ring(Ring),
}

/// A source of packets.
pub struct Source {
    backend: Backend,
    received: u64,
}

impl Source {
    /// The packets of a capture file, pcap or pcapng, which is mapped and not copied; of a pipe or
    /// the like as they arrive.
    ///
    /// # Errors
    /// It cannot be opened, or is no capture of packets that filters know.
    pub fn file(path: &Path) -> Result<Source, SourceError> {
        if Mapped::suits(path) {
            return Source::mapped(path, None);
        }
        let file = std::fs::File::open(path);
        let file = file.map_err(|error| SourceError::opening(path, error))?;
        Source::stream(file)
    }

    /// As [`Source::file`] with at most so many bytes mapped at a time, of a file that can be
    /// mapped.
    ///
    /// # Errors
    /// As there.
    pub fn mapped(path: &Path, piece: Option<usize>) -> Result<Source, SourceError> {
        let mut mapped = Mapped::open(path)?;
        if let Some(bytes) = piece {
            mapped.pieces(bytes);
        }
        Ok(Source::of(Backend::File(Capture::new(mapped)?)))
    }

    /// The packets of a capture that arrives, such as the output of another program.
    ///
    /// # Errors
    /// It is no capture of packets that filters know, or cannot be read.
    pub fn stream(from: impl io::Read + Send + 'static) -> Result<Source, SourceError> {
        let mut arriving = Arriving::new(Box::new(from))?;
        // What cannot be read at all is no bad format.
        arriving.holds(0..1);
        if let Some(failure) = arriving.failure() {
            return Err(failure);
        }
        Ok(Source::of(Backend::Stream(Capture::new(arriving)?)))
    }

    /// The packets of an interface, from now on.
    ///
    /// # Errors
    /// There is no such interface, filters do not know its packets, or the process may not capture.
    pub fn live(live: &Live) -> Result<Source, SourceError> {
        Ok(Source::of(Backend::Ring(Ring::open(live)?)))
    }

    fn of(backend: Backend) -> Source {
        Source {
            backend,
            received: 0,
        }
    }

    /// Maps the source's packets into a domain's window, read-only.
    ///
    /// # Errors
    /// The domain has no room for them.
    pub fn watch(&mut self, domain: &Domain) -> Result<(), ShareError> {
        match &mut self.backend {
            Backend::File(capture) => capture.file().watch(domain),
            Backend::Stream(capture) => capture.file().watch(domain),
            Backend::Ring(ring) => ring.watch(domain),
        }
    }

    /// Lets the kernel leave out packets of an interface that the filter does not accept, before it
    /// copies them. What comes is to be judged all the same: the kernel's filter may be coarser. Of
    /// a file it does nothing.
    pub fn only(&mut self, filter: &Filter) {
        if let Backend::Ring(ring) = &self.backend {
            ring.restrict(|gate, hardware, tags| gate.filter(hardware, tags, filter));
        }
    }

    /// As [`Source::only`], with packets that any filter of a set accepts.
    pub fn only_any_of(&mut self, set: &Set) {
        if let Backend::Ring(ring) = &self.backend {
            ring.restrict(|gate, hardware, tags| gate.set(hardware, tags, set));
        }
    }

    /// The next packet. The one before is not to be touched any more.
    ///
    /// # Errors
    /// The file is damaged here (what was readable was given), or the interface is gone.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Next, SourceError> {
        let (found, at, failure) = match &mut self.backend {
            Backend::Ring(ring) => return ring.next(),
            Backend::File(capture) => {
                let found = capture.next();
                let start = found.as_ref().and_then(|found| found.as_ref().ok());
                let at = start.and_then(|packet| capture.file().offset(packet.bytes.start));
                (found, at, capture.file().failure())
            }
            Backend::Stream(capture) => {
                let found = capture.next();
                let start = found.as_ref().and_then(|found| found.as_ref().ok());
                let at = start.and_then(|packet| capture.file().offset(packet.bytes.start));
                (found, at, capture.file().failure())
            }
        };
        if let Some(failure) = failure {
            return Err(failure);
        }
        let Some(packet) = found.transpose()? else {
            return Ok(Next::End);
        };
        let at = at.ok_or(SourceError::Ring("a packet that is not mapped"))?;
        self.received += 1;
        Ok(Next::Packet(PacketRef {
            at,
            captured: packet.bytes.len() as u32,
            wire: packet.wire,
            time: packet.time,
            origin: packet.origin,
        }))
    }

    /// The name of the interface that the packet passed; empty where a file does not say.
    pub fn interface(&mut self, seen: &PacketRef) -> &str {
        let number = seen.origin.interface;
        let name = match &mut self.backend {
            Backend::File(capture) => capture.interface(number),
            Backend::Stream(capture) => capture.interface(number),
            Backend::Ring(ring) => ring.interface(number),
        };
        name.unwrap_or_default()
    }

    /// The interfaces that packets come from, as far as they are known now: of `any` all that the
    /// system has, of a file those that it has described so far.
    pub fn interfaces(&self) -> &[String] {
        match &self.backend {
            Backend::File(capture) => capture.interfaces(),
            Backend::Stream(capture) => capture.interfaces(),
            Backend::Ring(ring) => ring.interfaces(),
        }
    }

    /// Whether a packet's interface does not go without saying: of `any`, and of a file that has
    /// described more than one.
    pub fn is_mixed(&self) -> bool {
        match &self.backend {
            Backend::Ring(ring) => ring.is_mixed(),
            _ => self.interfaces().len() > 1,
        }
    }

    /// Copies a packet's bytes, as far as they were captured.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read(&mut self, seen: &PacketRef, into: &mut Vec<u8>) -> Result<(), SourceError> {
        into.resize(seen.captured as usize, 0);
        self.copy(seen, into)
    }

    /// Copies as many of a packet's bytes as there is room for, from the first on.
    ///
    /// # Errors
    /// They are not all there: the file was cut short, or another packet was asked for.
    pub fn copy(&mut self, seen: &PacketRef, to: &mut [u8]) -> Result<(), SourceError> {
        match &mut self.backend {
            Backend::File(capture) => capture.file().read(seen.at, to),
            Backend::Stream(capture) => capture.file().read(seen.at, to),
            Backend::Ring(ring) => ring.read(seen, to),
        }
    }

    /// What was counted so far.
    pub fn counters(&mut self) -> Counters {
        match &mut self.backend {
            Backend::Ring(ring) => ring.counters(),
            _ => Counters {
                received: self.received,
                dropped: 0,
            },
        }
    }

    /// What packets begin with, unless they say something else themselves
    /// ([`postern_filter::capture::Origin`]): those of `any`, and of a pcapng file with several
    /// interfaces.
    pub fn link(&self) -> Link {
        match &self.backend {
            Backend::File(capture) => capture.link(),
            Backend::Stream(capture) => capture.link(),
            Backend::Ring(ring) => ring.link(),
        }
    }

    /// Whether no packet's time is finer than a microsecond: of a pcap file that says so, of a
    /// pcapng file as far as it has described its interfaces. Those of live interfaces are in
    /// nanoseconds.
    pub fn is_micro(&self) -> bool {
        match &self.backend {
            Backend::File(capture) => capture.is_micro(),
            Backend::Stream(capture) => capture.is_micro(),
            Backend::Ring(_) => false,
        }
    }

    /// Bytes read so far and in all, of a file.
    pub fn progress(&mut self) -> Option<(u64, u64)> {
        match &mut self.backend {
            Backend::File(capture) => {
                let at = capture.reached() as u64;
                Some((at, capture.file().size() as u64))
            }
            _ => None,
        }
    }

    /// Sends by the interface, or the interfaces, if the source is live.
    pub fn sender(&self) -> Option<Sender> {
        match &self.backend {
            Backend::Ring(ring) => Some(ring.sender()),
            _ => None,
        }
    }
}
