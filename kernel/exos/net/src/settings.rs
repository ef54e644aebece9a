//! The archive's file `net`: how this machine has its address.
//!
//! ```text
//! # a line each; without the file, or a line, a server of DHCP is asked
//! address 10.0.2.15/24     (or: dhcp, rarp)
//! gateway 10.0.2.2
//! server 10.0.2.3          (who answers for names; up to three lines)
//! ```

use core::fmt;
use core::net::Ipv4Addr;

use postern_exos_abi::network::SERVERS;

/// How an address is had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// From a server, which says all else, too (RFC 2131).
    #[default]
    Dhcp,
    /// From a server that knows addresses of Ethernet, and says no more (RFC 903).
    Rarp,
    /// It is this one.
    Is(Ipv4Addr),
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How the address is had.
    pub how: How,
    /// Bits that the network has in common.
    pub bits: u8,
    /// Who forwards to other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Who answers for names. What is said here comes before what a server says.
    pub servers: [Option<Ipv4Addr>; SERVERS],
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            how: How::Dhcp,
            bits: 24,
            gateway: None,
            servers: [None; SERVERS],
        }
    }
}

/// A line that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongLine {
    /// Its number, from 1 on.
    pub line: usize,
    /// What it was to be.
    pub wanted: &'static str,
}

impl fmt::Display for WrongLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "net: line {}: {}", self.line, self.wanted)
    }
}

impl Settings {
    /// Reads the file.
    pub fn read(text: &[u8]) -> Result<Settings, WrongLine> {
        let mut settings = Settings::default();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let wrong = |wanted| WrongLine {
                line: index + 1,
                wanted,
            };
            let line = core::str::from_utf8(line).map_err(|_| wrong("it is text"))?;
            let mut words = line.split('#').next().unwrap_or("").split_whitespace();
            let (Some(what), value) = (words.next(), words.next()) else {
                continue;
            };
            settings.set(what, value.unwrap_or("")).map_err(wrong)?;
        }
        Ok(settings)
    }

    fn set(&mut self, what: &str, value: &str) -> Result<(), &'static str> {
        let address = |wanted| value.parse::<Ipv4Addr>().map_err(|_| wanted);
        match (what, value) {
            ("address", "dhcp") => self.how = How::Dhcp,
            ("address", "rarp") => self.how = How::Rarp,
            ("address", value) => {
                let wanted = "an address is 10.0.2.15/24, dhcp or rarp";
                let (host, bits) = value.split_once('/').unwrap_or((value, "24"));
                let bits = bits.parse().ok().filter(|bits| (1..=30).contains(bits));
                self.how = How::Is(host.parse().map_err(|_| wanted)?);
                self.bits = bits.ok_or(wanted)?;
            }
            ("gateway", _) => self.gateway = Some(address("a gateway is 10.0.2.2")?),
            ("server", _) => {
                let server = address("a server is 10.0.2.3")?;
                let free = self.servers.iter_mut().find(|place| place.is_none());
                *free.ok_or("there are three servers at most")? = Some(server);
            }
            _ => return Err("a line is address, gateway or server"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_settings() {
        let text = b"# how\naddress 10.0.0.2/16\n gateway 10.0.0.1 # there\n\nserver 10.0.0.3\n";
        let settings = Settings::read(text).expect("settings");
        assert_eq!(settings.how, How::Is(Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!(settings.bits, 16);
        assert_eq!(settings.gateway, Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(settings.servers[0], Some(Ipv4Addr::new(10, 0, 0, 3)));
        assert_eq!(Settings::read(b"").expect("none"), Settings::default());
        assert_eq!(
            Settings::read(b"address rarp").expect("rarp").how,
            How::Rarp
        );
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, line) in [
            (&b"\naddress x"[..], 2),
            (b"address 1.2.3.4/31", 1),
            (b"gateway", 1),
            (b"hostname a", 1),
            (b"\xff\xfe", 1),
            (
                b"server 1.1.1.1\nserver 1.1.1.2\nserver 1.1.1.3\nserver 1.1.1.4",
                4,
            ),
        ] {
            assert_eq!(Settings::read(text).expect_err("wrong").line, line);
        }
    }
}
