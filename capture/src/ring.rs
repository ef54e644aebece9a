//! Live capture: a ring that the kernel fills and that viewers see in their windows, read-only
//! (packet(7)).
//!
//! The ring is either [`blocks`] of many packets, which are handed over when they are full or old,
//! or [`frames`] of one packet, handed over at once. Each belongs to the kernel or to the host, as
//! its status word says; the host gives it back when the packet behind its last one is asked for.
//! Every header is copied once, its lengths are compared with its block or frame, and only the copy
//! is used.

mod blocks;
mod frames;
mod header;

use crate::error::SourceError;
use crate::packet::{Counters, Next, PacketRef};
use crate::trusted::socket::{self, Shape, Socket};
use blocks::Blocks;
use frames::Frames;
use header::{BLOCK, Header, PacketPosition, words};
use postern::{Domain, Offset, Prot, ShareError, Shared};
use postern_filter::Link;
use postern_filter::capture::{Direction, Origin};
use postern_filter::classic::Gate;
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Milliseconds for which a call waits.
const WAIT: i32 = 100;
/// Bytes of a packet whose tag is put back.
const SHORTEST: u32 = 16;

/// How packets of an interface are captured.
#[derive(Clone, Debug)]
pub struct Live {
    /// The interface's name, or `any` for all whose packets filters know.
    pub interface: String,
    /// Packets to other stations, too.
    pub promiscuous: bool,
    /// Bytes of a packet that are kept.
    pub snaplen: u32,
    /// Bytes of the ring; at least two blocks of 1 MiB.
    pub ring: usize,
    /// Only packets that go this way.
    pub direction: Option<CaptureDirection>,
    /// Each packet is given as soon as it comes, for whoever answers; it costs a call of the kernel
    /// where packets come one by one.
    pub immediate: bool,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureDirection {
    /// They come in.
    In,
    /// They go out.
    Out,
}

impl Live {
    /// An interface with usual options: promiscuous, whole packets, 16 MiB.
    pub fn of(interface: impl Into<String>) -> Live {
        Live {
            interface: interface.into(),
            promiscuous: true,
            snaplen: 1 << 18,
            ring: 16 << 20,
            direction: None,
            immediate: false,
        }
    }
}

/// The interfaces that packets can be captured of, as the kernel lists them.
///
/// # Errors
/// The kernel does not say.
pub fn interfaces() -> io::Result<Vec<String>> {
    let mut names = socket::names()?;
    names.push("any".to_owned());
    Ok(names)
}

/// The netmask of an interface's first IPv4 address.
pub fn netmask(interface: &str) -> Option<Ipv4Addr> {
    socket::netmask(interface).ok().map(Ipv4Addr::from)
}

/// What packets of an interface begin with.
pub fn link(interface: &str) -> Option<Link> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    Link::of_hardware(socket::hardware(socket.as_fd(), interface).ok()?)
}

/// Sends frames by the interfaces of a live source, which does not see them.
#[derive(Clone, Debug)]
pub struct Sender(Arc<Socket>);

impl Sender {
    /// Sends a whole frame, link header first, by the interface of the source.
    ///
    /// # Errors
    /// The kernel's; a full queue is [`io::ErrorKind::WouldBlock`]. A source of `any` has no
    /// interface of its own.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.0.send(frame)
    }

    /// Sends a whole frame by the interface that a packet of the source came from.
    ///
    /// # Errors
    /// As of [`Sender::send`]; the interface may be gone.
    pub fn answer(&self, seen: &PacketRef, frame: &[u8]) -> io::Result<()> {
        self.0.send_by(seen.origin.interface as i32, frame)
    }
}

/// How the kernel hands packets over.
enum Order {
    Blocks(Blocks),
    Frames(Frames),
}

/// A packet socket with its ring.
pub(crate) struct Ring {
    socket: Arc<Socket>,
    area: Shared,
    direction: Option<CaptureDirection>,
    any: bool,
    index: u32,
    link: Link,
    snaplen: u32,
    /// Whose packets come, as far as they are known.
    interfaces: Vec<String>,
    loopback: Option<u32>,
    /// Of the interfaces that packets passed, as they were called then.
    names: BTreeMap<u32, String>,
    order: Order,
    counters: Counters,
}

