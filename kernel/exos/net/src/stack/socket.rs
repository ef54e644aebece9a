//! What a socket is, and the calls on all kinds.

use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use postern_exos_abi::errno::{self, Errno};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::{tcp, udp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{IpAddress, IpListenEndpoint};

use super::device::Returned;
use super::{Ground, SOCKETS, Stack, datagram, stream};
use crate::ports::Claim;

/// A place to talk from, or to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Of a machine; 0.0.0.0: this one.
    pub host: Ipv4Addr,
    /// The port; 0: none yet.
    pub port: u16,
}

impl Address {
    /// Nobody's.
    pub const NONE: Address = Address {
        host: Ipv4Addr::UNSPECIFIED,
        port: 0,
    };
}

impl Address {
    /// Where smoltcp listens for it: at an inner address alone, or at all.
    pub(super) fn listens(self) -> IpListenEndpoint {
        IpListenEndpoint {
            addr: self.host.is_loopback().then(|| IpAddress::from(self.host)),
            port: self.port,
        }
    }
}

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Connections: TCP.
    Stream,
    /// Datagrams: UDP.
    Datagram,
    /// Control messages: ICMP.
    Raw,
}

/// Which way is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Nothing is read any more.
    Read,
    /// Nothing is written any more, which the other side is told.
    Write,
    /// Neither.
    Both,
}

/// What stands behind a socket.
#[derive(Debug)]
pub(super) enum Body {
    /// Nothing yet, but what kind it is to be.
    Stream,
    /// So many connections can be asked for at a time.
    Listener(Vec<SocketHandle>),
    /// A connection.
    Connection(SocketHandle),
    /// Datagrams, with whom alone if it is connected.
    Datagram(SocketHandle, Option<Address>),
    /// Control messages.
    Raw,
}

/// A socket.
#[derive(Debug)]
pub struct Socket {
    pub(super) kind: Kind,
    pub(super) body: Body,
    pub(super) local: Address,
    /// What frames it has claimed.
    pub(super) claim: Option<Claim>,
    /// An error that was not told yet.
    pub(super) error: Option<Errno>,
    pub(super) shut_read: bool,
    pub(super) shut_write: bool,
    /// It was refused or reset, and that was told.
    pub(super) told: bool,
    /// It has been a connection, to which nothing was refused.
    pub(super) established: bool,
    /// Answers are not waited for before the next short piece goes.
    pub(super) nodelay: bool,
    /// It is asked now and then whether the other side is there.
    pub(super) keepalive: bool,
    /// Its port may be one of connections that are not over.
    pub(super) reuse: bool,
    /// When a connection was asked for.
    pub(super) since: Instant,
    /// Bytes of its buffers.
    pub(super) room: [usize; 2],
}

impl Socket {
    /// Whether a datagram was this socket's.
    pub(super) fn is_of(&self, returned: &Returned) -> bool {
        let connected = matches!(self.body, Body::Datagram(_, Some(to)) if to == returned.to);
        connected && self.local.port == returned.port
    }

    /// What it is for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its own port; 0: none.
    pub fn port(&self) -> u16 {
        self.local.port
    }
}

/// What can be done with a socket without waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Something can be read, an end among it, or accepted.
    pub read: bool,
    /// Something can be written.
    pub write: bool,
    /// It has an error.
    pub error: bool,
    /// The other side has ended it.
    pub ended: bool,
}

/// Bytes of a buffer, if nobody says otherwise.
const ROOM: usize = 32 << 10;
/// Bytes of a buffer at most.
pub const MOST: usize = 256 << 10;

impl Stack {
    /// A new socket: its number.
    pub fn socket(&mut self, kind: Kind) -> Result<usize, Errno> {
        let number = self.free()?;
        let body = match kind {
            Kind::Stream => Body::Stream,
            Kind::Datagram => Body::Datagram(self.set.add(datagram::new(ROOM)), None),
            Kind::Raw => {
                if self
                    .sockets
                    .iter()
                    .flatten()
                    .any(|other| other.kind == kind)
                {
                    return Err(errno::NOBUFS);
                }
                self.raw.open();
                Body::Raw
            }
        };
        self.put(number, kind, body);
        Ok(number)
    }

    pub(super) fn free(&self) -> Result<usize, Errno> {
        let free = self.sockets.iter().position(Option::is_none);
        free.filter(|number| *number < SOCKETS).ok_or(errno::NFILE)
    }

    pub(super) fn put(&mut self, number: usize, kind: Kind, body: Body) {
        if let Some(place) = self.sockets.get_mut(number) {
            *place = Some(Socket {
                kind,
                body,
                local: Address::NONE,
                claim: None,
                error: None,
                shut_read: false,
                shut_write: false,
                told: false,
                established: false,
                nodelay: false,
                keepalive: false,
                reuse: false,
                since: self.now,
                room: [ROOM; 2],
            });
        }
    }

