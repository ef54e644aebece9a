//! The agent's arguments.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What the stack is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The interface's name.
    pub interface: String,
    /// The stack's own address on it.
    pub address: [u8; 4],
    /// How many bits of it are the network's.
    pub prefix: u8,
    /// Where packets for other networks go.
    pub gateway: Option<[u8; 4]>,
    /// Whether sums of received frames are looked at that the kernel has not checked.
    pub checks: bool,
    /// Which packets of those for its address it takes, in the language of `pcap-filter(7)`: all if
    /// there is nothing.
    pub filter: String,
}

/// Reads them.
///
/// # Errors
/// A sentence.
pub fn read(words: &[Vec<u8>]) -> Result<Options, String> {
    let mut options = Options {
        checks: true,
        ..Options::default()
    };
    let mut words = words.iter().map(|word| String::from_utf8_lossy(word));
    let mut has_address = false;
    while let Some(word) = words.next() {
        let name = word.as_ref();
        if !matches!(
            name,
            "--interface" | "--address" | "--gateway" | "--checksums" | "--filter"
        ) {
            return Err(format!("no such argument of the stack: {name}"));
        }
        let value = words
            .next()
            .ok_or_else(|| format!("{name} wants a value"))?;
        match name {
            "--interface" => options.interface = value.to_string(),
            "--filter" => options.filter = value.to_string(),
            "--address" => {
                let parts = value.split_once('/').and_then(|(address, prefix)| {
                    let prefix = prefix.parse().ok().filter(|bits| (1..=30).contains(bits));
                    address_of(address).zip(prefix)
                });
                let wrong = || format!("{value}: an address is written as 10.0.0.2/24");
                (options.address, options.prefix) = parts.ok_or_else(wrong)?;
                has_address = true;
            }
            "--gateway" => {
                let wrong = || format!("{value}: a gateway is written as 10.0.0.1");
                options.gateway = Some(address_of(&value).ok_or_else(wrong)?);
            }
            _ => {
                options.checks = match value.as_ref() {
                    "both" => true,
                    "none" => false,
                    _ => return Err(format!("{value}: --checksums is `both` or `none`")),
                }
            }
        }
    }
    if options.interface.is_empty() || !has_address {
        let usage = "it wants --interface NAME --address ADDRESS/BITS [--gateway ADDRESS] \
            [--filter EXPRESSION]";
        return Err(String::from(usage));
    }
    Ok(options)
}

/// An address of one host.
fn address_of(text: &str) -> Option<[u8; 4]> {
    let address: core::net::Ipv4Addr = text.parse().ok()?;
    let of_one = !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast();
    (of_one && !address.is_loopback()).then(|| address.octets())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Options, String> {
        let words: Vec<Vec<u8>> = text.split(' ').map(|word| word.into()).collect();
        read(&words)
    }

    #[test]
    fn arguments() {
        let options = of("--interface e --address 10.0.0.2/24 --gateway 10.0.0.1").unwrap();
        assert_eq!(options.address, [10, 0, 0, 2]);
        assert_eq!((options.prefix, options.gateway), (24, Some([10, 0, 0, 1])));
        for wrong in [
            "--interface e",
            "--address 10.0.0.2/24",
            "--interface e --address 10.0.0.2",
            "--interface e --address 10.0.0.2/31",
            "--interface e --address 0.0.0.0/8",
            "--interface e --address 127.0.0.1/8",
            "--interface e --address 300.0.0.2/24",
            "--interface e --address 10.0.0.2/24 --gateway x",
            "--interface e --address 10.0.0.2/24 --checksums some",
            "--interface e --address",
            "--speed 1",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
