//! Capture files: packets out of pcap and pcapng, and the pieces of new ones.
//!
//! A file that is cut short or damaged gives every packet before the place, then an error that names it. Every field is copied once
//! and then believed or not, so that whoever changes the file meanwhile changes nothing that was checked.

use alloc::vec::Vec;
use core::ops::Range;

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
    /// The file ends inside of a header or packet.
    #[error("the file ends in the middle of a record; it was cut short")]
    CutShort,
    /// A length that cannot be.
    #[error("a record of {0} bytes cannot be; the file is damaged here")]
    Length(u32),
    /// A block says its length twice, and differently.
    #[error("a block of {0} bytes says {1} at its end; the file is damaged here")]
    Lengths(u32, u32),
    /// Packets of another link than Ethernet.
    #[error("packets of link type {0}; filters are for Ethernet (1)")]
    Link(u32),
    /// A packet of an interface that was not described.
    #[error("a packet of interface {0}, which the file does not describe")]
    Interface(u32),
}

/// The largest packet that is believed.
const MAX_PACKET: u32 = 1 << 18;
/// The largest block of a pcapng file that is believed.
const MAX_BLOCK: u32 = 1 << 24;

/// A packet of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Where its captured bytes are in the file.
    pub bytes: Range<usize>,
    /// Its length on the wire.
    pub wire: u32,
    /// When it was captured, in nanoseconds since 1970.
    pub time: u64,
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
    /// Of pcapng: link type and units per second of each interface.
    interfaces: Vec<(u16, u64)>,
    ended: bool,
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
                    problem: CaptureProblem::Format,
                });
            }
        };
        let mut capture = Capture {
            file,
            at: 0,
            big,
            format,
            interfaces: Vec::new(),
            ended: false,
        };
        if let Format::Pcap(_) = format {
            let link = capture.word(20)? & 0x0fff_ffff;
            if link != 1 {
                return Err(capture.error(20, CaptureProblem::Link(link)));
            }
            capture.at = 24;
        }
        Ok(capture)
    }

    /// The bytes that it reads.
    pub fn file(&mut self) -> &mut B {
        &mut self.file
    }

    /// How far it has read.
    pub fn reached(&self) -> usize {
        self.at
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
            if kind == 0x0a0d_0d0a {
                // A section begins, in its own byte order.
                self.big = match self.chunk(at + 8)? {
                    [0x1a, 0x2b, 0x3c, 0x4d] => true,
                    [0x4d, 0x3c, 0x2b, 0x1a] => false,
                    _ => return Err(self.error(at + 8, CaptureProblem::Format)),
                };
                self.interfaces.clear();
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
                1 if length >= 20 => {
                    let link = self.half(at + 8)?;
                    let units = self.resolution(at + 16, end - 4)?;
                    self.interfaces.push((link, units));
                    None
                }
                6 if length >= 32 => {
                    let [interface, high, low, captured, wire] = self.words(at + 8)?;
                    let units = self.interface(interface)?;
                    let stamp = u64::from(high) << 32 | u64::from(low);
                    let bytes = self.range(at + 28, captured, length - 32)?;
                    let time = u128::from(stamp) * 1_000_000_000 / u128::from(units);
                    Some(Packet {
                        bytes,
                        wire,
                        time: u64::try_from(time).unwrap_or(u64::MAX),
                    })
                }
                3 if length >= 16 => {
                    self.interface(0)?;
                    let wire = self.word(at + 8)?;
                    Some(Packet {
                        bytes: self.range(at + 12, wire.min(length - 16), length - 16)?,
                        wire,
                        time: 0,
                    })
                }
                _ => None,
            };
            self.at = end;
            if packet.is_some() {
                return Ok(packet);
            }
        }
        Ok(None)
    }

    /// Units per second of an interface whose packets filters can judge.
    fn interface(&self, number: u32) -> Result<u64, CaptureError> {
        match self.interfaces.get(number as usize) {
            Some((1, units)) => Ok(*units),
            Some((link, _)) => Err(self.error(self.at, CaptureProblem::Link(u32::from(*link)))),
            None => Err(self.error(self.at, CaptureProblem::Interface(number))),
        }
    }

    /// Units per second, from the options of an interface.
    fn resolution(&mut self, mut at: usize, end: usize) -> Result<u64, CaptureError> {
        while at + 4 <= end {
            let (code, length) = (self.half(at)?, usize::from(self.half(at + 2)?));
            if code == 9 && length == 1 {
                let [value] = self.chunk(at + 4)?;
                let (base, power) = (
                    if value & 0x80 != 0 { 2u64 } else { 10 },
                    u32::from(value & 0x7f),
                );
                return Ok(base.checked_pow(power).unwrap_or(u64::MAX));
            }
            if code == 0 {
                break;
            }
            at += 4 + length.next_multiple_of(4);
        }
        Ok(1_000_000)
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

/// A block of a pcapng file: its kind, its length twice, and what is between, which is filled up to a multiple of 4.
fn block(kind: u32, parts: &[&[u8]], into: &mut Vec<u8>) {
    let start = into.len();
    into.extend(kind.to_le_bytes());
    into.extend([0; 4]);
    for part in parts {
        into.extend_from_slice(part);
    }
    let padded = into.len().next_multiple_of(4);
    into.resize(padded, 0);
    let length = ((padded - start + 4) as u32).to_le_bytes();
    into.extend(length);
    if let Some(field) = into.get_mut(start + 4..start + 8) {
        field.copy_from_slice(&length);
    }
}

/// The beginning of a pcapng file: its section, and one interface whose times are nanoseconds.
pub fn pcapng_header(snaplen: u32, interface: &str, into: &mut Vec<u8>) {
    let version = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    block(0x0a0d_0d0a, &[&version, &[0xff; 8]], into);
    let name = interface.as_bytes();
    let name = name.get(..name.len().min(255)).unwrap_or_default();
    let mut options = Vec::from([9, 0, 1, 0, 9, 0, 0, 0]);
    if !name.is_empty() {
        options.extend([2, 0, name.len() as u8, 0]);
        options.extend(name);
        options.resize(options.len().next_multiple_of(4), 0);
    }
    options.extend([0; 4]);
    block(1, &[&[1, 0, 0, 0], &snaplen.to_le_bytes(), &options], into);
}

/// A packet of such a file.
pub fn pcapng_packet(time: u64, bytes: &[u8], wire: u32, into: &mut Vec<u8>) {
    let fields = [
        0,
        (time >> 32) as u32,
        time as u32,
        bytes.len() as u32,
        wire,
    ];
    let mut head = [0; 20];
    for (place, value) in head.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    block(6, &[&head, bytes], into);
}

/// The header of a pcap file with times in nanoseconds.
pub fn pcap_header(snaplen: u32) -> [u8; 24] {
    let mut header = [0; 24];
    header[..8].copy_from_slice(&[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
    header[16..20].copy_from_slice(&snaplen.to_le_bytes());
    header[20] = 1;
    header
}

/// What stands before a packet's bytes in such a file.
pub fn pcap_record(time: u64, captured: u32, wire: u32) -> [u8; 16] {
    let mut record = [0; 16];
    let (seconds, part) = (time / 1_000_000_000, time % 1_000_000_000);
    for (field, value) in [seconds as u32, part as u32, captured, wire]
        .iter()
        .enumerate()
    {
        record[4 * field..4 * field + 4].copy_from_slice(&value.to_le_bytes());
    }
    record
}
