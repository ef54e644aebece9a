//! Sets as machine code in a domain give the answers that their filters give one by one, after
//! every change.

use crate::support;

use fastrand::Rng;
use postern::Shared;
use postern_filter::classifier::{Classifier, PacketRef};
use postern_filter::set::{Claim, Id, Scratch, SetError};
use postern_filter::{Filter, NoNames};
use support::connections::{connection, connection_packet};
use support::{expressions, packets};

fn filter(source: &str) -> Filter {
    Filter::compile(source, &NoNames).unwrap()
}

fn claim(priority: u32) -> Claim {
    Claim {
        owner: 0,
        priority,
        may_steal: true,
    }
}

/// The filter that gets a packet, found by asking each.
fn linear(list: &[(Id, Filter, u32)], bytes: &[u8], wire: u32) -> Option<Id> {
    list.iter()
        .filter(|(_, filter, _)| filter.run(bytes, wire) != 0)
        .max_by_key(|(id, _, priority)| (*priority, std::cmp::Reverse(*id)))
        .map(|(id, ..)| *id)
}

#[test]
fn random_sets_answer_as_their_filters_do() {
    let mut random = Rng::with_seed(11);
    let corpus = packets::packets(11, 150);
    let mut matched = 0;
    for round in 0..40 {
        let mut set = Classifier::new();
        let mut list: Vec<(Id, Filter, u32)> = Vec::new();
        for _ in 0..4 {
            for _ in 0..[2, 10, 40][round % 3] {
                if !list.is_empty() && random.usize(..3) == 0 {
                    let (id, ..) = list.swap_remove(random.usize(..list.len()));
                    assert!(set.remove(id) && !set.remove(id));
                    continue;
                }
                let size = 1 + random.usize(..1 + round % 2);
                let source = expressions::expression(&mut random, size);
                let Ok(filter) = Filter::compile(&source, &NoNames) else {
                    continue;
                };
                let priority = random.u32(..4);
                if let Some(index) = (random.usize(..4) == 0).then(|| random.usize(..=list.len()))
                    && let Some(place) = list.get_mut(index)
                {
                    assert_eq!(set.replace(place.0, &filter, claim(priority)), Ok(true));
                    *place = (place.0, filter, priority);
                    continue;
                }
                let id = set.insert(&filter, claim(priority)).unwrap();
                list.push((id, filter, priority));
            }
            for packet in &corpus {
                let expected = linear(&list, &packet.bytes, packet.wire);
                let got = set.find(&packet.bytes, packet.wire);
                let got = got.unwrap();
                assert_eq!(got, expected, "{:02x?}\n{set}", packet.bytes);
                matched += usize::from(expected.is_some());
            }
        }
    }
    assert!(matched > 5000, "{matched}");
}

/// A packet of one of many kinds of connections.
fn five_tuple(n: usize) -> String {
    match n % 4 {
        0 | 1 => connection(n as u32),
        2 => format!(
            "udp and src host 10.0.{}.{} and dst port {}",
            n / 256 % 256,
            n % 256,
            1 + n % 5000
        ),
        _ => format!("ip6 host 2001:db8::{:x} and tcp port {}", n, 1 + n % 7),
    }
}

