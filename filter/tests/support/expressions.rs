//! Expressions at random from the grammar of the manual.

use fastrand::Rng;

const HOSTS: &[&str] = &[
    "10.0.0.1",
    "10.1.2.3",
    "192.168.1.255",
    "224.0.0.251",
    "10.1",
    "127.0.0.1",
    "0.0.0.0",
];
const NETS: &[&str] = &[
    "10",
    "10.1",
    "192.168.1",
    "10.0.0.0/8",
    "192.168.1.0/24",
    "0.0.0.0/0",
    "10.0.0.0 mask 255.0.0.0",
    "224.0.0.0/4",
    "2001:db8::/32",
    "2001:db8:1::/48",
    "ff02::/16",
    "::/0",
];
const SIX: &[&str] = &[
    "2001:db8::1",
    "2001:db8:1::1",
    "ff02::1",
    "::",
    "2001:db8:0:0:0:0:0:1",
];
const PORTS: &[&str] = &["22", "53", "80", "443", "6081", "8080", "65535", "0"];
const RANGES: &[&str] = &["20-80", "6000-8080", "80-53", "0-65535", "443"];
const MACS: &[&str] = &[
    "02:00:00:00:00:01",
    "ff:ff:ff:ff:ff:ff",
    "1-0-5e-0-0-fb",
    "0200.0000.0001",
    "020000000001",
];
const NAMES: &[&str] = &[
    "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp", "icmp", "icmp6", "igmp", "igrp", "pim",
    "vrrp", "carp", "ah", "esp", "atalk", "aarp", "decnet", "lat", "sca", "moprc", "mopdl", "iso",
    "esis", "isis", "clnp", "l1", "l2", "iih", "lsp", "snp", "csnp", "psnp", "stp", "ipx",
    "netbeui",
];
const INDEXED: &[&str] = &[
    "ether", "ip", "ip6", "tcp", "udp", "icmp", "arp", "sctp", "icmp6", "igmp", "pim", "link",
];

pub struct Generator<'a> {
    pub random: &'a mut Rng,
    /// Leave out what libpcap's interpreter does with variables that were never set, and chains
    /// that never end.
    moved: bool,
}

/// An expression with up to `size` conditions.
pub fn expression(random: &mut Rng, size: usize) -> String {
    let prefix = match random.usize(..12) {
        0 => "vlan and ",
        1 => "vlan 100 and ",
        2 => "mpls and ",
        3 => "mpls 1000 and mpls and ",
        4 => "pppoes and ",
        5 => "geneve and ",
        6 => "vlan and vlan and ",
        7 => "geneve 0x1 and ",
        _ => "",
    };
    let mut generator = Generator {
        random,
        moved: prefix.contains("geneve"),
    };
    let mut body = generator.condition(size);
    if !prefix.is_empty() {
        body = format!("({body})");
    }
    format!("{prefix}{body}")
}

