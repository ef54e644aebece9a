//! A client of the guest's on this side of the wire: a stack of sockets, whose frames are the
//! wire's.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use postern_exos_abi::errno::{self, Errno};
use postern_exos_net::Hardware;
use postern_exos_net::frame::LONGEST;
use postern_exos_net::ports::Claim;
use postern_exos_net::stack::{
    Address, Arrivals, Departures, Ground, Kind, Neighbourhood, Side, Stack, View,
};

use crate::guest::{GUEST, Guest, OWN, PATIENCE};

struct In(VecDeque<Vec<u8>>);

impl Arrivals for In {
    fn first(&self) -> Option<&[u8]> {
        self.0.front().map(Vec::as_slice)
    }

    fn next(&mut self) {
        self.0.pop_front();
    }
}

struct Out<'a>(&'a Guest, Vec<u8>);

impl Departures for Out<'_> {
    fn place(&mut self) -> Option<&mut [u8]> {
        Some(&mut self.1)
    }

    fn send(&mut self, length: usize) {
        self.0.send(&self.1[..length]);
    }
}

/// Whose ports they are: a number that no client had before.
struct Here(u16);

impl Ground for Here {
    fn claim(&mut self, _: Claim) -> Result<(), Errno> {
        Ok(())
    }

    fn leave(&mut self, _: Claim) {}

    fn own(&self) -> u16 {
        self.0
    }

    fn random(&mut self) -> u32 {
        self.0.into()
    }
}

struct Known;

impl Neighbourhood for Known {
    fn find(&self, address: Ipv4Addr) -> Option<Hardware> {
        (address == GUEST.1).then_some(GUEST.0)
    }
}

/// A client.
pub struct Client<'a> {
    guest: &'a Guest,
    stack: Stack,
    arrivals: In,
    departures: Out<'a>,
    ground: Here,
    begun: Instant,
    /// The guest's last segment, as it came.
    pub last: Vec<u8>,
}

impl<'a> Client<'a> {
    /// One with ports of its own, by a number below 256.
    pub fn new(guest: &'a Guest, number: u16) -> Client<'a> {
        let view = View {
            address: OWN.1,
            bits: 24,
            gateway: None,
            hardware: OWN.0,
        };
        Client {
            guest,
            stack: Stack::new(view, u64::from(number) << 20 | 77),
            arrivals: In(VecDeque::new()),
            departures: Out(guest, vec![0; LONGEST]),
            ground: Here(number),
            begun: Instant::now(),
            last: Vec::new(),
        }
    }

    /// Takes what comes within a moment, and sends what is due.
    pub fn poll(&mut self) {
        let mut wait = Duration::from_millis(2);
        while let Some(frame) = self.guest.receive(wait) {
            self.last.clone_from(&frame);
            self.arrivals.0.push_back(frame);
            wait = Duration::from_micros(1);
            if self.arrivals.0.len() > 64 {
                break;
            }
        }
        let now = self.begun.elapsed().as_micros() as u64;
        let (arrivals, departures) = (&mut self.arrivals, &mut self.departures);
        self.stack.poll(now, arrivals, departures, &Known);
        self.stack.tend(&mut self.ground);
    }

    /// A connection to a port of the guest's, if there is one in time.
    pub fn connect(&mut self, port: u16) -> Option<usize> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let socket = self.stack.socket(Kind::Stream).expect("a socket");
            let to = Address {
                host: GUEST.1,
                port,
            };
            let asked = self.stack.connect(socket, to, &mut self.ground);
            assert_eq!(asked, Err(errno::INPROGRESS));
            loop {
                self.poll();
                match self.stack.connected(socket) {
                    Ok(()) => return Some(socket),
                    Err(errno::INPROGRESS) if Instant::now() < until => {}
                    Err(_) => break,
                }
            }
            self.stack.close(socket, &mut self.ground);
        }
        None
    }

    /// Sends bytes; how many went.
    pub fn send(&mut self, socket: usize, bytes: &[u8]) -> usize {
        self.stack.send(socket, bytes).unwrap_or(0)
    }

    /// What comes back over a connection for bytes, until the other side ends or `enough` says so.
    pub fn exchange(
        &mut self,
        port: u16,
        bytes: &[u8],
        ends: bool,
        enough: impl Fn(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        let socket = self.connect(port)?;
        let (mut sent, mut got, mut piece) = (0, Vec::new(), [0; 4096]);
        let until = Instant::now() + PATIENCE;
        let result = loop {
            if sent < bytes.len() {
                sent += self.send(socket, &bytes[sent..]);
                if sent == bytes.len() && ends {
                    let _ = self.stack.shutdown(socket, Side::Write);
                }
            }
            self.poll();
            match self.stack.receive(socket, &mut piece, false) {
                Ok(0) => break Some(got),
                Ok(more) => got.extend_from_slice(&piece[..more]),
                Err(errno::AGAIN) => {}
                Err(_) => break None,
            }
            if enough(&got) {
                break Some(got);
            }
            if Instant::now() >= until {
                break None;
            }
        };
        self.stack.close(socket, &mut self.ground);
        self.poll();
        result
    }

    /// Whether a server that sends back what comes does so.
    pub fn is_echoed(&mut self, port: u16) -> bool {
        let bytes: Vec<u8> = (0..20_000u32).map(|at| ((at * 31) >> 3) as u8).collect();
        self.exchange(port, &bytes, true, |_| false)
            .is_some_and(|got| got == bytes)
    }

    /// The answer to a request for a path, once its bytes are there.
    pub fn get(&mut self, path: &str) -> Option<String> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: guest\r\nConnection: close\r\n\r\n");
        let got = self.exchange(80, request.as_bytes(), false, |_| false)?;
        Some(String::from_utf8_lossy(&got).into_owned())
    }
}
