//! Calls that send and receive.

use crate::host;
use crate::program::{self, Message, Pieces};
use crate::stack::Stack;
use crate::wait::{Outcome, errno};
use smoltcp::wire::IpEndpoint;

/// Numbers of calls.
pub mod number {
    pub const READ: u64 = 0;
    pub const WRITE: u64 = 1;
    pub const READV: u64 = 19;
    pub const WRITEV: u64 = 20;
    pub const SENDFILE: u64 = 40;
    pub const SENDTO: u64 = 44;
    pub const RECVFROM: u64 = 45;
    pub const SENDMSG: u64 = 46;
    pub const RECVMSG: u64 = 47;
    pub const RECVMMSG: u64 = 299;
    pub const SENDMMSG: u64 = 307;
}

/// `struct mmsghdr`: a message, and how long it was.
const MESSAGE: u64 = 64;
const MESSAGE_LENGTH: u64 = 56;

/// The flags of such a call.
pub fn flags(call: u64, arguments: &[u64; 6]) -> u64 {
    let word = match call {
        number::SENDTO | number::RECVFROM | number::RECVMMSG | number::SENDMMSG => arguments[3],
        number::SENDMSG | number::RECVMSG => arguments[2],
        _ => 0,
    };
    word & 0xffff_ffff
}

impl Stack {
    /// Does what such a call asks for; so much is done already.
    pub fn transfer(
        &mut self,
        at: usize,
        call: u64,
        words: &[u64; 6],
        done: u64,
    ) -> Result<Outcome, i64> {
        let one = |at: u64, length: u64| alloc::vec![(at, length.min(i32::MAX as u64))];
        let [_, first, second, _, fifth, sixth] = *words;
        let flags = flags(call, words);
        match call {
            number::READ => self.take(at, &one(first, second), 0, done, |_| Ok(())),
            number::READV => {
                let pieces = program::pieces(first, second)?;
                self.take(at, &pieces, 0, done, |_| Ok(()))
            }
            number::RECVFROM => {
                self.take(at, &one(first, second), flags, done, |from| match from {
                    Some(from) => program::put_address(fifth, sixth, from.2),
                    None => Ok(()),
                })
            }
            number::RECVMSG => self.take_message(at, first, flags, done),
            number::RECVMMSG if second == 0 => Ok(Outcome::Done(0)),
            number::RECVMMSG => {
                let outcome = self.take_message(at, first, flags, done)?;
                let Outcome::Done(length) = outcome else {
                    return Ok(outcome);
                };
                let length = (length as u32).to_le_bytes();
                let written = host::write(first + MESSAGE_LENGTH, &length);
                written.then_some(Outcome::Done(1)).ok_or(errno::EFAULT)
            }
            number::WRITE => self.give(at, &one(first, second), None, done),
            number::WRITEV => {
                let pieces = program::pieces(first, second)?;
                self.give(at, &pieces, None, done)
            }
            number::SENDTO => {
                let to = self.peer(at, fifth, sixth)?;
                self.give(at, &one(first, second), to, done)
            }
            number::SENDMSG => self.give_message(at, first, done),
            number::SENDMMSG => self.give_messages(at, first, second),
            number::SENDFILE => self.send_file(at, words, done),
            _ => Err(errno::EOPNOTSUPP),
        }
    }

    fn is_datagram(&self, at: usize) -> bool {
        self.table[at]
            .as_ref()
            .is_some_and(|socket| socket.is_datagram())
    }

    /// To whom a datagram is; a stream's is its own.
    fn peer(&self, at: usize, name: u64, length: u64) -> Result<Option<IpEndpoint>, i64> {
        if name == 0 || !self.is_datagram(at) {
            return Ok(None);
        }
        match program::address(name, length)? {
            (2, to) => Ok(Some(to)),
            _ => Err(errno::EAFNOSUPPORT),
        }
    }

