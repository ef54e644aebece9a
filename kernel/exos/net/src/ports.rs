//! Whose ports are whose. The kernel delivers frames by filters: a process has one for each port
//! that it has chosen, and one for a range of ports that is its own by its environment's number,
//! from which connections and datagrams go out. So going out takes one filter, however often.

use core::fmt::{self, Write};
use core::net::Ipv4Addr;
use core::ops::RangeInclusive;

use crate::EVERYBODY;
use crate::frame::{self, ETHERNET, IP, kind, protocol};

/// The first port that nobody chooses.
pub const FIRST: u16 = 0x8000;
/// Ports of each environment.
pub const EACH: u16 = 128;

/// The ports of an environment, by its number below 256.
pub fn of(environment: u16) -> RangeInclusive<u16> {
    let first = FIRST | ((environment & 0xff) * EACH);
    first..=first + (EACH - 1)
}

/// What frames a process wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Segments for a port.
    Tcp(u16),
    /// Datagrams for a port.
    Udp(u16),
    /// Both for an environment's own ports.
    Own(u16),
    /// Answers to echoes that carry this number.
    Echo(u16),
}

/// Bytes of a filter's text at most.
pub const TEXT: usize = 192;
/// Whole datagrams: what comes in pieces is put together by the service `net`.
const WHOLE: &str = "ip[6:2] & 0x3fff = 0";

/// A filter's text.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    bytes: [u8; TEXT],
    length: usize,
}

impl Text {
    /// As the kernel takes it.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl Claim {
    /// The filter. It says nothing of this machine's address, which may change, and which the
    /// stack looks at.
    pub fn filter(self) -> Text {
        let mut text = Text {
            bytes: [0; TEXT],
            length: 0,
        };
        // The longest is shorter than the place.
        let _ = match self {
            Claim::Tcp(port) => write!(text, "{WHOLE} and ip and tcp dst port {port}"),
            Claim::Udp(port) => write!(text, "{WHOLE} and ip and udp dst port {port}"),
            Claim::Own(environment) => {
                let ports = of(environment);
                let (first, last) = (ports.start(), ports.end());
                // And what is said of datagrams that went out from there, which come after it.
                write!(
                    text,
                    "{WHOLE} and ip and (dst portrange {first}-{last} or (icmp[0] = 3 and \
                     icmp[8] = 0x45 and icmp[28:2] >= {first} and icmp[28:2] <= {last}))"
                )
            }
            Claim::Echo(number) => {
                write!(text, "{WHOLE} and icmp[0] = 0 and icmp[4:2] = {number}")
            }
        };
        text
    }

    /// A frame that the filter accepts: who gets it has what is claimed.
    pub fn sample(self, address: Ipv4Addr) -> [u8; 60] {
        let (of, port) = match self {
            Claim::Tcp(port) => (protocol::TCP, port),
            Claim::Udp(port) => (protocol::UDP, port),
            Claim::Own(environment) => (protocol::TCP, *self::of(environment).start()),
            Claim::Echo(number) => (protocol::ICMP, number),
        };
        let mut sample = [0; 60];
        let from = Ipv4Addr::UNSPECIFIED;
        let header = frame::ip(from, address, of, 0, sample.len() - ETHERNET - IP);
        let (head, rest) = sample.split_at_mut(ETHERNET);
        head.copy_from_slice(&frame::ethernet(EVERYBODY, [0; 6], kind::IP));
        let (head, rest) = rest.split_at_mut(IP);
        head.copy_from_slice(&header);
        let at = if of == protocol::ICMP { 4 } else { 2 };
        rest[at..at + 2].copy_from_slice(&port.to_be_bytes());
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_environments_share_a_port() {
        let mut last = u32::from(FIRST) - 1;
        for environment in 0..256 {
            let ports = of(environment);
            assert_eq!(u32::from(*ports.start()), last + 1);
            last = (*ports.end()).into();
        }
        assert_eq!(last, 0xffff);
    }

    #[test]
    fn texts_fit() {
        for claim in [
            Claim::Tcp(65535),
            Claim::Udp(65535),
            Claim::Own(255),
            Claim::Echo(65535),
        ] {
            let text = claim.filter();
            let end = text.as_str().trim_end_matches(')');
            assert!(end.ends_with("65535"), "{}", text.as_str());
        }
    }
}