fn packet_for(n: usize) -> Vec<u8> {
    match n % 4 {
        0 | 1 => connection_packet(n as u32),
        2 => {
            let mut packet = connection_packet(0);
            packet[23] = 17;
            packet[26..30].copy_from_slice(&[10, 0, (n / 256) as u8, n as u8]);
            packet[36..38].copy_from_slice(&(1 + (n % 5000) as u16).to_be_bytes());
            packet
        }
        _ => {
            let mut packet = vec![0; 80];
            packet[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
            packet[20] = 6;
            packet[22..26].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
            packet[36..38].copy_from_slice(&(n as u16).to_be_bytes());
            packet[54..56].copy_from_slice(&(1 + (n % 7) as u16).to_be_bytes());
            packet
        }
    }
}

/// Insertions, removals, growth and new keys of tables: a model, and the set without machine code,
/// say the same.
#[test]
fn tables_follow_a_set_that_changes() {
    const KINDS: usize = 6000;
    let mut random = Rng::with_seed(5);
    let mut set = Classifier::new();
    let mut scratch = Scratch::default();
    let filters: Vec<Filter> = (0..KINDS).map(|n| filter(&five_tuple(n))).collect();
    let mut present: Vec<Vec<(Id, u32)>> = vec![Vec::new(); KINDS];
    for step in 0..60_000 {
        let n = random.usize(..KINDS);
        // First mostly insertions, then mostly removals, then again.
        let insert = random.usize(..10) < if step / 15_000 % 2 == 0 { 8 } else { 4 };
        if insert && present[n].len() < 3 {
            let priority = random.u32(..3);
            present[n].push((set.insert(&filters[n], claim(priority)).unwrap(), priority));
        } else if let Some((id, _)) = present[n].pop() {
            assert!(set.remove(id));
        }
        let probes = if step % 100 == 0 { 20 } else { 1 };
        for probe in 0..probes {
            let n = if probe == 0 { n } else { random.usize(..KINDS) };
            let packet = packet_for(n);
            let best = present[n]
                .iter()
                .max_by_key(|(id, p)| (*p, std::cmp::Reverse(*id)));
            let wire = packet.len() as u32;
            let got = set.find(&packet, wire).unwrap();
            assert_eq!(got, best.map(|(id, _)| *id), "{step}: {}", five_tuple(n));
            assert_eq!(got, set.set().find(&packet, wire, &mut scratch));
            if probe == 1 {
                let short = random.usize(..packet.len());
                let got = set.find(&packet[..short], wire).unwrap();
                assert_eq!(got, set.set().find(&packet[..short], wire, &mut scratch));
            }
        }
    }
    assert!(set.compilations() < 200, "{}", set.compilations());
}

#[test]
fn a_hundred_thousand_connections() {
    const COUNT: u32 = 100_000;
    let mut set = Classifier::new();
    let ids: Vec<Id> = set.change(|set| {
        let insert = |n| set.insert(&filter(&connection(n)), claim(1)).unwrap();
        (0..COUNT).map(insert).collect()
    });
    let find = |set: &mut Classifier, n: u32| set.find(&connection_packet(n), 60).unwrap();
    for n in (0..COUNT).step_by(3) {
        assert_eq!(find(&mut set, n), Some(ids[n as usize]));
    }
    assert_eq!(find(&mut set, COUNT), None);
    assert_eq!(set.compilations(), 1);
    for n in (0..COUNT).step_by(2) {
        assert!(set.remove(ids[n as usize]));
    }
    for n in (0..COUNT).step_by(5) {
        assert_eq!(find(&mut set, n), (n % 2 == 1).then_some(ids[n as usize]));
    }
    // None of that made new code.
    assert_eq!(set.compilations(), 1);
    assert!(set.to_string().contains("hash of"), "{set}");
}

/// Random numbers that make all keys meet, for so many draws: then tables get new keys, or say that
/// they cannot be.
#[test]
fn keys_that_meet_get_other_hashes() {
    const COUNT: u32 = 3000;
    for bad in [6, 60, 600] {
        let (mut drawn, mut good) = (0, Rng::with_seed(bad));
        let mut set = Classifier::with_random(move || {
            drawn += 1;
            if drawn > bad { good.u64(..) } else { 0 }
        });
        let ids: Vec<Id> = (0..COUNT)
            .map(|n| set.insert(&filter(&connection(n)), claim(1)).unwrap())
            .collect();
        for n in 0..COUNT {
            let found = set.find(&connection_packet(n), 60).unwrap();
            assert_eq!(found, Some(ids[n as usize]), "{bad}");
        }
        assert_eq!(set.find(&connection_packet(COUNT), 60).unwrap(), None);
    }
    let mut set = Classifier::with_random(|| 0);
    for n in 0..COUNT {
        set.insert(&filter(&connection(n)), claim(1)).unwrap();
    }
    let error = set.find(&connection_packet(1), 60).unwrap_err();
    assert!(error.to_string().contains("random"), "{error}");
    // The set is still there, only its code is not.
    let found = set
        .set()
        .find(&connection_packet(1), 60, &mut Scratch::default());
    assert_eq!(found, Some(Id(1)));
}

/// Fields in a row, one field, few filters: each gets what costs least.
#[test]
fn the_cheapest_way_is_taken() {
    let dump = |sources: &mut dyn Iterator<Item = String>| {
        let mut set = Classifier::new();
        for source in sources {
            set.insert(&filter(&source), claim(1)).unwrap();
        }
        set.find(&[0; 60], 60).unwrap();
        set.to_string()
    };
    let few = dump(&mut (0..4).map(connection));
    assert!(few.contains("rank at") && !few.contains("hash"), "{few}");
    let ports = dump(&mut (0..200).map(|n| format!("ip and tcp[2:2] = {}", 1000 + n)));
    assert!(ports.contains("table indexed by"), "{ports}");
    let many = dump(&mut (0..200).map(connection));
    assert!(many.contains("hash of"), "{many}");
    // What they have in common is tested once.
    let both = dump(&mut (0..400).map(|n| match n % 2 {
        0 => connection(n),
        _ => format!(
            "udp and src host 10.0.0.{} and dst host 10.0.1.1 and dst port {n}",
            n % 256
        ),
    }));
    assert_eq!(both.matches("12:2 == 0x800").count(), 1, "{both}");
}

/// Threads ask while nobody changes the set, about packets in memory that was lent.
#[test]
fn threads_share_code() {
    let area = Shared::new(1 << 16).unwrap();
    let mut set = Classifier::new();
    set.lend(&area).unwrap();
    let ids: Vec<Id> = (0..500)
        .map(|n| set.insert(&filter(&connection(n)), claim(1)).unwrap())
        .collect();
    for n in 0..500 {
        area.write(n as usize * 64, &connection_packet(n)).unwrap();
    }
    let ready = set.ready().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (n, id) in ids.iter().enumerate() {
                    let at = postern::Offset(area.offset().0 + n as u32 * 64);
                    assert_eq!(ready.find_at(at, 60, 60).unwrap(), Some(*id));
                    assert_eq!(ready.find_at(at, 60, 35).unwrap(), None);
                }
            });
        }
    });
    let places: Vec<PacketRef> = (0..500)
        .map(|n| PacketRef {
            packet: postern::Offset(area.offset().0 + n * 64),
            wire: 60,
            captured: if n % 7 == 3 { 20 } else { 60 },
        })
        .collect();
    for count in [0, 1, 15, 16, 17, 500] {
        let found = ready.find_all(&places[..count]).unwrap();
        let wanted = ids[..count].iter().enumerate();
        let wanted: Vec<_> = wanted.map(|(n, id)| (n % 7 != 3).then_some(*id)).collect();
        assert_eq!(found, wanted);
    }
    // Beyond what was lent there is nothing.
    assert!(ready.find_at(postern::Offset(0x20), 60, 60).is_err());
}

