//! What is done with a stream: connect, listen, accept, send, receive.

use crate::host;
use crate::program::{self, Pieces};
use crate::socket::{Socket, State};
use crate::stack::Stack;
use crate::wait::{For, Outcome, errno};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use smoltcp::wire::{IpAddress, IpEndpoint};

/// Reads what comes next, and leaves it there.
pub const PEEK: u64 = 2;
/// All that is asked for.
const ALL: u64 = 0x100;

impl Stack {
    /// A connection to another is begun, or looked after.
    pub fn connect(&mut self, at: usize, to: IpEndpoint, done: u64) -> Result<Outcome, i64> {
        let mut socket = self.table[at].take().ok_or(errno::EBADF)?;
        let result = self.connect_of(&mut socket, to, done);
        self.table[at] = Some(socket);
        result
    }

    fn connect_of(
        &mut self,
        socket: &mut Socket,
        to: IpEndpoint,
        done: u64,
    ) -> Result<Outcome, i64> {
        socket.refresh(&mut self.sockets);
        let begun = done != 0;
        match &socket.state {
            State::Connecting(_) if begun => Ok(Outcome::Block(For::Output, 1)),
            State::Connecting(_) => Err(errno::EALREADY),
            State::Connected(_) if begun => Ok(Outcome::Done(0)),
            State::Connected(_) => Err(errno::EISCONN),
            State::Fresh(_) if socket.error != 0 => Err(-core::mem::take(&mut socket.error)),
            State::Fresh(port) => {
                let port = port.or_else(|| self.choose_port(false));
                let port = port.ok_or(errno::EADDRNOTAVAIL)?;
                let IpAddress::Ipv4(address) = to.addr;
                if to.port == 0 || address.is_multicast() || address.is_broadcast() {
                    return Err(errno::EADDRNOTAVAIL);
                }
                let handle = self.stream();
                self.prepare(handle, socket);
                let context = self.interface.context();
                let stream = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
                if stream.connect(context, to, port).is_err() {
                    self.sockets.remove(handle);
                    return Err(errno::EADDRNOTAVAIL);
                }
                socket.state = State::Connecting(handle);
                self.send();
                Ok(Outcome::Block(For::Output, 1))
            }
            State::Listening(_) | State::Datagram(..) => Err(errno::EINVAL),
        }
    }

    /// What was set before counts for the connection.
    pub fn prepare(&mut self, handle: SocketHandle, socket: &Socket) {
        for (level, name, value) in &socket.options {
            self.apply(handle, *level, *name, value);
        }
    }

    /// An option of TCP's that the stack has, too.
    pub fn apply(&mut self, handle: SocketHandle, level: u32, name: u32, value: &[u8]) {
        const PROBES: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(75);
        let is_set = value.iter().any(|byte| *byte != 0);
        let stream = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
        match (level, name) {
            (6, 1) => stream.set_nagle_enabled(!is_set),
            (1, 9) => stream.set_keep_alive(is_set.then_some(PROBES)),
            _ => {}
        }
    }

    /// Takes what has come, for these pieces; so much is there already.
    pub fn receive(
        &mut self,
        at: usize,
        pieces: &Pieces,
        flags: u64,
        mut done: u64,
    ) -> Result<Outcome, i64> {
        let socket = self.table[at].as_mut().ok_or(errno::EBADF)?;
        socket.refresh(&mut self.sockets);
        if socket.error != 0 && done == 0 {
            return Err(-core::mem::take(&mut socket.error));
        }
        let handle = match socket.state {
            State::Connected(handle) => handle,
            State::Connecting(_) => return Ok(Outcome::Block(For::Input, done)),
            _ => return Err(errno::ENOTCONN),
        };
        let (all, ended) = (program::total(pieces), socket.receives_no_more);
        if flags & PEEK != 0 {
            done = 0;
        }
        let stream = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
        let mut is_there = true;
        if flags & PEEK != 0 {
            let (to, length) = pieces.first().copied().unwrap_or_default();
            if let Ok(bytes) = stream.peek(length as usize) {
                is_there = host::write(to, bytes);
                done = bytes.len() as u64;
            }
        } else {
            for (to, length) in program::behind(pieces, done) {
                let mut here = 0;
                while here < length && stream.can_recv() && is_there {
                    let got = stream.recv(|bytes| {
                        let bytes = &bytes[..bytes.len().min((length - here) as usize)];
                        is_there = host::write(to + here, bytes);
                        (if is_there { bytes.len() } else { 0 }, bytes.len())
                    });
                    here += got.unwrap_or(0) as u64;
                }
                if !is_there {
                    break;
                }
                done += here;
            }
        }
        if !is_there && done == 0 {
            return Err(errno::EFAULT);
        }
        let over = ended || !stream.may_recv();
        let was_reset = over && !ended && done == 0 && stream.state() == tcp::State::Closed;
        let was_closed = matches!(stream.recv(|_| (0, ())), Err(tcp::RecvError::Finished));
        if done > 0 {
            // There is room again: the peer is told.
            self.send();
        }
        match () {
            () if done > 0 && (flags & ALL == 0 || done >= all || over) => {
                Ok(Outcome::Done(done as i64))
            }
            () if all == 0 => Ok(Outcome::Done(0)),
            () if was_reset && !was_closed => Err(errno::ECONNRESET),
            () if over => Ok(Outcome::Done(done as i64)),
            () => Ok(Outcome::Block(For::Input, done)),
        }
    }

