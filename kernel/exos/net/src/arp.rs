//! Messages of ARP (RFC 826) and of RARP (RFC 903) for IP on Ethernet.

use core::net::Ipv4Addr;

use crate::frame::{self, Frame, SHORTEST, kind};
use crate::{EVERYBODY, Hardware};

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Who has an address?
    Request = 1,
    /// I have it.
    Reply = 2,
    /// Which address of IP does this one of Ethernet have?
    ReverseRequest = 3,
    /// It has this one.
    ReverseReply = 4,
}

/// Bytes of a message.
const LENGTH: usize = 28;
/// Ethernet, IP, and how long their addresses are.
const HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it is.
    pub operation: Operation,
    /// Who sends it.
    pub sender: (Hardware, Ipv4Addr),
    /// Whom it is about, or for.
    pub target: (Hardware, Ipv4Addr),
}

impl Message {
    /// The message of a frame, if it is one.
    pub fn read(frame: &Frame<'_>) -> Option<Message> {
        let bytes = frame.carries.get(..LENGTH)?;
        if bytes.get(..6)? != HEAD {
            return None;
        }
        let operation = match (frame.kind, frame::half(bytes, 6)?) {
            (kind::ARP, 1) => Operation::Request,
            (kind::ARP, 2) => Operation::Reply,
            (kind::RARP, 3) => Operation::ReverseRequest,
            (kind::RARP, 4) => Operation::ReverseReply,
            _ => return None,
        };
        let hardware = |at: usize| bytes.get(at..)?.first_chunk().copied();
        Some(Message {
            operation,
            sender: (hardware(8)?, frame::address(bytes, 14)?),
            target: (hardware(18)?, frame::address(bytes, 24)?),
        })
    }

    /// The frame, from who sends the message to one or everybody.
    pub fn frame(&self, to: Hardware) -> [u8; SHORTEST] {
        let of = match self.operation {
            Operation::Request | Operation::Reply => kind::ARP,
            Operation::ReverseRequest | Operation::ReverseReply => kind::RARP,
        };
        let mut frame = [0; SHORTEST];
        let (head, message) = frame.split_at_mut(frame::ETHERNET);
        head.copy_from_slice(&frame::ethernet(to, self.sender.0, of));
        message[..6].copy_from_slice(&HEAD);
        message[6..8].copy_from_slice(&(self.operation as u16).to_be_bytes());
        message[8..14].copy_from_slice(&self.sender.0);
        message[14..18].copy_from_slice(&self.sender.1.octets());
        message[18..24].copy_from_slice(&self.target.0);
        message[24..28].copy_from_slice(&self.target.1.octets());
        frame
    }
}

/// A question of who has an address, for everybody.
pub fn question(own: (Hardware, Ipv4Addr), address: Ipv4Addr) -> [u8; SHORTEST] {
    let message = Message {
        operation: Operation::Request,
        sender: own,
        target: ([0; 6], address),
    };
    message.frame(EVERYBODY)
}

/// The answer to a question for an own address.
pub fn answer(own: (Hardware, Ipv4Addr), asked: &Message) -> [u8; SHORTEST] {
    let message = Message {
        operation: Operation::Reply,
        sender: own,
        target: asked.sender,
    };
    message.frame(asked.sender.0)
}

/// A question for one's own address of IP (RFC 903).
pub fn who_am_i(own: Hardware) -> [u8; SHORTEST] {
    let nobody = Ipv4Addr::UNSPECIFIED;
    let message = Message {
        operation: Operation::ReverseRequest,
        sender: (own, nobody),
        target: (own, nobody),
    };
    message.frame(EVERYBODY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: (Hardware, Ipv4Addr) = ([2, 0, 0, 0, 0, 1], Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn messages_are_read_as_they_are_written() {
        let asked = question(OWN, Ipv4Addr::new(10, 0, 0, 1));
        let frame = Frame::read(&asked).expect("a frame");
        let message = Message::read(&frame).expect("a message");
        assert_eq!(message.operation, Operation::Request);
        assert_eq!((message.sender, frame.to), (OWN, EVERYBODY));
        let other = ([2, 0, 0, 0, 0, 2], Ipv4Addr::new(10, 0, 0, 1));
        let answered = answer(other, &message);
        let frame = Frame::read(&answered).expect("a frame");
        let message = Message::read(&frame).expect("a message");
        assert_eq!(
            (message.operation, message.sender),
            (Operation::Reply, other)
        );
        assert_eq!((message.target, frame.to), (OWN, OWN.0));
        let reverse = who_am_i(OWN.0);
        let message = Message::read(&Frame::read(&reverse).expect("a frame"));
        assert_eq!(
            message.expect("a message").operation,
            Operation::ReverseRequest
        );
    }

    #[test]
    fn what_is_no_message_is_none() {
        let whole = question(OWN, Ipv4Addr::new(10, 0, 0, 1));
        for length in 0..frame::ETHERNET + LENGTH {
            let cut = whole.get(..length).and_then(Frame::read);
            assert!(cut.and_then(|frame| Message::read(&frame)).is_none());
        }
        // Another hardware, another protocol, another length, another kind of question.
        for at in [14, 15, 16, 17, 18, 19, 20, 21] {
            let mut other = whole;
            other[at] ^= 0x41;
            let frame = Frame::read(&other).expect("a frame");
            assert!(Message::read(&frame).is_none(), "{at}");
        }
        // A reverse question as a plain one.
        let mut other = whole;
        other[21] = 3;
        assert!(Message::read(&Frame::read(&other).expect("a frame")).is_none());
    }
}
