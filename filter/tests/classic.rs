//! Filters as programs of the classic machine: what they accept, what the kernel takes, and what
//! tags that it took out change.

use crate::support;

use fastrand::Rng;
use postern_filter::classic::{Gate, Instruction, listing};
use postern_filter::set::{Claim, Scratch, Set};
use postern_filter::{Databases, Filter, Options};
use support::machine::{Seen, run};
use support::packets::{self, Packet};
use support::pcap::{Interpreted, NETMASK, kernel_takes};
use support::{expressions, written};

const KEPT: u32 = 262_144;
const ETHERNET: u16 = 1;

fn filter(text: &str) -> Option<Filter> {
    let options = Options {
        netmask: Some(NETMASK),
        ..Options::default()
    };
    Filter::compile_with(text, &Databases::system(), options).ok()
}

fn texts(seed: u64, count: usize) -> Vec<String> {
    let mut random = Rng::with_seed(seed);
    let any = (0..count).map(|_| {
        let size = 1 + random.usize(..5);
        expressions::expression(&mut random, size)
    });
    any.chain(written::expressions()).collect()
}

/// Whole packets, half of them with a tag more.
fn corpus(seed: u64, count: usize) -> Vec<Packet> {
    let mut all = packets::packets(seed, count);
    for (number, packet) in all.iter_mut().enumerate() {
        if number % 2 == 0 && packet.bytes.len() >= 14 {
            let kind = if number % 4 == 0 { 0x81 } else { 0x88 };
            let low = if number % 4 == 0 { 0 } else { 0xa8 };
            packet.bytes.splice(12..12, [kind, low, 0, 5]);
        }
        packet.wire = packet.bytes.len() as u32;
    }
    all
}

/// What the kernel makes of a frame: a tag is beside it.
fn gate_lets_through(program: &[Instruction], packet: &[u8]) -> bool {
    let tag = match packet {
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x81, 0, a, b, _, _, ..] => Some((0x8100, [*a, *b])),
        [
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            0x88,
            0xa8,
            a,
            b,
            _,
            _,
            ..,
        ] => Some((0x88a8, [*a, *b])),
        _ => None,
    };
    let mut bytes = packet.to_vec();
    if tag.is_some() {
        bytes.drain(12..16);
    }
    let seen = Seen {
        bytes: &bytes,
        tag: tag.map(|(kind, number)| (kind, u16::from_be_bytes(number))),
        hardware: ETHERNET,
    };
    run(program, &seen) != 0
}

/// The same verdict by libpcap's interpreter as by the filter; nearly every expression can be said.
#[test]
fn classic_programs_say_the_same() {
    let corpus = packets::packets(11, 200);
    let (mut said, mut accepted) = (0, 0);
    let texts = texts(11, 2000);
    for text in &texts {
        let Some(filter) = filter(text) else { continue };
        let Some(program) = filter.to_classic() else {
            continue;
        };
        assert!(kernel_takes(&program), "`{text}`\n{}", listing(&program));
        let mut judge = Interpreted::new(&program);
        for packet in &corpus {
            let ours = filter.run(&packet.bytes, packet.wire);
            let theirs = judge.run(&packet.bytes, packet.wire);
            assert_eq!(
                ours,
                theirs,
                "`{text}`: {:02x?}\n{}",
                packet.bytes,
                listing(&program)
            );
            accepted += u64::from(ours != 0);
        }
        said += 1;
    }
    assert!(
        said > 2400 && accepted > 50_000,
        "{said} of {}, {accepted}",
        texts.len()
    );
}

/// The kernel never leaves out what the filter accepts, with tags and without; where the program is
/// exact it leaves out all else.
#[test]
fn the_gate_refuses_nothing_that_is_wanted() {
    let corpus = corpus(12, 200);
    let (mut exact_ones, mut all) = (0, 0);
    for text in texts(12, 2000) {
        let Some(filter) = filter(&text) else {
            continue;
        };
        let mut gate = Gate::default();
        gate.filter(&[ETHERNET, 772], true, &filter);
        let (program, exact) = gate.program(KEPT);
        assert!(kernel_takes(&program), "`{text}`\n{}", listing(&program));
        for packet in &corpus {
            let wanted = filter.run(&packet.bytes, packet.wire) != 0;
            let through = gate_lets_through(&program, &packet.bytes);
            assert!(
                through == wanted || through && !exact,
                "`{text}`: {wanted} {through} {exact} {:02x?}\n{}",
                packet.bytes,
                listing(&program)
            );
        }
        exact_ones += u32::from(exact);
        all += 1;
    }
    assert!(exact_ones * 2 > all, "{exact_ones} of {all}");
}

/// Of many filters each is asked, whatever the ones before cannot read.
#[test]
fn the_gate_of_a_set_refuses_nothing_that_is_wanted() {
    let corpus = corpus(13, 200);
    let mut random = Rng::with_seed(13);
    let mut refused = 0;
    for _ in 0..150 {
        let mut set = Set::new();
        for _ in 0..1 + random.usize(..12) {
            let text = expressions::expression(&mut random, 2);
            if let Some(filter) = filter(&text) {
                set.insert(&filter, Claim::default()).unwrap();
            }
        }
        let mut gate = Gate::default();
        gate.set(&[], true, &set);
        let (program, exact) = gate.program(KEPT);
        assert!(kernel_takes(&program), "{}", listing(&program));
        let mut scratch = Scratch::default();
        for packet in &corpus {
            let wanted = set.find(&packet.bytes, packet.wire, &mut scratch).is_some();
            let through = gate_lets_through(&program, &packet.bytes);
            assert!(
                through || !wanted,
                "{:02x?}\n{}",
                packet.bytes,
                listing(&program)
            );
            assert!(
                through == wanted || !exact,
                "{:02x?}\n{}",
                packet.bytes,
                listing(&program)
            );
            refused += u32::from(!through);
        }
    }
    assert!(refused > 5000, "{refused}");
}

