//! Sets give the answers that their filters give one by one, whatever was inserted and removed
//! before.

use crate::support;

use fastrand::Rng;
use postern_filter::set::{Claim, Id, Scratch, Set, SetError};
use postern_filter::{Filter, NoNames};
use support::confined::Confined;
use support::connections::{connection, connection_packet};
use support::{expressions, packets};

fn filter(source: &str) -> Filter {
    Filter::compile(source, &NoNames).unwrap()
}

fn claim(owner: u32, priority: u32) -> Claim {
    Claim {
        owner,
        priority,
        may_steal: false,
    }
}

#[test]
fn random_sets_answer_as_their_filters_do() {
    let mut random = Rng::with_seed(3);
    let corpus = packets::packets(3, 200);
    let mut scratch = Scratch::default();
    let (mut matched, mut merged_sets) = (0, 0);
    for round in 0..60 {
        let mut set = Set::new();
        let mut list: Vec<(Id, Filter, u32)> = Vec::new();
        for _ in 0..if round % 2 == 0 { 8 } else { 60 } {
            if !list.is_empty() && random.usize(..4) == 0 {
                let (id, ..) = list.swap_remove(random.usize(..list.len()));
                assert!(set.remove(id) && !set.remove(id));
                continue;
            }
            // Small sets of small expressions, so that some sets have no filter that must be asked
            // by itself.
            let size = 1 + random.usize(..if round % 2 == 0 { 1 } else { 3 });
            let source = expressions::expression(&mut random, size);
            let Ok(filter) = Filter::compile(&source, &NoNames) else {
                continue;
            };
            let priority = random.u32(..4);
            let claim = Claim {
                owner: 0,
                priority,
                may_steal: true,
            };
            let id = set.insert(&filter, claim).unwrap();
            list.push((id, filter, priority));
        }
        assert_eq!(set.len(), list.len());
        let merged = set
            .merged()
            .map(|merged| (Confined::of(&merged.code), merged.ids));
        let machine = merged
            .as_ref()
            .map(|(code, _)| code.run(corpus.iter().map(|p| (&p.bytes[..], p.wire))));
        merged_sets += usize::from(merged.is_some());
        for (at, packet) in corpus.iter().enumerate() {
            let mut expected: Vec<_> = list
                .iter()
                .filter(|(_, filter, _)| filter.run(&packet.bytes, packet.wire) != 0)
                .map(|(id, _, priority)| (std::cmp::Reverse(*priority), *id))
                .collect();
            expected.sort();
            let expected: Vec<Id> = expected.into_iter().map(|(_, id)| id).collect();
            assert_eq!(set.all(&packet.bytes, packet.wire, &mut scratch), expected);
            assert_eq!(
                set.find(&packet.bytes, packet.wire, &mut scratch),
                expected.first().copied()
            );
            if let (Some(verdicts), Some((_, ids))) = (&machine, &merged) {
                let got = verdicts[at]
                    .checked_sub(1)
                    .map(|number| ids[number as usize]);
                assert_eq!(got, expected.first().copied(), "{:02x?}", packet.bytes);
            }
            matched += expected.len();
        }
    }
    println!("{matched} matches, {merged_sets} sets merged");
    assert!(
        matched > 10_000 && merged_sets > 5,
        "{matched}, {merged_sets}"
    );
}

/// Connections beyond counting by hand: each packet finds its own, before and after half of them
/// are gone.
#[test]
fn many_connections() {
    let mut set = Set::new();
    let ids: Vec<Id> = (0..20_000)
        .map(|n| set.insert(&filter(&connection(n)), claim(n, 1)).unwrap())
        .collect();
    let mut scratch = Scratch::default();
    for (n, id) in ids.iter().enumerate().step_by(7) {
        assert_eq!(
            set.find(&connection_packet(n as u32), 60, &mut scratch),
            Some(*id)
        );
    }
    assert_eq!(set.find(&connection_packet(20_000), 60, &mut scratch), None);
    for id in ids.iter().step_by(2) {
        assert!(set.remove(*id));
    }
    for (n, id) in ids.iter().enumerate() {
        let expected = (n % 2 == 1).then_some(*id);
        assert_eq!(
            set.find(&connection_packet(n as u32), 60, &mut scratch),
            expected
        );
    }
}

