//! Bad expressions: where they are wrong, and what to write instead. Bad classic programs and
//! capture files, too.

use postern_filter::capture::{Capture, CaptureProblem, Direction, pcap_header, pcap_record};
use postern_filter::{Databases, Filter, NoNames};

fn names() -> Databases {
    Databases {
        services: "http 80/tcp www\ndomain 53/tcp\ndomain 53/udp\nssh 22/tcp\nsyslog 514/udp\n"
            .into(),
        protocols: "tcp 6 TCP\nudp 17 UDP\n".into(),
        hosts: "10.0.0.7 alpha beta.example\n2001:db8::7 alpha\n".into(),
        networks: "loopback 127.0.0.0\nlab 10.9\n".into(),
        ethers: "02:00:00:00:00:09 alpha\n".into(),
    }
}

#[test]
fn places_and_suggestions() {
    let cases: &[(&str, usize, &str, &str)] = &[
        (
            "tpc port 80",
            0,
            "stands where a condition should",
            "did you mean `tcp`?",
        ),
        (
            "port 80 or or 81",
            11,
            "`or` stands where a condition should",
            "",
        ),
        (
            "host 10.0.0.1 and",
            17,
            "ends where a condition should follow",
            "",
        ),
        ("tcp and (port 80", 8, "never closed", ""),
        ("tcp) and port 80", 3, "closes nothing", ""),
        ("10.0.0.1", 0, "stands where", "`host 10.0.0.1`"),
        ("port 99999", 0, "up to 65535", ""),
        (
            "port htpt",
            0,
            "no service is called",
            "did you mean `http`?",
        ),
        ("udp port http", 0, "one of tcp", "`tcp port http`"),
        ("ip proto tcp", 9, "word of the language", "`\\tcp`"),
        ("host 300.1.1.1", 0, "not a number from 0 to 255", ""),
        ("net 10.0.0.1/8", 0, "bits outside", "`net 10.0.0.0/8`"),
        ("host 10.0.0.1/24", 0, "bits outside", "`net 10.0.0.0/24`"),
        (
            "net 10.0.0.1 mask 255.0.255.0",
            0,
            "bits outside",
            "`net 10.0.0.0 mask 255.0.255.0`",
        ),
        ("net 2001:db8::1/32", 0, "bits outside", "2001:db8::/32"),
        ("host 10.0.0.0/8", 0, "belongs to `net`", "`net`"),
        ("tcp host 10.0.0.1", 0, "no IPv4 addresses", "tcp and host"),
        ("ether host 10.0.0.1", 0, "no link address", "host 10.0.0.1"),
        ("tcp[0:3] = 1", 6, "1, 2 or 4 bytes", ""),
        ("ip[2 = 1", 5, "`]`", ""),
        ("ip[0]", 5, "a comparison", ""),
        ("len / 0 = 1", 0, "division by zero", ""),
        ("1 << 32 = 1", 0, "more than 31", ""),
        ("tcp[tcpflag] & 2 != 0", 4, "a number", "`tcpflags`"),
        ("less x", 5, "a length", ""),
        ("vlan 4096", 0, "up to 4095", ""),
        ("mpls and vlan", 9, "MPLS", "before `mpls`"),
        (
            "pppoes and ether host 1:2:3:4:5:6",
            11,
            "PPP",
            "before `pppoes`",
        ),
        ("ip broadcast", 0, "netmask", "--netmask"),
        ("gateway alpha", 0, "not supported", "ether host"),
        ("port 08", 5, "octal", ""),
        ("port 4294967296", 5, "32 bits", ""),
        ("wlan type mgt", 5, "wireless", "`ether host`"),
        ("inbound and tcp", 0, "the way of a packet", "-Q in"),
        ("tcp and ifname eth0", 8, "the interface", "-i NAME"),
        ("vpi 5", 0, "ATM", ""),
        ("opc 5", 0, "telephone", ""),
        ("ruleset x", 0, "firewall", ""),
        ("tcp udp", 4, "the end", "`and udp`, `or udp`"),
        ("(tcp or udp) port 80", 13, "the end", "`and port`"),
        ("port 80 443", 8, "the end", "`or 443`"),
        ("TCP port 80", 0, "condition", "did you mean `tcp`?"),
        ("ip AND tcp", 3, "the end", "did you mean `and`?"),
        (
            "ip.addr == 10.0.0.1",
            0,
            "condition",
            "did you mean `host`?",
        ),
        ("vxlan", 0, "condition", "`udp dst port 4789`"),
        ("net 10/8", 6, "the end", "`10.0.0.0/8`"),
        ("host 10.0.0.1:80", 13, "the end", "and port 80"),
        ("port 80-90", 0, "no port", "`portrange 80-90`"),
        ("portrange 80 - 90", 13, "the end", "no spaces"),
        ("tcp | udp", 4, "the end", "`||`"),
        ("tcp é", 4, "no meaning", ""),
        ("ip[0] = 4 = 4", 10, "the end", ""),
        ("ether proto foo", 0, "no protocol is called", ""),
        ("portrange 80", 0, "", ""),
        ("llc foo", 4, "a kind of LLC frame", ""),
    ];
    for (source, at, message, suggestion) in cases {
        if message.is_empty() {
            Filter::compile(source, &names()).unwrap();
            continue;
        }
        let error = Filter::compile(source, &names()).expect_err(source);
        assert_eq!(error.at.start, *at, "{source}: {error}");
        assert!(error.message.contains(message), "{source}: {error}");
        assert!(
            suggestion.is_empty()
                || error
                    .suggestion
                    .as_ref()
                    .is_some_and(|s| s.contains(suggestion)),
            "{source}: {error}"
        );
        let shown = error.show(source);
        assert!(shown.contains('^') && shown.contains(source), "{shown}");
    }
}

