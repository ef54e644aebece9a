//! Capture files in the making.

use postern_filter::capture::{pcap_header, pcap_record, pcapng_header, pcapng_packet};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Bytes that are gathered before they are written: few calls, and still in the processor's cache.
const BUFFER: usize = 128 << 10;

/// How a capture file is written. Times are in nanoseconds in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// The format that everybody reads.
    #[default]
    Pcap,
    /// The newer one, which names the interface.
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
}

/// A capture file that packets are added to.
pub struct Writer {
    out: BufWriter<Box<dyn Write + Send>>,
    format: Format,
    scratch: Vec<u8>,
}

impl Writer {
    /// Begins a file; an old one of the name is replaced.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path, format: Format, interface: &str) -> io::Result<Writer> {
        let file = std::fs::File::create(path)?;
        Writer::new(Box::new(file), format, interface)
    }

    /// Begins a capture that goes elsewhere.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(out: Box<dyn Write + Send>, format: Format, interface: &str) -> io::Result<Writer> {
        let mut writer = Writer {
            out: BufWriter::with_capacity(BUFFER, out),
            format,
            scratch: Vec::new(),
        };
        let header = header(format, interface);
        writer.out.write_all(&header)?;
        Ok(writer)
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn packet(&mut self, time: u64, bytes: &[u8], wire: u32) -> io::Result<()> {
        self.scratch.clear();
        packet(self.format, time, bytes, wire, &mut self.scratch);
        self.out.write_all(&self.scratch)
    }

    /// Hands over what is not written yet.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The beginning of a capture.
pub(crate) fn header(format: Format, interface: &str) -> Vec<u8> {
    const SNAPLEN: u32 = 1 << 18;
    match format {
        Format::Pcap => pcap_header(SNAPLEN).to_vec(),
        Format::PcapNg => {
            let mut bytes = Vec::new();
            pcapng_header(SNAPLEN, interface, &mut bytes);
            bytes
        }
    }
}

/// A packet of a capture.
pub(crate) fn packet(format: Format, time: u64, bytes: &[u8], wire: u32, into: &mut Vec<u8>) {
    match format {
        Format::Pcap => {
            into.extend(pcap_record(time, bytes.len() as u32, wire));
            into.extend_from_slice(bytes);
        }
        Format::PcapNg => pcapng_packet(time, bytes, wire, into),
    }
}