#[test]
fn owners_keep_their_packets() {
    let mut set = Classifier::new();
    let owned = |owner, priority| Claim {
        owner,
        priority,
        may_steal: false,
    };
    let first = set.insert(&filter(&connection(1)), owned(1, 1)).unwrap();
    let refused = set.insert(&filter("tcp dst port 80"), owned(2, 2));
    assert_eq!(
        refused,
        Err(SetError::Steals {
            id: first,
            owner: 1
        })
    );
    let packet = connection_packet(1);
    assert_eq!(set.find(&packet, 60).unwrap(), Some(first));
    // A lower priority takes nothing away, and gets what is left.
    let second = set.insert(&filter("tcp dst port 80"), owned(2, 0)).unwrap();
    assert_eq!(set.find(&packet, 60).unwrap(), Some(first));
    assert_eq!(set.find(&connection_packet(2), 60).unwrap(), Some(second));
    let all = set.set().all(&packet, 60, &mut Scratch::default());
    assert_eq!(all, [first, second]);
    assert!(set.remove(first));
    assert_eq!(set.find(&packet, 60).unwrap(), Some(second));
}

/// Once there is code, whoever changes the set makes it anew, not whoever brings the next packet;
/// many changes together make it once.
#[test]
fn packets_do_not_wait_for_code() {
    let mut set = Classifier::new();
    let other = |n: u32| filter(&format!("udp[{n}] = 7 and len > {n}"));
    let packet = connection_packet(1);
    // Nobody needs code to say that there is no filter.
    assert_eq!(set.find(&packet, 60).unwrap(), None);
    assert_eq!(set.compilations(), 0);
    set.change(|set| {
        for n in 0..9 {
            set.insert(&other(n), claim(1)).unwrap();
        }
    });
    assert_eq!(set.compilations(), 1);
    // Without the closure the same.
    assert!(!set.hold(true));
    set.insert(&other(9), claim(1)).unwrap();
    assert_eq!(set.compilations(), 1);
    assert!(set.hold(false));
    let mut made = 2;
    assert_eq!(set.compilations(), made);
    assert_eq!(set.find(&packet, 60).unwrap(), None);
    assert_eq!(set.compilations(), made);
    for n in 10..20 {
        let id = set.insert(&other(n), claim(1)).unwrap();
        made += 1;
        assert_eq!(set.compilations(), made);
        assert_eq!(set.find(&packet, 60).unwrap(), None);
        assert!(n % 2 == 0 || set.remove(id));
        assert_eq!(set.find(&packet, 60).unwrap(), None);
        assert_eq!(set.compilations(), made);
    }
    let ids: Vec<Id> = set.change(|set| {
        let insert = |n| set.insert(&filter(&connection(n)), claim(1)).unwrap();
        let ids = (0..5000).map(insert).collect();
        for n in 20..40 {
            set.insert(&other(n), claim(1)).unwrap();
        }
        ids
    });
    assert_eq!(set.compilations(), made + 1);
    for n in [0, 1, 4999] {
        let found = set.find(&connection_packet(n), 60).unwrap();
        assert_eq!(found, Some(ids[n as usize]));
    }
    assert_eq!(set.compilations(), made + 1);
}