impl Ring {
    pub fn open(live: &Live) -> Result<Ring, SourceError> {
        let name = &live.interface;
        let failed = |error| SourceError::Interface {
            name: name.clone(),
            error,
        };
        let any = name == "any";
        let index = if any {
            0
        } else {
            socket::index(name).map_err(failed)?
        };
        let socket = Socket::new().map_err(failed)?;
        let mut link = Link::Ethernet;
        let mut interfaces = vec![name.clone()];
        if any {
            interfaces = socket::names().map_err(failed)?;
            let known = |hardware| Link::of_hardware(hardware).is_some();
            interfaces.retain(|name| socket.hardware(name).is_ok_and(known));
        } else {
            let hardware = socket.hardware(name).map_err(failed)?;
            link = match Link::of_hardware(hardware) {
                Some(link) => link,
                None => return Err(SourceError::Hardware(name.clone(), hardware)),
            };
        }
        if !any && !socket.is_up(name).map_err(failed)? {
            return Err(failed(io::Error::from_raw_os_error(libc::ENETDOWN)));
        }
        let blocks = (live.ring / BLOCK).clamp(2, 1024);
        let shape = if live.immediate {
            Shape::Frames(frames::FRAME as u32)
        } else {
            Shape::Blocks(blocks::RETIRE)
        };
        socket
            .ring(BLOCK as u32, blocks as u32, shape)
            .map_err(failed)?;
        if live.snaplen < 1 << 18 {
            let (all, _) = Gate::default().program(live.snaplen);
            socket.attach(&all).map_err(failed)?;
        }
        let descriptor = socket.descriptor().try_clone_to_owned().map_err(failed)?;
        let builder = Shared::builder().name(format!("ring of {name}"));
        let area = builder.device(descriptor, blocks * BLOCK)?;
        if live.promiscuous && !any {
            socket.promiscuous(index).map_err(failed)?;
        }
        socket.bind(index).map_err(failed)?;
        let loopback = socket::index("lo").ok().map(|index| index as u32);
        let order = match live.immediate {
            true => Order::Frames(Frames::new(blocks, live.snaplen)?),
            false => Order::Blocks(Blocks::new(blocks)),
        };
        Ok(Ring {
            socket: Arc::new(socket),
            area,
            direction: live.direction,
            any,
            interfaces,
            loopback,
            names: BTreeMap::new(),
            index: index as u32,
            link,
            snaplen: live.snaplen,
            order,
            counters: Counters::default(),
        })
    }

    pub fn watch(&mut self, domain: &Domain) -> Result<(), ShareError> {
        if let Order::Frames(frames) = &self.order {
            domain.share(&frames.aside, Prot::Read)?;
        }
        domain.share(&self.area, Prot::Read).map(|_| ())
    }

    /// Lets only packets in that `ask` puts a gate before; `ask` is told the hardware types
    /// that the filter is for, none for all, and whether packets may have tags. Where the
    /// kernel does not take the gate, everything comes in as before.
    pub fn restrict(&self, ask: impl FnOnce(&mut Gate, &[u16], bool)) {
        // What is shorter than that has no place for its tag, and is not seen as the gate takes it
        // for granted.
        if self.snaplen < SHORTEST {
            return;
        }
        let mut gate = Gate::default();
        let hardware = if self.any { self.link.hardware() } else { &[] };
        ask(&mut gate, hardware, self.link == Link::Ethernet);
        let (program, _) = gate.program(self.snaplen);
        let _ = self.socket.attach(&program);
    }

    /// The area that a place is in.
    fn area(&self, place: PacketPosition) -> &Shared {
        match &self.order {
            Order::Frames(frames) if place.aside => &frames.aside,
            _ => &self.area,
        }
    }

    pub fn sender(&self) -> Sender {
        Sender(self.socket.clone())
    }

    pub fn interfaces(&self) -> &[String] {
        &self.interfaces
    }

    /// What packets begin with; of several interfaces each says it itself.
    pub fn link(&self) -> Link {
        self.link
    }

    pub fn is_mixed(&self) -> bool {
        self.any
    }

    /// The name of an interface by its number.
    pub fn interface(&mut self, number: u32) -> Option<&str> {
        let name = self.names.entry(number);
        Some(name.or_insert_with(|| socket::name(number).unwrap_or_else(|| number.to_string())))
    }