/// Of a long line what is around the mark is shown.
#[test]
fn long_lines_are_shortened() {
    let ports = "port 1 or ".repeat(500);
    for source in [
        format!("{ports}prt 2 or {ports}tcp"),
        format!("prt 2 or {ports}tcp"),
        format!("{ports}prt 2"),
        format!("{ports}ip proto {}", "x".repeat(900)),
    ] {
        let shown = Filter::compile(&source, &names())
            .unwrap_err()
            .show(&source);
        let lines: Vec<Vec<char>> = shown.lines().map(|line| line.chars().collect()).collect();
        assert!(lines[1..].iter().all(|line| line.len() < 210), "{shown}");
        let at = lines[2].iter().position(|letter| *letter == '^').unwrap();
        // Behind `or` a name has the qualifiers of before, so it is the number that has no place.
        assert!(['2', 'p', 'i'].contains(&lines[1][at]), "{shown}");
    }
}

/// Deep, long and large sources end with an error or a filter, never with a panic.
#[test]
fn hostile_sources() {
    let many = |part: &str, times: usize| part.repeat(times);
    for source in [
        many("(", 100_000),
        many("not ", 100_000) + "tcp",
        many("(", 100_000) + "tcp" + &many(")", 100_000),
        many("ip[", 100_000),
        "1".to_owned() + &many("+1", 100_000) + "=2",
        many("tcp or ", 50_000) + "tcp",
        "len".to_owned() + &many("^len", 10_000) + "=2",
        many("vlan and ", 5000) + "ip",
        many("mpls and ", 5000) + "ip",
        many("geneve and ", 50) + "ip",
        many("pppoes and ", 3000) + "ip",
        "port ".to_owned() + &many("(", 5000) + "80",
        many("-", 100_000) + "1=1",
    ] {
        if let Ok(filter) = Filter::compile(&source, &NoNames) {
            filter.code().verify().unwrap();
        }
    }
}

#[test]
fn names_of_the_databases() {
    let same = |a: &str, b: &str| {
        let text = |source| Filter::compile(source, &names()).unwrap().to_string();
        assert_eq!(text(a), text(b), "{a}, {b}");
    };
    same("port http", "tcp port 80");
    same("port www", "tcp port 80");
    same("port domain", "port 53");
    same("udp port domain", "udp port 53");
    same("port syslog", "udp port 514");
    same("portrange ssh-http", "tcp portrange 22-80");
    same("host alpha", "host 10.0.0.7 or host 2001:db8::7");
    same("ip host beta.example", "ip host 10.0.0.7");
    same("net loopback", "net 127");
    same("net lab", "net 10.9");
    same("ether host alpha", "ether host 02:00:00:00:00:09");
    same("ip proto \\udp", "ip proto 17");
}

/// DPF's predicates are arithmetic on fields of the packet.
#[test]
fn predicates() {
    let filter = Filter::compile(
        "(12:2 == 0x0800) && (14:1 & 0xf0 == 0x40) and (23:1 = 17)",
        &NoNames,
    )
    .unwrap();
    let mut packet = [0; 60];
    packet[12] = 8;
    packet[14] = 0x45;
    packet[23] = 17;
    assert_ne!(filter.run(&packet, 60), 0);
    assert_eq!(filter.run(&packet[..23], 60), 0);
    packet[14] = 0x65;
    assert_eq!(filter.run(&packet, 60), 0);
}

