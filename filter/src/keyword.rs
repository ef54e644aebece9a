//! The keywords of the language: protocols, qualifiers, operators, and names of numbers.

/// A protocol, as a qualifier, by itself, or before an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub(crate) enum Proto {
    Link,
    Ip,
    Ip6,
    Arp,
    Rarp,
    Sctp,
    Tcp,
    Udp,
    Icmp,
    Icmp6,
    Igmp,
    Igrp,
    Pim,
    Vrrp,
    Carp,
    Ah,
    Esp,
    Atalk,
    Aarp,
    Decnet,
    Lat,
    Sca,
    Moprc,
    Mopdl,
    Iso,
    Esis,
    Isis,
    Clnp,
    IsisL1,
    IsisL2,
    Iih,
    Lsp,
    Snp,
    Csnp,
    Psnp,
    Stp,
    Ipx,
    Netbeui,
}

/// Whose address or port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Src,
    Dst,
    Either,
    Both,
}

/// What a name or number after qualifiers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdKind {
    Host,
    Net,
    Port,
    PortRange,
    Proto,
    ProtoChain,
}

/// A keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Proto(Proto),
    Src,
    Dst,
    Kind(IdKind),
    Gateway,
    Mask,
    Less,
    Greater,
    Byte,
    Broadcast,
    Multicast,
    And,
    Or,
    Not,
    Len,
    Vlan,
    Mpls,
    Pppoed,
    Pppoes,
    Geneve,
    Llc,
    /// Known, but not about what Ethernet frames contain.
    Elsewhere(Subject),
}

/// What words are about that say nothing of an Ethernet frame's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Which way a packet went.
    PacketDirection,
    /// Which interface it passed.
    Interface,
    Wireless,
    Atm,
    Telephony,
    Firewall,
}

impl Subject {
    pub(crate) fn what(self) -> &'static str {
        match self {
            PacketDirection => "the way of a packet, which its bytes do not say",
            Interface => "the interface of a packet, which its bytes do not say",
            Wireless => "wireless links (IEEE 802.11), not Ethernet",
            Atm => "ATM links, not Ethernet",
            Telephony => "telephone signalling links (SS7), not Ethernet",
            Firewall => "the log of BSD's firewall pf, not Ethernet",
        }
    }

    /// What to write instead.
    pub(crate) fn instead(self) -> Option<&'static str> {
        match self {
            PacketDirection => Some("choose it when you capture: `-Q in` or `-Q out`"),
            Interface => Some("choose it when you capture: `-i NAME`"),
            Wireless => {
                Some("link addresses of Ethernet are `ether host`, `ether src` and `ether dst`")
            }
            _ => None,
        }
    }
}

/// The keyword that is spelled like this.
pub(crate) fn keyword(text: &str) -> Option<Keyword> {
    KEYWORDS
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, keyword)| *keyword)
}

/// The number that a name stands for.
pub(crate) fn number(text: &str) -> Option<u32> {
    NUMBERS
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, number)| *number)
}

/// Every word that has a meaning here, and every named number, to look for what may have been
/// meant.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    let here = KEYWORDS
        .iter()
        .filter(|(_, word)| !matches!(word, Elsewhere(_)));
    let words = here.map(|(name, _)| *name);
    words.chain(NUMBERS.iter().map(|(name, _)| *name))
}

/// The word that somebody meant who wrote this name: in large letters, of another language of
/// filters, or misspelt.
pub(crate) fn suggestion(name: &str) -> Option<&'static str> {
    let same = |known: &&str| known.eq_ignore_ascii_case(name);
    let foreign = || FOREIGN.iter().find(|(known, _)| same(known));
    all()
        .find(same)
        .or_else(|| foreign().map(|(_, word)| *word))
        .or_else(|| crate::names::nearest(name, all()))
}

use Keyword::*;
use Subject::*;

const fn proto(proto: Proto) -> Keyword {
    Keyword::Proto(proto)
}

