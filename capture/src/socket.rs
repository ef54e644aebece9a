//! A consumer at a Unix datagram socket. Packets that it cannot take now wait in a queue; when that
//! is full they are dropped and counted, so that nobody else waits for it.

use crate::writer::record;
use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Between two attempts to reach a consumer that is not there.
const AGAIN: Duration = Duration::from_millis(100);
/// How long the end waits for a consumer that takes nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// The way to a consumer.
pub(crate) struct SocketSink {
    path: PathBuf,
    socket: UnixDatagram,
    connected: bool,
    tried: Option<Instant>,
    waiting: VecDeque<Vec<u8>>,
    most: usize,
    block: bool,
    /// Packets that were not delivered.
    pub dropped: u64,
}

impl SocketSink {
    pub fn new(path: &Path, most: usize, block: bool) -> io::Result<SocketSink> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(SocketSink {
            path: path.to_owned(),
            socket,
            connected: false,
            tried: None,
            waiting: VecDeque::new(),
            most,
            block,
            dropped: 0,
        })
    }

    /// Delivers a packet, now or as soon as it is taken.
    pub fn packet(&mut self, time: u64, bytes: &[u8], wire: u32) {
        let mut message = Vec::with_capacity(16 + bytes.len());
        record(time, bytes, wire, &mut message);
        self.drain();
        if self.waiting.len() >= self.most && self.block {
            self.wait(None);
        }
        if self.waiting.len() >= self.most {
            self.dropped += 1;
            return;
        }
        self.waiting.push_back(message);
        self.drain();
    }

    /// Delivers what waits, as far as it is taken.
    pub fn drain(&mut self) {
        if self.waiting.is_empty() || !self.reach() {
            return;
        }
        while let Some(message) = self.waiting.front() {
            match self.socket.send(message) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // No datagram of this size can ever be sent.
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => self.dropped += 1,
                Err(_) => {
                    self.connected = false;
                    return;
                }
            }
            self.waiting.pop_front();
        }
    }

    /// Whether there is a consumer; one that is not there is looked for now and then.
    fn reach(&mut self) -> bool {
        if self.connected {
            return true;
        }
        if self.tried.is_some_and(|tried| tried.elapsed() < AGAIN) {
            return false;
        }
        self.tried = Some(Instant::now());
        self.connected = self.socket.connect(&self.path).is_ok();
        self.connected
    }

    /// Waits until there is room in the queue, or nothing waits any more; without end, or until the
    /// consumer took nothing for as long. A consumer that is not there is not waited for.
    fn wait(&mut self, patience: Option<Duration>) {
        let mut since = Instant::now();
        while self.connected && !self.waiting.is_empty() {
            let before = self.waiting.len();
            self.drain();
            if self.waiting.len() < before {
                since = Instant::now();
                if patience.is_none() {
                    return;
                }
                continue;
            }
            if patience.is_some_and(|patience| since.elapsed() > patience) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Delivers what still waits; what is not taken counts as dropped.
    pub fn finish(&mut self) {
        self.tried = None;
        self.drain();
        self.wait(Some(PATIENCE));
        self.dropped += self.waiting.len() as u64;
        self.waiting.clear();
    }
}
