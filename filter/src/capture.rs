//! Capture files: packets out of pcap and pcapng, and the pieces of new ones.
//!
//! A file that is cut short or damaged gives every packet before the place, then an error that
//! names it. Every field is copied once and then believed or not, so that whoever changes the file
//! meanwhile changes nothing that was checked.

mod write;

pub use write::{
    pcap_header, pcap_header_micro, pcap_header_of, pcap_record, pcap_record_micro, pcapng_header,
    pcapng_interface, pcapng_packet,
};

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::link::Link;

/// Why a capture file cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {problem}")]
pub struct CaptureError {
    /// Position in the file.
    pub at: usize,
    /// What is wrong there.
    pub problem: CaptureProblem,
}

/// What is wrong with a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureProblem {
    /// No known first bytes.
    #[error("this is neither a pcap nor a pcapng file")]
    Format,
    /// The first bytes of a compressed file.
    #[error("this is a compressed file: unpack it first, as in `{0} FILE | postern filter -r -`")]
    Compressed(&'static str),
    /// The file ends inside of a header or packet.
    #[error("the file ends in the middle of a record; it was cut short")]
    CutShort,
    /// A length that cannot be.
    #[error("a record of {0} bytes cannot be; the file is damaged here")]
    Length(u32),
    /// A block says its length twice, and differently.
    #[error("a block of {0} bytes says {1} at its end; the file is damaged here")]
    Lengths(u32, u32),
    /// Packets of a link that filters do not know.
    #[error("packets of link type {0}, which filters do not know")]
    Link(u32),
    /// A packet of an interface that was not described.
    #[error("a packet of interface {0}, which the file does not describe")]
    Interface(u32),
}

/// The largest packet that is believed.
const MAX_PACKET: u32 = 1 << 18;
/// The largest block of a pcapng file that is believed.
const MAX_BLOCK: u32 = 1 << 24;

/// Kinds of blocks of a pcapng file.
const SECTION: u32 = 0x0a0d_0d0a;
const DESCRIPTION: u32 = 1;
/// The packets of old files.
const OLD: u32 = 2;
const SIMPLE: u32 = 3;
const PACKET: u32 = 6;
/// Options: the end of them, an interface's name, units and first second of its times, and a
/// packet's flags.
const END: u16 = 0;
const NAME: u16 = 2;
const UNITS: u16 = 9;
const EPOCH: u16 = 14;
const FLAGS: u16 = 2;

/// How a packet passed its interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Nobody says.
    #[default]
    Unknown,
    /// It came in, for this machine.
    In,
    /// It came in, for all.
    Broadcast,
    /// It came in, for many.
    Multicast,
    /// It came in, for another machine.
    Other,
    /// It went out.
    Out,
}

impl Direction {
    /// As pcapng writes it: two bits of direction, three of reception.
    fn flags(self) -> u32 {
        match self {
            Direction::Unknown => 0,
            Direction::In => 1 | 1 << 2,
            Direction::Multicast => 1 | 2 << 2,
            Direction::Broadcast => 1 | 3 << 2,
            Direction::Other => 1 | 4 << 2,
            Direction::Out => 2,
        }
    }

    fn of(flags: u32) -> Direction {
        match (flags & 3, flags >> 2 & 7) {
            (2, _) => Direction::Out,
            (1, 2) => Direction::Multicast,
            (1, 3) => Direction::Broadcast,
            (1, 4) => Direction::Other,
            (1, _) => Direction::In,
            _ => Direction::Unknown,
        }
    }
}

/// Where a packet comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The number of its interface: in a pcapng file the place in the section, of a live capture
    /// the kernel's number; else 0.
    pub interface: u32,
    /// How it passed that.
    pub direction: Direction,
    /// What it begins with.
    pub link: Link,
}

/// A packet of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Where its captured bytes are in the file.
    pub bytes: Range<usize>,
    /// Its length on the wire.
    pub wire: u32,
    /// When it was captured, in nanoseconds since 1970.
    pub time: u64,
    /// Its interface, as far as the file says.
    pub origin: Origin,
}

/// An interface that a pcapng file describes.
#[derive(Clone, Copy, Debug)]
struct Interface {
    /// As the file says it.
    number: u16,
    link: Option<Link>,
    /// Bytes of a packet that are kept; 0 is all.
    snaplen: u32,
    /// Units of time per second.
    units: u64,
    /// Seconds that are added to every time.
    epoch: i64,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    /// With the length of a fraction of a second in nanoseconds.
    Pcap(u64),
    PcapNg,
}

