//! Live capture: a ring that the kernel fills and that viewers see in their windows, read-only (packet(7), TPACKET_V3).
//!
//! The ring is blocks of packets. A block belongs to the kernel or to the host, as its status word says; the host gives it back
//! when the packet behind its last one is asked for. Every header is copied once, its lengths are compared with the block, and only
//! the copy is used.

use crate::error::SourceError;
use crate::packet::{Counters, Next, PacketRef};
use crate::trusted::socket::{self, Socket};
use crate::trusted::word;
use postern::{Domain, Offset, Prot, ShareError, Shared};
use postern_filter::capture::{Direction, Origin};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Bytes of a block: several of the largest packets.
const BLOCK: usize = 1 << 20;
/// Milliseconds after which the kernel hands over a block that is not full.
const RETIRE: u32 = 20;
/// Milliseconds for which a call waits.
const WAIT: i32 = 100;
/// Where a block's descriptor has its status; and its number of packets, then the place of the first.
const STATUS: usize = 8;
const COUNT: usize = 12;
/// Bytes of a packet's header, and of the socket address behind it.
const HEADER: usize = 48;
const ADDRESS: usize = 20;
const ETHERNET: u16 = 1;
const LOOPBACK: u16 = 772;

/// How packets of an interface are captured.
#[derive(Clone, Debug)]
pub struct Live {
    /// The interface's name, or `any` for all those with Ethernet frames.
    pub interface: String,
    /// Packets to other stations, too.
    pub promiscuous: bool,
    /// Bytes of a packet that are kept.
    pub snaplen: u32,
    /// Bytes of the ring; at least two blocks of 1 MiB.
    pub ring: usize,
    /// Only packets that go this way.
    pub direction: Option<CaptureDirection>,
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

/// Sends frames by the interfaces of a live source, which does not see them.
#[derive(Clone, Debug)]
pub struct Sender(Arc<Socket>);

impl Sender {
    /// Sends a whole frame, link header first, by the interface of the source.
    ///
    /// # Errors
    /// The kernel's; a full queue is [`io::ErrorKind::WouldBlock`]. A source of `any` has no interface of its own.
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

/// A block that is the host's now: packets that are left, and where the next one is in the area.
struct Open {
    left: u32,
    at: usize,
}

/// A packet socket with its ring.
pub(crate) struct Ring {
    socket: Arc<Socket>,
    area: Shared,
    direction: Option<CaptureDirection>,
    any: bool,
    /// Whose packets come, as far as they are known.
    interfaces: Vec<String>,
    loopback: Option<u32>,
    /// Of the interfaces that packets passed, as they were called then.
    names: BTreeMap<u32, String>,
    blocks: usize,
    current: usize,
    open: Option<Open>,
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
        let mut interfaces = vec![name.clone()];
        if any {
            interfaces = socket::names().map_err(failed)?;
            interfaces.retain(|name| socket.hardware(name).is_ok_and(is_ethernet));
        } else {
            let hardware = socket.hardware(name).map_err(failed)?;
            if !is_ethernet(hardware) {
                return Err(SourceError::Hardware(name.clone(), hardware));
            }
        }
        let blocks = (live.ring / BLOCK).clamp(2, 1024);
        socket
            .ring(BLOCK as u32, blocks as u32, RETIRE)
            .map_err(failed)?;
        if live.snaplen < 1 << 18 {
            socket.snap(live.snaplen).map_err(failed)?;
        }
        let descriptor = socket.descriptor().try_clone_to_owned().map_err(failed)?;
        let builder = Shared::builder().name(format!("ring of {name}"));
        let area = builder.device(descriptor, blocks * BLOCK)?;
        if live.promiscuous && !any {
            socket.promiscuous(index).map_err(failed)?;
        }
        socket.bind(index).map_err(failed)?;
        let loopback = socket::index("lo").ok().map(|index| index as u32);
        Ok(Ring {
            socket: Arc::new(socket),
            area,
            direction: live.direction,
            any,
            interfaces,
            loopback,
            names: BTreeMap::new(),
            blocks,
            current: 0,
            open: None,
            counters: Counters::default(),
        })
    }

