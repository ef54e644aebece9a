//! What packets begin with: the kinds of links, by the numbers that capture files and the kernel
//! have for them.

/// A packet's first header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Link {
    /// Ethernet.
    #[default]
    Ethernet,
    /// No header: IP's version tells which.
    Raw,
    /// The loopback of BSD systems: a family's number in the byte order of the host that captured.
    Null,
    /// The same of OpenBSD, in network order.
    Loop,
    /// Linux' header for packets of several interfaces.
    Sll,
    /// The newer one, with the interface's number.
    Sll2,
    /// PPP with address and control.
    Ppp,
    /// Cisco's HDLC.
    Hdlc,
    /// IEEE 802.11.
    Wireless,
    /// The same behind what the receiver says of it.
    Radiotap,
}

impl Link {
    /// All kinds. New ones stand at the end: C libraries number them by their places.
    pub const ALL: [Link; 10] = [
        Link::Ethernet,
        Link::Raw,
        Link::Null,
        Link::Loop,
        Link::Sll,
        Link::Sll2,
        Link::Ppp,
        Link::Hdlc,
        Link::Wireless,
        Link::Radiotap,
    ];

    /// The kind by its number in capture files.
    pub fn of(number: u32) -> Option<Link> {
        Some(match number {
            0 => Link::Null,
            1 => Link::Ethernet,
            9 | 50 => Link::Ppp,
            // Systems that wrote their own numbers, and those that say which IP it is.
            12 | 14 | 101 | 228 | 229 => Link::Raw,
            104 => Link::Hdlc,
            105 => Link::Wireless,
            108 => Link::Loop,
            113 => Link::Sll,
            127 => Link::Radiotap,
            276 => Link::Sll2,
            _ => return None,
        })
    }

    /// Its number in capture files.
    pub fn number(self) -> u16 {
        match self {
            Link::Null => 0,
            Link::Ethernet => 1,
            Link::Ppp => 9,
            Link::Raw => 101,
            Link::Hdlc => 104,
            Link::Wireless => 105,
            Link::Loop => 108,
            Link::Sll => 113,
            Link::Radiotap => 127,
            Link::Sll2 => 276,
        }
    }

    /// The kind of an interface by its hardware type (ARPHRD), for packets that the kernel gives
    /// whole.
    pub fn of_hardware(number: u16) -> Option<Link> {
        Some(match number {
            1 | 772 => Link::Ethernet,
            // tun and wg; IP in IP, IPv6 in IPv6, IPv6 in IP.
            65534 | 768 | 769 | 776 => Link::Raw,
            801 => Link::Wireless,
            803 => Link::Radiotap,
            _ => return None,
        })
    }

    /// The hardware types of a kind.
    pub fn hardware(self) -> &'static [u16] {
        match self {
            Link::Ethernet => &[1, 772],
            Link::Raw => &[65534, 768, 769, 776],
            Link::Wireless => &[801],
            Link::Radiotap => &[803],
            _ => &[],
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Link::Ethernet => "Ethernet",
            Link::Raw => "raw IP",
            Link::Null => "BSD loopback",
            Link::Loop => "OpenBSD loopback",
            Link::Sll => "Linux cooked",
            Link::Sll2 => "Linux cooked v2",
            Link::Ppp => "PPP",
            Link::Hdlc => "Cisco HDLC",
            Link::Wireless => "IEEE 802.11",
            Link::Radiotap => "IEEE 802.11 with radiotap",
        }
    }

    /// Where the network header of a packet begins, and its Ethernet type; nothing if there is
    /// none, or too little of the packet.
    pub fn network(self, packet: &[u8]) -> Option<(usize, u16)> {
        let byte = |at: usize| packet.get(at).copied();
        let half = |at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
        let version = |at: usize| match byte(at)? >> 4 {
            4 => Some(0x0800),
            6 => Some(0x86dd),
            _ => None,
        };
        match self {
            Link::Ethernet => Some((14, half(12)?)),
            Link::Raw => Some((0, version(0)?)),
            Link::Null | Link::Loop => Some((4, version(4)?)),
            Link::Sll => Some((16, half(14)?)),
            Link::Sll2 => packet.get(20..).and(Some((20, half(0)?))),
            Link::Ppp => match half(2)? {
                0x21 => Some((4, 0x0800)),
                0x57 => Some((4, 0x86dd)),
                _ => None,
            },
            Link::Hdlc => Some((4, half(2)?)),
            Link::Wireless | Link::Radiotap => {
                let start = match self {
                    Link::Radiotap => {
                        usize::from(u16::from_le_bytes(*packet.get(2..)?.first_chunk()?))
                    }
                    _ => 0,
                };
                let (kind, flags) = (byte(start)?, byte(start + 1)?);
                if kind & 0x0c != 8 {
                    return None;
                }
                let header = 24 + 2 * usize::from(kind >> 7) + 6 * usize::from(flags & 3 == 3);
                let snap = start + header;
                Some((snap + 8, half(snap + 6)?))
            }
        }
    }
}