#[test]
fn nobody_takes_another_owners_packets() {
    let mut set = Set::new();
    let web = set.insert(&filter("tcp dst port 80"), claim(1, 1)).unwrap();
    let host = set
        .insert(&filter("ip host 10.0.0.1"), claim(1, 1))
        .unwrap();
    let refused =
        |set: &mut Set, source: &str, claim: Claim| match set.insert(&filter(source), claim) {
            Err(SetError::Steals { id, owner: 1 }) => id,
            other => panic!("{source}: {other:?}"),
        };
    assert_eq!(
        refused(
            &mut set,
            "tcp dst port 80 and src host 10.9.9.9",
            claim(2, 2)
        ),
        web
    );
    assert_eq!(
        refused(&mut set, "udp and src host 10.0.0.1", claim(2, 2)),
        host
    );
    assert_eq!(refused(&mut set, "ip src net 10", claim(2, 2)), web);
    // Other packets, an equal priority, the same owner, or a permission.
    for (source, claim) in [
        ("ip6 and udp", claim(2, 2)),
        ("arp", claim(2, 2)),
        ("tcp dst port 80 and ip src host 10.0.0.1", claim(2, 1)),
        ("udp and ip src host 10.3.3.3", claim(1, 2)),
        (
            "ip6",
            Claim {
                owner: 2,
                priority: 9,
                may_steal: true,
            },
        ),
    ] {
        set.insert(&filter(source), claim)
            .unwrap_or_else(|error| panic!("{source}: {error}"));
    }
    // Once its filters are gone, an owner has no packets.
    for id in set.all(&connection_packet(1), 60, &mut Scratch::default()) {
        set.remove(id);
    }
}

/// Whatever filters come and go: one that was taken in without a permission gets no packet that was
/// another owner's before.
#[test]
fn random_filters_do_not_steal() {
    let mut random = Rng::with_seed(8);
    let corpus = packets::packets(8, 150);
    let mut scratch = Scratch::default();
    let (mut taken, mut refused, mut packets) = (0, 0, 0);
    for _ in 0..60 {
        let mut set = Set::new();
        let mut list: Vec<(Id, u32)> = Vec::new();
        for _ in 0..40 {
            if !list.is_empty() && random.usize(..4) == 0 {
                set.remove(list.swap_remove(random.usize(..list.len())).0);
                continue;
            }
            let source = match random.bool() {
                true => connection(random.u32(..5)),
                false => {
                    let size = 1 + random.usize(..2);
                    expressions::expression(&mut random, size)
                }
            };
            let Ok(filter) = Filter::compile(&source, &NoNames) else {
                continue;
            };
            let owner = random.u32(..3);
            let before: Vec<Option<Id>> = corpus
                .iter()
                .map(|packet| set.find(&packet.bytes, packet.wire, &mut scratch))
                .collect();
            let Ok(id) = set.insert(&filter, claim(owner, random.u32(..4))) else {
                refused += 1;
                continue;
            };
            taken += 1;
            list.push((id, owner));
            for (packet, before) in corpus.iter().zip(before) {
                let now = set.find(&packet.bytes, packet.wire, &mut scratch);
                let other = |id: Id| list.contains(&(id, owner)).then_some(()).is_none();
                if before.is_some_and(other) {
                    assert_eq!(now, before, "{source}: {:02x?}", packet.bytes);
                    packets += 1;
                }
            }
        }
    }
    assert!(
        taken > 500 && refused > 100 && packets > 1000,
        "{taken}, {refused}, {packets}"
    );
}

/// A filter for nearly everything is compared with a hundred thousand of another owner's.
#[test]
fn broad_filters_among_many() {
    let mut set = Set::new();
    for n in 0..100_000 {
        set.insert(&filter(&connection(n)), claim(1, 1)).unwrap();
    }
    for (source, priority, refused) in [
        ("ip", 0, false),
        ("ip", 2, true),
        ("udp", 2, false),
        ("tcp src port 1023", 2, false),
        ("tcp dst port 80 and src net 11", 2, false),
        ("tcp dst port 80 and src net 10.1", 2, true),
    ] {
        let inserted = set.insert(&filter(source), claim(2, priority));
        assert_eq!(inserted.is_err(), refused, "{source}");
        if let Ok(id) = inserted {
            set.remove(id);
        }
    }
}
