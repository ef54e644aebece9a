//! Capture files in the making: `pt_writer_…`.

use crate::boundary::{Descriptor, PacketIn, Source as Bytes, Text};
use crate::failure::{self, Code, Failure};
use crate::handle::{Handle, kind};
use crate::object::Object;
use crate::source::{self, SourceKind};
use postern_capture::{Direction, Format, Link, Writer};
use std::ffi::{OsStr, c_int};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A writer with room for a packet that comes from a source.
pub struct Making {
    writer: Writer,
    bytes: Vec<u8>,
    /// By which interface packets passed for which nobody says more.
    interface: String,
    direction: Direction,
    /// What they begin with.
    link: Link,
}

kind!(WriterKind: Arc<Object<Making>>, b'W', "pt_writer");

/// Names in C and values, for the test that the header agrees.
pub const FORMATS: [(&str, i32); 4] = [
    ("PT_FORMAT_BY_NAME", 0),
    ("PT_FORMAT_PCAP", 1),
    ("PT_FORMAT_PCAPNG", 2),
    ("PT_FORMAT_PCAP_MICRO", 3),
];

fn format(wanted: c_int, path: &Path) -> Result<Format, Failure> {
    match wanted {
        0 => Ok(Format::of(path)),
        1 => Ok(Format::Pcap),
        2 => Ok(Format::PcapNg),
        3 => Ok(Format::PcapMicro),
        _ => Err(Failure::new(
            Code::Argument,
            format!("{wanted} is no format; PT_FORMAT_BY_NAME, PT_FORMAT_PCAP and their kin are"),
        )),
    }
}

fn unwritten(error: io::Error) -> Failure {
    Failure::new(Code::File, format!("cannot write: {error}"))
}

fn begin(
    file: File,
    format: Format,
    interface: Option<&str>,
) -> Result<Handle<WriterKind>, Failure> {
    let interface = interface.map(str::to_owned);
    let known = interface.as_slice();
    let writer = Writer::new(Box::new(file), format, known).map_err(unwritten)?;
    Ok(Handle::make(Arc::new(Object::new(Making {
        writer,
        bytes: Vec::new(),
        interface: interface.unwrap_or_default(),
        direction: Direction::Unknown,
        link: Link::Ethernet,
    }))))
}

/// `pt_writer_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_writer_new(
    path: Text<'_>,
    wanted: c_int,
    interface: Text<'_>,
) -> Handle<WriterKind> {
    failure::or(Handle::NULL, || {
        let path = Path::new(OsStr::from_bytes(path.bytes("path")?));
        let format = format(wanted, path)?;
        let interface = interface.optional("interface's name")?;
        let file = File::create(path).map_err(|error| {
            Failure::new(
                Code::File,
                format!("cannot write {}: {error}", path.display()),
            )
        })?;
        begin(file, format, interface)
    })
}

/// `pt_writer_fd`
#[unsafe(no_mangle)]
pub extern "C" fn pt_writer_fd(
    fd: Descriptor,
    wanted: c_int,
    interface: Text<'_>,
) -> Handle<WriterKind> {
    failure::or(Handle::NULL, || {
        let format = format(wanted, Path::new(""))?;
        let file = File::from(fd.duplicate()?);
        begin(file, format, interface.optional("interface's name")?)
    })
}

/// `pt_writer_origin`
#[unsafe(no_mangle)]
pub extern "C" fn pt_writer_origin(
    writer: Handle<WriterKind>,
    interface: Text<'_>,
    direction: u32,
) -> c_int {
    failure::code(|| {
        let (writer, direction) = (writer.get()?, source::direction(direction)?);
        let interface = interface.get("interface's name")?.to_owned();
        let making = &mut *writer.lock()?;
        (making.interface, making.direction) = (interface, direction);
        Ok(())
    })
}

/// `pt_writer_link`
#[unsafe(no_mangle)]
pub extern "C" fn pt_writer_link(writer: Handle<WriterKind>, link: c_int) -> c_int {
    failure::code(|| {
        let writer = writer.get()?;
        let link = source::link(link.into())?;
        let making = &mut *writer.lock()?;
        making.link = link;
        making.writer.link(link);
        Ok(())
    })
}

/// `pt_writer_packet`
#[unsafe(no_mangle)]
pub extern "C" fn pt_writer_packet(
    writer: Handle<WriterKind>,
    time: u64,
    packet: Bytes,
    length: usize,
    wire_length: u32,
) -> c_int {
    failure::code(|| {
        let (writer, packet) = (writer.get()?, packet.get(length, "packet")?);
        if u32::try_from(length).is_err() {
            let long = format!("a packet cannot have {length} bytes");
            return Err(Failure::new(Code::Argument, long));
        }
        let making = &mut *writer.lock()?;
        making.writer.origin(&making.interface, making.direction);
        making.writer.link(making.link);
        let written = making.writer.packet(time, packet, wire_length);
        written.map_err(unwritten)
    })
}

/// `pt_writer_copy`
#[unsafe(no_mangle)]
pub extern "C" fn pt_writer_copy(
    writer: Handle<WriterKind>,
    source: Handle<SourceKind>,
    packet: PacketIn<'_>,
) -> c_int {
    failure::code(|| {
        let (writer, source, seen) = (writer.get()?, source.get()?, packet.get()?.seen()?);
        let making = &mut *writer.lock()?;
        let mut source = source.lock()?;
        source.read(&seen, &mut making.bytes)?;
        let interface = match source.interface(&seen) {
            "" => &making.interface,
            known => known,
        };
        making.writer.origin(interface, seen.origin.direction);
        making.writer.link(seen.origin.link);
        let written = making.writer.packet(seen.time, &making.bytes, seen.wire);
        written.map_err(unwritten)
    })
}

/// `pt_writer_flush`
#[unsafe(no_mangle)]
pub extern "C" fn pt_writer_flush(writer: Handle<WriterKind>) -> c_int {
    failure::code(|| writer.get()?.lock()?.writer.flush().map_err(unwritten))
}

/// `pt_writer_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_writer_free(writer: Handle<WriterKind>) -> c_int {
    failure::code(|| writer.take()?.lock()?.writer.finish().map_err(unwritten))
}