    pub(super) fn at(&mut self, number: usize) -> Result<&mut Socket, Errno> {
        let socket = self.sockets.get_mut(number).and_then(Option::as_mut);
        socket.ok_or(errno::BADF)
    }

    /// What a socket is for.
    pub fn kind(&self, number: usize) -> Result<Kind, Errno> {
        let socket = self.sockets.get(number).and_then(Option::as_ref);
        socket.map(Socket::kind).ok_or(errno::BADF)
    }

    /// Gives a socket an address of its own; port 0: one of this process's.
    pub fn bind(
        &mut self,
        number: usize,
        to: Address,
        ground: &mut impl Ground,
    ) -> Result<(), Errno> {
        let kind = self.kind(number)?;
        let own = self.view.address;
        if !to.host.is_unspecified() && !self.view.is_own(to.host) {
            return Err(errno::ADDRNOTAVAIL);
        }
        if kind == Kind::Raw {
            return Ok(());
        }
        if self.at(number)?.local.port != 0 {
            return Err(errno::INVAL);
        }
        if own.is_unspecified() {
            return Err(errno::NETUNREACH);
        }
        let mut claim = None;
        let port = match to.port {
            0 => self.free_port(kind, ground)?,
            port if self.has_socket(kind, port) => return Err(errno::ADDRINUSE),
            port if self.leaves_port(kind, port) && !self.at(number)?.reuse => {
                return Err(errno::ADDRINUSE);
            }
            port => {
                let wanted = match kind {
                    Kind::Stream => Claim::Tcp(port),
                    _ => Claim::Udp(port),
                };
                // An own port's frames come already, and so do those of one that is left.
                if !(self.claimed && crate::ports::of(ground.own()).contains(&port)) {
                    match self.claims.iter().position(|left| *left == wanted) {
                        Some(left) => _ = self.claims.swap_remove(left),
                        None => ground.claim(wanted)?,
                    }
                    claim = Some(wanted);
                }
                port
            }
        };
        let socket = self.at(number)?;
        socket.claim = claim;
        // Of an inner address only what comes from inside is heard.
        let inner = to.host.is_loopback().then_some(to.host);
        socket.local = Address {
            host: inner.unwrap_or(own),
            port,
        };
        if let Body::Datagram(handle, _) = socket.body {
            let at = socket.local.listens();
            let bound = self.set.get_mut::<udp::Socket>(handle).bind(at);
            bound.map_err(|_| errno::INVAL)?;
        }
        Ok(())
    }

    /// A port, if it has none.
    pub(super) fn bind_any(
        &mut self,
        number: usize,
        ground: &mut impl Ground,
    ) -> Result<(), Errno> {
        match self.at(number)?.local.port {
            0 => self.bind(number, Address::NONE, ground),
            _ => Ok(()),
        }
    }

    /// Ends a socket. What was written to a connection is sent still.
    pub fn close(&mut self, number: usize, ground: &mut impl Ground) {
        let Some(socket) = self.sockets.get_mut(number).and_then(Option::take) else {
            return;
        };
        match socket.body {
            Body::Stream => {}
            Body::Listener(handles) => handles.into_iter().for_each(|handle| {
                let stream = self.set.get_mut::<tcp::Socket>(handle);
                if stream.is_active() {
                    stream.abort();
                    self.leave(handle);
                } else {
                    self.set.remove(handle);
                }
            }),
            Body::Connection(handle) => {
                let stream = self.set.get_mut::<tcp::Socket>(handle);
                match stream.can_recv() {
                    true => stream.abort(),
                    false => stream.close(),
                }
                self.leave(handle);
            }
            Body::Datagram(handle, _) => drop(self.set.remove(handle)),
            Body::Raw => self.raw.close(),
        }
        // Connections that came by this port and are not over hear the other side still, until
        // nobody has it.
        if let Some(claim) = socket.claim {
            self.unclaim(claim, ground);
        }
    }

    pub(super) fn unclaim(&mut self, claim: Claim, ground: &mut impl Ground) {
        let port = match claim {
            Claim::Tcp(port) if self.has_port(Kind::Stream, port) => port,
            _ => return ground.leave(claim),
        };
        // Somebody who has it takes the claim over; connections on their way out have nobody.
        let mut others = self.sockets.iter_mut().flatten();
        match others.find(|other| other.kind == Kind::Stream && other.local.port == port) {
            Some(other) => other.claim = Some(claim),
            None => self.claims.push(claim),
        }
    }

