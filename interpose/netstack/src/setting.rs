//! Calls that make sockets, name them, and set them.

use crate::descriptor;
use crate::host;
use crate::program;
use crate::socket::{Socket, State};
use crate::stack::Stack;
use crate::wait::{Outcome, errno};
use smoltcp::socket::{tcp, udp};
use smoltcp::wire::{IpAddress, IpEndpoint, Ipv4Address};

/// Numbers of calls.
pub mod number {
    pub const IOCTL: u64 = 16;
    pub const SOCKET: u64 = 41;
    pub const CONNECT: u64 = 42;
    pub const ACCEPT: u64 = 43;
    pub const SHUTDOWN: u64 = 48;
    pub const BIND: u64 = 49;
    pub const LISTEN: u64 = 50;
    pub const GETSOCKNAME: u64 = 51;
    pub const GETPEERNAME: u64 = 52;
    pub const SETSOCKOPT: u64 = 54;
    pub const GETSOCKOPT: u64 = 55;
    pub const ACCEPT4: u64 = 288;
}

const INET: u64 = 2;
const TCP: u64 = 6;
const UDP: u64 = 17;
const STREAM: u64 = 1;
const DATAGRAM: u64 = 2;
/// Flags of new sockets.
const NONBLOCK: u64 = 0o4000;
const CLOSE_ON_EXEC: u64 = 0o2000000;

/// Whether the stack makes such a socket: which kind. All others are the kernel's.
pub fn kind([family, kind, protocol, ..]: [u64; 6]) -> Option<u64> {
    let plain = kind & 0xffff_ffff & !(NONBLOCK | CLOSE_ON_EXEC);
    let is_ours = matches!(
        (family & 0xffff_ffff, plain, protocol & 0xffff_ffff),
        (INET, STREAM, 0 | TCP) | (INET, DATAGRAM, 0 | UDP)
    );
    is_ours.then_some(plain)
}

/// A socket that was made: the program's descriptor, the keeper's, and what the keeper is told.
pub type Made = (u64, u64, u64);

/// The family by which datagrams are connected to nobody.
const UNSPECIFIED: u16 = 0;

impl Stack {
    /// Makes a socket.
    pub fn make(&mut self, kind: u64, flags: u64) -> Result<Made, i64> {
        let state = match kind {
            STREAM => State::Fresh(None),
            _ => State::Datagram(self.datagram(), None),
        };
        self.make_with(state, flags)
    }

    fn make_with(&mut self, state: State, flags: u64) -> Result<Made, i64> {
        let (mine, keepers) = descriptor::pair(flags & (NONBLOCK | CLOSE_ON_EXEC))?;
        let inode = descriptor::inode(mine);
        let socket = inode.map(|inode| Socket::new(inode, state));
        match socket.and_then(|socket| self.insert(socket)) {
            Some(at) => Ok((mine, keepers, at as u64)),
            None => {
                descriptor::close(mine);
                descriptor::close(keepers);
                Err(errno::ENOBUFS)
            }
        }
    }

    /// Takes a connection. `None`: nobody has connected.
    pub fn accept_one(
        &mut self,
        at: usize,
        words: &[u64; 6],
        flags: u64,
    ) -> Result<Option<Made>, i64> {
        let socket = self.table[at].as_ref().ok_or(errno::EBADF)?;
        if !matches!(socket.state, State::Listening(_)) {
            return Err(errno::EINVAL);
        }
        let options = socket.options.clone();
        let Some(handle) = self.accept(at) else {
            return Ok(None);
        };
        for (level, name, value) in options {
            self.apply(handle, level, name, &value);
        }
        let peer = self
            .sockets
            .get::<tcp::Socket<'_>>(handle)
            .remote_endpoint();
        let made = self.make_with(State::Connected(handle), flags)?;
        if let Some(peer) = peer {
            program::put_address(words[1], words[2], peer)?;
        }
        Ok(Some(made))
    }

    /// Whether an address is the stack's own, or any.
    fn is_mine(&self, address: IpAddress) -> bool {
        let IpAddress::Ipv4(address) = address;
        address == self.address || address.is_unspecified()
    }

