//! A server of few words: its folders have the same names at all depths, and a name's first
//! letter says what it stands for. Answers go through a hand that may change them.

use std::boxed::Box;
use std::collections::VecDeque;
use std::string::ToString;
use std::vec::Vec;

use postern_exos_abi::errno::{self, Errno};

use crate::mount::{Host, Options};
use crate::rpc::{Patience, Transport};
use crate::xdr::{Reader, Writer};

/// Bytes of every file.
pub const SIZE: u64 = 5000;
/// Entries of every folder.
const ENTRIES: u64 = 23;

/// What becomes of an answer: the messages that come instead of it.
pub type Hand = Box<dyn FnMut(&[u8]) -> Vec<Vec<u8>>>;

/// The server, and the way to it.
pub struct Server {
    hand: Hand,
    coming: VecDeque<Vec<u8>>,
    clock: u64,
    /// Messages that were sent to it.
    pub sent: u64,
    /// How often it has been started.
    pub instance: u64,
    /// What was written, with whether it stays.
    pub written: Vec<(u64, Vec<u8>, bool)>,
    is_plus: bool,
    /// A stream's: how often it refuses to be connected again.
    pub stream: Option<u32>,
    /// The stream ends, once.
    pub ends: bool,
}

impl Server {
    pub fn new(hand: Hand, is_plus: bool) -> Server {
        Server {
            hand,
            coming: VecDeque::new(),
            clock: 0,
            sent: 0,
            instance: 1,
            written: Vec::new(),
            is_plus,
            stream: None,
            ends: false,
        }
    }

    /// What comes for a message.
    pub fn answers(&mut self, request: &[u8]) -> Vec<Vec<u8>> {
        self.sent += 1;
        let answer = self.answer(request);
        answer.map_or(Vec::new(), |answer| (self.hand)(&answer))
    }

    fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let mut r = Reader::new(request);
        let number = r.word().ok()?;
        let mut head = [0; 5];
        for word in &mut head {
            *word = r.word().ok()?;
        }
        let [_, _, program, _, procedure] = head;
        for _ in 0..2 {
            r.word().ok()?;
            r.opaque(400).ok()?;
        }
        let mut w = Writer::default();
        for word in [number, 1, 0, 0, 0, 0] {
            w.word(word);
        }
        match (program, procedure) {
            (100_000, _) => w.word(2049),
            (100_005, _) => {
                w.word(0);
                w.opaque(b"d");
                w.word(1);
                w.word(1);
            }
            _ => self.file(procedure, &mut r, &mut w)?,
        }
        Some(w.bytes)
    }

    fn file(&mut self, procedure: u32, r: &mut Reader<'_>, w: &mut Writer) -> Option<()> {
        let handle = r.opaque(64).ok()?;
        let verifier = self.instance.to_be_bytes();
        if procedure == 17 && !self.is_plus {
            w.word(10004);
            return Some(());
        }
        if procedure == 3 {
            let name = r.opaque(255).ok()?;
            let is_there = !name.starts_with(b".nfs") && !name.starts_with(b"x");
            w.word(if is_there { 0 } else { 2 });
            if is_there {
                w.opaque(name.get(..name.len().min(64))?);
                some(w, name);
            }
            some(w, handle);
            return Some(());
        }
        w.word(0);
        match procedure {
            1 => attributes(w, handle),
            2 | 12 | 13 => change(w, handle),
            4 => {
                some(w, handle);
                w.word(63);
            }
            5 => {
                some(w, handle);
                w.opaque(b"some/where");
            }
            6 => {
                let (offset, count) = (r.double().ok()?, r.word().ok()?);
                let count = SIZE.saturating_sub(offset).min(count.into());
                some(w, handle);
                w.word(count as u32);
                w.word((offset + count >= SIZE).into());
                w.opaque(&std::vec![7; count as usize]);
            }
            7 => {
                let (offset, count, how) = (r.double().ok()?, r.word().ok()?, r.word().ok()?);
                let bytes = r.opaque(1 << 17).ok()?;
                self.written.push((offset, bytes.to_vec(), how == 2));
                change(w, handle);
                w.word(count);
                w.word(how);
                w.fixed(&verifier);
            }
            8..=10 => {
                let name = r.opaque(255).ok()?;
                w.word(1);
                w.opaque(name.get(..name.len().min(64))?);
                some(w, name);
                change(w, handle);
            }
            14 => {
                change(w, handle);
                change(w, handle);
            }
            15 => {
                some(w, handle);
                change(w, b"d");
            }
            16 | 17 => {
                let from = r.double().ok()?;
                some(w, handle);
                w.fixed(&verifier);
                let end = (from + 5).min(ENTRIES);
                for number in from..end {
                    w.word(1);
                    w.double(number);
                    let name = [["f", "d", "l"][number as usize % 3], &number.to_string()].concat();
                    w.opaque(name.as_bytes());
                    w.double(number + 1);
                    if procedure == 17 {
                        some(w, name.as_bytes());
                        w.word(1);
                        w.opaque(name.as_bytes());
                    }
                }
                w.word(0);
                w.word((end == ENTRIES).into());
            }
            18 => {
                some(w, handle);
                for double in [1 << 30, 1 << 29, 1 << 29, 1000, 500, 500] {
                    w.double(double);
                }
                w.word(0);
            }
            19 => {
                some(w, handle);
                for word in [1 << 16, 1 << 16, 512, 1 << 16, 1 << 16, 512, 8192] {
                    w.word(word);
                }
                w.double(1 << 40);
            }
            21 => {
                change(w, handle);
                w.fixed(&verifier);
                for (_, _, stays) in &mut self.written {
                    *stays = true;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Ends and starts anew: what was not committed is lost.
    pub fn restart(&mut self) {
        self.instance += 1;
        self.written.retain(|(_, _, stays)| *stays);
    }
}

fn attributes(w: &mut Writer, handle: &[u8]) {
    w.word(match handle.first() {
        Some(b'd') => 2,
        Some(b'l') => 5,
        Some(b's') => 6,
        _ => 1,
    });
    w.word(0o644);
    w.word(1);
    w.double(0);
    w.double(SIZE);
    w.double(8192);
    for _ in 0..6 {
        w.double(1 << 32);
    }
}

fn some(w: &mut Writer, handle: &[u8]) {
    w.word(1);
    attributes(w, handle);
}

fn change(w: &mut Writer, handle: &[u8]) {
    w.word(0);
    some(w, handle);
}

/// Shared, so that a test sees what the client's transport has seen.
#[derive(Clone)]
pub struct Way(pub std::rc::Rc<std::cell::RefCell<Server>>);

impl Way {
    pub fn new(hand: Hand, is_plus: bool) -> Way {
        Way(std::rc::Rc::new(std::cell::RefCell::new(Server::new(
            hand, is_plus,
        ))))
    }
}

impl Transport for Way {
    fn send(&mut self, message: &[u8]) -> Result<(), Errno> {
        let mut server = self.0.borrow_mut();
        let answers = server.answers(message);
        server.coming.extend(answers);
        Ok(())
    }

    fn receive(&mut self, wait: u64, message: &mut Vec<u8>) -> Result<bool, Errno> {
        let mut server = self.0.borrow_mut();
        if server.ends {
            return Err(errno::CONNRESET);
        }
        let Some(next) = server.coming.pop_front() else {
            server.clock += wait;
            return Ok(false);
        };
        server.clock += 1;
        message.clear();
        message.extend(next);
        Ok(true)
    }

    fn now(&mut self) -> u64 {
        self.0.borrow().clock
    }

    fn limit(&self) -> usize {
        1472
    }

    fn patience(&self) -> Option<u64> {
        self.0.borrow().stream.is_none().then_some(700)
    }

    fn reconnect(&mut self, _: u64) -> Result<(), Errno> {
        let mut server = self.0.borrow_mut();
        match &mut server.stream {
            Some(refusals @ 1..) => {
                *refusals -= 1;
                return Err(errno::CONNREFUSED);
            }
            _ => server.ends = false,
        }
        Ok(())
    }

    fn rest(&mut self, wait: u64) {
        self.0.borrow_mut().clock += wait;
    }
}

impl Host for Way {
    type Transport = Way;

    fn connect(&mut self, _: u16) -> Result<Way, Errno> {
        Ok(self.clone())
    }

    fn is_stream(&self) -> bool {
        false
    }
}

/// How tests mount.
pub const OPTIONS: Options<'static> = Options {
    export: b"/export",
    port: None,
    mount_port: None,
    machine: b"test",
    user: 0,
    group: 0,
    seed: 7,
    patience: Patience {
        first: None,
        tries: None,
    },
};
