//! The other side of the machine's network: a peer on the host, which does what frames of the guest
//! ask of it.
//!
//! Emulator and peer exchange frames as datagrams between two sockets in a folder of their own:
//! nothing of it is on any network of the host. A frame of type [`COMMAND`] carries words of 64
//! bits, the lowest byte first, from its byte 16 on: what is asked, and numbers. When it is done,
//! the peer sends such a frame, too: the first word with [`REPORT`], and what came of it.
//!
//! | asked | numbers | what the peer does | report |
//! |---|---|---|---|
//! | [`ECHO`] | any, to the frame's end | sends the frame back | the same numbers |
//! | [`FLOOD`] | count, length | sends frames of type [`PLAIN`], as fast as they are taken; length 0: of all lengths from 14 to 1600, in turn | sent, refused |
//! | [`GARBAGE`] | count, seed | sends frames of bytes at random | sent, refused |
//! | [`ROUNDS`] | rounds | sends a counter by UDP, and it plus one when it comes back plus one | rounds, rounds lost |
//! | [`PACED`] | rounds, microseconds | the same, each round after a pause at random, up to so long | rounds, rounds lost |
//! | [`PING`] | rounds | sends requests for ICMP echo, each when the last one is answered | rounds, rounds lost |
//! | [`LOCKS`] | rounds | clients ask for a lock by UDP, and give it back | rounds, rounds lost, wrong answers |
//! | [`SEEN`] | | | frames of other types since the last time, the last one's length, its hash |
//! | [`SLEEP`] | milliseconds | takes nothing for so long | the same number |

mod frame;
mod lock;

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use frame::{COMMAND, PLAIN};

/// Sends the frame back.
pub const ECHO: u64 = 1;
/// Sends many frames.
pub const FLOOD: u64 = 2;
/// Sends bytes at random.
pub const GARBAGE: u64 = 3;
/// Exchanges a counter by UDP.
pub const ROUNDS: u64 = 4;
/// Exchanges ICMP echoes.
pub const PING: u64 = 5;
/// Asks for a lock.
pub const LOCKS: u64 = 8;
/// Exchanges a counter by UDP, with pauses.
pub const PACED: u64 = 9;
/// Says what it has seen.
pub const SEEN: u64 = 6;
/// Takes nothing for a while.
pub const SLEEP: u64 = 7;
/// In the first word: this is what came of it.
pub const REPORT: u64 = 0x100;

/// A frame that the guest does not take for so long is refused, and a round that is not answered
/// lost.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the peer looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// A peer at work, until dropped.
#[derive(Debug)]
pub struct Peer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The emulator's options for the machine's side of a network.
pub const DEVICE: &str =
    "-device virtio-net-pci,netdev=network,disable-legacy=on,mac=52:54:00:00:00:01,romfile=";

/// The emulator's options for a network with this peer: sockets are in a folder.
pub fn options(folder: &Path) -> String {
    let (machine, peer) = (machine_socket(folder), peer_socket(folder));
    format!(
        "-netdev dgram,id=network,local.type=unix,local.path={},remote.type=unix,remote.path={} \
         {DEVICE}",
        machine.display(),
        peer.display()
    )
}

/// The socket of the emulator in a folder.
pub fn machine_socket(folder: &Path) -> PathBuf {
    folder.join("machine")
}

/// The socket of who is on the other side, in a folder.
pub fn peer_socket(folder: &Path) -> PathBuf {
    folder.join("peer")
}