    /// Calls about names, options and states.
    pub fn set(
        &mut self,
        at: usize,
        call: u64,
        words: &[u64; 6],
        done: u64,
    ) -> Result<Outcome, i64> {
        let is_datagram = self.table[at].as_ref().is_some_and(Socket::is_datagram);
        match call {
            number::CONNECT => match program::address(words[1], words[2])? {
                (UNSPECIFIED, _) if is_datagram => self.connect_datagrams(at, None),
                (family, _) if u64::from(family) != INET => Err(errno::EAFNOSUPPORT),
                (_, to) if is_datagram => self.connect_datagrams(at, Some(to)),
                (_, to) => self.connect(at, to, done),
            },
            number::BIND => match program::address(words[1], words[2])? {
                (family, _) if u64::from(family) != INET => Err(errno::EAFNOSUPPORT),
                (_, to) => self.bind(at, to),
            },
            number::LISTEN => self.begin_to_listen(at, words[1]),
            number::SHUTDOWN => self.shutdown(at, words[1]),
            number::GETSOCKNAME => {
                let name = self.own_name(at);
                program::put_address(words[1], words[2], name).map(|()| Outcome::Done(0))
            }
            number::GETPEERNAME => {
                let name = self.peer_name(at).ok_or(errno::ENOTCONN)?;
                program::put_address(words[1], words[2], name).map(|()| Outcome::Done(0))
            }
            number::SETSOCKOPT => self.set_option(at, words),
            number::GETSOCKOPT => self.get_option(at, words),
            number::IOCTL => self.control(at, words),
            _ => Err(errno::EOPNOTSUPP),
        }
    }

    fn bind(&mut self, at: usize, to: IpEndpoint) -> Result<Outcome, i64> {
        let IpAddress::Ipv4(address) = to.addr;
        let is_datagram = self.table[at].as_ref().is_some_and(Socket::is_datagram);
        let to_all = is_datagram && (address.is_multicast() || address.is_broadcast());
        if !self.is_mine(to.addr) && !to_all {
            return Err(errno::EADDRNOTAVAIL);
        }
        let port = match to.port {
            0 => self.choose_port(is_datagram).ok_or(errno::EADDRINUSE)?,
            port if self.is_taken(port, is_datagram) && !self.is_left(port, is_datagram) => {
                return Err(errno::EADDRINUSE);
            }
            port => port,
        };
        match &mut self.table[at].as_mut().ok_or(errno::EBADF)?.state {
            State::Fresh(own @ None) => *own = Some(port),
            State::Datagram(handle, _) => {
                let socket = self.sockets.get_mut::<udp::Socket<'_>>(*handle);
                socket.bind(port).map_err(|_| errno::EINVAL)?;
            }
            _ => return Err(errno::EINVAL),
        }
        Ok(Outcome::Done(0))
    }

    /// Whether only connections that are there have this port: one may listen on it.
    fn is_left(&self, port: u16, of_datagrams: bool) -> bool {
        !of_datagrams
            && self.table.iter().flatten().all(|socket| {
                socket.is_datagram()
                    || self.port(socket) != Some(port)
                    || matches!(socket.state, State::Connected(_))
            })
    }

    fn begin_to_listen(&mut self, at: usize, backlog: u64) -> Result<Outcome, i64> {
        const MOST: usize = 256;
        let backlog = (backlog as u32 as usize).clamp(1, MOST);
        let port = match &mut self.table[at].as_mut().ok_or(errno::EBADF)?.state {
            State::Fresh(port) => *port,
            State::Listening(listener) => {
                listener.backlog = backlog;
                return Ok(Outcome::Done(0));
            }
            State::Datagram(..) => return Err(errno::EOPNOTSUPP),
            _ => return Err(errno::EINVAL),
        };
        let port = port.or_else(|| self.choose_port(false));
        self.listen(at, port.ok_or(errno::EADDRINUSE)?, backlog);
        Ok(Outcome::Done(0))
    }

    fn own_name(&self, at: usize) -> IpEndpoint {
        let socket = self.table[at].as_ref();
        let port = socket.and_then(|socket| self.port(socket)).unwrap_or(0);
        let is_connected = self.peer_name(at).is_some();
        let address = if is_connected {
            self.address
        } else {
            Ipv4Address::UNSPECIFIED
        };
        IpEndpoint::new(IpAddress::Ipv4(address), port)
    }

    fn peer_name(&self, at: usize) -> Option<IpEndpoint> {
        match self.table[at].as_ref()?.state {
            State::Connected(handle) => self
                .sockets
                .get::<tcp::Socket<'_>>(handle)
                .remote_endpoint(),
            State::Datagram(_, peer) => peer,
            _ => None,
        }
    }

    /// `ioctl`: how much there is to read; all else is the kernel's.
    fn control(&mut self, at: usize, words: &[u64; 6]) -> Result<Outcome, i64> {
        const TO_READ: u64 = 0x541b;
        if words[1] & 0xffff_ffff != TO_READ {
            return Ok(Outcome::Pass);
        }
        let socket = self.table[at].as_ref().ok_or(errno::EBADF)?;
        let bytes = match socket.state {
            State::Connected(handle) => self.sockets.get::<tcp::Socket<'_>>(handle).recv_queue(),
            State::Datagram(handle, _) => {
                let next = self.sockets.get_mut::<udp::Socket<'_>>(handle).peek();
                next.map_or(0, |(bytes, _)| bytes.len())
            }
            State::Listening(_) => return Err(errno::EINVAL),
            _ => 0,
        };
        let written = host::write(words[2], &(bytes as u32).to_le_bytes());
        written.then_some(Outcome::Done(0)).ok_or(errno::EFAULT)
    }

