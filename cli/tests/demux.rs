//! `postern demux`: one capture spread over files, sockets and extensions.

use crate::support;

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use postern_filter::capture::{Capture, pcap_header, pcap_record};
use support::{postern, text};

/// Packets of UDP to these ports.
fn capture(folder: &Path, ports: &[u16]) {
    let mut file = pcap_header(65535).to_vec();
    for (time, port) in (1_700_000_000_000_000_000u64..).zip(ports) {
        let mut packet = vec![0; 60];
        packet[12] = 8;
        packet[14] = 0x45;
        packet[23] = 17;
        packet[36..38].copy_from_slice(&port.to_be_bytes());
        file.extend(pcap_record(time, 60, 70));
        file.extend(packet);
    }
    std::fs::write(folder.join("all.pcap"), file).unwrap();
}

/// The ports of a file's packets.
fn ports(folder: &Path, name: &str) -> Vec<u16> {
    let file = std::fs::read(folder.join(name)).unwrap();
    let packets = Capture::new(&file).unwrap().map(|packet| {
        let packet = packet.unwrap();
        assert_eq!((packet.bytes.len(), packet.wire), (60, 70));
        assert_eq!(packet.time / 1_000_000_000, 1_700_000_000);
        let bytes = &file[packet.bytes];
        u16::from_be_bytes([bytes[36], bytes[37]])
    });
    packets.collect()
}

#[test]
fn the_first_who_wants_a_packet_gets_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    capture(folder, &[53, 80, 53, 9, 443]);
    let to = [
        "--to",
        "dns.pcap=udp port 53",
        "--to",
        "low.pcapng=udp dst portrange 1-100",
    ];
    let output = postern(folder, &[&["demux", "-r", "all.pcap"][..], &to].concat());
    let counters = text(&output.stderr);
    assert!(output.status.success(), "{counters}");
    assert_eq!(
        counters,
        "dns.pcap: 2 packets, 120 bytes\nlow.pcapng: 2 packets, 120 bytes\n\
         5 packets received, 1 for nobody, 0 dropped by kernel\n"
    );
    assert_eq!(ports(folder, "dns.pcap"), [53, 53]);
    assert_eq!(ports(folder, "low.pcapng"), [80, 9]);
    let output = postern(
        folder,
        &[&["demux", "--all", "--json", "-r", "all.pcap"][..], &to].concat(),
    );
    assert!(text(&output.stdout).contains("\"unclaimed\": 1"));
    assert_eq!(ports(folder, "low.pcapng"), [53, 80, 53, 9]);
}

/// Priorities and owners of a file of rules; what one owner's consumers want, another's cannot
/// take.
#[test]
fn rules_have_owners() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    capture(folder, &[53, 80]);
    let rules = |more: &str| {
        let text = format!(
            "[[consumer]]\nname = \"all\"\nfile = \"all.out\"\nowner = \"alice\"\n\n\
             [[consumer]]\nname = \"dns\"\nfilter = \"udp port 53\"\nfile = \"dns.out\"\nowner = \"bob\"\npriority = 2\n{more}"
        );
        std::fs::write(folder.join("rules.toml"), text).unwrap();
        postern(folder, &["demux", "--check", "rules.toml"])
    };
    let refused = text(&rules("").stderr);
    assert!(
        refused.contains("`dns` could take packets of `all`, which belongs to `alice`"),
        "{refused}"
    );
    let fine = rules("may_steal = true\n");
    assert!(
        text(&fine.stdout).contains("2 consumers, all fine"),
        "{}",
        text(&fine.stderr)
    );
    assert!(!folder.join("dns.out").exists());
    let output = postern(folder, &["demux", "-r", "all.pcap", "rules.toml"]);
    assert!(output.status.success());
    assert_eq!(
        (ports(folder, "dns.out"), ports(folder, "all.out")),
        (vec![53], vec![80])
    );
    for (more, message) in [
        ("color = 1\n", "unknown field `color`"),
        ("socket = \"s\"\n", "needs one of"),
        ("queue = 0\n", "`queue` is at least 1"),
        (
            "[[consumer]]\nname = \"dns\"\nfile = \"x\"\n",
            "two of that name",
        ),
        (
            "[[consumer]]\nname = \"bad\"\nfile = \"x\"\nfilter = \"tpc\"\n",
            "did you mean `tcp`?",
        ),
    ] {
        let output = rules(more);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(message),
            "{}",
            text(&output.stderr)
        );
    }
    // A wrong filter's place is told, and a file that cannot be.
    for (consumer, message) in [
        (
            "filter = \"udp prt 53\"\nfile = \"x\"\n",
            "rules.toml:4: consumer `x`: `prt` stands where",
        ),
        (
            "file = \"nowhere/x\"\n",
            "consumer `x`: cannot write nowhere/x: No such file",
        ),
    ] {
        let rules = format!("\n[[consumer]]\nname = \"x\"\n{consumer}");
        std::fs::write(folder.join("rules.toml"), rules).unwrap();
        let output = postern(folder, &["demux", "-r", "all.pcap", "rules.toml"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(message),
            "{}",
            text(&output.stderr)
        );
    }
    let onto = ["demux", "-r", "all.pcap", "--to", "all.pcap=udp"];
    let refused = text(&postern(folder, &onto).stderr);
    assert!(refused.contains("is the file that is read"), "{refused}");
    assert_eq!(ports(folder, "all.pcap"), [53, 80]);
    let output = postern(folder, &["demux", "-r", "all.pcap"]);
    assert!(text(&output.stderr).contains("there is no consumer"));
}

