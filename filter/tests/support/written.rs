//! Expressions that people wrote, good and bad ones: every word of the language in every place
//! where one may stand, and a list.

/// Every word that libpcap's scanner knows.
const WORDS: &str = "dst src link ether ppp slip fddi tr wlan arp rarp ip sctp tcp udp icmp igmp igrp pim vrrp carp radio ip6 icmp6 \
    ah esp atalk aarp decnet lat sca moprc mopdl iso esis es-is isis is-is l1 l2 iih lsp snp csnp psnp clnp stp ipx netbeui host net \
    mask port portrange proto protochain gateway type subtype direction dir address1 addr1 address2 addr2 address3 addr3 address4 \
    addr4 ra ta less greater byte broadcast multicast and or not len length inbound outbound ifindex vlan mpls pppoed pppoes geneve \
    lane llc metac bcc oam oamf4 oamf4ec oamf4sc sc ilmic vpi vci connectmsg metaconnect on ifname rset ruleset rnr rulenum srnr \
    subrulenum reason action fisu lssu lsu msu hfisu hlssu hmsu sio opc dpc sls hsio hopc hdpc hsls";

/// Places for a word, which is `@` here.
const PLACES: &[&str] = &[
    "@",
    "not @",
    "( @ )",
    "@ or @",
    "@ and tcp",
    "vlan and @",
    "mpls and @",
    "pppoes and @",
    "geneve and @",
    "\\@",
    "ether proto \\@",
    "ip proto \\@",
    "proto \\@",
    "iso proto \\@",
    "isis proto \\@",
    "@ 5",
    "@ = 5",
    "@&1=0",
    "@[0] = 1",
    "@[0:2] = 1",
    "@ 10.0.0.1",
    "@ 10.0.0.0/8",
    "@ 2001:db8::1",
    "@ 2:0:0:0:0:1",
    "@ host 10.0.0.1",
    "@ host 2:0:0:0:0:1",
    "@ host localhost",
    "@ src 10.0.0.1",
    "@ src or dst net 10.0",
    "@ net 10",
    "@ net 10.0.0.0/8",
    "@ net 10 mask 255.0.0.0",
    "@ net 2001:db8::/32",
    "@ net loopback",
    "@ port 80",
    "@ port http",
    "@ src port 80",
    "@ portrange 20-80",
    "@ proto 6",
    "@ proto \\tcp",
    "@ protochain 6",
    "@ broadcast",
    "@ multicast",
    "@ gateway foo",
    "@ less 50",
    "src @ 80",
    "dst @ 10.0.0.1",
    "src or dst @ 10",
];

/// All of them.
pub fn expressions() -> Vec<String> {
    let placed = WORDS
        .split_whitespace()
        .flat_map(|word| PLACES.iter().map(move |place| place.replace('@', word)));
    let list = include_str!("../expressions.txt").lines();
    placed.chain(list.map(str::to_owned)).collect()
}
