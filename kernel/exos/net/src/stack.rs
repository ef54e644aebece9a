//! Sockets over smoltcp, for one process: it has a stack of its own, and frames that are its own by
//! filters. What stands between a stack and the machine is three traits, so that tests put two of
//! them on one wire.
//!
//! Bounds: a stack has at most [`SOCKETS`] sockets; memory is taken when one is made, and by
//! nothing that arrives. Polls neither take memory nor give any back ([`Stack::tend`] does), so
//! they may interrupt the program wherever it is.
//!
//! | module | what |
//! |---|---|
//! | `device` | frames for smoltcp, and what is refused before it |
//! | `socket` | what a socket is, and the calls on all kinds |
//! | `stream`, `datagram`, `raw` | those on one kind |

mod datagram;
mod device;
mod raw;
mod socket;
mod stream;

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use postern_exos_abi::errno::{self, Errno};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use crate::Hardware;
use crate::ports::Claim;
pub use device::{Arrivals, Departures, Refused};
use device::{Device, Gate};
use raw::Queue;
pub use socket::{Address, Kind, Ready, Side, Socket};

/// Sockets of a process at most, and connections that are closed and not over.
pub const SOCKETS: usize = 64;
/// Connections that are closed here and not over, at most; more are reset.
const LEAVING: usize = 32;

/// Nobody has the port (RFC 792).
const PORT: u8 = 3;

/// Where this machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Its address.
    pub address: Ipv4Addr,
    /// Bits of its network's.
    pub bits: u8,
    /// Who forwards to other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Its address of Ethernet.
    pub hardware: Hardware,
}

impl View {
    /// Whether an address is this machine's, the inner ones among them.
    pub fn is_own(&self, address: Ipv4Addr) -> bool {
        address.is_loopback() || address == self.address && !address.is_unspecified()
    }

    /// The address that what goes to another one comes from.
    pub fn from(&self, to: Ipv4Addr) -> Ipv4Addr {
        match to.is_loopback() {
            true => Ipv4Addr::LOCALHOST,
            false => self.address,
        }
    }

    /// Who gets the frame for an address.
    pub fn next(&self, address: Ipv4Addr) -> Option<Ipv4Addr> {
        let mask = u32::MAX
            .checked_shl(32 - u32::from(self.bits.min(32)))
            .unwrap_or(0);
        match (u32::from(address) ^ u32::from(self.address)) & mask {
            _ if self.is_own(address) => Some(address),
            0 => Some(address),
            _ => self.gateway,
        }
    }
}

/// Who delivers frames by filters.
pub trait Ground {
    /// Frames of a claim come from now on. [`errno::ADDRINUSE`] if they are somebody else's.
    fn claim(&mut self, claim: Claim) -> Result<(), Errno>;
    /// They come no more.
    fn leave(&mut self, claim: Claim);
    /// The ports that are this process's own: what to claim for them.
    fn own(&self) -> u16;
    /// A number that nobody guesses.
    fn random(&mut self) -> u32;
}

/// Who is where on the Ethernet.
pub trait Neighbourhood {
    /// The address of Ethernet of a neighbour.
    fn find(&self, address: Ipv4Addr) -> Option<Hardware>;
}

/// What has happened, for who wants to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that came.
    pub came: u64,
    /// Frames that went.
    pub went: u64,
    /// Frames that were refused, by [`Refused`].
    pub refused: [u64; 5],
    /// Frames for whose receiver no address of Ethernet is known.
    pub lost: u64,
}

/// Sockets of a process.
pub struct Stack {
    interface: Interface,
    set: SocketSet<'static>,
    sockets: Vec<Option<Socket>>,
    /// Connections that were closed here, and have something to send or to hear still.
    leaving: Vec<SocketHandle>,
    /// What was claimed for them by a socket that is gone.
    claims: Vec<Claim>,
    gate: Gate,
    raw: Queue,
    view: View,
    /// The own range of ports is claimed.
    claimed: bool,
    next: u16,
    now: Instant,
}

impl Stack {
    /// No sockets yet. The seed is where the numbers of connections begin.
    pub fn new(view: View, seed: u64) -> Stack {
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let now = Instant::from_micros(0);
        let interface = Interface::new(config, &mut device::Nowhere, now);
        let mut sockets = Vec::new();
        sockets.resize_with(SOCKETS, || None);
        let mut stack = Stack {
            interface,
            set: SocketSet::new(Vec::new()),
            sockets,
            leaving: Vec::with_capacity(LEAVING),
            claims: Vec::new(),
            gate: Gate::new(view),
            raw: Queue::new(),
            view,
            claimed: false,
            next: seed as u16,
            now,
        };
        stack.set_view(view);
        stack
    }

    /// This machine is somewhere else from now on. Connections stay, and end by time.
    pub fn set_view(&mut self, view: View) {
        self.view = view;
        self.gate.view = view;
        let address = IpAddress::from(view.address);
        self.interface.update_ip_addrs(|all| {
            all.clear();
            if !view.address.is_unspecified() {
                let _ = all.push(IpCidr::new(address, view.bits.min(32)));
                let _ = all.push(IpCidr::new(IpAddress::from(Ipv4Addr::LOCALHOST), 8));
            }
        });
        let routes = self.interface.routes_mut();
        match view.gateway {
            Some(gateway) => _ = routes.add_default_ipv4_route(gateway),
            None => _ = routes.remove_default_ipv4_route(),
        }
    }

