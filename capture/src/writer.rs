//! Capture files in the making.

use postern_filter::Link;
use postern_filter::capture::{
    Direction, Origin, pcap_header_micro, pcap_header_of, pcap_record, pcap_record_micro,
    pcapng_header, pcapng_interface, pcapng_packet,
};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Bytes that are gathered before they are written: few calls, and still in the processor's cache.
const BUFFER: usize = 128 << 10;

/// How a capture file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// The format that everybody reads, with times in nanoseconds.
    #[default]
    Pcap,
    /// The same with times in microseconds, for old programs; what a time has besides is left out.
    PcapMicro,
    /// The newer one, which names the interface, with times in nanoseconds.
    PcapNg,
}

impl Format {
    /// What a file's name says.
    pub fn of(path: &Path) -> Format {
        match path.extension() {
            Some(ending) if ending == "pcapng" || ending == "ntar" => Format::PcapNg,
            _ => Format::Pcap,
        }
    }

    /// The same for times that are not finer than a microsecond.
    pub fn of_micro(self) -> Format {
        match self {
            Format::Pcap => Format::PcapMicro,
            other => other,
        }
    }
}

/// What capture files say of the bytes that are kept of a packet.
const SNAPLEN: u32 = 1 << 18;

/// A capture file that packets are added to. One in pcapng describes each interface before its
/// first packet.
pub struct Writer {
    out: BufWriter<Box<dyn Write + Send>>,
    format: Format,
    scratch: Vec<u8>,
    /// The numbers of the interfaces that are described.
    interfaces: BTreeMap<(String, Link), u32>,
    /// Whose packets are written.
    interface: String,
    link: Link,
    /// What all packets of a pcap file begin with, once it has begun: with its first packet, or
    /// when something is to be handed over.
    first: Option<Link>,
    direction: Direction,
    /// Bytes so far.
    written: u64,
}

impl Writer {
    /// Begins a file; an old one of the name is replaced. `interfaces` are those that packets will
    /// come from, as far as is known.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path, format: Format, interfaces: &[String]) -> io::Result<Writer> {
        let file = std::fs::File::create(path)?;
        Writer::new(Box::new(file), format, interfaces)
    }

    /// As [`Writer::create`], for packets that begin with something else than Ethernet's header.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create_of(
        path: &Path,
        format: Format,
        link: Link,
        interfaces: &[String],
    ) -> io::Result<Writer> {
        let file = std::fs::File::create(path)?;
        Writer::new_of(Box::new(file), format, link, interfaces)
    }

    /// Begins a capture that goes elsewhere.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(
        out: Box<dyn Write + Send>,
        format: Format,
        interfaces: &[String],
    ) -> io::Result<Writer> {
        Writer::new_of(out, format, Link::Ethernet, interfaces)
    }

    /// As [`Writer::new`], for packets that begin with something else than Ethernet's header.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new_of(
        out: Box<dyn Write + Send>,
        format: Format,
        link: Link,
        interfaces: &[String],
    ) -> io::Result<Writer> {
        let mut writer = Writer {
            out: BufWriter::with_capacity(BUFFER, out),
            format,
            scratch: Vec::new(),
            interfaces: BTreeMap::new(),
            interface: interfaces.first().cloned().unwrap_or_default(),
            direction: Direction::Unknown,
            link,
            first: None,
            written: 0,
        };
        if format == Format::PcapNg {
            writer.begin()?;
            for interface in interfaces {
                writer.describe(interface)?;
            }
        }
        Ok(writer)
    }

    /// Writes the file's header, if it is not there.
    fn begin(&mut self) -> io::Result<()> {
        if self.first.is_some() {
            return Ok(());
        }
        self.first = Some(self.link);
        let mut header = Vec::new();
        match self.format {
            Format::Pcap => header.extend(pcap_header_of(self.link, SNAPLEN)),
            Format::PcapMicro => header.extend(pcap_header_micro(self.link, SNAPLEN)),
            Format::PcapNg => pcapng_header(&mut header),
        }
        self.put(&header)
    }

    /// Says by which interface the packets that follow came or went, and how.
    pub fn origin(&mut self, interface: &str, direction: Direction) {
        self.direction = direction;
        if self.interface != interface {
            interface.clone_into(&mut self.interface);
        }
    }

    /// Says what the packets that follow begin with. A pcapng file may have many kinds, a pcap file
    /// has that of its first packet.
    pub fn link(&mut self, link: Link) {
        self.link = link;
    }

    /// Says whether the times of what follows are in microseconds and not finer. A pcap file that
    /// has not begun is one of microseconds then, or of nanoseconds; what has begun stays as it is.
    pub fn micro(&mut self, micro: bool) {
        self.format = match (self.first, self.format, micro) {
            (None, Format::Pcap, true) => Format::PcapMicro,
            (None, Format::PcapMicro, false) => Format::Pcap,
            (_, format, _) => format,
        };
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn packet(&mut self, time: u64, bytes: &[u8], wire: u32) -> io::Result<()> {
        self.begin()?;
        self.scratch.clear();
        let first = self.first.unwrap_or(self.link);
        match self.format {
            Format::Pcap | Format::PcapMicro if self.link != first => {
                let (first, other) = (first.name(), self.link.name());
                return Err(io::Error::other(format!(
                    "a pcap file has packets of one link, and this one's are {first}, not {other}; write pcapng"
                )));
            }
            Format::Pcap => record(time, bytes, wire, &mut self.scratch),
            Format::PcapMicro => {
                let captured = bytes.len() as u32;
                self.scratch.extend(pcap_record_micro(time, captured, wire));
                self.scratch.extend_from_slice(bytes);
            }
            Format::PcapNg => {
                let origin = Origin {
                    interface: self.number()?,
                    direction: self.direction,
                    link: self.link,
                };
                pcapng_packet(origin, time, bytes, wire, &mut self.scratch);
            }
        }
        self.written += self.scratch.len() as u64;
        self.out.write_all(&self.scratch)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Bytes of the file so far, those that wait to be written among them.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The number of the interface, which is described now if it is a new one.
    fn number(&mut self) -> io::Result<u32> {
        let known = |((name, link), _): &(&(String, Link), &u32)| {
            *name == self.interface && *link == self.link
        };
        match self.interfaces.iter().find(known) {
            Some((_, number)) => Ok(*number),
            None => self.describe(&self.interface.clone()),
        }
    }

    fn describe(&mut self, interface: &str) -> io::Result<u32> {
        let mut described = Vec::new();
        pcapng_interface(self.link, SNAPLEN, interface, &mut described);
        self.put(&described)?;
        let number = self.interfaces.len() as u32;
        self.interfaces
            .insert((interface.to_owned(), self.link), number);
        Ok(number)
    }

    /// Hands over what is not written yet.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.begin()?;
        self.out.flush()
    }

    /// The end: hands over what is not written yet. Even a file without packets describes an
    /// interface, for many programs want one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(&mut self) -> io::Result<()> {
        self.begin()?;
        if self.format == Format::PcapNg && self.interfaces.is_empty() {
            self.number()?;
        }
        self.out.flush()
    }
}

/// A packet of a pcap file.
pub(crate) fn record(time: u64, bytes: &[u8], wire: u32, into: &mut Vec<u8>) {
    into.extend(pcap_record(time, bytes.len() as u32, wire));
    into.extend_from_slice(bytes);
}
