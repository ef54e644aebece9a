//! The stack: smoltcp's interface and sockets, those of the program, and their turns.

use crate::host;
use crate::options::Options;
use crate::ring::Ring;
use crate::socket::{Listener, Socket, State};
use crate::wait::Wait;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use smoltcp::iface::{
    Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet,
};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr, Ipv4Address};

/// Bytes that a stream has room for.
const RECEIVED: usize = 128 << 10;
const SENT: usize = 128 << 10;
/// And datagrams, with how many of them.
const DATAGRAMS: usize = 256;
const DATAGRAM_BYTES: usize = 256 << 10;
/// Sockets of programs, at most.
const MOST: usize = 4096;
/// To how many the next may connect, before the stack has its next turn.
const OPEN: usize = 2;
/// After so long without an answer, a peer is taken for gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(120);
/// Frames of a turn, so that nobody has the stack for long.
const FRAMES: usize = 256;
/// Ports that the stack chooses itself.
const CHOSEN: core::ops::Range<u16> = 32768..61000;

/// The stack.
pub struct Stack {
    pub ring: Ring,
    pub interface: Interface,
    pub sockets: SocketSet<'static>,
    /// The program's.
    pub table: Vec<Option<Socket>>,
    /// By the kernel's numbers.
    pub inodes: BTreeMap<u64, usize>,
    /// Connections that no program has any more, and that have not ended.
    pub leaving: Vec<SocketHandle>,
    /// Those in `table` that listen.
    listeners: Vec<usize>,
    /// Calls that wait.
    pub waits: Vec<Option<Wait>>,
    /// The stack's address.
    pub address: Ipv4Address,
    next_port: u16,
    /// Something has changed since the keeper last looked what it owes.
    pub has_changed: bool,
    /// The keeper leaves frames to threads that are about to ask for them.
    pub keeper_naps: bool,
    /// When the last frame came.
    pub last_frame: u64,
    pub now: u64,
}

