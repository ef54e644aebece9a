//! This process's sockets, as the client of NFS wants to have them.

use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::sync::atomic::Ordering::Relaxed;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_net::stack::{Address, Kind};
use postern_exos_nfs::record::{self, Records};
use postern_exos_nfs::{Host, Transport};

use crate::files::descriptors;
use crate::net::own::Net;
use crate::net::sockets::message;
use crate::net::wait::{self, Until};
use crate::net::{ground, own, sockets};
use crate::process::signals;

/// Milliseconds in which a connection is made, or there is nobody.
const CONNECT: u64 = 10_000;
/// Milliseconds until a datagram is sent again.
const LOST: u64 = 700;
/// Bytes of a datagram that one frame carries.
const DATAGRAM: usize = 1472;
/// Bytes of a message in a stream at most.
const STREAM: usize = 1 << 16;
/// Bytes that are taken from a socket at once.
const PIECE: usize = 1 << 14;
/// Ports that some servers believe only: of those of privileged programs elsewhere.
const PRIVILEGED: (u16, u16) = (665, 358);
/// How many of them are tried.
const PORTS: u32 = 8;

/// A host, and how messages go to it.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its address.
    pub host: Ipv4Addr,
    /// By TCP.
    pub is_stream: bool,
}

/// A socket, connected to a port of a host.
pub struct Socket {
    to: Address,
    /// A descriptor.
    number: i32,
    /// What has come of a stream.
    records: Option<Records>,
    piece: Vec<u8>,
}

/// A socket that is connected in so many milliseconds.
fn open(to: Address, is_stream: bool, wait: u64) -> Result<i32, Errno> {
    let kind = match is_stream {
        true => Kind::Stream,
        false => Kind::Datagram,
    };
    let number = sockets::socket(kind, 0)?;
    let connected = connect(number, to, is_stream, wait);
    if let Err(error) = connected {
        let _ = descriptors::close(number);
        return Err(match error {
            errno::INPROGRESS | errno::AGAIN => errno::TIMEDOUT,
            error => error,
        });
    }
    Ok(number)
}

fn connect(number: i32, to: Address, is_stream: bool, wait: u64) -> Result<(), Errno> {
    for _ in 0..PORTS {
        let port = PRIVILEGED.0 + (ground::random() % u64::from(PRIVILEGED.1)) as u16;
        let own = Address {
            host: Ipv4Addr::UNSPECIFIED,
            port,
        };
        // If none of them is free any port will do, for most servers.
        if sockets::bind(number, own).is_ok() {
            break;
        }
    }
    sockets::patience(number, 1)?.store(1000 * wait.max(1), Relaxed);
    sockets::connect(number, to)?;
    match is_stream {
        true => sockets::option(number, |net, socket| net.stack.set_nodelay(socket, true)),
        false => Ok(()),
    }
}

impl Host for Peer {
    type Transport = Socket;

    fn connect(&mut self, port: u16) -> Result<Socket, Errno> {
        let to = Address {
            host: self.host,
            port,
        };
        Ok(Socket {
            to,
            number: open(to, self.is_stream, CONNECT)?,
            records: self.is_stream.then(Records::default),
            piece: vec![0; PIECE],
        })
    }

    fn is_stream(&self) -> bool {
        self.is_stream
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = descriptors::close(self.number);
    }
}

impl Socket {
    /// Bytes that have come in so many milliseconds; `None`: none have.
    fn piece(&mut self, wait: u64, room: usize) -> Result<Option<&[u8]>, Errno> {
        let until = Until::after(1000 * wait);
        loop {
            let Some(left) = until.left() else {
                return Ok(None);
            };
            sockets::patience(self.number, 0)?.store(left, Relaxed);
            let room = room.min(self.piece.len());
            let to = self.piece.get_mut(..room).unwrap_or_default();
            match sockets::receive(self.number, to, 0) {
                Ok(received) => return Ok(self.piece.get(..received.count)),
                Err(errno::AGAIN | errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Transport for Socket {
    fn send(&mut self, message: &[u8]) -> Result<(), Errno> {
        if self.records.is_none() {
            // What does not go is lost, as on the way.
            let _ = sockets::send(self.number, message, message::NOSIGNAL, None);
            return Ok(());
        }
        let whole = [&record::mark(message), message].concat();
        let sent = sockets::send(self.number, &whole, message::NOSIGNAL, None)?;
        match sent == whole.len() {
            true => Ok(()),
            // The other side takes nothing: what is missing would be the next message's beginning.
            false => Err(errno::TIMEDOUT),
        }
    }

    fn receive(&mut self, wait: u64, message: &mut Vec<u8>) -> Result<bool, Errno> {
        let until = Until::after(1000 * wait);
        let Some(mut records) = self.records.take() else {
            return match self.piece(wait, PIECE) {
                Ok(Some(piece)) => {
                    message.clear();
                    message.extend(piece);
                    Ok(true)
                }
                Ok(None) => Ok(false),
                Err(_) => {
                    self.rest(until.left().unwrap_or(0) / 1000);
                    Ok(false)
                }
            };
        };
        let result = loop {
            match records.take(message) {
                Ok(true) => break Ok(true),
                Ok(false) => {}
                Err(_) => break Err(errno::IO),
            }
            let left = until.left().unwrap_or(0).div_ceil(1000);
            match self.piece(left, records.room()) {
                Ok(Some([])) => break Err(errno::CONNRESET),
                Ok(Some(piece)) => records.put(piece),
                Ok(None) => break Ok(false),
                Err(error) => break Err(error),
            }
        };
        self.records = Some(records);
        result
    }

    fn now(&mut self) -> u64 {
        own::now() / 1000
    }

    fn limit(&self) -> usize {
        match self.records {
            Some(_) => STREAM,
            None => DATAGRAM,
        }
    }

    fn patience(&self) -> Option<u64> {
        self.records.is_none().then_some(LOST)
    }

    fn reconnect(&mut self, wait: u64) -> Result<(), Errno> {
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        records.clear();
        let number = open(self.to, true, wait.min(CONNECT))?;
        let _ = descriptors::close(core::mem::replace(&mut self.number, number));
        Ok(())
    }

    fn rest(&mut self, wait: u64) {
        let until = Until::after(1000 * wait);
        while let Some(left) = until.left() {
            own::with_some(Net::poll);
            wait::rest(left);
            signals::poll();
        }
    }
}