    fn set_option(&mut self, at: usize, words: &[u64; 6]) -> Result<Outcome, i64> {
        const MOST: usize = 64;
        const SEND_TIMEOUT: (u32, u32) = (1, 21);
        const RECEIVE_TIMEOUT: (u32, u32) = (1, 20);
        let (level, name) = (words[1] as u32, words[2] as u32);
        let mut value = [0; MOST];
        let length = (words[4] as u32 as usize).min(MOST);
        if !host::read(words[3], &mut value[..length]) {
            return Err(errno::EFAULT);
        }
        if !is_known(level, name) {
            return Err(errno::ENOPROTOOPT);
        }
        let socket = self.table[at].as_mut().ok_or(errno::EBADF)?;
        match (level, name) {
            // The kernel's waiting ends then.
            RECEIVE_TIMEOUT => return Ok(Outcome::Pass),
            SEND_TIMEOUT => {
                let word = |at: usize| value[at..at + 8].try_into().map_or(0, i64::from_le_bytes);
                let milliseconds = word(0).saturating_mul(1000).saturating_add(word(8) / 1000);
                socket.send_timeout = match milliseconds {
                    0 => -1,
                    milliseconds => milliseconds.clamp(1, i32::MAX.into()) as i32,
                };
            }
            _ => {}
        }
        socket
            .options
            .retain(|(of, named, _)| (*of, *named) != (level, name));
        socket.options.push((level, name, value[..length].to_vec()));
        if let State::Connected(handle) | State::Connecting(handle) = socket.state {
            self.apply(handle, level, name, &value[..length]);
        }
        Ok(Outcome::Done(0))
    }

    fn get_option(&mut self, at: usize, words: &[u64; 6]) -> Result<Outcome, i64> {
        const KIND: u32 = 3;
        const ERROR: u32 = 4;
        const LISTENS: u32 = 30;
        const PROTOCOL: u32 = 38;
        const FAMILY: u32 = 39;
        const RECEIVE_TIMEOUT: (u32, u32) = (1, 20);
        const BUFFERS: core::ops::RangeInclusive<u32> = 7..=8;
        let (level, name) = (words[1] as u32, words[2] as u32);
        if (level, name) == RECEIVE_TIMEOUT {
            return Ok(Outcome::Pass);
        }
        let socket = self.table[at].as_mut().ok_or(errno::EBADF)?;
        socket.refresh(&mut self.sockets);
        let is_datagram = socket.is_datagram();
        let set = socket
            .options
            .iter()
            .find(|(of, named, _)| (*of, *named) == (level, name));
        let plain = match (level, name) {
            (1, ERROR) => core::mem::take(&mut socket.error) as u32,
            (1, KIND) => (if is_datagram { DATAGRAM } else { STREAM }) as u32,
            (1, FAMILY) => INET as u32,
            (1, PROTOCOL) => (if is_datagram { UDP } else { TCP }) as u32,
            (1, LISTENS) => matches!(socket.state, State::Listening(_)).into(),
            (1, name) if BUFFERS.contains(&name) => 128 << 10,
            _ if is_known(level, name) => 0,
            _ => return Err(errno::ENOPROTOOPT),
        };
        let plain = plain.to_le_bytes();
        let value = match set {
            Some((_, _, value)) if !(level == 1 && BUFFERS.contains(&name)) => &value[..],
            _ => &plain[..],
        };
        let mut room = [0; 4];
        if !host::read(words[4], &mut room) {
            return Err(errno::EFAULT);
        }
        let length = value.len().min(u32::from_le_bytes(room) as usize);
        let written = host::write(words[3], &value[..length])
            && host::write(words[4], &(length as u32).to_le_bytes());
        written.then_some(Outcome::Done(0)).ok_or(errno::EFAULT)
    }
}

/// Options that are set and told again; those of TCP that the stack has, too, count.
fn is_known(level: u32, name: u32) -> bool {
    match level {
        // Reuse, keep alive, broadcast, linger, buffers, timeouts, priorities, of `socket(7)`.
        1 => matches!(name, 2..=4 | 6..=10 | 12 | 13 | 15 | 18 | 20 | 21 | 30 | 36 | 38 | 39 | 46),
        // Service, time to live, errors, discovery of sizes, of `ip(7)`.
        0 => matches!(name, 1 | 2 | 8 | 10 | 11 | 12 | 13 | 24),
        6 => !matches!(name, 11 | 19 | 31 | 35),
        _ => false,
    }
}