impl Stack {
    /// A stack over rings of an interface with this hardware address.
    pub fn new(mut ring: Ring, options: &Options, hardware: [u8; 6], seed: u64) -> Stack {
        let hardware = HardwareAddress::Ethernet(EthernetAddress(hardware));
        let mut config = Config::new(hardware);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut ring, Instant::ZERO);
        let [a, b, c, d] = options.address;
        let address = Ipv4Address::new(a, b, c, d);
        interface.update_ip_addrs(|all| {
            let _ = all.push(IpCidr::new(IpAddress::Ipv4(address), options.prefix));
        });
        if let Some([a, b, c, d]) = options.gateway {
            let gateway = Ipv4Address::new(a, b, c, d);
            let _ = interface.routes_mut().add_default_ipv4_route(gateway);
        }
        Stack {
            ring,
            interface,
            sockets: SocketSet::new(Vec::new()),
            table: Vec::new(),
            inodes: BTreeMap::new(),
            leaving: Vec::new(),
            listeners: Vec::new(),
            waits: Vec::new(),
            address,
            next_port: CHOSEN.start + (seed % u64::from(CHOSEN.end - CHOSEN.start)) as u16,
            has_changed: false,
            keeper_naps: false,
            last_frame: 0,
            now: host::clock(),
        }
    }

    fn instant(&self) -> Instant {
        Instant::from_micros((self.now / 1000) as i64)
    }

    /// Takes what has come and sends what is to be sent. Whether something came.
    pub fn turn(&mut self) -> bool {
        self.now = host::clock();
        let now = self.instant();
        let mut any = false;
        for _ in 0..FRAMES {
            let (ring, sockets) = (&mut self.ring, &mut self.sockets);
            match self.interface.poll_ingress_single(now, ring, sockets) {
                PollIngressSingleResult::None => break,
                _ => any = true,
            }
            self.refill();
        }
        if any {
            self.has_changed = true;
            self.last_frame = self.now;
        }
        self.send();
        any
    }

    /// Sends what is to be sent.
    pub fn send(&mut self) {
        let now = self.instant();
        for _ in 0..FRAMES {
            let (ring, sockets) = (&mut self.ring, &mut self.sockets);
            if self.interface.poll_egress(now, ring, sockets) == PollResult::None {
                break;
            }
            self.has_changed = true;
        }
    }

    /// When it has something to do next without a frame, in milliseconds from now; at most this.
    pub fn delay(&mut self, most: u64) -> u64 {
        let now = self.instant();
        let delay = self.interface.poll_delay(now, &self.sockets);
        delay.map_or(most, |delay| delay.total_millis().min(most))
    }

    /// A stream that is not connected.
    pub fn stream(&mut self) -> SocketHandle {
        let (received, sent) = (vec![0; RECEIVED], vec![0; SENT]);
        let received = tcp::SocketBuffer::new(received);
        let mut socket = tcp::Socket::new(received, tcp::SocketBuffer::new(sent));
        // One acknowledgement for all that a turn has brought.
        socket.set_ack_delay(None);
        socket.set_timeout(Some(PEER_TIMEOUT));
        self.sockets.add(socket)
    }

    /// Datagrams.
    pub fn datagram(&mut self) -> SocketHandle {
        let buffer = || {
            udp::PacketBuffer::new(
                vec![udp::PacketMetadata::EMPTY; DATAGRAMS],
                vec![0; DATAGRAM_BYTES],
            )
        };
        self.sockets.add(udp::Socket::new(buffer(), buffer()))
    }

    /// Puts a socket of the program's into the table. `None`: there are too many.
    pub fn insert(&mut self, socket: Socket) -> Option<usize> {
        let inode = socket.inode;
        let free = self.table.iter().position(Option::is_none);
        let at = free.unwrap_or(self.table.len());
        if at >= MOST {
            return None;
        }
        if at == self.table.len() {
            self.table.push(None);
        }
        self.table[at] = Some(socket);
        self.inodes.insert(inode, at);
        Some(at)
    }

    /// The program's socket with this number.
    pub fn find(&mut self, inode: u64) -> Option<usize> {
        self.inodes.get(&inode).copied()
    }

    /// No program has it any more.
    pub fn remove(&mut self, at: usize) {
        let Some(socket) = self.table.get_mut(at).and_then(Option::take) else {
            return;
        };
        self.inodes.remove(&socket.inode);
        self.listeners.retain(|listener| *listener != at);
        match socket.state {
            State::Fresh(_) => {}
            State::Connecting(handle) => self.abort(handle),
            State::Connected(handle) => {
                let unread = self.sockets.get::<tcp::Socket<'_>>(handle).can_recv();
                match unread {
                    true => self.abort(handle),
                    false => self.leave(handle),
                }
            }
            State::Listening(listener) => self.close(listener),
            State::Datagram(handle, _) => {
                self.sockets.remove(handle);
            }
        }
        self.send();
    }

    fn leave(&mut self, handle: SocketHandle) {
        self.sockets.get_mut::<tcp::Socket<'_>>(handle).close();
        self.leaving.push(handle);
    }

    fn abort(&mut self, handle: SocketHandle) {
        self.sockets.get_mut::<tcp::Socket<'_>>(handle).abort();
        self.leaving.push(handle);
    }

    /// Drops connections that have ended.
    pub fn sweep(&mut self) {
        let sockets = &mut self.sockets;
        self.leaving.retain(|handle| {
            let socket = sockets.get::<tcp::Socket<'_>>(*handle);
            // Where a reset is still to be sent, its peer is known.
            let is_over =
                socket.state() == tcp::State::Closed && socket.remote_endpoint().is_none();
            if is_over {
                sockets.remove(*handle);
            }
            !is_over
        });
    }

    /// Whether nothing is to be sent any more, and no peer has something to say.
    pub fn has_left(&self) -> bool {
        self.leaving.iter().all(|handle| {
            let state = self.sockets.get::<tcp::Socket<'_>>(*handle).state();
            matches!(state, tcp::State::TimeWait | tcp::State::Closed)
        })
    }

    /// Those who do not hear of an end hear of an abort.
    pub fn abort_all(&mut self) {
        for handle in &self.leaving {
            let socket = self.sockets.get_mut::<tcp::Socket<'_>>(*handle);
            if socket.state() != tcp::State::TimeWait {
                socket.abort();
            }
        }
        self.send();
    }

    /// Whether a port is somebody's.
    pub fn is_taken(&self, port: u16, of_datagrams: bool) -> bool {
        self.table
            .iter()
            .flatten()
            .any(|socket| socket.is_datagram() == of_datagrams && self.port(socket) == Some(port))
            || !of_datagrams
                && self.leaving.iter().any(|handle| {
                    let socket = self.sockets.get::<tcp::Socket<'_>>(*handle);
                    socket.local_endpoint().is_some_and(|of| of.port == port)
                })
    }

    /// The port that a socket has.
    pub fn port(&self, socket: &Socket) -> Option<u16> {
        match &socket.state {
            State::Fresh(port) => *port,
            State::Connecting(handle) | State::Connected(handle) => {
                let socket = self.sockets.get::<tcp::Socket<'_>>(*handle);
                socket.local_endpoint().map(|of| of.port)
            }
            State::Listening(listener) => Some(listener.port),
            State::Datagram(handle, _) => {
                let port = self.sockets.get::<udp::Socket<'_>>(*handle).endpoint().port;
                (port != 0).then_some(port)
            }
        }
    }

    /// A port that is nobody's.
    pub fn choose_port(&mut self, of_datagrams: bool) -> Option<u16> {
        for _ in CHOSEN {
            let port = self.next_port;
            self.next_port = if port + 1 < CHOSEN.end {
                port + 1
            } else {
                CHOSEN.start
            };
            if !self.is_taken(port, of_datagrams) {
                return Some(port);
            }
        }
        None
    }

    /// A socket listens from now on.
    pub fn listen(&mut self, at: usize, port: u16, backlog: usize) {
        let listener = Listener {
            port,
            backlog,
            open: Vec::new(),
            begun: Vec::new(),
            ready: VecDeque::new(),
        };
        if let Some(socket) = &mut self.table[at] {
            socket.state = State::Listening(listener);
            self.listeners.push(at);
        }
        self.refill();
    }

    /// Listeners have somebody to whom the next may connect.
    fn refill(&mut self) {
        for index in 0..self.listeners.len() {
            let at = self.listeners[index];
            let Some(mut socket) = self.table[at].take() else {
                continue;
            };
            if let State::Listening(listener) = &mut socket.state {
                self.refill_one(listener);
            }
            self.table[at] = Some(socket);
        }
    }

    fn refill_one(&mut self, listener: &mut Listener) {
        let sockets = &mut self.sockets;
        let state = |sockets: &SocketSet<'_>, handle: SocketHandle| {
            sockets.get::<tcp::Socket<'_>>(handle).state()
        };
        let begun = &mut listener.begun;
        listener.open.retain(|handle| {
            let is_open = state(sockets, *handle) == tcp::State::Listen;
            if !is_open {
                begun.push(*handle);
            }
            is_open
        });
        let ready = &mut listener.ready;
        listener
            .begun
            .retain(|handle| match state(sockets, *handle) {
                tcp::State::SynReceived => true,
                tcp::State::Closed | tcp::State::Listen => {
                    sockets.remove(*handle);
                    false
                }
                _ => {
                    ready.push_back(*handle);
                    false
                }
            });
        while listener.open.len() < OPEN
            && listener.begun.len() + listener.ready.len() <= listener.backlog
        {
            let handle = self.stream();
            let socket = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
            if socket.listen(listener.port).is_err() {
                self.sockets.remove(handle);
                return;
            }
            listener.open.push(handle);
        }
    }

    fn close(&mut self, listener: Listener) {
        for handle in listener.open {
            self.sockets.remove(handle);
        }
        for handle in listener.begun.into_iter().chain(listener.ready) {
            self.abort(handle);
        }
    }

    /// Takes a connection: its handle.
    pub fn accept(&mut self, at: usize) -> Option<SocketHandle> {
        match &mut self.table.get_mut(at)?.as_mut()?.state {
            State::Listening(listener) => listener.ready.pop_front(),
            _ => None,
        }
    }

    /// Whether somebody sleeps who has to be woken for frames.
    pub fn is_waited_for(&self) -> bool {
        let mut all = self.table.iter().flatten();
        all.any(|socket| socket.is_watched || socket.waiting > 0) || !self.leaving.is_empty()
    }

    /// Whether frames came a moment ago.
    pub fn is_busy(&self) -> bool {
        const MOMENT: u64 = 2_000_000;
        self.now - self.last_frame < MOMENT
    }

    /// Whether the keeper owes somebody something.
    pub fn owes(&mut self) -> bool {
        if self.keeper_naps && self.is_waited_for() {
            return true;
        }
        let sockets = &mut self.sockets;
        self.table.iter_mut().flatten().any(|socket| {
            socket.refresh(sockets);
            socket.owes(socket.readiness(sockets))
        })
    }
}
