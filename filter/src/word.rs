//! The words of the language: protocols, qualifiers, operators, and names of numbers.

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
pub(crate) enum Kind {
    Host,
    Net,
    Port,
    PortRange,
    Proto,
    ProtoChain,
}

/// A word with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Proto(Proto),
    Src,
    Dst,
    Kind(Kind),
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
    /// Known, but of other links than Ethernet, or of live captures.
    Elsewhere,
}

/// What a word means, if it is one of the language.
pub(crate) fn word(text: &str) -> Option<Word> {
    WORDS
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, word)| *word)
}

/// The number that a name stands for.
pub(crate) fn number(text: &str) -> Option<u32> {
    NUMBERS
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, number)| *number)
}

/// Every word that has a meaning here, and every named number, to look for what may have been meant.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    let here = WORDS.iter().filter(|(_, word)| *word != Elsewhere);
    let words = here.map(|(name, _)| *name);
    words.chain(NUMBERS.iter().map(|(name, _)| *name))
}

use Word::*;

const fn proto(proto: Proto) -> Word {
    Word::Proto(proto)
}

#[rustfmt::skip]
const WORDS: &[(&str, Word)] = &[
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
    ("host", Kind(self::Kind::Host)), ("net", Kind(self::Kind::Net)), ("port", Kind(self::Kind::Port)),
    ("portrange", Kind(self::Kind::PortRange)), ("proto", Kind(self::Kind::Proto)),
    ("protochain", Kind(self::Kind::ProtoChain)),
    ("gateway", Gateway), ("mask", Mask), ("less", Less), ("greater", Greater), ("byte", Byte),
    ("broadcast", Broadcast), ("multicast", Multicast), ("and", And), ("or", Or), ("not", Not),
    ("len", Len), ("length", Len), ("vlan", Vlan), ("mpls", Mpls), ("pppoed", Pppoed), ("pppoes", Pppoes),
    ("geneve", Geneve), ("llc", Llc),
    ("inbound", Elsewhere), ("outbound", Elsewhere), ("ifindex", Elsewhere), ("radio", Elsewhere),
    ("type", Elsewhere), ("subtype", Elsewhere), ("direction", Elsewhere), ("dir", Elsewhere),
    ("address1", Elsewhere), ("addr1", Elsewhere), ("address2", Elsewhere), ("addr2", Elsewhere),
    ("address3", Elsewhere), ("addr3", Elsewhere), ("address4", Elsewhere), ("addr4", Elsewhere),
    ("ra", Elsewhere), ("ta", Elsewhere), ("lane", Elsewhere), ("metac", Elsewhere), ("bcc", Elsewhere),
    ("oam", Elsewhere), ("oamf4", Elsewhere), ("oamf4ec", Elsewhere), ("oamf4sc", Elsewhere), ("sc", Elsewhere),
    ("ilmic", Elsewhere), ("vpi", Elsewhere), ("vci", Elsewhere), ("connectmsg", Elsewhere),
    ("metaconnect", Elsewhere), ("on", Elsewhere), ("ifname", Elsewhere), ("rset", Elsewhere),
    ("ruleset", Elsewhere), ("rnr", Elsewhere), ("rulenum", Elsewhere), ("srnr", Elsewhere),
    ("subrulenum", Elsewhere), ("reason", Elsewhere), ("action", Elsewhere), ("fisu", Elsewhere),
    ("lssu", Elsewhere), ("lsu", Elsewhere), ("msu", Elsewhere), ("hfisu", Elsewhere), ("hlssu", Elsewhere),
    ("hmsu", Elsewhere), ("sio", Elsewhere), ("opc", Elsewhere), ("dpc", Elsewhere), ("sls", Elsewhere),
    ("hsio", Elsewhere), ("hopc", Elsewhere), ("hdpc", Elsewhere), ("hsls", Elsewhere),
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