impl Generator<'_> {
    fn pick(&mut self, list: &[&str]) -> String {
        String::from(*self.random.choice(list).unwrap())
    }

    pub fn condition(&mut self, size: usize) -> String {
        if size <= 1 {
            return self.leaf();
        }
        match self.random.usize(..8) {
            0 => {
                let not = self.pick(&["not ", "!", "! "]);
                let inner = self.condition(size - 1);
                format!("{not}({inner})")
            }
            1 => format!("({})", self.condition(size - 1)),
            n => {
                let left = 1 + self.random.usize(..size - 1);
                let (a, b) = (self.condition(left), self.condition(size - left));
                let op = if n < 5 {
                    self.pick(&["and", "&&"])
                } else {
                    self.pick(&["or", "||"])
                };
                format!("{a} {op} {b}")
            }
        }
    }

    fn leaf(&mut self) -> String {
        match self.random.usize(..22) {
            0..4 => self.pick(NAMES),
            4..7 => self.address(),
            7..10 => self.port(),
            10..14 => self.relation(),
            14 => self.protocol(),
            15 => self.pick(&[
                "broadcast",
                "multicast",
                "ether broadcast",
                "ether multicast",
                "ip broadcast",
                "ip multicast",
                "ip6 multicast",
            ]),
            16 => {
                let word = self.pick(&["less", "greater"]);
                format!("{word} {}", self.random.usize(..120))
            }
            17 => {
                let direction = self.pick(&["host", "src", "dst", "src or dst", "src and dst"]);
                format!("ether {direction} {}", self.pick(MACS))
            }
            18 if !self.moved => self.pick(&[
                "vlan",
                "vlan 5",
                "mpls",
                "mpls 16",
                "pppoed",
                "pppoes",
                "pppoes 7",
                "vlan 0x64",
            ]),
            19 => self.pick(&[
                "llc", "llc i", "llc s", "llc u", "llc rr", "llc rnr", "llc ui", "llc xid",
                "llc rej", "llc test",
            ]),
            20 => {
                let port = self.port();
                let (a, b) = (self.pick(PORTS), self.pick(PORTS));
                if port.contains("range") {
                    format!("{port} or {a}-{b}")
                } else {
                    format!("{port} or {a} or not {b}")
                }
            }
            _ => {
                let (a, b, c) = (self.pick(HOSTS), self.pick(HOSTS), self.pick(SIX));
                let direction = self.pick(&["", "src ", "dst "]);
                format!("{direction}host ({a} or not {b} or {c})")
            }
        }
    }

    fn direction(&mut self) -> String {
        self.pick(&[
            "",
            "",
            "src ",
            "dst ",
            "src or dst ",
            "src and dst ",
            "dst and src ",
        ])
    }

    fn address(&mut self) -> String {
        let direction = self.direction();
        match self.random.usize(..6) {
            0 | 1 => {
                let proto = self.pick(&["", "ip ", "arp ", "rarp "]);
                format!("{proto}{direction}host {}", self.pick(HOSTS))
            }
            2 => {
                let proto = self.pick(&["", "ip6 "]);
                format!("{proto}{direction}host {}", self.pick(SIX))
            }
            3 => format!(
                "decnet {direction}host {}",
                self.pick(&["1.5", "10.4", "1.1"])
            ),
            4 => {
                let direction = self.pick(&["src", "dst", "src or dst"]);
                format!("{direction} {}", self.pick(HOSTS))
            }
            _ => format!("{direction}net {}", self.pick(NETS)),
        }
    }

    fn port(&mut self) -> String {
        let proto = self.pick(&["", "", "tcp ", "udp ", "sctp "]);
        let direction = self.direction();
        if self.random.usize(..3) == 0 {
            format!("{proto}{direction}portrange {}", self.pick(RANGES))
        } else {
            format!("{proto}{direction}port {}", self.pick(PORTS))
        }
    }

    fn protocol(&mut self) -> String {
        match self.random.usize(..5) {
            0 => format!("proto {}", self.random.usize(..256)),
            1 => format!(
                "ip proto {}",
                self.pick(&["6", "17", "\\tcp", "\\udp", "1", "44"])
            ),
            2 => format!(
                "ip6 proto {}",
                self.pick(&["6", "17", "\\tcp", "58", "44", "0"])
            ),
            3 => format!(
                "ether proto {}",
                self.pick(&[
                    "0x800",
                    "\\ip",
                    "\\arp",
                    "\\ip6",
                    "0x42",
                    "\\stp",
                    "0x86dd",
                    "\\iso",
                    "100",
                    "\\loopback",
                    "6"
                ])
            ),
            _ if self.moved => "tcp".to_owned(),
            _ => format!(
                "{}protochain {}",
                self.pick(&["ip6 ", "ip "]),
                self.pick(&["6", "17", "\\tcp", "58", "44"])
            ),
        }
    }

    fn relation(&mut self) -> String {
        let (a, b) = (self.sum(3), self.sum(1));
        let op = self.pick(&["=", "==", "!=", "<", ">", "<=", ">="]);
        format!("{a} {op} {b}")
    }

    fn sum(&mut self, depth: usize) -> String {
        match self.random.usize(..if depth == 0 { 4 } else { 9 }) {
            0 => self.random.usize(..300).to_string(),
            1 => self.pick(&[
                "len",
                "0x0800",
                "0xffffffff",
                "icmptype",
                "tcpflags",
                "tcp-syn",
                "icmp-echo",
                "07",
                "20",
            ]),
            2..=4 => self.field(depth.saturating_sub(1)),
            5 => format!("({})", self.sum(depth - 1)),
            6 if self.random.usize(..3) == 0 => format!("-{}", self.sum(depth - 1)),
            _ => {
                let (a, b) = (self.sum(depth - 1), self.sum(depth - 1));
                let op = self.pick(&["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]);
                format!("{a} {op} {b}")
            }
        }
    }

    fn field(&mut self, depth: usize) -> String {
        let proto = self.pick(INDEXED);
        let index = if depth > 0 && self.random.usize(..3) == 0 {
            self.sum(depth - 1)
        } else {
            self.random.usize(..60).to_string()
        };
        let size = self.pick(&["", "", ":1", ":2", ":4"]);
        format!("{proto}[{index}{size}]")
    }
}