/// The first filter brings the first code: the first packet does not wait for it, either.
#[test]
fn the_first_packet_does_not_wait_for_code() {
    let mut set = Classifier::new();
    let id = set.insert(&filter(&connection(1)), claim(1)).unwrap();
    let made = set.compilations();
    assert!(made > 0 && !set.to_string().is_empty());
    assert_eq!(set.find(&connection_packet(1), 60).unwrap(), Some(id));
    assert_eq!(set.compilations(), made);
    assert!(set.remove(id));
    let made = set.compilations();
    assert_eq!(set.find(&connection_packet(1), 60).unwrap(), None);
    assert_eq!(set.compilations(), made);
}

/// A filter that takes the place of another one keeps its number and its age; one that may not
/// leaves all as it was.
#[test]
fn filters_are_replaced() {
    let mut set = Classifier::new();
    let first = set.insert(&filter(&connection(1)), claim(1)).unwrap();
    let second = set.insert(&filter("tcp"), claim(1)).unwrap();
    // One that is asked by itself, and back.
    for text in ["tcp dst port 80", "tcp or geneve 5", "tcp"] {
        assert_eq!(set.replace(first, &filter(text), claim(1)), Ok(true));
        assert_eq!(set.find(&connection_packet(2), 60).unwrap(), Some(first));
    }
    assert_eq!(set.replace(first, &filter("udp"), claim(1)), Ok(true));
    assert_eq!(set.find(&connection_packet(1), 60).unwrap(), Some(second));
    let owned = |owner, priority| Claim {
        owner,
        priority,
        may_steal: false,
    };
    for text in ["udp", "udp or geneve 5"] {
        assert_eq!(set.replace(first, &filter(text), owned(1, 1)), Ok(true));
        let before = set.to_string();
        let refused = set.replace(first, &filter("tcp"), owned(2, 2));
        let owner = claim(1).owner;
        assert_eq!(refused, Err(SetError::Steals { id: second, owner }));
        assert_eq!(set.to_string(), before);
        assert_eq!(set.set().len(), 2);
        let mut udp = connection_packet(1);
        udp[23] = 17;
        assert_eq!(set.find(&udp, 60).unwrap(), Some(first));
    }
    assert!(set.remove(first));
    assert_eq!(set.replace(first, &filter("udp"), claim(1)), Ok(false));
}