    /// Sends these pieces; so much is sent already.
    pub fn transmit(&mut self, at: usize, pieces: &Pieces, mut done: u64) -> Result<Outcome, i64> {
        let socket = self.table[at].as_mut().ok_or(errno::EBADF)?;
        socket.refresh(&mut self.sockets);
        if socket.error != 0 && done == 0 {
            return Err(-core::mem::take(&mut socket.error));
        }
        let handle = match socket.state {
            State::Connected(handle) => handle,
            State::Connecting(_) => return Ok(Outcome::Block(For::Output, done)),
            _ => return Err(errno::EPIPE),
        };
        let all = program::total(pieces);
        let (mut is_there, mut has_room) = (true, true);
        while is_there && has_room && done < all {
            for (from, length) in program::behind(pieces, done) {
                let mut here = 0;
                let stream = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
                while here < length && stream.can_send() && is_there {
                    let got = stream.send(|room| {
                        let bytes = room.len().min((length - here) as usize);
                        is_there = host::read(from + here, &mut room[..bytes]);
                        let bytes = if is_there { bytes } else { 0 };
                        (bytes, bytes)
                    });
                    here += got.unwrap_or(0) as u64;
                }
                done += here;
                has_room = stream.can_send();
                if here < length {
                    break;
                }
            }
            self.send();
        }
        let stream = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
        match () {
            () if !is_there && done == 0 => Err(errno::EFAULT),
            () if done >= all || !is_there => Ok(Outcome::Done(done as i64)),
            () if !stream.may_send() && done == 0 => Err(errno::EPIPE),
            () if !stream.may_send() => Ok(Outcome::Done(done as i64)),
            () => Ok(Outcome::Block(For::Output, done)),
        }
    }

    /// Sends bytes of the stack's own memory: how many there was room for.
    pub fn transmit_bytes(&mut self, at: usize, bytes: &[u8]) -> Result<u64, i64> {
        let socket = self.table[at].as_mut().ok_or(errno::EBADF)?;
        socket.refresh(&mut self.sockets);
        let handle = match socket.state {
            State::Connected(handle) => handle,
            State::Connecting(_) => return Ok(0),
            _ => return Err(errno::EPIPE),
        };
        let mut done = 0;
        while done < bytes.len() {
            let stream = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
            let sent = stream.send_slice(&bytes[done..]);
            done += sent.map_err(|_| errno::EPIPE)?;
            self.send();
            if !self.sockets.get::<tcp::Socket<'_>>(handle).can_send() {
                break;
            }
        }
        Ok(done as u64)
    }

    /// Ends one way, or both.
    pub fn shutdown(&mut self, at: usize, how: u64) -> Result<Outcome, i64> {
        const READ: u64 = 0;
        const WRITE: u64 = 1;
        const BOTH: u64 = 2;
        let socket = self.table[at].as_mut().ok_or(errno::EBADF)?;
        socket.refresh(&mut self.sockets);
        if how > BOTH {
            return Err(errno::EINVAL);
        }
        socket.receives_no_more |= matches!(how, READ | BOTH);
        socket.sends_no_more |= matches!(how, WRITE | BOTH);
        self.has_changed = true;
        match socket.state {
            State::Connected(handle) => {
                if matches!(how, WRITE | BOTH) {
                    self.sockets.get_mut::<tcp::Socket<'_>>(handle).close();
                    self.send();
                }
                Ok(Outcome::Done(0))
            }
            State::Datagram(_, Some(_)) => Ok(Outcome::Done(0)),
            _ => Err(errno::ENOTCONN),
        }
    }
}
