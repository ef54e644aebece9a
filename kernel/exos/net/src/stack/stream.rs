//! Connections: TCP.

use alloc::vec::Vec;

use postern_exos_abi::errno::{self, Errno};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{self, RecvError, State};
use smoltcp::time::Duration;

use super::datagram::{address, endpoint};
use super::socket::{Address, Body, Kind, Ready, Socket, buffer};
use super::{Ground, Stack};

/// Connections that can be asked for at a time at a port, at most: each has its buffers.
const BACKLOG: usize = 8;
/// Who is silent for so long while something is to be answered has gone.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same while a connection is asked for.
const CONNECTING: Duration = Duration::from_secs(20);
/// The same while somebody asks for one and has not confirmed it: a place of the backlog is free
/// then.
const CONFIRMING: Duration = Duration::from_secs(5);

fn new(room: [usize; 2]) -> tcp::Socket<'static> {
    let [reads, writes] = room;
    let side = |bytes| tcp::SocketBuffer::new(buffer(bytes));
    let mut socket = tcp::Socket::new(side(reads), side(writes));
    socket.set_ack_delay(None);
    socket
}

/// Whether a connection that was asked for is made.
pub(super) fn has_come(set: &SocketSet<'_>, handle: SocketHandle) -> bool {
    !matches!(
        set.get::<tcp::Socket>(handle).state(),
        State::Listen | State::SynReceived | State::SynSent | State::Closed | State::TimeWait
    )
}

/// Connections of a listener that have failed before anybody accepted them are waited for anew.
pub(super) fn listen_again(set: &mut SocketSet<'_>, socket: &Socket) {
    if let Body::Listener(handles) = &socket.body {
        for handle in handles {
            let stream = set.get_mut::<tcp::Socket>(*handle);
            if super::is_over(stream) {
                stream.abort();
                let _ = stream.listen(socket.local.listens());
                stream.set_timeout(Some(CONFIRMING));
            }
        }
    }
}

/// Whom a connection is with.
pub(super) fn remote(stream: &tcp::Socket<'_>) -> Option<Address> {
    stream.remote_endpoint().map(address)
}

/// What can be done with a connection, which has failed or not.
pub(super) fn ready(stream: &tcp::Socket<'_>, socket: &Socket, failed: bool) -> Ready {
    let state = stream.state();
    let asks = matches!(state, State::SynSent | State::SynReceived);
    let ends = !asks && !stream.may_recv();
    Ready {
        read: stream.can_recv() || ends || socket.shut_read,
        write: stream.can_send() || !asks && !stream.may_send(),
        error: failed,
        ended: state == State::Closed || ends && socket.shut_write,
    }
}

impl Stack {
    /// Has a socket be asked for connections, so many at a time.
    pub fn listen(
        &mut self,
        number: usize,
        backlog: usize,
        ground: &mut impl Ground,
    ) -> Result<(), Errno> {
        if self.kind(number)? != Kind::Stream {
            return Err(errno::NOTSUP);
        }
        match self.at(number)?.body {
            Body::Listener(_) => return Ok(()),
            Body::Stream => {}
            _ => return Err(errno::INVAL),
        }
        self.bind_any(number, ground)?;
        let (local, room) = self.at(number).map(|socket| (socket.local, socket.room))?;
        let mut handles = Vec::new();
        for _ in 0..backlog.clamp(1, BACKLOG) {
            handles.push(self.set.add(new(room)));
            self.listen_at(handles.last().copied(), local);
        }
        self.at(number)?.body = Body::Listener(handles);
        Ok(())
    }

    fn listen_at(&mut self, handle: Option<SocketHandle>, local: Address) {
        if let Some(handle) = handle {
            let stream = self.set.get_mut::<tcp::Socket>(handle);
            let _ = stream.listen(local.listens());
            stream.set_timeout(Some(CONFIRMING));
        }
    }

    /// A connection that was asked for and is made: a new socket, and whom it is with.
    pub fn accept(&mut self, number: usize) -> Result<(usize, Address), Errno> {
        let new_number = self.free();
        let set = &self.set;
        let socket = self.sockets.get_mut(number).and_then(Option::as_mut);
        let socket = socket.ok_or(errno::BADF)?;
        let Body::Listener(handles) = &mut socket.body else {
            return Err(errno::INVAL);
        };
        // Who asked first is accepted first: a program that serves one after the other would wait
        // for the second, and its client for the first.
        let gate = &self.gate;
        let early = |handle: SocketHandle| remote(set.get(handle)).map_or(0, |of| gate.order(of));
        let came = handles.iter().enumerate();
        let came = came.filter(|(_, handle)| has_come(set, **handle));
        let came = came.min_by_key(|(_, handle)| early(**handle));
        let came = came.map(|(at, _)| at).ok_or(errno::AGAIN)?;
        let new_number = new_number?;
        let handle = handles.remove(came);
        let (local, room) = (socket.local, socket.room);
        let (nodelay, keepalive) = (socket.nodelay, socket.keepalive);
        let again = self.set.add(new(room));
        self.listen_at(Some(again), local);
        if let Body::Listener(handles) = &mut self.at(number)?.body {
            handles.push(again);
        }
        let stream = self.set.get_mut::<tcp::Socket>(handle);
        stream.set_timeout(Some(PATIENCE));
        let remote = remote(stream).unwrap_or(Address::NONE);
        let host = stream.local_endpoint().map(address);
        let local = host.unwrap_or(local);
        self.put(new_number, Kind::Stream, Body::Connection(handle));
        let socket = self.at(new_number)?;
        (socket.local, socket.room, socket.established) = (local, room, true);
        (socket.nodelay, socket.keepalive) = (nodelay, keepalive);
        self.apply(new_number)?;
        Ok((new_number, remote))
    }