#[rustfmt::skip]
const KEYWORDS: &[(&str, Keyword)] = &[
    ("dst", Dst), ("src", Src),
    ("link", proto(self::Proto::Link)), ("ether", proto(self::Proto::Link)), ("ppp", proto(self::Proto::Link)),
    ("slip", proto(self::Proto::Link)), ("fddi", proto(self::Proto::Link)), ("tr", proto(self::Proto::Link)),
    ("wlan", proto(self::Proto::Link)), ("arp", proto(self::Proto::Arp)), ("rarp", proto(self::Proto::Rarp)),
    ("ip", proto(self::Proto::Ip)), ("sctp", proto(self::Proto::Sctp)), ("tcp", proto(self::Proto::Tcp)),
    ("udp", proto(self::Proto::Udp)), ("icmp", proto(self::Proto::Icmp)), ("igmp", proto(self::Proto::Igmp)),
    ("igrp", proto(self::Proto::Igrp)), ("pim", proto(self::Proto::Pim)), ("vrrp", proto(self::Proto::Vrrp)),
    ("carp", proto(self::Proto::Carp)), ("ip6", proto(self::Proto::Ip6)), ("icmp6", proto(self::Proto::Icmp6)),
    ("ah", proto(self::Proto::Ah)), ("esp", proto(self::Proto::Esp)), ("atalk", proto(self::Proto::Atalk)),
    ("aarp", proto(self::Proto::Aarp)), ("decnet", proto(self::Proto::Decnet)), ("lat", proto(self::Proto::Lat)),
    ("sca", proto(self::Proto::Sca)), ("moprc", proto(self::Proto::Moprc)), ("mopdl", proto(self::Proto::Mopdl)),
    ("iso", proto(self::Proto::Iso)), ("esis", proto(self::Proto::Esis)), ("es-is", proto(self::Proto::Esis)),
    ("isis", proto(self::Proto::Isis)), ("is-is", proto(self::Proto::Isis)), ("l1", proto(self::Proto::IsisL1)),
    ("l2", proto(self::Proto::IsisL2)), ("iih", proto(self::Proto::Iih)), ("lsp", proto(self::Proto::Lsp)),
    ("snp", proto(self::Proto::Snp)), ("csnp", proto(self::Proto::Csnp)), ("psnp", proto(self::Proto::Psnp)),
    ("clnp", proto(self::Proto::Clnp)), ("stp", proto(self::Proto::Stp)), ("ipx", proto(self::Proto::Ipx)),
    ("netbeui", proto(self::Proto::Netbeui)),
    ("host", Kind(IdKind::Host)), ("net", Kind(IdKind::Net)), ("port", Kind(IdKind::Port)),
    ("portrange", Kind(IdKind::PortRange)), ("proto", Kind(IdKind::Proto)),
    ("protochain", Kind(IdKind::ProtoChain)),
    ("gateway", Gateway), ("mask", Mask), ("less", Less), ("greater", Greater), ("byte", Byte),
    ("broadcast", Broadcast), ("multicast", Multicast), ("and", And), ("or", Or), ("not", Not),
    ("len", Len), ("length", Len), ("vlan", Vlan), ("mpls", Mpls), ("pppoed", Pppoed), ("pppoes", Pppoes),
    ("geneve", Geneve), ("llc", Llc),
    ("inbound", Elsewhere(PacketDirection)), ("outbound", Elsewhere(PacketDirection)), ("ifindex", Elsewhere(Interface)), ("radio", Elsewhere(Wireless)),
    ("type", Elsewhere(Wireless)), ("subtype", Elsewhere(Wireless)), ("direction", Elsewhere(Wireless)), ("dir", Elsewhere(Wireless)),
    ("address1", Elsewhere(Wireless)), ("addr1", Elsewhere(Wireless)), ("address2", Elsewhere(Wireless)), ("addr2", Elsewhere(Wireless)),
    ("address3", Elsewhere(Wireless)), ("addr3", Elsewhere(Wireless)), ("address4", Elsewhere(Wireless)), ("addr4", Elsewhere(Wireless)),
    ("ra", Elsewhere(Wireless)), ("ta", Elsewhere(Wireless)), ("lane", Elsewhere(Atm)), ("metac", Elsewhere(Atm)), ("bcc", Elsewhere(Atm)),
    ("oam", Elsewhere(Atm)), ("oamf4", Elsewhere(Atm)), ("oamf4ec", Elsewhere(Atm)), ("oamf4sc", Elsewhere(Atm)), ("sc", Elsewhere(Atm)),
    ("ilmic", Elsewhere(Atm)), ("vpi", Elsewhere(Atm)), ("vci", Elsewhere(Atm)), ("connectmsg", Elsewhere(Atm)),
    ("metaconnect", Elsewhere(Atm)), ("on", Elsewhere(Interface)), ("ifname", Elsewhere(Interface)), ("rset", Elsewhere(Firewall)),
    ("ruleset", Elsewhere(Firewall)), ("rnr", Elsewhere(Firewall)), ("rulenum", Elsewhere(Firewall)), ("srnr", Elsewhere(Firewall)),
    ("subrulenum", Elsewhere(Firewall)), ("reason", Elsewhere(Firewall)), ("action", Elsewhere(Firewall)), ("fisu", Elsewhere(Telephony)),
    ("lssu", Elsewhere(Telephony)), ("lsu", Elsewhere(Telephony)), ("msu", Elsewhere(Telephony)), ("hfisu", Elsewhere(Telephony)), ("hlssu", Elsewhere(Telephony)),
    ("hmsu", Elsewhere(Telephony)), ("sio", Elsewhere(Telephony)), ("opc", Elsewhere(Telephony)), ("dpc", Elsewhere(Telephony)), ("sls", Elsewhere(Telephony)),
    ("hsio", Elsewhere(Telephony)), ("hopc", Elsewhere(Telephony)), ("hdpc", Elsewhere(Telephony)), ("hsls", Elsewhere(Telephony)),
];