    pub fn watch(&mut self, domain: &Domain) -> Result<(), ShareError> {
        domain.share(&self.area, Prot::Read).map(|_| ())
    }

    pub fn sender(&self) -> Sender {
        Sender(self.socket.clone())
    }

    pub fn interfaces(&self) -> &[String] {
        &self.interfaces
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
        let at = seen.at.0.wrapping_sub(self.area.offset().0) as usize;
        Ok(self.area.read(at, to)?)
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
            let block = self.current * BLOCK;
            match self.open {
                Some(Open { left: 0, .. }) => {
                    self.open = None;
                    word::store(&self.area, block + STATUS, libc::TP_STATUS_KERNEL);
                    self.current = (self.current + 1) % self.blocks;
                }
                Some(Open { left, at }) => {
                    let (seen, next) = self.packet(at, block)?;
                    self.open = Some(Open {
                        left: left - 1,
                        at: next,
                    });
                    if let Some(seen) = seen {
                        self.counters.received += 1;
                        return Ok(Next::Packet(seen));
                    }
                }
                None if word::load(&self.area, block + STATUS) & libc::TP_STATUS_USER != 0 => {
                    let mut fields = [0; 8];
                    self.area.read(block + COUNT, &mut fields)?;
                    let [left, first] = words(&fields);
                    self.open = Some(Open {
                        left,
                        at: block + first as usize,
                    });
                }
                None if waited => return Ok(Next::Idle),
                None => {
                    self.socket.wait(WAIT).map_err(SourceError::Read)?;
                    waited = true;
                }
            }
        }
    }

    /// The packet whose header is at `at` if it is one for us, and where the next one's is.
    fn packet(
        &mut self,
        at: usize,
        block: usize,
    ) -> Result<(Option<PacketRef>, usize), SourceError> {
        let end = block + BLOCK;
        let mut bytes = [0; HEADER + ADDRESS];
        if at < block || at % 4 != 0 || at + bytes.len() > end {
            return Err(SourceError::Ring("a header outside of its block"));
        }
        self.area.read(at, &mut bytes)?;
        let [next, seconds, nanos, captured, wire, status] = words(&bytes);
        let [places, _, tag, kind] = words(&bytes[24..]);
        let mac = (places & 0xffff) as usize;
        let frame = at + mac;
        if mac < HEADER || frame as u64 + u64::from(captured) > end as u64 {
            return Err(SourceError::Ring("a packet outside of its block"));
        }
        let next = at + next as usize;
        let [_, interface, type_and_direction] = words(&bytes[HEADER..]);
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
        if twice || unwanted || !is_ethernet(hardware) {
            return Ok((None, next));
        }
        let mut seen = PacketRef {
            at: Offset(self.area.offset().0 + frame as u32),
            captured,
            wire,
            time: u64::from(seconds) * 1_000_000_000 + u64::from(nanos),
            origin: Origin {
                interface,
                direction,
            },
        };
        if status & libc::TP_STATUS_VLAN_VALID != 0 && captured >= 12 {
            let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let kind = if known { kind as u16 } else { 0x8100 };
            self.insert_tag(&mut seen, frame, kind, tag as u16)?;
        }
        Ok((Some(seen), next))
    }

    /// Puts a VLAN's tag where it was on the wire: the kernel took it out, and left room before the packet.
    fn insert_tag(
        &self,
        seen: &mut PacketRef,
        frame: usize,
        kind: u16,
        tag: u16,
    ) -> Result<(), SourceError> {
        let mut head = [0; 16];
        self.area.read(frame, &mut head[..12])?;
        head[12..14].copy_from_slice(&kind.to_be_bytes());
        head[14..].copy_from_slice(&tag.to_be_bytes());
        self.area.write(frame - 4, &head)?;
        seen.at.0 -= 4;
        seen.captured += 4;
        seen.wire += 4;
        Ok(())
    }
}

fn is_ethernet(hardware: u16) -> bool {
    matches!(hardware, ETHERNET | LOOPBACK)
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

/// Words of the machine's own order.
fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}
