//! What is done with datagrams.

use crate::host;
use crate::program::{self, Pieces};
use crate::socket::State;
use crate::stack::Stack;
use crate::stream::PEEK;
use crate::wait::{For, Outcome, errno};
use alloc::vec;
use smoltcp::iface::SocketHandle;
use smoltcp::phy::Device;
use smoltcp::socket::udp;
use smoltcp::wire::{IpAddress, IpEndpoint};

/// Headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;

impl Stack {
    /// It has a port from now on.
    fn give_port(&mut self, handle: SocketHandle) -> Result<(), i64> {
        if self.sockets.get::<udp::Socket<'_>>(handle).is_open() {
            return Ok(());
        }
        let port = self.choose_port(true).ok_or(errno::EADDRNOTAVAIL)?;
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(handle);
        socket.bind(port).map_err(|_| errno::EADDRINUSE)
    }

    /// It is to and from this one alone.
    pub fn connect_datagrams(&mut self, at: usize, to: Option<IpEndpoint>) -> Result<Outcome, i64> {
        let Some(State::Datagram(handle, _)) = self.table[at].as_ref().map(|of| &of.state) else {
            return Err(errno::EBADF);
        };
        let handle = *handle;
        if to.is_some() {
            self.give_port(handle)?;
        }
        if let Some(socket) = &mut self.table[at] {
            socket.state = State::Datagram(handle, to);
        }
        Ok(Outcome::Done(0))
    }

    /// Sends one.
    pub fn send_datagram(
        &mut self,
        at: usize,
        pieces: &Pieces,
        to: Option<IpEndpoint>,
    ) -> Result<Outcome, i64> {
        let socket = self.table[at].as_mut().ok_or(errno::EBADF)?;
        let State::Datagram(handle, peer) = socket.state else {
            return Err(errno::EBADF);
        };
        if socket.sends_no_more {
            return Err(errno::EPIPE);
        }
        let to = to.or(peer).ok_or(errno::EDESTADDRREQ)?;
        let length = program::total(pieces);
        let most = self.ring.capabilities().max_transmission_unit - HEADERS;
        if length > most as u64 {
            return Err(errno::EMSGSIZE);
        }
        let IpAddress::Ipv4(address) = to.addr;
        if to.port == 0 || address.is_unspecified() {
            return Err(errno::EINVAL);
        }
        self.give_port(handle)?;
        let mut bytes = vec![0; length as usize];
        let mut filled = 0;
        for (from, length) in pieces {
            if !host::read(*from, &mut bytes[filled..filled + *length as usize]) {
                return Err(errno::EFAULT);
            }
            filled += *length as usize;
        }
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(handle);
        match socket.send_slice(&bytes, to) {
            Ok(()) => {
                self.send();
                Ok(Outcome::Done(length as i64))
            }
            Err(udp::SendError::BufferFull) => {
                self.send();
                Ok(Outcome::Block(For::Output, 0))
            }
            Err(udp::SendError::Unaddressable) => Err(errno::EADDRNOTAVAIL),
        }
    }

    /// Takes one: how long it is here, how long it was, and from whom.
    pub fn receive_datagram(
        &mut self,
        at: usize,
        pieces: &Pieces,
        flags: u64,
    ) -> Result<Option<(u64, u64, IpEndpoint)>, i64> {
        let socket = self.table[at].as_mut().ok_or(errno::EBADF)?;
        if socket.error != 0 {
            return Err(-core::mem::take(&mut socket.error));
        }
        let State::Datagram(handle, peer) = socket.state else {
            return Err(errno::EBADF);
        };
        let ended = socket.receives_no_more;
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(handle);
        loop {
            let from = match socket.peek() {
                Ok((_, about)) => about.endpoint,
                Err(_) if ended => {
                    let nobody = IpEndpoint::new(IpAddress::v4(0, 0, 0, 0), 0);
                    return Ok(Some((0, 0, nobody)));
                }
                Err(_) => return Ok(None),
            };
            if peer.is_some_and(|peer| peer != from) {
                let _ = socket.recv();
                continue;
            }
            let Ok((bytes, _)) = socket.peek() else {
                return Ok(None);
            };
            let mut done = 0;
            for (to, length) in pieces {
                let here = (bytes.len() - done).min(*length as usize);
                if !host::write(*to, &bytes[done..done + here]) {
                    return Err(errno::EFAULT);
                }
                done += here;
            }
            let whole = bytes.len() as u64;
            if flags & PEEK == 0 {
                let _ = socket.recv();
            }
            return Ok(Some((done as u64, whole, from)));
        }
    }
}
