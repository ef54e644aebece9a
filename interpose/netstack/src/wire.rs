//! Stacks on a wire in memory: the tests are the kernel, which carries frames from one's rings to
//! the other's.

use crate::descriptor;
use crate::options::Options;
use crate::program::Pieces;
use crate::ring::{self, Ring};
use crate::stack::Stack;
use crate::wait::{For, Outcome};
use smoltcp::wire::{IpAddress, IpEndpoint};

const STREAM: u64 = 1;
const DATAGRAM: u64 = 2;
const NO_FILE: u64 = 0x7fff_fff0;

/// A stack, and its rings' memory, which is kept for good.
fn stack(last: u8) -> (Stack, usize) {
    let memory: &'static mut [u64] = vec![0; (ring::BYTES + 4096) / 8].leak();
    let start = (memory.as_mut_ptr() as usize).next_multiple_of(4096);
    // SAFETY: it is kept, and reached by addresses alone from now on.
    let ring = unsafe { Ring::new(start, NO_FILE, 1514, true) };
    let options = Options {
        address: [10, 0, 0, last],
        prefix: 24,
        ..Options::default()
    };
    let stack = Stack::new(ring, &options, [2, 0, 0, 0, 0, last], last.into());
    (stack, start)
}

fn word(at: usize) -> *mut u32 {
    at as *mut u32
}

/// What the kernel does with frames of one ring: puts them into another. `next`: which slots are.
fn carry(from: usize, to: usize, next: &mut (usize, usize), mut see: impl FnMut(&mut Vec<u8>)) {
    const AT: usize = 80;
    // SAFETY: slots lie in the rings; stacks do nothing meanwhile.
    unsafe {
        loop {
            let sent = from + ring::RECEIVE * ring::RECEIVE_BYTES + next.0 * ring::SEND_BYTES;
            let received = to + next.1 * ring::RECEIVE_BYTES;
            if *word(sent) != 1 || *word(received) != 0 {
                return;
            }
            let length = *word(sent + 4) as usize;
            let frame = core::slice::from_raw_parts((sent + 32) as *const u8, length);
            let mut frame = frame.to_vec();
            see(&mut frame);
            let place = (received + AT) as *mut u8;
            core::ptr::copy_nonoverlapping(frame.as_ptr(), place, frame.len());
            *word(received + 4) = frame.len() as u32;
            *word(received + 8) = frame.len() as u32;
            *word(received + 12) = AT as u32;
            *word(received) = 1;
            *word(sent) = 0;
            next.0 = (next.0 + 1) % ring::SEND;
            next.1 = (next.1 + 1) % ring::RECEIVE;
        }
    }
}

/// Two stacks and the wire between them.
struct Wire {
    stacks: [Stack; 2],
    starts: [usize; 2],
    next: [(usize, usize); 2],
    files: Vec<u64>,
}

impl Wire {
    fn new() -> Wire {
        let ((one, first), (other, second)) = (stack(1), stack(2));
        Wire {
            stacks: [one, other],
            starts: [first, second],
            next: [(0, 0); 2],
            files: Vec::new(),
        }
    }

    fn turn(&mut self, mut see: impl FnMut(&mut Vec<u8>)) {
        for side in 0..2 {
            self.stacks[side].turn();
            let (from, to) = (self.starts[side], self.starts[1 - side]);
            carry(from, to, &mut self.next[side], &mut see);
        }
    }

    fn make(&mut self, side: usize, kind: u64) -> usize {
        let (mine, keepers, at) = self.stacks[side].make(kind, 0).unwrap();
        self.files.extend([mine, keepers]);
        at as usize
    }

    /// A connection from the first to the second: where it is in both.
    fn connection(&mut self) -> (usize, usize) {
        let server = self.make(1, STREAM);
        self.stacks[1].listen(server, 80, 4);
        let client = self.make(0, STREAM);
        let begun = self.stacks[0].connect(client, to(2, 80), 0);
        assert_eq!(begun, Ok(Outcome::Block(For::Output, 1)));
        for _ in 0..10 {
            self.turn(|_| {});
        }
        let connected = self.stacks[0].connect(client, to(2, 80), 1);
        assert_eq!(connected, Ok(Outcome::Done(0)));
        let words = [0; 6];
        let made = self.stacks[1].accept_one(server, &words, 0);
        let (mine, keepers, at) = made.unwrap().unwrap();
        self.files.extend([mine, keepers]);
        (client, at as usize)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.files.iter().for_each(|file| descriptor::close(*file));
    }
}

fn to(last: u8, port: u16) -> IpEndpoint {
    IpEndpoint::new(IpAddress::v4(10, 0, 0, last), port)
}

fn pieces(bytes: &[u8]) -> Pieces {
    let (one, other) = bytes.split_at(bytes.len() / 3);
    [one, other]
        .map(|part| (part.as_ptr() as u64, part.len() as u64))
        .to_vec()
}

