//! Filters for the kernel's packet hooks: accepted by its profile, and the verdicts of those for
//! processes. Their code differs from a process's by one bit of a prefix and by the order of two
//! arguments; with the bit turned it runs in a domain.

use fastrand::Rng;
use postern::{Domain, Image, Offset, Prot, Shared};
use postern_filter::set::{Claim, Limits, Scratch, Set};
use postern_filter::{Code, Filter, Link, NoNames, Options};
use postern_image::{ImageBuilder, ImageFile};
use postern_verifier::{Segment, next};

use crate::support::connections::{connection, connection_packet};
use crate::support::{expressions, packets};

/// The same code through gs, in a domain with room for a packet.
fn domain(code: &Code) -> (Domain, Offset) {
    let mut builder = ImageBuilder::new(through_gs(code));
    builder
        .export("filter", 0, "l(pLLl)".parse().ok())
        .data([0; 16], 2048);
    let room = Offset(builder.layout().unwrap().data);
    let image = Image::from_bytes(&builder.build().unwrap()).unwrap();
    (Domain::builder(&image).build().unwrap(), room)
}

/// The same instructions through the other segment.
fn through_gs(code: &Code) -> Vec<u8> {
    let mut text = code.text().to_vec();
    let mut at = 0;
    while at < text.len() {
        let length = next(&text, at, Segment::Fs).unwrap().length;
        if text[at] == 0x64 {
            text[at] = 0x65;
        }
        at += length;
    }
    text
}

#[test]
fn verdicts_are_those_of_processes() {
    let mut random = Rng::with_seed(5);
    let (mut accepted, mut rejected) = (0, 0);
    for _ in 0..150 {
        let source = expressions::expression(&mut random, 6);
        let options = Options {
            link: Link::Raw,
            ..Options::default()
        };
        let Ok(filter) = Filter::compile_with(&source, &NoNames, options) else {
            continue;
        };
        let code = filter.kernel_code();
        let facts = code.verify().unwrap_or_else(|v| panic!("{source}: {v}"));
        assert!(facts.longest_path.is_some() && facts.call_depth == Some(0));
        let file = code.image().unwrap();
        let image = ImageFile::parse(&file).unwrap();
        assert_eq!(image.header().segment, Segment::Fs);
        assert_eq!(image.exports()[0].name, "filter");
        let (domain, room) = domain(&code);
        let judge = domain.func::<fn(Offset, u64, u64, i64) -> i64>("filter");
        let judge = judge.unwrap();
        for _ in 0..40 {
            let packet = packets::packet(&mut random).bytes;
            // From the network header on.
            let packet = packet.get(14..).unwrap_or(&[]);
            let wire = packet.len() as u32 + random.u32(..3);
            let captured = &packet[..random.usize(..=packet.len()).max(packet.len() / 2)];
            domain.write(room, captured).unwrap();
            let found = judge.call(room, captured.len() as u64, wire.into(), 0);
            let expected = filter.run(captured, wire);
            assert_eq!(found.unwrap(), i64::from(expected), "{source}");
            match expected {
                0 => rejected += 1,
                _ => accepted += 1,
            }
        }
    }
    assert!(accepted > 100 && rejected > 100, "{accepted} {rejected}");
}

/// Sets with searches, indices and hash tables, and with filters that are asked by themselves.
#[test]
fn sets_answer_as_without_machine_code() {
    let mut random = Rng::with_seed(6);
    let mut scratch = Scratch::default();
    let (mut found, mut tables) = (0, 0);
    for round in 0..40 {
        let mut set = Set::within(Limits::SMALL);
        let mut insert = |source: &str, priority| {
            let Ok(filter) = Filter::compile(source, &NoNames) else {
                return;
            };
            let claim = Claim {
                owner: priority,
                priority,
                may_steal: true,
            };
            set.insert(&filter, claim).unwrap();
        };
        for _ in 0..1 + round % 12 {
            insert(&expressions::expression(&mut random, 3), random.u32(..4));
        }
        for n in 0..round {
            insert(&connection(n * 77), random.u32(..4));
            insert(&format!("udp dst port {}", 1000 + n), random.u32(..4));
        }
        let memory = Shared::new(1 << 16).unwrap();
        let mut keys = random.fork();
        let made = set.kernel_code(memory.offset().0, move || keys.u64(..));
        let made = made.unwrap();
        let facts = made.code.verify().unwrap();
        assert!(facts.longest_path.is_some() && !facts.gates);
        let bytes: Vec<u8> = made.tables.iter().flat_map(|w| w.to_le_bytes()).collect();
        tables += bytes.len();
        memory.write(0, &bytes).unwrap();
        let (domain, room) = domain(&made.code);
        domain.share(&memory, Prot::Read).unwrap();
        let find = domain.func::<fn(Offset, u64, u64, i64) -> i64>("filter");
        let find = find.unwrap();
        for n in 0..60 {
            let packet = match n % 2 {
                0 => packets::packet(&mut random).bytes,
                _ => connection_packet(random.u32(..40) * 77),
            };
            let captured = &packet[..random.usize(..=packet.len()).max(packet.len() / 2)];
            let captured = &captured[..captured.len().min(2048)];
            domain.write(room, captured).unwrap();
            let (length, wire) = (captured.len() as u64, packet.len() as u32);
            let answer = find.call(room, length, wire.into(), 0).unwrap();
            let expected = set.find(captured, wire, &mut scratch);
            assert_eq!(answer, expected.map_or(0, |id| i64::from(id.0) + 1));
            found += u32::from(answer != 0);
        }
    }
    assert!(found > 300 && tables > 10_000, "{found} {tables}");
}