/// Bytes that are a capture: in memory, in a mapped file, or still arriving.
pub trait Bytes {
    /// Whether these bytes exist; waits for those that are still arriving.
    fn holds(&mut self, range: Range<usize>) -> bool;
    /// Copies from `at`; false if not all of it exists.
    fn copy(&mut self, at: usize, to: &mut [u8]) -> bool;
}

impl<T: AsRef<[u8]> + ?Sized> Bytes for &T {
    fn holds(&mut self, range: Range<usize>) -> bool {
        self.as_ref().get(range).is_some()
    }
    fn copy(&mut self, at: usize, to: &mut [u8]) -> bool {
        let from = self
            .as_ref()
            .get(at..)
            .and_then(|rest| rest.get(..to.len()));
        from.map(|from| to.copy_from_slice(from)).is_some()
    }
}

/// The packets of a file, in order.
#[derive(Clone, Debug)]
pub struct Capture<B> {
    file: B,
    at: usize,
    big: bool,
    format: Format,
    /// Of pcapng: the interfaces of this section.
    interfaces: Vec<Interface>,
    /// Their names, empty where there is none.
    names: Vec<String>,
    /// What packets begin with: all of a pcap file, those of a pcapng file's first interface.
    link: Link,
    /// Of a pcapng file: no times of its first interface are finer than microseconds.
    first_micro: bool,
    ended: bool,
}

impl Interface {
    /// Whether no time is finer than a microsecond.
    fn is_micro(&self) -> bool {
        1_000_000 % self.units == 0
    }
}