    pub fn read(&self, seen: &PacketRef, to: &mut [u8]) -> Result<(), SourceError> {
        let within = |area: &Shared| seen.at.0.wrapping_sub(area.offset().0) as usize;
        let area = match &self.order {
            Order::Frames(frames) if within(&frames.aside) < frames.aside.len() => &frames.aside,
            _ => &self.area,
        };
        Ok(area.read(within(area), to)?)
    }

    /// What the kernel counted so far.
    pub fn counters(&mut self) -> Counters {
        if let Ok(new) = self.socket.statistics() {
            // The kernel counts what it dropped among what it received.
            self.counters.dropped += u64::from(new.drops);
        }
        self.counters
    }

    pub fn next(&mut self) -> Result<Next, SourceError> {
        let mut waited = false;
        loop {
            let found = match &mut self.order {
                Order::Blocks(blocks) => blocks.next(&self.area)?,
                Order::Frames(frames) => frames.next(&self.area, &self.socket)?,
            };
            match found {
                Some(header) => {
                    if let Some(seen) = self.packet(&header)? {
                        self.counters.received += 1;
                        return Ok(Next::Packet(seen));
                    }
                }
                None if waited => return Ok(Next::Idle),
                None => {
                    self.wait()?;
                    waited = true;
                }
            }
        }
    }

    /// Waits for packets. An interface that goes down may come up again, and gives packets then;
    /// one that is gone never does.
    fn wait(&self) -> Result<(), SourceError> {
        match self.socket.wait(WAIT) {
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                if self.any || socket::name(self.index).is_some() {
                    return Ok(());
                }
                Err(SourceError::Interface {
                    name: self.interfaces.first().cloned().unwrap_or_default(),
                    error: io::Error::from_raw_os_error(libc::ENODEV),
                })
            }
            waited => waited.map_err(SourceError::Read),
        }
    }

    /// The packet of a header, if it is one for us.
    fn packet(&self, header: &Header) -> Result<Option<PacketRef>, SourceError> {
        let [_, interface, type_and_direction] = words(&header.address);
        let hardware = (type_and_direction & 0xffff) as u16;
        let direction = direction((type_and_direction >> 16) as u8);
        let outgoing = direction == Direction::Out;
        // What goes out by the loopback comes in again.
        let twice = outgoing && self.loopback == Some(interface);
        let unwanted = match self.direction {
            Some(CaptureDirection::In) => outgoing,
            Some(CaptureDirection::Out) => !outgoing,
            None => false,
        };
        let (false, false, Some(link)) = (twice, unwanted, Link::of_hardware(hardware)) else {
            return Ok(None);
        };
        let place = header.place;
        let mut seen = PacketRef {
            at: Offset(self.area(place).offset().0 + place.at as u32),
            captured: header.captured,
            wire: header.wire,
            time: u64::from(header.seconds) * 1_000_000_000 + u64::from(header.nanos),
            origin: Origin {
                interface,
                direction,
                link,
            },
        };
        let tagged = link == Link::Ethernet && header.captured >= 12;
        if tagged && header.status & libc::TP_STATUS_VLAN_VALID != 0 {
            let known = header.status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let kind = if known { header.tag_kind } else { 0x8100 };
            self.insert_tag(&mut seen, place, kind, header.tag)?;
        }
        Ok(Some(seen))
    }

    /// Puts a VLAN's tag where it was on the wire: the kernel took it out, and left room before the
    /// packet.
    fn insert_tag(
        &self,
        seen: &mut PacketRef,
        place: PacketPosition,
        kind: u16,
        tag: u16,
    ) -> Result<(), SourceError> {
        let mut head = [0; 16];
        let area = self.area(place);
        area.read(place.at, &mut head[..12])?;
        head[12..14].copy_from_slice(&kind.to_be_bytes());
        head[14..].copy_from_slice(&tag.to_be_bytes());
        area.write(place.at - 4, &head)?;
        seen.at.0 -= 4;
        seen.captured += 4;
        seen.wire += 4;
        Ok(())
    }
}

/// What the kernel calls a packet's type.
fn direction(kind: u8) -> Direction {
    match kind {
        libc::PACKET_HOST => Direction::In,
        libc::PACKET_BROADCAST => Direction::Broadcast,
        libc::PACKET_MULTICAST => Direction::Multicast,
        libc::PACKET_OTHERHOST => Direction::Other,
        libc::PACKET_OUTGOING => Direction::Out,
        _ => Direction::Unknown,
    }
}