/// A message for each packet; a consumer that reads nothing loses packets, and nobody else does.
#[test]
fn sockets_that_are_slow_stop_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    capture(folder, &[53; 5000]);
    let slow = UnixDatagram::bind(folder.join("slow")).unwrap();
    let quick = UnixDatagram::bind(folder.join("quick")).unwrap();
    let reader = std::thread::spawn(move || {
        let mut message = [0; 200];
        let mut count = 0u32;
        while count < 5000 {
            assert_eq!(quick.recv(&mut message).unwrap(), 76);
            assert_eq!(message[..4], 1_700_000_000u32.to_le_bytes());
            assert_eq!(message[4..8], count.to_le_bytes());
            assert_eq!(message[8..16], [60, 0, 0, 0, 70, 0, 0, 0]);
            count += 1;
        }
    });
    std::fs::write(
        folder.join("rules.toml"),
        "[[consumer]]\nname = \"slow\"\nsocket = \"slow\"\nqueue = 10\n\n\
         [[consumer]]\nname = \"quick\"\nsocket = \"quick\"\nblock = true\n\n\
         [[consumer]]\nname = \"nobody\"\nsocket = \"nobody\"\nblock = true\n\n\
         [[consumer]]\nname = \"file\"\nfile = \"file.pcap\"\n",
    )
    .unwrap();
    let output = postern(
        folder,
        &["demux", "--all", "--json", "-r", "all.pcap", "rules.toml"],
    );
    let counters = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    reader.join().unwrap();
    let counters: serde_json::Value = serde_json::from_str(&counters).unwrap();
    let dropped = |number: usize| counters["consumers"][number]["dropped"].as_u64().unwrap();
    assert!((4000..5000).contains(&dropped(0)), "{counters}");
    assert_eq!((dropped(1), dropped(2), dropped(3)), (0, 5000, 0));
    assert_eq!(ports(folder, "file.pcap").len(), 5000);
    let mut message = [0; 200];
    slow.recv(&mut message).unwrap();
    assert_eq!(message[4..8], [0; 4]);
}

/// A handler takes what it likes; what it leaves, and what makes it fault, goes to the next.
#[test]
fn handlers_leave_packets_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    capture(folder, &[1, 2, 3, 4, 5, 6]);
    let source = "#include <postern/packet.h>\nint handle(const unsigned char *p, unsigned n, unsigned w)\n{\n\
        if (p[37] == 4)\n*(volatile int *)0 = 1;\nreturn p[37] % 2 && n < w;\n}\n";
    std::fs::write(folder.join("odd.c"), source).unwrap();
    let arguments = [
        "demux",
        "-r",
        "all.pcap",
        "--to",
        "odd.c=udp",
        "--to",
        "rest.pcap=",
    ];
    let output = postern(folder, &arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("odd.c: packet 4: ") && said.contains("odd.c:5"),
        "{said}"
    );
    assert!(
        said.contains("odd.c: 6 packets, 360 bytes, 1 faults\nrest.pcap: 3 packets"),
        "{said}"
    );
    assert_eq!(ports(folder, "rest.pcap"), [2, 4, 6]);
}

/// The decision program says how each group of filters is looked up.
#[test]
fn the_program_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let consumers: String = (0..100)
        .map(|n| {
            format!("[[consumer]]\nname = \"c{n}\"\nfile = \"c{n}\"\nfilter = \"ip and udp dst port {}\"\n", 7 * n)
        })
        .collect();
    std::fs::write(folder.path().join("rules.toml"), consumers).unwrap();
    let output = postern(folder.path(), &["demux", "-d", "rules.toml"]);
    let shown = text(&output.stdout);
    assert_eq!(shown.matches("12:2 == 0x800").count(), 1, "{shown}");
    assert_eq!(shown.matches("table indexed by").count(), 1, "{shown}");
}
