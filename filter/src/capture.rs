//! Capture files in memory: packets out of pcap and pcapng, and into pcap.
//!
//! A file that is cut short or damaged gives every packet before the place, then an error that names it.

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

/// The packets of a file, in order.
#[derive(Clone, Debug)]
pub struct Capture<'a> {
    file: &'a [u8],
    at: usize,
    big: bool,
    format: Format,
    /// Of pcapng: link type and units per second of each interface.
    interfaces: Vec<(u16, u64)>,
    ended: bool,
}

impl<'a> Capture<'a> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// It is no capture file, or one of another link than Ethernet.
    pub fn new(file: &'a [u8]) -> Result<Capture<'a>, CaptureError> {
        let magic = file.first_chunk::<4>().copied().unwrap_or_default();
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

    fn error(&self, at: usize, problem: CaptureProblem) -> CaptureError {
        CaptureError { at, problem }
    }

    fn chunk<const N: usize>(&self, at: usize) -> Result<[u8; N], CaptureError> {
        let rest = self.file.get(at..).and_then(|rest| rest.first_chunk());
        rest.copied()
            .ok_or_else(|| self.error(self.at, CaptureProblem::CutShort))
    }

    fn word(&self, at: usize) -> Result<u32, CaptureError> {
        let bytes = self.chunk(at)?;
        Ok(if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    fn half(&self, at: usize) -> Result<u16, CaptureError> {
        let bytes = self.chunk(at)?;
        Ok(if self.big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    }

    /// `length` bytes from `at`, all there and not more than `most`.
    fn range(&self, at: usize, length: u32, most: u32) -> Result<Range<usize>, CaptureError> {
        if length > most {
            return Err(self.error(self.at, CaptureProblem::Length(length)));
        }
        let end = at + length as usize;
        if end > self.file.len() {
            return Err(self.error(self.at, CaptureProblem::CutShort));
        }
        Ok(at..end)
    }

    fn pcap(&mut self, fraction: u64) -> Result<Packet, CaptureError> {
        let at = self.at;
        let (seconds, part) = (self.word(at)?, self.word(at + 4)?);
        let (captured, wire) = (self.word(at + 8)?, self.word(at + 12)?);
        let bytes = self.range(at + 16, captured, MAX_PACKET)?;
        self.at = bytes.end;
        Ok(Packet {
            bytes,
            wire,
            time: u64::from(seconds) * 1_000_000_000 + u64::from(part) * fraction,
        })
    }

    /// The next packet of a pcapng file, or nothing at its end.
    fn block(&mut self) -> Result<Option<Packet>, CaptureError> {
        while self.at < self.file.len() {
            let at = self.at;
            let kind = self.word(at)?;
            if kind == 0x0a0d_0d0a {
                // A section begins, in its own byte order.
                self.big = match self.chunk(at + 8)? {
                    [0x1a, 0x2b, 0x3c, 0x4d] => true,
                    [0x4d, 0x3c, 0x2b, 0x1a] => false,
                    _ => return Err(self.error(at + 8, CaptureProblem::Format)),
                };
                self.interfaces.clear();
            }
            let length = self.word(at + 4)?;
            if length < 12 || length % 4 != 0 {
                return Err(self.error(at, CaptureProblem::Length(length)));
            }
            let end = self.range(at, length, MAX_BLOCK)?.end;
            let packet = match kind {
                1 if length >= 20 => {
                    let link = self.half(at + 8)?;
                    let units = self.resolution(at + 16, end - 4)?;
                    self.interfaces.push((link, units));
                    None
                }
                6 if length >= 32 => {
                    let interface = self.word(at + 8)?;
                    let units = self.interface(interface)?;
                    let stamp =
                        u64::from(self.word(at + 12)?) << 32 | u64::from(self.word(at + 16)?);
                    let bytes = self.range(at + 28, self.word(at + 20)?, length - 32)?;
                    let time = u128::from(stamp) * 1_000_000_000 / u128::from(units);
                    Some(Packet {
                        bytes,
                        wire: self.word(at + 24)?,
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
    fn resolution(&self, mut at: usize, end: usize) -> Result<u64, CaptureError> {
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

impl Iterator for Capture<'_> {
    type Item = Result<Packet, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended || self.at >= self.file.len() {
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