/// A filter that is too long for the kernel has a shorter one before it.
#[test]
fn long_filters_have_a_coarser_one() {
    let hosts = |range: std::ops::Range<u32>| {
        // No two side by side.
        let one = |n: u32| format!("dst host 10.9.{}.{}", (2 * n) >> 8, (2 * n) & 255);
        range.map(one).collect::<Vec<_>>().join(" or ")
    };
    let filter = filter(&format!("ip and udp and ({})", hosts(0..3000))).unwrap();
    let mut gate = Gate::default();
    gate.filter(&[], true, &filter);
    let (program, exact) = gate.program(KEPT);
    assert!(
        program.len() <= 4096 && kernel_takes(&program),
        "{}",
        program.len()
    );
    assert!(!exact || program.len() > 3000);
    for packet in corpus(14, 300) {
        let wanted = filter.run(&packet.bytes, packet.wire) != 0;
        assert!(gate_lets_through(&program, &packet.bytes) || !wanted);
    }
    let tcp = [&[0; 12][..], &[8, 0, 0x45], &[0; 8], &[6], &[0; 30]].concat();
    assert!(!gate_lets_through(&program, &tcp));
    // The last one of them.
    let mut last = tcp;
    last[23] = 17;
    last[30..34].copy_from_slice(&[10, 9, 5998u32.to_be_bytes()[2], 5998u32.to_be_bytes()[3]]);
    assert!(gate_lets_through(&program, &last));
    assert!(filter.run(&last, last.len() as u32) != 0);
}

/// Lists that are far too long become ranges: the kernel still leaves out nearly all packets of
/// other hosts, and none that is wanted.
#[test]
fn long_lists_become_ranges() {
    let mut random = Rng::with_seed(19);
    // Hosts in forty networks of a thousand.
    let any = |random: &mut Rng| 0x0a00_0000 + (random.u32(..40) << 17) + random.u32(..1000);
    let hosts: Vec<u32> = (0..6000).map(|_| any(&mut random)).collect();
    let name = |host: &u32| std::net::Ipv4Addr::from_bits(*host).to_string();
    let names: Vec<String> = hosts.iter().map(name).collect();
    let packet = |host: u32, number: usize| {
        let mut packet = vec![0; 60];
        packet[12..15].copy_from_slice(&[8, 0, 0x45]);
        packet[23] = 17;
        packet[26 + number % 2 * 4..][..4].copy_from_slice(&host.to_be_bytes());
        packet
    };
    let mut set = Set::new();
    for name in &names {
        let connection = filter(&format!("ip and udp and host {name}")).unwrap();
        set.insert(&connection, Claim::default()).unwrap();
    }
    let some = names[..3000].join(" or ");
    let one = filter(&format!("ip and udp and host ({some})")).unwrap();
    let not = filter(&format!("udp and not (ip src host ({some})) and len < 100")).unwrap();
    let gate = |add: &dyn Fn(&mut Gate)| {
        let mut gate = Gate::default();
        add(&mut gate);
        let (program, exact) = gate.program(KEPT);
        assert!(program.len() <= 4096 && kernel_takes(&program));
        assert!(!exact);
        program
    };
    let single = gate(&|gate| gate.filter(&[], true, &one));
    let negated = gate(&|gate| gate.filter(&[], true, &not));
    let many = gate(&|gate| gate.set(&[ETHERNET], true, &set));
    let (mut left, mut scratch) = ([0; 2], Scratch::default());
    for number in 0..4000 {
        let host = match number % 3 {
            0 => hosts[random.usize(..hosts.len())],
            _ => random.u32(..),
        };
        let packet = packet(host, number);
        for (program, filter) in [(&single, &one), (&negated, &not)] {
            let wanted = filter.run(&packet, 60) != 0;
            assert!(gate_lets_through(program, &packet) || !wanted, "{host:x}");
        }
        let wanted = set.find(&packet, 60, &mut scratch).is_some();
        assert!(gate_lets_through(&many, &packet) || !wanted, "{host:x}");
        for (left, program) in left.iter_mut().zip([&single, &many]) {
            *left += usize::from(!gate_lets_through(program, &packet));
        }
    }
    assert!(single.len() > 100 && many.len() > 100);
    // Of 2,667 to hosts that are not among them.
    assert!(left.iter().all(|left| *left > 2600), "{left:?}");
}

/// As `tcpdump -d` prints it.
#[test]
fn programs_are_shown() {
    let program = filter("ip and udp dst port 53")
        .unwrap()
        .to_classic()
        .unwrap();
    let text = listing(&program);
    for line in [
        "(000) ldh      [12]\n",
        "(001) jeq      #0x800           jt 2\tjf ",
        "ldxb     4*([14]&0xf)\n",
        "ldh      [x + 16]\n",
        "jset     #0x1fff ",
        "ret      #262144\n",
        "ret      #0\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
