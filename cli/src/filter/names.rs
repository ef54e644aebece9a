//! Names in expressions: from the system's databases, and from its resolver.

use std::net::{IpAddr, ToSocketAddrs};

use postern_filter::{Databases, Names};

/// The system's databases, and its resolver for hosts that they do not have.
pub struct System {
    files: Databases,
    resolver: bool,
}

impl System {
    /// Reads the databases; the resolver is asked only if that is wanted.
    pub fn new(resolver: bool) -> System {
        let files = Databases::system();
        System { files, resolver }
    }
}

impl Names for System {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        let found = self.files.host(name);
        if !found.is_empty() || !self.resolver {
            return found;
        }
        let Ok(resolved) = (name, 0).to_socket_addrs() else {
            return Vec::new();
        };
        resolved.map(|address| address.ip()).collect()
    }
    fn network(&self, name: &str) -> Option<u32> {
        self.files.network(name)
    }
    fn port(&self, name: &str, transport: &str) -> Option<u16> {
        self.files.port(name, transport)
    }
    fn protocol(&self, name: &str) -> Option<u8> {
        self.files.protocol(name)
    }
    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        self.files.ether(name)
    }
    fn like(&self, name: &str) -> Option<String> {
        self.files.like(name)
    }
}