impl<B: Bytes> Capture<B> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// It is no capture file, or one of another link than Ethernet.
    pub fn new(mut file: B) -> Result<Capture<B>, CaptureError> {
        let mut magic = [0; 4];
        file.copy(0, &mut magic);
        let (big, format) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, Format::Pcap(1000)),
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, Format::Pcap(1000)),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, Format::Pcap(1)),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, Format::Pcap(1)),
            [0x0a, 0x0d, 0x0d, 0x0a] => (false, Format::PcapNg),
            _ => {
                return Err(CaptureError {
                    at: 0,
                    problem: match magic {
                        [0x1f, 0x8b, ..] => CaptureProblem::Compressed("zcat"),
                        [0x28, 0xb5, 0x2f, 0xfd] => CaptureProblem::Compressed("zstdcat"),
                        [0xfd, b'7', b'z', b'X'] => CaptureProblem::Compressed("xzcat"),
                        _ => CaptureProblem::Format,
                    },
                });
            }
        };
        let mut capture = Capture {
            file,
            at: 0,
            big,
            format,
            interfaces: Vec::new(),
            names: Vec::new(),
            link: Link::Ethernet,
            first_micro: false,
            ended: false,
        };
        if let Format::Pcap(_) = format {
            // The upper bits say whether frames have a checksum behind them.
            let link = capture.word(20)? & 0x03ff_ffff;
            capture.link = match Link::of(link) {
                Some(known) => known,
                None => return Err(capture.error(20, CaptureProblem::Link(link))),
            };
            capture.at = 24;
        } else {
            let first = capture.first_interface();
            capture.link = first.and_then(|first| first.link).unwrap_or_default();
            capture.first_micro = first.is_some_and(|first| first.is_micro());
        }
        Ok(capture)
    }

    /// A pcapng file's first interface, if it is described right at the beginning.
    fn first_interface(&mut self) -> Option<Interface> {
        let order = self.chunk(8).ok()?;
        let [_, length] = match order {
            [0x1a, 0x2b, 0x3c, 0x4d] => {
                self.big = true;
                self.words(0).ok()?
            }
            _ => self.words(0).ok()?,
        };
        let next = usize::try_from(length).ok().filter(|at| *at < 1 << 16)?;
        let [kind, length] = self.words(next).ok()?;
        let length = usize::try_from(length).ok();
        let length =
            length.filter(|length| kind == DESCRIPTION && (20..1 << 16).contains(length))?;
        let (first, _) = self.description(next + 8, next + length - 4).ok()?;
        Some(first)
    }

    /// What packets begin with, unless they say something else themselves: those of a pcapng file's
    /// later interfaces may.
    pub fn link(&self) -> Link {
        self.link
    }

    /// Whether no time is finer than a microsecond, as the file says: in a pcap file for all, in a
    /// pcapng file for the interfaces that this section has described so far, or for the first.
    pub fn is_micro(&self) -> bool {
        match (self.format, &self.interfaces[..]) {
            (Format::Pcap(fraction), _) => fraction == 1000,
            (Format::PcapNg, []) => self.first_micro,
            (Format::PcapNg, described) => described.iter().all(Interface::is_micro),
        }
    }

    /// The bytes that it reads.
    pub fn file(&mut self) -> &mut B {
        &mut self.file
    }

    /// How far it has read.
    pub fn reached(&self) -> usize {
        self.at
    }

    /// The name of an interface, if the section that was read last describes it.
    pub fn interface(&self, number: u32) -> Option<&str> {
        self.names.get(number as usize).map(String::as_str)
    }

    /// The names of the interfaces that this section has described so far.
    pub fn interfaces(&self) -> &[String] {
        &self.names
    }

    fn error(&self, at: usize, problem: CaptureProblem) -> CaptureError {
        CaptureError { at, problem }
    }

    fn chunk<const N: usize>(&mut self, at: usize) -> Result<[u8; N], CaptureError> {
        let mut bytes = [0; N];
        match self.file.copy(at, &mut bytes) {
            true => Ok(bytes),
            false => Err(self.error(self.at, CaptureProblem::CutShort)),
        }
    }

    fn number(&self, bytes: [u8; 4]) -> u32 {
        if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    fn word(&mut self, at: usize) -> Result<u32, CaptureError> {
        let bytes = self.chunk(at)?;
        Ok(self.number(bytes))
    }

    /// Several words, by one copy: in a mapped file the copy costs much more than its bytes do.
    fn words<const N: usize>(&mut self, at: usize) -> Result<[u32; N], CaptureError> {
        let mut bytes = [[0; 4]; N];
        match self.file.copy(at, bytes.as_flattened_mut()) {
            true => Ok(bytes.map(|word| self.number(word))),
            false => Err(self.error(self.at, CaptureProblem::CutShort)),
        }
    }

    fn half(&mut self, at: usize) -> Result<u16, CaptureError> {
        let bytes = self.chunk(at)?;
        Ok(if self.big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    }

    /// `length` bytes from `at`, all there and not more than `most`.
    fn range(&mut self, at: usize, length: u32, most: u32) -> Result<Range<usize>, CaptureError> {
        if length > most {
            return Err(self.error(self.at, CaptureProblem::Length(length)));
        }
        let end = at.saturating_add(length as usize);
        if !self.file.holds(at..end) {
            return Err(self.error(self.at, CaptureProblem::CutShort));
        }
        Ok(at..end)
    }

    fn pcap(&mut self, fraction: u64) -> Result<Packet, CaptureError> {
        let at = self.at;
        let [seconds, part, captured, wire] = self.words(at)?;
        let bytes = self.range(at + 16, captured, MAX_PACKET)?;
        self.at = bytes.end;
        Ok(Packet {
            bytes,
            wire,
            time: u64::from(seconds) * 1_000_000_000 + u64::from(part) * fraction,
            origin: Origin {
                link: self.link,
                ..Origin::default()
            },
        })
    }

    /// Whether anything follows.
    fn more(&mut self) -> bool {
        self.file.holds(self.at..self.at.saturating_add(1))
    }

    /// The next packet of a pcapng file, or nothing at its end.
    fn block(&mut self) -> Result<Option<Packet>, CaptureError> {
        while self.more() {
            let at = self.at;
            let [kind, mut length] = self.words(at)?;
            if kind == SECTION {
                // A section begins, in its own byte order.
                self.big = match self.chunk(at + 8)? {
                    [0x1a, 0x2b, 0x3c, 0x4d] => true,
                    [0x4d, 0x3c, 0x2b, 0x1a] => false,
                    _ => return Err(self.error(at + 8, CaptureProblem::Format)),
                };
                self.interfaces.clear();
                self.names.clear();
                length = self.word(at + 4)?;
            }
            if length < 12 || length % 4 != 0 {
                return Err(self.error(at, CaptureProblem::Length(length)));
            }
            let end = self.range(at, length, MAX_BLOCK)?.end;
            let again = self.word(end - 4)?;
            if again != length {
                return Err(self.error(at, CaptureProblem::Lengths(length, again)));
            }
            let packet = match kind {
                DESCRIPTION if length >= 20 => {
                    let (found, name) = self.description(at + 8, end - 4)?;
                    self.interfaces.push(found);
                    self.names.push(name);
                    None
                }
                PACKET | OLD if length >= 32 => Some(self.enhanced(kind, at, length)?),
                SIMPLE if length >= 16 => Some(self.simple(at, length)?),
                _ => None,
            };
            self.at = end;
            if packet.is_some() {
                return Ok(packet);
            }
        }
        Ok(None)
    }

    /// A packet block of so many bytes, enhanced or of the old kind.
    fn enhanced(&mut self, kind: u32, at: usize, length: u32) -> Result<Packet, CaptureError> {
        let [mut number, high, low, captured, wire] = self.words(at + 8)?;
        if kind == OLD {
            // Two bytes, then a count of lost packets.
            number = u32::from(self.half(at + 8)?);
        }
        let interface = self.described(number)?;
        let (units, epoch) = (u128::from(interface.units), i128::from(interface.epoch));
        let bytes = self.range(at + 28, captured, length - 32)?;
        let stamp = u128::from(u64::from(high) << 32 | u64::from(low));
        let time = (stamp * 1_000_000_000 / units) as i128 + epoch * 1_000_000_000;
        let mut flags = 0;
        let options = at + 28 + captured.next_multiple_of(4) as usize;
        let end = at + length as usize - 4;
        self.options(options, end, |capture, code, from, length| {
            if (code, length) == (FLAGS, 4) {
                flags = capture.word(from)?;
            }
            Ok(())
        })?;
        Ok(Packet {
            bytes,
            wire,
            time: u64::try_from(time.max(0)).unwrap_or(u64::MAX),
            origin: Origin {
                interface: number,
                direction: Direction::of(flags),
                link: interface.link.unwrap_or_default(),
            },
        })
    }

    /// A simple packet block of so many bytes: no time, and the first interface.
    fn simple(&mut self, at: usize, length: u32) -> Result<Packet, CaptureError> {
        let interface = self.described(0)?;
        let snaplen = match interface.snaplen {
            0 => u32::MAX,
            snaplen => snaplen,
        };
        let wire = self.word(at + 8)?;
        let captured = wire.min(snaplen).min(length - 16);
        Ok(Packet {
            bytes: self.range(at + 12, captured, length - 16)?,
            wire,
            time: 0,
            origin: Origin {
                link: interface.link.unwrap_or_default(),
                ..Origin::default()
            },
        })
    }

    /// An interface whose packets filters can judge.
    fn described(&self, number: u32) -> Result<Interface, CaptureError> {
        match self.interfaces.get(number as usize) {
            Some(found) if found.link.is_some() => Ok(*found),
            Some(found) => Err(self.error(self.at, CaptureProblem::Link(u32::from(found.number)))),
            None => Err(self.error(self.at, CaptureProblem::Interface(number))),
        }
    }

    /// What a block from `at` to `end` says of an interface.
    fn description(&mut self, at: usize, end: usize) -> Result<(Interface, String), CaptureError> {
        let number = self.half(at)?;
        let mut found = Interface {
            number,
            link: Link::of(u32::from(number)),
            snaplen: self.word(at + 4)?,
            units: 1_000_000,
            epoch: 0,
        };
        let mut name = String::new();
        self.options(at + 8, end, |capture, code, from, length| {
            match (code, length) {
                (UNITS, 1) => {
                    let [value] = capture.chunk(from)?;
                    let base = if value & 0x80 != 0 { 2u64 } else { 10 };
                    let units = base.checked_pow(u32::from(value & 0x7f));
                    found.units = units.unwrap_or(u64::MAX);
                }
                (EPOCH, 8) => {
                    let bytes = capture.chunk(from)?;
                    found.epoch = match capture.big {
                        true => i64::from_be_bytes(bytes),
                        false => i64::from_le_bytes(bytes),
                    };
                }
                (NAME, 1..256) => {
                    let mut bytes = alloc::vec![0; length];
                    if capture.file.copy(from, &mut bytes) {
                        name = String::from_utf8_lossy(&bytes).into_owned();
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok((found, name))
    }

    /// Tells of each option from `at` to `end` its code, where its value is, and how long it is.
    fn options(
        &mut self,
        mut at: usize,
        end: usize,
        mut tell: impl FnMut(&mut Self, u16, usize, usize) -> Result<(), CaptureError>,
    ) -> Result<(), CaptureError> {
        while at + 4 <= end {
            let (code, length) = (self.half(at)?, usize::from(self.half(at + 2)?));
            at += 4;
            if code == END || at + length > end {
                break;
            }
            tell(self, code, at, length)?;
            at += length.next_multiple_of(4);
        }
        Ok(())
    }
}

impl<B: Bytes> Iterator for Capture<B> {
    type Item = Result<Packet, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended || !self.more() {
            return None;
        }
        let next = match self.format {
            Format::Pcap(fraction) => self.pcap(fraction).map(Some),
            Format::PcapNg => self.block(),
        };
        self.ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}