#[test]
fn streams_arrive_as_they_were_sent() {
    let mut wire = Wire::new();
    let (client, server) = wire.connection();
    let sent: Vec<u8> = (0..1_000_000u32).map(|at| (at ^ at >> 8) as u8).collect();
    let got = vec![0u8; sent.len()];
    let (mut done, mut arrived) = (0, 0);
    for _ in 0..100_000 {
        if done < sent.len() as u64 {
            done = match wire.stacks[0]
                .transmit(client, &pieces(&sent), done)
                .unwrap()
            {
                Outcome::Block(For::Output, done) => done,
                Outcome::Done(done) => done as u64,
                other => panic!("{other:?}"),
            };
        }
        wire.turn(|_| {});
        let all = 0x100;
        arrived = match wire.stacks[1]
            .receive(server, &pieces(&got), all, arrived)
            .unwrap()
        {
            Outcome::Block(For::Input, done) => done,
            Outcome::Done(_) => break,
            other => panic!("{other:?}"),
        };
    }
    assert!(got == sent);
    assert_eq!(wire.stacks[0].shutdown(client, 1), Ok(Outcome::Done(0)));
    for _ in 0..10 {
        wire.turn(|_| {});
    }
    let end = wire.stacks[1].receive(server, &pieces(&got), 0, 0);
    assert_eq!(end, Ok(Outcome::Done(0)));
    wire.stacks[0].remove(client);
    wire.stacks[1].remove(server);
}

#[test]
fn nobody_listens() {
    let mut wire = Wire::new();
    let client = wire.make(0, STREAM);
    let _ = wire.stacks[0].connect(client, to(2, 81), 0);
    for _ in 0..10 {
        wire.turn(|_| {});
    }
    assert_eq!(wire.stacks[0].connect(client, to(2, 81), 1), Err(-111));
}

#[test]
fn datagrams_arrive_whole_and_from_whom() {
    let mut wire = Wire::new();
    let (one, other) = (wire.make(0, DATAGRAM), wire.make(1, DATAGRAM));
    assert!(
        wire.stacks[1]
            .connect_datagrams(other, Some(to(1, 7)))
            .is_ok()
    );
    let port = wire.stacks[1].table[other]
        .as_ref()
        .and_then(|of| wire.stacks[1].port(of));
    let sent = wire.stacks[0].send_datagram(one, &pieces(&[7; 900]), Some(to(2, port.unwrap())));
    assert_eq!(sent, Ok(Outcome::Done(900)));
    for _ in 0..10 {
        wire.turn(|_| {});
    }
    // From another than the one that it is connected to.
    let got = vec![0u8; 600];
    assert_eq!(
        wire.stacks[1].receive_datagram(other, &pieces(&got), 0),
        Ok(None)
    );
    assert!(wire.stacks[1].connect_datagrams(other, None).is_ok());
    let _ = wire.stacks[0].send_datagram(one, &pieces(&[7; 900]), Some(to(2, port.unwrap())));
    for _ in 0..10 {
        wire.turn(|_| {});
    }
    let (here, whole, _) = wire.stacks[1]
        .receive_datagram(other, &pieces(&got), 0)
        .unwrap()
        .unwrap();
    assert_eq!((here, whole, got), (600, 900, vec![7; 600]));
    let large = vec![0; 1500];
    let sent = wire.stacks[0].send_datagram(one, &pieces(&large), Some(to(2, 9)));
    assert_eq!(sent, Err(-90));
}

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize
    }
}

#[test]
fn frames_that_lie() {
    let mut random = Random(88_172_645_463_325_252);
    let text = vec![1; 3000];
    let (mut wire, mut client) = (Wire::new(), 0);
    for round in 0..20_000 {
        if round % 1000 == 0 {
            wire = Wire::new();
            client = wire.connection().0;
        }
        if round % 8 == 0 {
            let _ = wire.stacks[0].transmit(client, &pieces(&text), 0);
        }
        wire.turn(|frame| {
            for _ in 0..random.next() % 4 {
                let at = random.next() % frame.len();
                frame[at] ^= 1 << (random.next() % 8);
            }
            if random.next().is_multiple_of(16) {
                frame.truncate(random.next() % frame.len());
            }
        });
    }
}

#[test]
fn slots_that_lie() {
    let (mut stack, start) = stack(3);
    let mut random = Random(2_463_534_242);
    for _ in 0..20_000 {
        // SAFETY: in the rings; the stack does nothing meanwhile.
        unsafe {
            let slot = start + random.next() % 4 * ring::RECEIVE_BYTES;
            for at in 0..40 {
                *word(slot + 4 * at) = random.next() as u32 >> (random.next() % 32);
            }
            let slot = start + ring::RECEIVE * ring::RECEIVE_BYTES;
            let slot = slot + random.next() % ring::SEND * ring::SEND_BYTES;
            *word(slot) = random.next() as u32 % 2;
        }
        stack.turn();
    }
}
