//! Names of hosts, networks, ports and protocols, as the system's databases have them.
//!
//! The crate opens no files: whoever compiles gives it the databases' texts ([`Databases`]), or
//! answers itself ([`Names`]).

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

/// What names mean.
pub trait Names {
    /// The addresses of a host.
    fn host(&self, name: &str) -> Vec<IpAddr>;
    /// The number of a network, 1 to 4 bytes, the last one lowest.
    fn network(&self, name: &str) -> Option<u32>;
    /// The port of a service with this transport protocol, `tcp`, `udp` or `sctp`.
    fn port(&self, name: &str, transport: &str) -> Option<u16>;
    /// The number of a protocol above IP.
    fn protocol(&self, name: &str) -> Option<u8>;
    /// The link address of a host.
    fn ether(&self, name: &str) -> Option<[u8; 6]>;
    /// A known service or protocol with a name like this one, for a suggestion.
    fn like(&self, _name: &str) -> Option<String> {
        None
    }
}

/// No names at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn host(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }
    fn network(&self, _: &str) -> Option<u32> {
        None
    }
    fn port(&self, _: &str, _: &str) -> Option<u16> {
        None
    }
    fn protocol(&self, _: &str) -> Option<u8> {
        None
    }
    fn ether(&self, _: &str) -> Option<[u8; 6]> {
        None
    }
}

/// The texts of `/etc/hosts`, `networks`, `services`, `protocols` and `ethers`; each may be empty.
#[derive(Clone, Debug, Default)]
pub struct Databases {
    /// Lines of an address and names.
    pub hosts: String,
    /// Lines of a name, a number and other names.
    pub networks: String,
    /// Lines of a name, `port/protocol` and other names.
    pub services: String,
    /// Lines of a name, a number and other names.
    pub protocols: String,
    /// Lines of a link address and a name.
    pub ethers: String,
}

#[cfg(feature = "domain")]
impl Databases {
    /// The files in `/etc`; one that is not there has no names.
    pub fn system() -> Databases {
        let read = |name: &str| {
            let path = std::path::Path::new("/etc").join(name);
            std::fs::read_to_string(path).unwrap_or_default()
        };
        Databases {
            hosts: read("hosts"),
            networks: read("networks"),
            services: read("services"),
            protocols: read("protocols"),
            ethers: read("ethers"),
        }
    }
}

/// The fields of the lines of a database, without comments.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split('#').next()?.split_whitespace().collect();
        (fields.len() >= 2).then_some(fields)
    })
}

/// Whether a line of name, value and other names is about this name.
fn is_about(fields: &[&str], name: &str) -> bool {
    fields[0] == name || fields[2..].contains(&name)
}

impl Names for Databases {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        let about = |fields: &Vec<&str>| fields[1..].iter().any(|f| f.eq_ignore_ascii_case(name));
        lines(&self.hosts)
            .filter(about)
            .filter_map(|fields| fields[0].parse().ok())
            .collect()
    }

    fn network(&self, name: &str) -> Option<u32> {
        let fields = lines(&self.networks).find(|fields| is_about(fields, name))?;
        let mut number = 0;
        for part in fields[1].trim_end_matches(".0").split('.') {
            number = number << 8 | u32::from(part.parse::<u8>().ok()?);
        }
        Some(number)
    }

    fn port(&self, name: &str, transport: &str) -> Option<u16> {
        lines(&self.services)
            .filter(|fields| is_about(fields, name))
            .find_map(|fields| {
                let (port, protocol) = fields[1].split_once('/')?;
                (protocol == transport).then(|| port.parse().ok())?
            })
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        lines(&self.protocols)
            .find(|fields| is_about(fields, name))
            .and_then(|fields| fields[1].parse().ok())
    }

    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        let fields = lines(&self.ethers).find(|fields| fields[1] == name)?;
        let mut address = [0; 6];
        let mut parts = fields[0].split(':');
        for byte in &mut address {
            *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
        }
        parts.next().is_none().then_some(address)
    }

    fn like(&self, name: &str) -> Option<String> {
        let known: Vec<&str> = lines(&self.services)
            .chain(lines(&self.protocols))
            .map(|fields| fields[0])
            .collect();
        nearest(name, known.into_iter()).map(ToOwned::to_owned)
    }
}

/// The name that differs least from `text`, if it differs by one or two changes and is not much
/// shorter than they.
pub(crate) fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match text.len() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    names
        .map(|name| (distance(text.as_bytes(), name.as_bytes(), allowed), name))
        .filter(|(distance, _)| (1..=allowed).contains(distance))
        .min()
        .map(|(_, name)| name)
}

/// Insertions, deletions, replacements and exchanges of neighbours from `a` to `b`; anything above
/// `most` if there are more.
fn distance(a: &[u8], b: &[u8], most: usize) -> usize {
    if a.len().abs_diff(b.len()) > most || a.len() > 40 {
        return most + 1;
    }
    let width = b.len() + 1;
    let mut table = alloc::vec![0; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let at = |i: usize, j: usize| i * width + j;
            table[at(i, j)] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = usize::from(a[i - 1] != b[j - 1]);
                let mut best = (table[at(i - 1, j)] + 1)
                    .min(table[at(i, j - 1)] + 1)
                    .min(table[at(i - 1, j - 1)] + changed);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(table[at(i - 2, j - 2)] + 1);
                }
                best
            };
        }
    }
    table[a.len() * width + b.len()]
}
