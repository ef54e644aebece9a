//! Where packets come from: a mapped file, a pipe, or a ring.

use crate::arriving::Arriving;
use crate::mapped::Mapped;
use crate::ring::{Live, Ring, Sender};
use postern::{Domain, MemoryError, Offset, ShareError};
use postern_filter::capture::{Bytes, Capture, CaptureError, Origin};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why packets cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file cannot be opened.
    #[error("cannot read {}: {}", path.display(), error)]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is no capture file, or damaged.
    #[error(transparent)]
    Format(#[from] CaptureError),
    /// The interface cannot be captured.
    #[error("cannot capture on {name}: {error}{}", hint(.error))]
    Interface {
        /// Its name.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// Frames of another link than Ethernet.
    #[error("{0} has no Ethernet frames (its hardware type is {1}); filters are for Ethernet")]
    Hardware(String, u16),
    /// Reading failed.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The bytes cannot be mapped.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// The packet is not there any more.
    #[error("{0}; a file that is read must not shrink meanwhile")]
    Gone(#[from] MemoryError),
    /// The file is shorter than it was when it was opened.
    #[error("the file was cut short while it was read; what follows is lost")]
    Shrunk,
    /// The ring is not as the kernel leaves it.
    #[error("the ring is damaged: {0}")]
    Ring(&'static str),
}

impl SourceError {
    pub(crate) fn opening(path: &Path, error: io::Error) -> SourceError {
        SourceError::Open {
            path: path.to_owned(),
            error,
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "; it needs CAP_NET_RAW: run as root, or `setcap cap_net_raw+ep` on the program"
        }
        Some(libc::ENODEV) => "; `postern filter -D` lists the interfaces",
        _ => "",
    }
}

/// A packet, where it lies in the windows of those who watch the source. It is there until the next one is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its first byte.
    pub at: Offset,
    /// Bytes that are there.
    pub captured: u32,
    /// Its length on the wire.
    pub wire: u32,
    /// When it was captured, in nanoseconds since 1970.
    pub time: u64,
    /// By which interface it came or went, as far as the source says.
    pub origin: Origin,
}

/// What a source gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A packet.
    Packet(Seen),
    /// None came for a while; ask again.
    Idle,
    /// There are no more.
    End,
}

/// What a source counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that it gave.
    pub received: u64,
    /// Packets for which the kernel found no room in the ring.
    pub dropped: u64,
}

enum Kind {
    File(Capture<Mapped>),
    Stream(Capture<Arriving>),
    Ring(Ring),
}

/// A source of packets.
pub struct Source {
    kind: Kind,
    received: u64,
}

impl Source {
    /// The packets of a capture file, pcap or pcapng, which is mapped and not copied; of a pipe or the like as they arrive.
    ///
    /// # Errors
    /// It cannot be opened, or is no capture of Ethernet frames.
    pub fn file(path: &Path) -> Result<Source, SourceError> {
        if Mapped::suits(path) {
            return Source::mapped(path, None);
        }
        let file = std::fs::File::open(path);
        let file = file.map_err(|error| SourceError::opening(path, error))?;
        Source::stream(file)
    }

    /// As [`Source::file`] with at most so many bytes mapped at a time, of a file that can be mapped.
    ///
    /// # Errors
    /// As there.
    pub fn mapped(path: &Path, piece: Option<usize>) -> Result<Source, SourceError> {
        let mut mapped = Mapped::open(path)?;
        if let Some(bytes) = piece {
            mapped.pieces(bytes);
        }
        Ok(Source::of(Kind::File(Capture::new(mapped)?)))
    }

    /// The packets of a capture that arrives, such as the output of another program.
    ///
    /// # Errors
    /// It is no capture of Ethernet frames, or cannot be read.
    pub fn stream(from: impl io::Read + Send + 'static) -> Result<Source, SourceError> {
        let mut arriving = Arriving::new(Box::new(from))?;
        // What cannot be read at all is no bad format.
        arriving.holds(0..1);
        if let Some(failure) = arriving.failure() {
            return Err(failure);
        }
        Ok(Source::of(Kind::Stream(Capture::new(arriving)?)))
    }