/// Words of other languages of filters, and what they are here.
const FOREIGN: &[(&str, &str)] = &[
    ("ipv4", "ip"),
    ("ipv6", "ip6"),
    ("source", "src"),
    ("saddr", "src"),
    ("ip.src", "src"),
    ("destination", "dst"),
    ("dest", "dst"),
    ("daddr", "dst"),
    ("ip.dst", "dst"),
    ("ip.addr", "host"),
    ("addr", "host"),
    ("sport", "src port"),
    ("dport", "dst port"),
    ("tcp.port", "tcp port"),
    ("tcp.srcport", "tcp src port"),
    ("tcp.dstport", "tcp dst port"),
    ("udp.port", "udp port"),
    ("protocol", "proto"),
    ("eth", "ether"),
    ("ether.addr", "ether host"),
    ("eth.addr", "ether host"),
    ("vxlan", "udp dst port 4789"),
    ("gre", "proto 47"),
    ("ospf", "proto 89"),
    ("lldp", "ether proto 0x88cc"),
    ("dns", "port 53"),
    ("http", "tcp port 80"),
    ("https", "tcp port 443"),
];

/// Offsets and values that protocols' documents name.
#[rustfmt::skip]
const NUMBERS: &[(&str, u32)] = &[
    ("icmptype", 0), ("icmpcode", 1), ("icmp-echoreply", 0), ("icmp-unreach", 3), ("icmp-sourcequench", 4),
    ("icmp-redirect", 5), ("icmp-echo", 8), ("icmp-routeradvert", 9), ("icmp-routersolicit", 10),
    ("icmp-timxceed", 11), ("icmp-paramprob", 12), ("icmp-tstamp", 13), ("icmp-tstampreply", 14), ("icmp-ireq", 15),
    ("icmp-ireqreply", 16), ("icmp-maskreq", 17), ("icmp-maskreply", 18), ("icmp6type", 0), ("icmp6code", 1),
    ("icmp6-destinationunreach", 1), ("icmp6-packettoobig", 2), ("icmp6-timeexceeded", 3),
    ("icmp6-parameterproblem", 4), ("icmp6-echo", 128), ("icmp6-echoreply", 129),
    ("icmp6-multicastlistenerquery", 130), ("icmp6-multicastlistenerreportv1", 131),
    ("icmp6-multicastlistenerdone", 132), ("icmp6-routersolicit", 133), ("icmp6-routeradvert", 134),
    ("icmp6-neighborsolicit", 135), ("icmp6-neighboradvert", 136), ("icmp6-redirect", 137),
    ("icmp6-routerrenum", 138), ("icmp6-nodeinformationquery", 139), ("icmp6-nodeinformationresponse", 140),
    ("icmp6-ineighbordiscoverysolicit", 141), ("icmp6-ineighbordiscoveryadvert", 142),
    ("icmp6-multicastlistenerreportv2", 143), ("icmp6-homeagentdiscoveryrequest", 144),
    ("icmp6-homeagentdiscoveryreply", 145), ("icmp6-mobileprefixsolicit", 146), ("icmp6-mobileprefixadvert", 147),
    ("icmp6-certpathsolicit", 148), ("icmp6-certpathadvert", 149), ("icmp6-multicastrouteradvert", 151),
    ("icmp6-multicastroutersolicit", 152), ("icmp6-multicastrouterterm", 153), ("tcpflags", 13), ("tcp-fin", 1),
    ("tcp-syn", 2), ("tcp-rst", 4), ("tcp-push", 8), ("tcp-ack", 0x10), ("tcp-urg", 0x20), ("tcp-ece", 0x40),
    ("tcp-cwr", 0x80),
];