    /// Where it is.
    pub fn view(&self) -> View {
        self.view
    }

    /// What has happened.
    pub fn counters(&self) -> Counters {
        self.gate.counters
    }

    /// Takes what has come and sends what is due, at a time in microseconds. Takes no memory.
    pub fn poll(
        &mut self,
        now: u64,
        arrivals: &mut impl Arrivals,
        departures: &mut impl Departures,
        neighbours: &impl Neighbourhood,
    ) {
        self.now = Instant::from_micros(i64::try_from(now).unwrap_or(i64::MAX));
        self.gate.count_listeners(&self.set, &self.sockets);
        let mut device = Device {
            arrivals,
            departures,
            neighbours,
            gate: &mut self.gate,
            raw: &mut self.raw,
        };
        self.interface.poll(self.now, &mut device, &mut self.set);
        self.take_returned();
    }

    /// Sockets of datagrams that were not taken have an error.
    fn take_returned(&mut self) {
        for returned in self.gate.returned.iter_mut().filter_map(Option::take) {
            for socket in self.sockets.iter_mut().flatten() {
                if socket.is_of(&returned) {
                    socket.error = Some(match returned.code {
                        PORT => errno::CONNREFUSED,
                        _ => errno::HOSTUNREACH,
                    });
                }
            }
        }
    }

    /// When the next poll is due although nothing comes, in microseconds; `None`: never.
    pub fn due(&mut self) -> Option<u64> {
        let at = self.interface.poll_at(self.now, &self.set)?;
        Some(u64::try_from(at.total_micros()).unwrap_or(0))
    }

    /// Somebody whose address of Ethernet is wanted to send to, and not known: told once.
    pub fn wanted(&mut self) -> Option<Ipv4Addr> {
        self.gate.wanted.take()
    }

    /// Frees connections that are over, and has listeners listen again. Where memory may be taken.
    pub fn tend(&mut self, ground: &mut impl Ground) {
        let mut index = 0;
        while let Some(handle) = self.leaving.get(index).copied() {
            let stream = self.set.get_mut::<tcp::Socket>(handle);
            // What nobody will read is refused, as the sender must know.
            if stream.can_recv() {
                stream.abort();
            }
            if is_over(stream) {
                self.leaving.swap_remove(index);
                self.set.remove(handle);
            } else {
                index += 1;
            }
        }
        let set = &mut self.set;
        self.sockets
            .iter()
            .flatten()
            .for_each(|socket| stream::listen_again(set, socket));
        for claim in core::mem::take(&mut self.claims) {
            self.unclaim(claim, ground);
        }
    }

    /// Connections that were closed here and are not over.
    pub fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Whether any of them has something to send still.
    pub fn sends(&self) -> bool {
        let sends = |handle: &SocketHandle| {
            let stream = self.set.get::<tcp::Socket>(*handle);
            stream.send_queue() > 0
                || matches!(
                    stream.state(),
                    tcp::State::FinWait1 | tcp::State::LastAck | tcp::State::Closing
                )
        };
        self.leaving.iter().any(sends)
    }

    /// Resets connections that are closed and not over.
    pub fn abandon(&mut self) {
        for handle in &self.leaving {
            self.set.get_mut::<tcp::Socket>(*handle).abort();
        }
    }

    /// A connection that nobody has any more, but that has something to send still.
    fn leave(&mut self, handle: SocketHandle) {
        if self.leaving.len() >= LEAVING {
            // The oldest goes without a word: its reset would take a poll.
            let oldest = self.leaving.swap_remove(0);
            self.set.remove(oldest);
        }
        self.leaving.push(handle);
    }

    /// An own port that no socket of a kind has.
    fn free_port(&mut self, kind: Kind, ground: &mut impl Ground) -> Result<u16, Errno> {
        let own = ground.own();
        if !self.claimed {
            ground.claim(Claim::Own(own))?;
            self.claimed = true;
            self.next = ground.random() as u16;
        }
        let ports = crate::ports::of(own);
        for _ in 0..crate::ports::EACH {
            self.next = self.next.wrapping_add(1);
            let port = ports.start() + self.next % crate::ports::EACH;
            if !self.has_port(kind, port) {
                return Ok(port);
            }
        }
        Err(errno::ADDRINUSE)
    }

    /// Whether a socket of a kind, or a connection that is not over, has a port.
    fn has_port(&self, kind: Kind, port: u16) -> bool {
        self.has_socket(kind, port) || self.leaves_port(kind, port)
    }

    fn has_socket(&self, kind: Kind, port: u16) -> bool {
        let socket = |socket: &Socket| socket.kind() == kind && socket.port() == port;
        self.sockets.iter().flatten().any(socket)
    }

    fn leaves_port(&self, kind: Kind, port: u16) -> bool {
        let leaves = |handle: &SocketHandle| {
            let local = self.set.get::<tcp::Socket>(*handle).local_endpoint();
            kind == Kind::Stream && local.is_some_and(|local| local.port == port)
        };
        self.leaving.iter().any(leaves)
    }
}

/// Whether nothing of a connection is left to send or to wait for.
fn is_over(stream: &tcp::Socket<'_>) -> bool {
    matches!(stream.state(), tcp::State::Closed | tcp::State::TimeWait)
}

impl core::fmt::Debug for Stack {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stack")
            .field("view", &self.view)
            .field("counters", &self.gate.counters)
            .finish_non_exhaustive()
    }
}
