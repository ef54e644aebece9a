//! Where packets come from: `pt_source_…`, `pt_interfaces`.
//!
//! A packet that C hands back is an allegation: its place and length are compared with the source's
//! memory when it is copied.

use crate::boundary::{Descriptor, Out, PacketIn, Source as Bytes, Target, Text, TextTarget};
use crate::domain::DomainKind;
use crate::failure::{self, Code, Failure};
use crate::handle::{Handle, kind};
use crate::object::{Object, Used};
use crate::structures::CPacket;
use postern::Offset;
use postern_capture::{
    CaptureDirection, Direction, Link, Live, Next, Origin, PacketRef, Sender, Source, SourceError,
    interfaces,
};
use std::ffi::{OsStr, c_int};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a packet that are believed: more than any source gives.
const LONGEST: u32 = 1 << 26;

/// Names in C and values, for the test that the header agrees.
pub const FLAGS: [(&str, i32); 4] = [
    ("PT_LIVE_NOT_PROMISCUOUS", NOT_PROMISCUOUS),
    ("PT_LIVE_IN", IN),
    ("PT_LIVE_OUT", OUT),
    ("PT_LIVE_IMMEDIATE", IMMEDIATE),
];
const NOT_PROMISCUOUS: c_int = 1;
const IN: c_int = 2;
const OUT: c_int = 4;
const IMMEDIATE: c_int = 8;

/// As [`FLAGS`].
pub const DIRECTIONS: [(&str, i32); 6] = [
    ("PT_DIRECTION_UNKNOWN", 0),
    ("PT_DIRECTION_IN", 1),
    ("PT_DIRECTION_OUT", 2),
    ("PT_DIRECTION_BROADCAST", 3),
    ("PT_DIRECTION_MULTICAST", 4),
    ("PT_DIRECTION_OTHER", 5),
];

/// What [`DIRECTIONS`] stand for, in their order.
const KINDS: [Direction; 6] = [
    Direction::Unknown,
    Direction::In,
    Direction::Out,
    Direction::Broadcast,
    Direction::Multicast,
    Direction::Other,
];

/// As [`FLAGS`].
pub const LINKS: [(&str, i32); 10] = [
    ("PT_LINK_ETHERNET", 0),
    ("PT_LINK_RAW", 1),
    ("PT_LINK_NULL", 2),
    ("PT_LINK_LOOP", 3),
    ("PT_LINK_SLL", 4),
    ("PT_LINK_SLL2", 5),
    ("PT_LINK_PPP", 6),
    ("PT_LINK_HDLC", 7),
    ("PT_LINK_WIRELESS", 8),
    ("PT_LINK_RADIOTAP", 9),
];

/// A link by its number.
///
/// # Errors
/// None has it.
pub fn link(number: i64) -> Result<Link, Failure> {
    let known = usize::try_from(number).ok();
    known
        .and_then(|number| Link::ALL.get(number).copied())
        .ok_or_else(|| {
            let wrong = format!("{number} is no link; PT_LINK_ETHERNET and its kin are");
            Failure::new(Code::Argument, wrong)
        })
}

fn link_number(link: Link) -> u32 {
    let place = Link::ALL.iter().position(|kind| *kind == link);
    place.unwrap_or(0) as u32
}

/// A direction by its number.
///
/// # Errors
/// None has it.
pub fn direction(number: u32) -> Result<Direction, Failure> {
    KINDS.get(number as usize).copied().ok_or_else(|| {
        let wrong = format!("{number} is no direction; PT_DIRECTION_IN and its kin are");
        Failure::new(Code::Argument, wrong)
    })
}

impl From<&PacketRef> for CPacket {
    fn from(seen: &PacketRef) -> CPacket {
        CPacket {
            time: seen.time,
            at: seen.at.0,
            length: seen.captured,
            wire_length: seen.wire,
            interface: seen.origin.interface,
            direction: KINDS
                .iter()
                .position(|kind| *kind == seen.origin.direction)
                .unwrap_or(0) as u32,
            link: link_number(seen.origin.link),
            reserved: [0; 8],
        }
    }
}

impl CPacket {
    /// What the host says of a packet.
    ///
    /// # Errors
    /// A length, a direction or a link that no packet has.
    pub fn seen(&self) -> Result<PacketRef, Failure> {
        if self.length > LONGEST {
            let long = format!("no packet has {} bytes", self.length);
            return Err(Failure::new(Code::Argument, long));
        }
        Ok(PacketRef {
            at: Offset(self.at),
            captured: self.length,
            wire: self.wire_length,
            time: self.time,
            origin: Origin {
                interface: self.interface,
                direction: direction(self.direction)?,
                link: link(self.link.into())?,
            },
        })
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Failure {
        let code = match error {
            SourceError::Share(error) => return error.into(),
            SourceError::Interface { .. } | SourceError::Ring(_) => Code::System,
            SourceError::Hardware(..) => Code::Argument,
            SourceError::Gone(_) => Code::Range,
            _ => Code::File,
        };
        Failure::new(code, error.to_string())
    }
}

/// A source with what the C host holds of it.
pub struct Open {
    source: Object<Source>,
    /// Sends without waiting for whoever waits for a packet.
    sender: Option<Sender>,
}

impl Open {
    /// The source for whoever's turn it is.
    ///
    /// # Errors
    /// As of [`Object::lock`].
    pub fn lock(&self) -> Result<Used<'_, Source>, Failure> {
        self.source.lock()
    }
}

kind!(SourceKind: Arc<Open>, b'R', "pt_source");