    fn take(
        &mut self,
        at: usize,
        pieces: &Pieces,
        flags: u64,
        done: u64,
        about: impl FnOnce(Option<(u64, u64, IpEndpoint)>) -> Result<(), i64>,
    ) -> Result<Outcome, i64> {
        const WHOLE: u64 = 0x20;
        if !self.is_datagram(at) {
            let outcome = self.receive(at, pieces, flags, done)?;
            if let Outcome::Done(_) = outcome {
                about(None)?;
            }
            return Ok(outcome);
        }
        match self.receive_datagram(at, pieces, flags)? {
            Some(got) => {
                about(Some(got))?;
                let length = if flags & WHOLE != 0 { got.1 } else { got.0 };
                Ok(Outcome::Done(length as i64))
            }
            None => Ok(Outcome::Block(crate::wait::For::Input, 0)),
        }
    }

    fn take_message(
        &mut self,
        at: usize,
        message: u64,
        flags: u64,
        done: u64,
    ) -> Result<Outcome, i64> {
        const TRUNCATED: u32 = 0x20;
        let message = Message::read(message)?;
        self.take(at, &message.pieces, flags, done, |got| {
            let truncated = got.is_some_and(|(here, whole, _)| here < whole);
            let flags = if truncated { TRUNCATED } else { 0 };
            message.answer(got.map(|(_, _, from)| from), flags)
        })
    }

    fn give(
        &mut self,
        at: usize,
        pieces: &Pieces,
        to: Option<IpEndpoint>,
        done: u64,
    ) -> Result<Outcome, i64> {
        match self.is_datagram(at) {
            true => self.send_datagram(at, pieces, to),
            false => self.transmit(at, pieces, done),
        }
    }

    fn give_message(&mut self, at: usize, message: u64, done: u64) -> Result<Outcome, i64> {
        let message = Message::read(message)?;
        let to = self.peer(at, message.name, message.name_length.into())?;
        self.give(at, &message.pieces, to, done)
    }

    /// Several; the first that has no room ends it.
    fn give_messages(&mut self, at: usize, messages: u64, count: u64) -> Result<Outcome, i64> {
        const MOST: u64 = 1024;
        let mut sent = 0;
        while sent < count.min(MOST) {
            let message = messages + sent * MESSAGE;
            match self.give_message(at, message, 0) {
                Ok(Outcome::Done(length)) => {
                    let length = (length as u32).to_le_bytes();
                    if !host::write(message + MESSAGE_LENGTH, &length) {
                        return Err(errno::EFAULT);
                    }
                    sent += 1;
                }
                other if sent == 0 => return other,
                _ => break,
            }
        }
        Ok(Outcome::Done(sent as i64))
    }

    /// A part of a file, by way of memory of the stack's.
    fn send_file(&mut self, at: usize, words: &[u64; 6], done: u64) -> Result<Outcome, i64> {
        const READ: u64 = 0;
        const PREAD: u64 = 17;
        const LSEEK: u64 = 8;
        const CURRENT: u64 = 1;
        const PIECE: usize = 64 << 10;
        let [_, file, place, count, ..] = *words;
        let mut from = [0; 8];
        if place != 0 && !host::read(place, &mut from) {
            return Err(errno::EFAULT);
        }
        let start = u64::from_le_bytes(from);
        let mut bytes = alloc::vec![0u8; PIECE.min(count.saturating_sub(done) as usize)];
        let mut sent = done;
        let outcome = loop {
            let to = host::place(bytes.as_mut_ptr() as usize);
            let length = (count - sent).min(bytes.len() as u64);
            let got = match place {
                0 => host::now(READ, [file, to, length, 0, 0, 0]),
                // The word is changed below, once.
                _ => host::now(PREAD, [file, to, length, start + sent - done, 0, 0]),
            };
            if got < 0 && sent == done {
                return Err(got);
            }
            if got <= 0 {
                break Outcome::Done(sent as i64);
            }
            let taken = self.transmit_bytes(at, &bytes[..got as usize])?;
            sent += taken;
            if taken < got as u64 {
                if place == 0 {
                    let back = (taken as i64 - got) as u64;
                    host::now(LSEEK, [file, back, CURRENT, 0, 0, 0]);
                }
                break match sent {
                    0 => Outcome::Block(crate::wait::For::Output, 0),
                    // A part is what programs expect of this call.
                    sent => Outcome::Done(sent as i64),
                };
            }
            if sent >= count {
                break Outcome::Done(sent as i64);
            }
        };
        if place != 0 && !host::write(place, &(start + sent - done).to_le_bytes()) {
            return Err(errno::EFAULT);
        }
        Ok(outcome)
    }
}