    /// Asks for a connection. [`errno::INPROGRESS`] until [`Stack::connected`] says more.
    pub fn connect(
        &mut self,
        number: usize,
        to: Address,
        ground: &mut impl Ground,
    ) -> Result<(), Errno> {
        match self.at(number)?.body {
            Body::Stream => {}
            Body::Connection(_) => {
                return match self.connected(number) {
                    Ok(()) => Err(errno::ISCONN),
                    Err(errno::INPROGRESS) => Err(errno::ALREADY),
                    Err(error) => Err(error),
                };
            }
            Body::Listener(_) => return Err(errno::ISCONN),
            _ => return Err(errno::NOTSUP),
        }
        if to.port == 0 || to.host.is_unspecified() {
            return Err(errno::CONNREFUSED);
        }
        self.view.next(to.host).ok_or(errno::NETUNREACH)?;
        self.bind_any(number, ground)?;
        let (port, room) = self
            .at(number)
            .map(|socket| (socket.local.port, socket.room))?;
        let mut stream = new(room);
        stream.set_timeout(Some(CONNECTING));
        let context = self.interface.context();
        let from = Address {
            host: self.view.from(to.host),
            port,
        };
        let asked = stream.connect(context, endpoint(to), endpoint(from));
        asked.map_err(|_| errno::NETUNREACH)?;
        let handle = self.set.add(stream);
        let now = self.now;
        let socket = self.at(number)?;
        socket.local = from;
        socket.body = Body::Connection(handle);
        socket.since = now;
        self.apply(number)?;
        Err(errno::INPROGRESS)
    }

    /// Whether a connection that was asked for is made.
    pub fn connected(&mut self, number: usize) -> Result<(), Errno> {
        let socket = self.at(number)?;
        let Body::Connection(handle) = socket.body else {
            return Err(errno::NOTCONN);
        };
        if socket.established {
            return Ok(());
        }
        let stream = self.set.get_mut::<tcp::Socket>(handle);
        match stream.state() {
            State::SynSent | State::SynReceived => Err(errno::INPROGRESS),
            State::Closed => Err(self.failed(number)),
            _ => {
                stream.set_timeout(Some(PATIENCE));
                self.at(number)?.established = true;
                Ok(())
            }
        }
    }

    /// Why a connection was not made, told once.
    fn failed(&mut self, number: usize) -> Errno {
        let error = self.failure(number).unwrap_or(errno::CONNABORTED);
        if let Ok(socket) = self.at(number) {
            socket.told = true;
        }
        error
    }

    /// Why a connection is none, if nobody was told so far.
    pub(super) fn failure(&mut self, number: usize) -> Option<Errno> {
        let now = self.now;
        let socket = self.at(number).ok()?;
        let Body::Connection(handle) = socket.body else {
            return None;
        };
        let (told, established, since) = (socket.told, socket.established, socket.since);
        let stream = self.set.get_mut::<tcp::Socket>(handle);
        if told || stream.state() != State::Closed {
            return None;
        }
        // With nothing to be read it says whether the other side has ended it well.
        let finished = stream.recv_queue() == 0 && stream.peek(1) == Err(RecvError::Finished);
        match established {
            true if finished => None,
            true => Some(errno::CONNRESET),
            false if now - since >= CONNECTING => Some(errno::TIMEDOUT),
            false => Some(errno::CONNREFUSED),
        }
    }

    /// Bytes to a connection: how many there was room for.
    pub fn send(&mut self, number: usize, bytes: &[u8]) -> Result<usize, Errno> {
        let handle = self.connection(number)?;
        if self.at(number)?.shut_write {
            return Err(errno::PIPE);
        }
        let stream = self.set.get_mut::<tcp::Socket>(handle);
        match stream.send_slice(bytes) {
            Ok(0) if !bytes.is_empty() => Err(errno::AGAIN),
            Ok(count) => Ok(count),
            Err(_) => Err(self.reset(number).unwrap_or(errno::PIPE)),
        }
    }

    /// Bytes of a connection; 0: the other side has ended it.
    pub fn receive(&mut self, number: usize, to: &mut [u8], peek: bool) -> Result<usize, Errno> {
        let handle = self.connection(number)?;
        if self.at(number)?.shut_read {
            return Ok(0);
        }
        let stream = self.set.get_mut::<tcp::Socket>(handle);
        let received = match peek {
            true => stream.peek_slice(to),
            false => stream.recv_slice(to),
        };
        match received {
            Ok(0) if !to.is_empty() => Err(errno::AGAIN),
            Ok(count) => Ok(count),
            Err(RecvError::Finished) => Ok(0),
            // An end is told once as an error, and then as an end.
            Err(RecvError::InvalidState) => self.reset(number).map_or(Ok(0), Err),
        }
    }

    fn connection(&mut self, number: usize) -> Result<SocketHandle, Errno> {
        let Body::Connection(handle) = self.at(number)?.body else {
            return Err(errno::NOTCONN);
        };
        match self.connected(number) {
            Err(errno::INPROGRESS) => Err(errno::AGAIN),
            Err(error) => Err(error),
            Ok(()) => Ok(handle),
        }
    }

    fn reset(&mut self, number: usize) -> Option<Errno> {
        let failure = self.failure(number);
        if let Ok(socket) = self.at(number) {
            socket.told |= failure.is_some();
        }
        failure
    }
}