fn open(make: impl FnOnce() -> Result<Source, Failure>) -> Handle<SourceKind> {
    failure::or(Handle::NULL, || {
        let source = make()?;
        let sender = source.sender();
        let source = Object::new(source);
        Ok(Handle::make(Arc::new(Open { source, sender })))
    })
}

/// `pt_source_file`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_file(path: Text<'_>) -> Handle<SourceKind> {
    open(|| {
        let path = Path::new(OsStr::from_bytes(path.bytes("path")?));
        Ok(Source::file(path)?)
    })
}

/// `pt_source_fd`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_fd(fd: Descriptor) -> Handle<SourceKind> {
    open(|| Ok(Source::stream(File::from(fd.duplicate()?))?))
}

/// `pt_source_live`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_live(
    interface: Text<'_>,
    flags: c_int,
    snaplen: u32,
    ring: usize,
) -> Handle<SourceKind> {
    open(|| {
        let mut live = Live::of(interface.get("interface's name")?);
        if flags & !(NOT_PROMISCUOUS | IN | OUT | IMMEDIATE) != 0 {
            let wrong = format!("{flags:#x} are no flags; PT_LIVE_NOT_PROMISCUOUS and its kin are");
            return Err(Failure::new(Code::Argument, wrong));
        }
        live.direction = match flags & (IN | OUT) {
            IN => Some(CaptureDirection::In),
            OUT => Some(CaptureDirection::Out),
            _ => None,
        };
        live.promiscuous = flags & NOT_PROMISCUOUS == 0;
        live.immediate = flags & IMMEDIATE != 0;
        if snaplen != 0 {
            live.snaplen = snaplen;
        }
        if ring != 0 {
            live.ring = ring;
        }
        Ok(Source::live(&live)?)
    })
}

/// `pt_interfaces`
#[unsafe(no_mangle)]
pub extern "C" fn pt_interfaces(text: TextTarget<'_>, size: usize) -> i64 {
    failure::number(|| {
        let names = interfaces().map_err(|e| Failure::new(Code::System, e.to_string()))?;
        let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
        text.fill(size, &lines)
    })
}

/// `pt_source_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_free(source: Handle<SourceKind>) -> c_int {
    failure::code(|| source.take().map(drop))
}

/// `pt_source_watch`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_watch(source: Handle<SourceKind>, domain: Handle<DomainKind>) -> c_int {
    failure::code(|| {
        let domain = domain.get()?;
        Ok(source.get()?.lock()?.watch(&domain.domain)?)
    })
}

/// `pt_source_next`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_next(source: Handle<SourceKind>, packet: Out<'_, CPacket>) -> c_int {
    failure::number(|| {
        let packet = packet.needed("packet")?;
        match source.get()?.lock()?.next()? {
            Next::Packet(seen) => {
                packet.put(CPacket::from(&seen));
                Ok(1)
            }
            Next::Idle => Ok(0),
            Next::End => Ok(Code::End as i64),
        }
    }) as c_int
}

/// `pt_source_link`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_link(source: Handle<SourceKind>) -> c_int {
    failure::number(|| Ok(link_number(source.get()?.lock()?.link()).into())) as c_int
}

/// `pt_source_interface`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_interface(
    source: Handle<SourceKind>,
    packet: PacketIn<'_>,
    name: TextTarget<'_>,
    size: usize,
) -> i64 {
    failure::number(|| {
        let (source, seen) = (source.get()?, packet.get()?.seen()?);
        name.fill(size, source.lock()?.interface(&seen))
    })
}

/// `pt_source_read`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_read(
    source: Handle<SourceKind>,
    packet: PacketIn<'_>,
    buffer: Target<'_>,
    size: usize,
) -> i64 {
    failure::number(|| {
        let seen = packet.get()?.seen()?;
        let buffer = buffer.get(size.min(seen.captured as usize), "buffer")?;
        source.get()?.lock()?.copy(&seen, buffer)?;
        Ok(buffer.len() as i64)
    })
}

/// `pt_source_send`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_send(
    source: Handle<SourceKind>,
    to: PacketIn<'_>,
    frame: Bytes,
    length: usize,
) -> c_int {
    failure::code(|| {
        let (source, frame) = (source.get()?, frame.get(length, "frame")?);
        let sender = source.sender.as_ref().ok_or_else(|| {
            Failure::new(
                Code::Argument,
                "nothing can be sent by this source: it is no interface",
            )
        })?;
        let sent = match to.optional() {
            Some(packet) => sender.answer(&packet.seen()?, frame),
            None => sender.send(frame),
        };
        sent.map_err(|error| {
            let code = match error.kind() {
                io::ErrorKind::WouldBlock => Code::Busy,
                _ => Code::System,
            };
            Failure::new(code, format!("cannot send: {error}"))
        })
    })
}

/// `pt_source_counters`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_counters(
    source: Handle<SourceKind>,
    received: Out<'_, u64>,
    dropped: Out<'_, u64>,
) -> c_int {
    failure::code(|| {
        let counters = source.get()?.lock()?.counters();
        received.put(counters.received);
        dropped.put(counters.dropped);
        Ok(())
    })
}

/// `pt_source_progress`
#[unsafe(no_mangle)]
pub extern "C" fn pt_source_progress(
    source: Handle<SourceKind>,
    at: Out<'_, u64>,
    size: Out<'_, u64>,
) -> c_int {
    failure::number(|| {
        let progress = source.get()?.lock()?.progress();
        let Some((read, all)) = progress else {
            return Ok(0);
        };
        at.put(read);
        size.put(all);
        Ok(1)
    }) as c_int
}
