//! Datagrams: UDP.

use alloc::vec;

use postern_exos_abi::errno::{self, Errno};
use smoltcp::socket::udp::{self, PacketBuffer, PacketMetadata, SendError, UdpMetadata};
use smoltcp::wire::{IpAddress, IpEndpoint};

use super::socket::{Address, Body, buffer};
use super::{Ground, Stack};
use crate::frame::{CARRIES, IP};

/// Bytes that a datagram carries at most: there are no pieces.
pub const CARRY: usize = CARRIES - IP - 8;
/// Datagrams that wait, at most.
const WAIT: usize = 32;

/// A socket of smoltcp's, with so many bytes for what waits on either side.
pub(super) fn new(room: usize) -> udp::Socket<'static> {
    let packets = |bytes| PacketBuffer::new(vec![PacketMetadata::EMPTY; WAIT], buffer(bytes));
    udp::Socket::new(packets(room), packets(room / 2))
}

pub(super) fn endpoint(address: Address) -> IpEndpoint {
    IpEndpoint {
        addr: IpAddress::from(address.host),
        port: address.port,
    }
}

pub(super) fn address(endpoint: IpEndpoint) -> Address {
    let IpAddress::Ipv4(host) = endpoint.addr;
    Address {
        host,
        port: endpoint.port,
    }
}

impl Stack {
    /// Has datagrams go to one address, and come from there alone; port 0: to anybody again.
    pub fn associate(
        &mut self,
        number: usize,
        to: Address,
        ground: &mut impl Ground,
    ) -> Result<(), Errno> {
        if to.port != 0 {
            self.view.next(to.host).ok_or(errno::NETUNREACH)?;
            self.bind_any(number, ground)?;
        }
        if let Body::Datagram(_, remote) = &mut self.at(number)?.body {
            *remote = (to.port != 0).then_some(to);
        }
        Ok(())
    }

    /// Sends a datagram, to who is given or connected.
    pub fn send_to(
        &mut self,
        number: usize,
        bytes: &[u8],
        to: Option<Address>,
        ground: &mut impl Ground,
    ) -> Result<usize, Errno> {
        if bytes.len() > CARRY {
            return Err(errno::MSGSIZE);
        }
        let socket = self.at(number)?;
        if socket.shut_write {
            return Err(errno::PIPE);
        }
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        let Body::Datagram(handle, remote) = socket.body else {
            return Err(errno::NOTSOCK);
        };
        let to = to.or(remote).ok_or(errno::DESTADDRREQ)?;
        if to.port == 0 || to.host.is_unspecified() {
            return Err(errno::INVAL);
        }
        self.view.next(to.host).ok_or(errno::NETUNREACH)?;
        self.bind_any(number, ground)?;
        let socket = self.set.get_mut::<udp::Socket>(handle);
        let meta = UdpMetadata {
            local_address: Some(IpAddress::from(self.view.from(to.host))),
            ..UdpMetadata::from(endpoint(to))
        };
        match socket.send_slice(bytes, meta) {
            Ok(()) => Ok(bytes.len()),
            Err(SendError::BufferFull) => Err(errno::AGAIN),
            Err(SendError::Unaddressable) => Err(errno::NETUNREACH),
        }
    }

    /// The next datagram: how many bytes of it there was room for, how many it has, and who sent
    /// it.
    pub fn receive_from(
        &mut self,
        number: usize,
        to: &mut [u8],
        peek: bool,
    ) -> Result<(usize, usize, Address), Errno> {
        let socket = self.at(number)?;
        let shut = socket.shut_read;
        let error = socket.error;
        let Body::Datagram(handle, remote) = socket.body else {
            return Err(errno::NOTSOCK);
        };
        let datagrams = self.set.get_mut::<udp::Socket>(handle);
        loop {
            let Ok((bytes, from)) = datagrams.peek() else {
                return match (shut, error) {
                    (true, _) => Ok((0, 0, Address::NONE)),
                    (false, None) => Err(errno::AGAIN),
                    (false, Some(error)) => {
                        self.at(number)?.error = None;
                        Err(error)
                    }
                };
            };
            let from = address(from.endpoint);
            let wanted = remote.is_none_or(|remote| remote == from);
            let count = bytes.len().min(to.len());
            let all = bytes.len();
            if wanted && let (Some(to), Some(bytes)) = (to.get_mut(..count), bytes.get(..count)) {
                to.copy_from_slice(bytes);
            }
            if !(wanted && peek) {
                let _ = datagrams.recv();
            }
            if wanted {
                return Ok((count, all, from));
            }
        }
    }
}