    /// The packets of an interface, from now on.
    ///
    /// # Errors
    /// There is no such interface, it has no Ethernet frames, or the process may not capture.
    pub fn live(live: &Live) -> Result<Source, SourceError> {
        Ok(Source::of(Kind::Ring(Ring::open(live)?)))
    }

    fn of(kind: Kind) -> Source {
        Source { kind, received: 0 }
    }

    /// Maps the source's packets into a domain's window, read-only.
    ///
    /// # Errors
    /// The domain has no room for them.
    pub fn watch(&mut self, domain: &Domain) -> Result<(), ShareError> {
        match &mut self.kind {
            Kind::File(capture) => capture.file().watch(domain),
            Kind::Stream(capture) => capture.file().watch(domain),
            Kind::Ring(ring) => ring.watch(domain),
        }
    }

    /// The next packet. The one before is not to be touched any more.
    ///
    /// # Errors
    /// The file is damaged here (what was readable was given), or the interface is gone.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Next, SourceError> {
        let (found, at, failure) = match &mut self.kind {
            Kind::Ring(ring) => return ring.next(),
            Kind::File(capture) => {
                let found = capture.next();
                let start = found.as_ref().and_then(|found| found.as_ref().ok());
                let at = start.and_then(|packet| capture.file().offset(packet.bytes.start));
                (found, at, capture.file().failure())
            }
            Kind::Stream(capture) => {
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
        Ok(Next::Packet(Seen {
            at,
            captured: packet.bytes.len() as u32,
            wire: packet.wire,
            time: packet.time,
            origin: packet.origin,
        }))
    }

    /// The name of the interface that the packet passed; empty where a file does not say.
    pub fn interface(&mut self, seen: &Seen) -> &str {
        let number = seen.origin.interface;
        let name = match &mut self.kind {
            Kind::File(capture) => capture.interface(number),
            Kind::Stream(capture) => capture.interface(number),
            Kind::Ring(ring) => ring.interface(number),
        };
        name.unwrap_or_default()
    }

    /// The interfaces that packets come from, as far as they are known now: of `any` all that the system has, of a file those that it
    /// has described so far.
    pub fn interfaces(&self) -> &[String] {
        match &self.kind {
            Kind::File(capture) => capture.interfaces(),
            Kind::Stream(capture) => capture.interfaces(),
            Kind::Ring(ring) => ring.interfaces(),
        }
    }

    /// Whether a packet's interface does not go without saying: of `any`, and of a file that has described more than one.
    pub fn is_mixed(&self) -> bool {
        match &self.kind {
            Kind::Ring(ring) => ring.is_mixed(),
            _ => self.interfaces().len() > 1,
        }
    }

    /// Copies a packet's bytes, as far as they were captured.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read(&mut self, seen: &Seen, into: &mut Vec<u8>) -> Result<(), SourceError> {
        into.resize(seen.captured as usize, 0);
        self.copy(seen, into)
    }

    /// Copies as many of a packet's bytes as there is room for, from the first on.
    ///
    /// # Errors
    /// They are not all there: the file was cut short, or another packet was asked for.
    pub fn copy(&mut self, seen: &Seen, to: &mut [u8]) -> Result<(), SourceError> {
        match &mut self.kind {
            Kind::File(capture) => capture.file().read(seen.at, to),
            Kind::Stream(capture) => capture.file().read(seen.at, to),
            Kind::Ring(ring) => ring.read(seen, to),
        }
    }

    /// What was counted so far.
    pub fn counters(&mut self) -> Counters {
        match &mut self.kind {
            Kind::Ring(ring) => ring.counters(),
            _ => Counters {
                received: self.received,
                dropped: 0,
            },
        }
    }

    /// Bytes read so far and in all, of a file.
    pub fn progress(&mut self) -> Option<(u64, u64)> {
        match &mut self.kind {
            Kind::File(capture) => {
                let at = capture.reached() as u64;
                Some((at, capture.file().size() as u64))
            }
            _ => None,
        }
    }

    /// Sends by the interface, or the interfaces, if the source is live.
    pub fn sender(&self) -> Option<Sender> {
        match &self.kind {
            Kind::Ring(ring) => Some(ring.sender()),
            _ => None,
        }
    }
}