#[test]
fn classic_programs() {
    let good = "4\n40 0 0 12\n21 0 1 2048\n6 0 0 65535\n6 0 0 0\n";
    let filter = Filter::classic(good).unwrap();
    assert_eq!(filter.run(&[8; 14], 14), 0);
    let mut packet = [0; 14];
    packet[12] = 8;
    assert_eq!(filter.run(&packet, 14), 65535);
    for (text, line, message) in [
        ("", 0, "number of instructions"),
        ("x\n", 0, "number of instructions"),
        (
            "2\n6 0 0 0\n",
            0,
            "2 instructions are announced and 1 follow",
        ),
        ("1\n6 0 0\n", 1, "four numbers"),
        ("1\n6 0 0 x\n", 1, "four numbers"),
        ("1\n6 300 0 0\n", 1, "four numbers"),
        ("1\n40 0 0 12\n", 1, "behind the last"),
        ("2\n21 1 0 0\n6 0 0 0\n", 1, "behind the last"),
        ("2\n5 0 0 4294967295\n6 0 0 0\n", 1, "behind the last"),
        ("2\n52 0 0 0\n6 0 0 0\n", 1, "division"),
        ("2\n100 0 0 32\n6 0 0 0\n", 1, "31"),
        ("2\n2 0 0 16\n6 0 0 0\n", 1, "16 words"),
        ("2\n255 0 0 0\n6 0 0 0\n", 1, "no such instruction"),
    ] {
        let error = Filter::classic(text).expect_err(text);
        assert_eq!(error.at.start, line, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
    // Values that double are not written out.
    let doubling = "12 0 0 0\n7 0 0 0\n".repeat(1000);
    let text = format!("2002\n0 0 0 1\n{doubling}22 0 0 0\n");
    let filter = Filter::classic(&text).unwrap();
    assert_eq!(filter.run(&[], 0), 0);
    filter.code().verify().unwrap();
}

#[test]
fn damaged_captures() {
    let mut file = pcap_header(100).to_vec();
    for length in [60u32, 14] {
        file.extend(pcap_record(1_500_000_000_000_000_001, length, 1000));
        file.extend(vec![7; length as usize]);
    }
    let whole: Vec<_> = Capture::new(&file).unwrap().map(Result::unwrap).collect();
    assert_eq!(whole.len(), 2);
    assert_eq!((whole[0].bytes.clone(), whole[0].wire), (40..100, 1000));
    assert_eq!(whole[1].time, 1_500_000_000_000_000_001);
    for cut in 101..file.len() {
        let mut packets = Capture::new(&file[..cut]).unwrap();
        assert!(packets.next().unwrap().is_ok());
        let error = packets.next().unwrap().unwrap_err();
        assert_eq!((error.at, error.problem), (100, CaptureProblem::CutShort));
        assert!(packets.next().is_none());
    }
    file[32 + 3] = 0x7f;
    let error = Capture::new(&file).unwrap().next().unwrap().unwrap_err();
    assert!(
        matches!(error.problem, CaptureProblem::Length(_)),
        "{error}"
    );
    assert_eq!(
        Capture::new(b"nothing").unwrap_err().problem,
        CaptureProblem::Format
    );
    for (bytes, program) in [
        (&b"\x1f\x8b\x08\x00..."[..], "`zcat "),
        (b"\x28\xb5\x2f\xfd", "`zstdcat "),
        (b"\xfd7zXZ", "`xzcat "),
    ] {
        let error = Capture::new(&bytes).unwrap_err().to_string();
        assert!(error.contains(program), "{error}");
    }
    // Frames with a checksum of four bytes behind them are of Ethernet all the same.
    file[23] = 0x24;
    Capture::new(&file).unwrap();
    file[20] = 147;
    assert_eq!(
        Capture::new(&file).unwrap_err().problem,
        CaptureProblem::Link(147)
    );
}

/// A pcapng file of one interface with times in nanoseconds, in both byte orders, whole and cut at
/// every place.
#[test]
fn pcapng() {
    for big in [false, true] {
        let word = |value: u32| {
            if big {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
        };
        let half = |value: u16| {
            if big {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
        };
        let mut file = Vec::new();
        let mut block = |kind: u32, body: &[u8]| {
            let length = word(12 + body.len() as u32);
            file.extend(word(kind));
            file.extend(length);
            file.extend(body);
            file.extend(length);
        };
        let section = [&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat();
        block(0x0a0d_0d0a, &section);
        let interface = [
            &half(1)[..],
            &half(0),
            &word(0),
            &half(9),
            &half(1),
            &[9, 0, 0, 0],
            &word(0),
        ]
        .concat();
        block(1, &interface);
        block(0x1234, &[1, 2, 3, 4]);
        let packet = [
            &word(0)[..],
            &word(1),
            &word(5),
            &word(3),
            &word(99),
            &[1, 2, 3, 0],
        ]
        .concat();
        block(6, &packet);
        block(3, &[&word(2)[..], &[1, 2, 0, 0]].concat());
        let list: Vec<_> = Capture::new(&file).unwrap().map(Result::unwrap).collect();
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].time, list[0].wire), ((1 << 32) + 5, 99));
        assert_eq!(file[list[0].bytes.clone()], [1, 2, 3]);
        for cut in 4..file.len() {
            for packet in Capture::new(&file[..cut]).unwrap().flatten() {
                assert!(packet.bytes.end <= cut);
            }
        }
    }
}

/// What files of other programs have: options, interfaces of several kinds and sections, old and
/// simple packets, times that begin elsewhere.
#[test]
fn pcapng_of_others() {
    fn block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
        let length = 12 + body.len().next_multiple_of(4) as u32;
        file.extend(kind.to_le_bytes());
        file.extend(length.to_le_bytes());
        file.extend(body);
        file.resize(file.len().next_multiple_of(4), 0);
        file.extend(length.to_le_bytes());
    }
    fn section(file: &mut Vec<u8>) {
        let head = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
        let comment = [1, 0, 3, 0, b'h', b'i', b'!', 0, 0, 0, 0, 0];
        block(
            file,
            0x0a0d_0d0a,
            &[&head[..], &[0xff; 8], &comment].concat(),
        );
    }
    let words = |words: &[u32]| {
        words
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect::<Vec<_>>()
    };
    let mut file = Vec::new();
    section(&mut file);
    // Microseconds, 2 bytes are kept; then 2^-10 seconds from second 100 on, with a name and an
    // option that nobody knows.
    block(&mut file, 1, &words(&[1, 2]));
    let options = [
        &[2, 0, 3, 0, b'e', b't', b'h', 0][..],
        &[9, 0, 1, 0, 0x8a, 0, 0, 0],
    ]
    .concat();
    let epoch = [
        &[14, 0, 8, 0][..],
        &100u64.to_le_bytes(),
        &[0x77, 0x77, 1, 0, 9, 0, 0, 0],
    ]
    .concat();
    block(&mut file, 1, &[words(&[1, 0]), options, epoch].concat());
    block(&mut file, 3, &[words(&[60]), vec![7, 8]].concat());
    let flags = [0, 2, 0, 4, 0, 1 | 2 << 2, 0, 0, 0, 0, 0, 0, 0];
    block(
        &mut file,
        6,
        &[words(&[1, 0, 512, 3, 9]), vec![1, 2, 3], flags.to_vec()].concat(),
    );
    block(
        &mut file,
        2,
        &[words(&[0xffff_0001, 0, 1024, 1, 9]), vec![5]].concat(),
    );
    section(&mut file);
    block(&mut file, 1, &words(&[1, 0]));
    block(&mut file, 6, &[words(&[0, 0, 7, 1, 1]), vec![6]].concat());
    // Packets of another link end what can be read.
    block(&mut file, 1, &words(&[147, 0]));
    block(&mut file, 6, &words(&[1, 0, 7, 0, 0]));
    let mut capture = Capture::new(&file).unwrap();
    let mut next = |name: &str| {
        let packet = capture.next().unwrap().unwrap();
        assert_eq!(capture.interface(packet.origin.interface), Some(name));
        let origin = (packet.origin.interface, packet.origin.direction);
        (
            file[packet.bytes].to_vec(),
            packet.wire,
            packet.time,
            origin,
        )
    };
    let (millisecond, unknown) = (1_000_000, Direction::Unknown);
    assert_eq!(next(""), (vec![7, 8], 60, 0, (0, unknown)));
    let time = 100_500 * millisecond;
    assert_eq!(
        next("eth"),
        (vec![1, 2, 3], 9, time, (1, Direction::Multicast))
    );
    assert_eq!(
        next("eth"),
        (vec![5], 9, 101_000 * millisecond, (1, unknown))
    );
    assert_eq!(next(""), (vec![6], 1, 7000, (0, unknown)));
    let error = capture.next().unwrap().unwrap_err();
    assert_eq!(error.problem, CaptureProblem::Link(147));
    assert!(capture.next().is_none());
}
