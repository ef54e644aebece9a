//! Links other than Ethernet: the same verdicts as by libpcap, and by machine code, on packets of
//! every protocol.

use crate::support;

use postern_filter::{Databases, Filter, Link, Options};
use support::confined::Confined;
use support::packets;
use support::pcap::{Judge, NETMASK};

const EXPRESSIONS: &[&str] = &[
    "ip",
    "ip6",
    "arp",
    "rarp",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "not ip",
    "host 10.0.0.1",
    "src host 10.0.0.2 or dst net 192.168",
    "ip6 host 2001:db8::1",
    "port 53",
    "tcp port 80 or 443",
    "udp dst portrange 1-100 and not port 53",
    "ip proto 17",
    "ip6 proto 6",
    "tcp[13] & 2 != 0",
    "ip[8] < 64 and link[0] < 9",
    "ip multicast or arp",
    "iso or stp or ipx or netbeui",
    "isis or atalk or aarp or decnet",
    "(tcp or udp) and net 10.0.0.0/8",
];

/// A packet with another header in the place of Ethernet's; nothing where the link has none for it.
fn moved(link: Link, frame: &[u8], round: usize) -> Option<Vec<u8>> {
    let kind = u16::from_be_bytes([*frame.get(12)?, *frame.get(13)?]);
    let ip = match kind {
        0x0800 => Some((2u32, 0x21u16)),
        0x86dd => Some((10, 0x57)),
        _ => None,
    };
    let [high, low] = kind.to_be_bytes();
    let wireless = || {
        let mut header = vec![0; 24];
        header[0] = [8, 0x88, 0x80, 0x48][round % 4];
        header.resize(24 + 2 * usize::from(header[0] >> 7), 0);
        header.extend([0xaa, 0xaa, 3, 0, 0, 0, high, low]);
        header
    };
    let header = match link {
        Link::Ethernet => return None,
        Link::Raw => ip.map(|_| Vec::new())?,
        Link::Null => ip?.0.to_ne_bytes().to_vec(),
        Link::Loop => ip?.0.to_be_bytes().to_vec(),
        Link::Sll => [
            &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0],
            &[high, low][..],
        ]
        .concat(),
        Link::Sll2 => [&[high, low][..], &[0; 6], &[0, 1, 0, 6], &[0; 8]].concat(),
        Link::Ppp => {
            let [high, low] = ip.map_or(kind, |(_, number)| number).to_be_bytes();
            vec![0xff, 3, high, low]
        }
        Link::Hdlc => vec![0x0f, 0, high, low],
        Link::Wireless => wireless(),
        Link::Radiotap => {
            let length = [8u8, 12, 25, 200][round % 4];
            let mut header = vec![0; length.into()];
            header[2] = length;
            header.extend(wireless());
            header
        }
    };
    Some([&header, &frame[14..]].concat())
}

#[test]
fn verdicts_are_those_of_libpcap() {
    let corpus = packets::packets(21, 400);
    let names = Databases::system();
    for (link, number) in [
        (Link::Raw, 12),
        (Link::Null, 0),
        (Link::Loop, 108),
        (Link::Sll, 113),
        (Link::Sll2, 276),
        (Link::Ppp, 9),
        (Link::Hdlc, 104),
        (Link::Wireless, 105),
        (Link::Radiotap, 127),
    ] {
        let list = corpus.iter().enumerate();
        let list: Vec<Vec<u8>> = list
            .filter_map(|(round, packet)| moved(link, &packet.bytes, round))
            .collect();
        let (mut accepted, mut refused) = (0, Vec::new());
        for text in EXPRESSIONS {
            // Of this link libpcap 1.10 takes an access point of LLC for a type.
            if link == Link::Sll2 && (text.contains("iso") || text.contains("isis")) {
                continue;
            }
            let options = Options {
                netmask: Some(NETMASK),
                link,
                ..Options::default()
            };
            let filter = Filter::compile_with(text, &names, options);
            let judge = Judge::compile_for(number, text, false);
            let (filter, judge) = match (filter, judge) {
                (Ok(filter), Ok(judge)) => (filter, judge),
                // What is known before the first packet libpcap refuses: `expression rejects all
                // packets`.
                (Ok(_), Err(_)) => continue,
                (Err(error), Ok(_)) => {
                    refused.push(error.to_string());
                    continue;
                }
                (Err(_), Err(_)) => continue,
            };
            let machine = Confined::new(&filter);
            let verdicts = machine.run(list.iter().map(|p| (&p[..], p.len() as u32)));
            for (packet, machine) in list.iter().zip(verdicts) {
                let wire = packet.len() as u32;
                let (ours, theirs) = (filter.run(packet, wire), judge.run(packet, wire));
                assert_eq!(ours, machine, "{link:?} `{text}` {packet:02x?}");
                assert_eq!(ours, theirs, "{link:?} `{text}` {packet:02x?}\n{filter}");
                accepted += u32::from(ours != 0);
            }
        }
        assert!(refused.is_empty(), "{link:?}: {refused:?}");
        assert!(accepted > 400, "{link:?}: {accepted} accepted");
    }
}

/// Where the network header begins is said of any bytes, and lies in the packet or right behind it.
#[test]
fn any_bytes_have_a_place_or_none() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.usize(..80)).map(|_| random.u8(..)).collect();
        for number in 0..300 {
            let Some(link) = Link::of(number) else {
                continue;
            };
            if let Some((at, _)) = link.network(&bytes) {
                assert!(at <= bytes.len(), "{link:?} {bytes:02x?}");
            }
        }
    }
}