impl Peer {
    /// Starts a peer whose sockets are in a folder.
    pub fn start(folder: &Path) -> io::Result<Peer> {
        let socket = UnixDatagram::bind(peer_socket(folder))?;
        socket.set_read_timeout(Some(LOOK))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut work = Work {
            socket,
            machine: machine_socket(folder),
            stop: stop.clone(),
            exchange: None,
            seen: [0; 3],
        };
        let thread = std::thread::spawn(move || work.run());
        Ok(Peer {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Rounds that are exchanged.
#[derive(Debug)]
struct Exchange {
    asked: u64,
    left: u64,
    counter: u64,
    done: u64,
    lost: u64,
    lock: lock::Clients,
    /// The longest pause in microseconds, and what pauses are taken from.
    pause: u64,
    random: frame::Random,
    since: Instant,
}

struct Work {
    socket: UnixDatagram,
    machine: PathBuf,
    stop: Arc<AtomicBool>,
    exchange: Option<Exchange>,
    /// Frames of other types, the last one's length and hash.
    seen: [u64; 3],
}

impl Work {
    fn run(&mut self) {
        let mut bytes = [0; 1 << 16];
        while !self.stop.load(Ordering::Relaxed) {
            match self.socket.recv(&mut bytes) {
                Ok(length) => self.take(&bytes[..length]),
                Err(error) if is_late(&error) => {}
                Err(_) => return,
            }
            self.look_for_lost();
        }
    }

    /// Sends a frame; whether it was taken.
    fn send(&self, frame: &[u8]) -> bool {
        self.socket.send_to(frame, &self.machine).is_ok()
    }

    fn report(&self, asked: u64, numbers: [u64; 3]) {
        let [first, second, third] = numbers;
        self.send(&frame::words(&[asked | REPORT, first, second, third]));
    }

    fn take(&mut self, bytes: &[u8]) {
        match frame::kind(bytes) {
            Some(COMMAND) => self.obey(bytes),
            Some(frame::ARP) => {
                if let Some(answer) = frame::arp_answer(bytes) {
                    self.send(&answer);
                }
            }
            Some(frame::IP) if self.exchange.is_some() => self.answered(bytes),
            _ => {
                let [count, ..] = self.seen;
                self.seen = [count + 1, bytes.len() as u64, frame::hash(bytes)];
            }
        }
    }

    fn obey(&mut self, bytes: &[u8]) {
        let word = |index: usize| frame::word(bytes, index);
        let (asked, first, second) = (word(0), word(1), word(2));
        match asked {
            ECHO => _ = self.send(&frame::echo(bytes, ECHO | REPORT)),
            FLOOD => {
                const ALL: u64 = 1600 - 14 + 1;
                let length = |index| match second {
                    0 => 14 + index % ALL,
                    length => length,
                };
                let frames = (0..first).map(|index| frame::plain(length(index) as usize, index));
                let (sent, refused) = self.send_all(frames);
                self.report(asked, [sent, refused, 0]);
            }
            GARBAGE => {
                let mut random = frame::Random(second);
                let (sent, refused) = self.send_all((0..first).map(|_| random.frame()));
                self.report(asked, [sent, refused, 0]);
            }
            ROUNDS | PACED | PING | LOCKS => {
                self.exchange = Some(Exchange {
                    asked,
                    left: first,
                    counter: 0,
                    done: 0,
                    lost: 0,
                    lock: lock::Clients::new(),
                    pause: if asked == PACED {
                        second.min(100_000)
                    } else {
                        0
                    },
                    random: frame::Random(1),
                    since: Instant::now(),
                });
                self.next_round();
            }
            SLEEP => {
                std::thread::sleep(Duration::from_millis(first.min(10_000)));
                self.report(asked, [first, 0, 0]);
            }
            SEEN => {
                let seen = std::mem::take(&mut self.seen);
                self.report(asked, seen);
            }
            _ => self.report(asked, [u64::MAX; 3]),
        }
    }

    /// Sends frames one after the other: how many were taken and how many not. Who takes none any
    /// more is left alone.
    fn send_all(&self, frames: impl Iterator<Item = Vec<u8>>) -> (u64, u64) {
        let (mut sent, mut refused) = (0, 0);
        for frame in frames {
            match self.send(&frame) {
                true => sent += 1,
                false => refused += 1,
            }
            if refused > 3 || self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        (sent, refused)
    }

    /// Begins the next round, or reports that there is none.
    fn next_round(&mut self) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        if exchange.left == 0 {
            let numbers = [exchange.done, exchange.lost, exchange.lock.wrong];
            let asked = exchange.asked;
            self.exchange = None;
            return self.report(asked, numbers);
        }
        exchange.left -= 1;
        if exchange.pause > 0 {
            let pause = exchange.random.next() % exchange.pause;
            std::thread::sleep(Duration::from_micros(pause));
        }
        exchange.since = Instant::now();
        let frame = match exchange.asked {
            ROUNDS | PACED => frame::udp(exchange.counter),
            LOCKS => frame::udp_on(frame::LOCK, exchange.lock.next()),
            _ => frame::ping(exchange.counter as u16),
        };
        self.send(&frame);
    }

    /// A frame of IP came: the counter plus one, or an echo's answer.
    fn answered(&mut self, bytes: &[u8]) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        let counter = match exchange.asked {
            ROUNDS | PACED => frame::udp_counter(bytes)
                .filter(|counter| *counter == exchange.counter.wrapping_add(1)),
            LOCKS => frame::udp_counter_on(frame::LOCK, bytes)
                .inspect(|answer| exchange.lock.answered(*answer)),
            _ => frame::pong(bytes)
                .map(u64::from)
                .filter(|counter| *counter == exchange.counter & 0xffff),
        };
        if counter.is_some() {
            exchange.counter = exchange.counter.wrapping_add(2);
            exchange.done += 1;
            self.next_round();
        }
    }

    fn look_for_lost(&mut self) {
        if let Some(exchange) = &mut self.exchange
            && exchange.since.elapsed() > PATIENCE
        {
            exchange.lost += 1;
            exchange.counter = exchange.counter.wrapping_add(2);
            self.next_round();
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    let kind = error.kind();
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest, as far as the peer can tell.
    struct Guest {
        socket: UnixDatagram,
        peer: PathBuf,
        _work: Peer,
        _folder: tempfile::TempDir,
    }

    fn guest() -> Guest {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixDatagram::bind(machine_socket(folder.path())).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE * 5)).expect("a time");
        Guest {
            _work: Peer::start(folder.path()).expect("a peer"),
            peer: peer_socket(folder.path()),
            socket,
            _folder: folder,
        }
    }

    impl Guest {
        fn send(&self, frame: &[u8]) {
            self.socket.send_to(frame, &self.peer).expect("sending");
        }

        fn next(&self) -> Vec<u8> {
            let mut bytes = vec![0; 2000];
            let length = self.socket.recv(&mut bytes).expect("a frame");
            bytes.truncate(length);
            bytes
        }

        /// The report of something asked, and the frames before it.
        fn ask(&self, words: &[u64]) -> (Vec<Vec<u8>>, Vec<u64>) {
            self.send(&frame::words(words));
            let mut before = Vec::new();
            loop {
                let bytes = self.next();
                if frame::kind(&bytes) == Some(COMMAND) {
                    assert_eq!(frame::word(&bytes, 0), words[0] | REPORT);
                    return (
                        before,
                        (1..4).map(|index| frame::word(&bytes, index)).collect(),
                    );
                }
                before.push(bytes);
            }
        }
    }

    #[test]
    fn what_is_asked_is_done_and_reported() {
        let guest = guest();
        let (before, echo) = guest.ask(&[ECHO, 5, 6, u64::MAX]);
        assert_eq!((before.len(), echo), (0, vec![5, 6, u64::MAX]));
        let (frames, report) = guest.ask(&[FLOOD, 5, 77]);
        assert_eq!(report, [5, 0, 0]);
        let lengths: Vec<usize> = frames.iter().map(Vec::len).collect();
        assert_eq!(lengths, [77; 5]);
        let (frames, _) = guest.ask(&[FLOOD, 1587 + 2, 0]);
        let lengths: Vec<usize> = frames.iter().map(Vec::len).collect();
        assert_eq!((lengths[0], lengths[1586], lengths[1587]), (14, 1600, 14));
        let (garbage, _) = guest.ask(&[GARBAGE, 20, 3]);
        assert_eq!(garbage, guest.ask(&[GARBAGE, 20, 3]).0);
        let frame = frame::plain(60, 9);
        guest.send(&frame);
        assert_eq!(guest.ask(&[SEEN]).1, [1, 60, frame::hash(&frame)]);
        assert_eq!(guest.ask(&[SEEN]).1[0], 0);
        assert_eq!(guest.ask(&[99]).1, [u64::MAX; 3]);
    }

    #[test]
    fn rounds_are_counted() {
        let guest = guest();
        for (asked, rounds) in [(ROUNDS, 40), (PING, 20), (PACED, 9)] {
            guest.send(&frame::words(&[asked, rounds, 300]));
            for _ in 0..rounds {
                let answer = frame::answer(&guest.next()).expect("an answer");
                guest.send(&answer);
            }
            let report = guest.next();
            let numbers: Vec<u64> = (0..3).map(|index| frame::word(&report, index)).collect();
            assert_eq!(numbers, [asked | REPORT, rounds, 0]);
        }
    }

    #[test]
    fn a_round_without_an_answer_is_lost() {
        let guest = guest();
        guest.send(&frame::words(&[ROUNDS, 1]));
        guest.next();
        guest.send(&frame::udp(7));
        let report = guest.next();
        let numbers: Vec<u64> = (0..3).map(|index| frame::word(&report, index)).collect();
        assert_eq!(numbers, [ROUNDS | REPORT, 0, 1]);
    }
}