    /// What can be done without waiting.
    pub fn ready(&mut self, number: usize) -> Result<Ready, Errno> {
        let (raw, failed) = (!self.raw.is_empty(), self.failure(number).is_some());
        let socket = self.sockets.get(number).and_then(Option::as_ref);
        let socket = socket.ok_or(errno::BADF)?;
        let ready = match &socket.body {
            Body::Stream => Ready {
                write: true,
                ended: true,
                ..Ready::default()
            },
            Body::Listener(handles) => Ready {
                read: handles
                    .iter()
                    .any(|handle| stream::has_come(&self.set, *handle)),
                ..Ready::default()
            },
            Body::Connection(handle) => stream::ready(self.set.get(*handle), socket, failed),
            Body::Datagram(handle, _) => {
                let datagrams = self.set.get::<udp::Socket>(*handle);
                Ready {
                    read: datagrams.can_recv() || socket.shut_read,
                    write: datagrams.can_send(),
                    ..Ready::default()
                }
            }
            Body::Raw => Ready {
                read: raw,
                write: true,
                ..Ready::default()
            },
        };
        Ok(Ready {
            error: ready.error || socket.error.is_some(),
            ..ready
        })
    }

    /// Its own address.
    pub fn local(&mut self, number: usize) -> Result<Address, Errno> {
        self.at(number).map(|socket| socket.local)
    }

    /// Whom it talks to.
    pub fn remote(&mut self, number: usize) -> Result<Address, Errno> {
        let remote = match self.at(number)?.body {
            Body::Connection(handle) => stream::remote(self.set.get(handle)),
            Body::Datagram(_, remote) => remote,
            _ => None,
        };
        remote.ok_or(errno::NOTCONN)
    }

    /// The error that was not told yet, which is told now.
    pub fn take_error(&mut self, number: usize) -> Result<Option<Errno>, Errno> {
        let failed = self.failure(number);
        let socket = self.at(number)?;
        let error = socket.error.take().or(failed);
        socket.told |= error.is_some();
        Ok(error)
    }

    /// Short pieces go at once, or wait for the answer to those before.
    pub fn set_nodelay(&mut self, number: usize, nodelay: bool) -> Result<(), Errno> {
        self.at(number)?.nodelay = nodelay;
        self.apply(number)
    }

    /// Whether they do.
    pub fn nodelay(&mut self, number: usize) -> Result<bool, Errno> {
        self.at(number).map(|socket| socket.nodelay)
    }

    /// The other side is asked now and then whether it is there.
    pub fn set_keepalive(&mut self, number: usize, keepalive: bool) -> Result<(), Errno> {
        self.at(number)?.keepalive = keepalive;
        self.apply(number)
    }

    /// Whether it is.
    pub fn keepalive(&mut self, number: usize) -> Result<bool, Errno> {
        self.at(number).map(|socket| socket.keepalive)
    }

    /// Its port may be one of connections that are closed and not over.
    pub fn set_reuse(&mut self, number: usize, reuse: bool) -> Result<(), Errno> {
        self.at(number).map(|socket| socket.reuse = reuse)
    }

    /// Whether it may.
    pub fn reuse(&mut self, number: usize) -> Result<bool, Errno> {
        self.at(number).map(|socket| socket.reuse)
    }

    /// Whether it is asked for connections.
    pub fn listens(&mut self, number: usize) -> Result<bool, Errno> {
        self.at(number)
            .map(|socket| matches!(socket.body, Body::Listener(_)))
    }

    /// Bytes of the buffer for what is read (0) or written (1), for connections that are made from
    /// now on.
    pub fn set_room(&mut self, number: usize, which: usize, bytes: usize) -> Result<(), Errno> {
        if let Some(room) = self.at(number)?.room.get_mut(which) {
            *room = bytes.clamp(2048, MOST);
        }
        Ok(())
    }

    /// Bytes of those buffers.
    pub fn room(&mut self, number: usize, which: usize) -> Result<usize, Errno> {
        let room = self.at(number)?.room;
        Ok(room.get(which).copied().unwrap_or(0))
    }

    /// Has a connection be as its socket says.
    pub(super) fn apply(&mut self, number: usize) -> Result<(), Errno> {
        let socket = self.at(number)?;
        let (nodelay, keepalive) = (socket.nodelay, socket.keepalive);
        if let Body::Connection(handle) = socket.body {
            let stream = self.set.get_mut::<tcp::Socket>(handle);
            stream.set_nagle_enabled(!nodelay);
            stream.set_keep_alive(keepalive.then_some(Duration::from_secs(30)));
        }
        Ok(())
    }

    /// Shuts a side down.
    pub fn shutdown(&mut self, number: usize, side: Side) -> Result<(), Errno> {
        let socket = self.at(number)?;
        match socket.body {
            Body::Connection(handle) => {
                socket.shut_read |= side != Side::Write;
                socket.shut_write |= side != Side::Read;
                if side != Side::Read {
                    self.set.get_mut::<tcp::Socket>(handle).close();
                }
                Ok(())
            }
            Body::Datagram(_, Some(_)) => {
                socket.shut_read |= side != Side::Write;
                socket.shut_write |= side != Side::Read;
                Ok(())
            }
            _ => Err(errno::NOTCONN),
        }
    }
}

/// A buffer of so many bytes.
pub(super) fn buffer(bytes: usize) -> Vec<u8> {
    vec![0; bytes]
}
