//! What a program's socket is, and whether it has something to tell.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::{tcp, udp};
use smoltcp::wire::IpEndpoint;

/// A socket of the program's.
#[derive(Debug)]
pub struct Socket {
    /// Which one it is to the kernel: the number of the program's end of its pair.
    pub inode: u64,
    /// What it does.
    pub state: State,
    /// What `SO_ERROR` says next.
    pub error: i64,
    /// The keeper's end of its pair, once that has it.
    pub keeper: Option<u64>,
    /// The pair's end is readable: a byte lies there.
    pub is_signalled: bool,
    /// It is not writable: what lies there has not been taken.
    pub is_filled: bool,
    /// Nothing comes any more, and its end says so.
    pub has_ended: bool,
    /// Somebody asks the kernel whether it is ready.
    pub is_watched: bool,
    /// Threads that wait in calls.
    pub waiting: u32,
    /// What was shut down.
    pub receives_no_more: bool,
    pub sends_no_more: bool,
    /// After so many milliseconds, sending gives up; negative: never.
    pub send_timeout: i32,
    /// Options that were set, by level and name.
    pub options: Vec<(u32, u32, Vec<u8>)>,
}

/// What it does.
#[derive(Debug)]
pub enum State {
    /// A stream that is neither connected nor listens, with the port that it was bound to.
    Fresh(Option<u16>),
    Connecting(SocketHandle),
    Connected(SocketHandle),
    Listening(Listener),
    /// Datagrams, to and from this one only if it is connected.
    Datagram(SocketHandle, Option<IpEndpoint>),
}

/// Who connects to a port.
#[derive(Debug)]
pub struct Listener {
    pub port: u16,
    /// As many may wait.
    pub backlog: usize,
    /// Those to whom the next connects.
    pub open: Vec<SocketHandle>,
    /// Those to whom somebody has begun to.
    pub begun: Vec<SocketHandle>,
    /// Those that are connected.
    pub ready: VecDeque<SocketHandle>,
}

/// What there is to be told of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    pub readable: bool,
    pub writable: bool,
    /// Nothing comes any more.
    pub ended: bool,
}

impl Socket {
    /// A new one.
    pub fn new(inode: u64, state: State) -> Socket {
        Socket {
            inode,
            state,
            error: 0,
            keeper: None,
            is_signalled: false,
            is_filled: false,
            has_ended: false,
            is_watched: false,
            waiting: 0,
            receives_no_more: false,
            sends_no_more: false,
            send_timeout: -1,
            options: Vec::new(),
        }
    }

    /// Whether it is for datagrams.
    pub fn is_datagram(&self) -> bool {
        matches!(self.state, State::Datagram(..))
    }

    /// A connection that was begun is there, or is not.
    pub fn refresh(&mut self, sockets: &mut SocketSet<'_>) {
        const REFUSED: i64 = 111;
        let State::Connecting(handle) = self.state else {
            return;
        };
        match sockets.get::<tcp::Socket<'_>>(handle).state() {
            tcp::State::SynSent | tcp::State::SynReceived => {}
            tcp::State::Closed => {
                sockets.remove(handle);
                self.error = REFUSED;
                self.state = State::Fresh(None);
            }
            _ => self.state = State::Connected(handle),
        }
    }

    /// What there is to be told.
    pub fn readiness(&self, sockets: &SocketSet<'_>) -> Readiness {
        let failed = self.error != 0;
        match &self.state {
            State::Fresh(_) => Readiness {
                readable: failed,
                writable: true,
                ended: failed,
            },
            State::Connecting(_) => Readiness::default(),
            State::Connected(handle) => {
                let socket = sockets.get::<tcp::Socket<'_>>(*handle);
                let ended = !socket.may_recv() || self.receives_no_more;
                Readiness {
                    readable: socket.can_recv() || ended,
                    writable: socket.can_send() || !socket.may_send(),
                    ended,
                }
            }
            State::Listening(listener) => Readiness {
                readable: !listener.ready.is_empty(),
                writable: false,
                ended: false,
            },
            State::Datagram(handle, _) => {
                let socket = sockets.get::<udp::Socket<'_>>(*handle);
                Readiness {
                    readable: socket.can_recv() || failed || self.receives_no_more,
                    writable: !socket.is_open() || socket.can_send(),
                    ended: self.receives_no_more,
                }
            }
        }
    }

    /// Whether its keeper has something to do, so that who waits finds what there is.
    pub fn owes(&self, ready: Readiness) -> bool {
        self.keeper.is_some()
            && (self.is_watched || self.waiting > 0)
            && ((ready.readable && !self.is_signalled && !self.has_ended)
                || (ready.ended && !self.has_ended)
                || (ready.writable && self.is_filled))
    }
}
