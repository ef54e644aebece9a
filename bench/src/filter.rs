//! What sets of packet filters cost: a packet among ten to a hundred thousand connections, changes
//! of the set, and the worst case.
//!
//! Packets lie in shared memory, where a ring would put them, and are spread over all filters.
//! Peers such as libpcap are in the workspace `bench`, which needs it.

#[path = "../../filter/tests/support/connections.rs"]
mod connections;

use connections::{connection, connection_packet};
use postern::{Offset, Prot, Shared};
use postern_figures::clock::best_of;
use postern_figures::figure::{Figure, Goal};
use postern_filter::classifier::{Classifier, PacketRef};
use postern_filter::set::{Claim, Id};
use postern_filter::{Filter, NoNames};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 20;
/// Packets of one turn.
const PACKETS: u32 = 8192;
const ROOM: u32 = 64;
/// Changes of one turn.
const CHANGES: u32 = 500;

type Measured = Result<Vec<Figure>, String>;

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// A classifier with an area of packets.
struct Bench {
    classifier: Classifier,
    area: Shared,
    ids: Vec<Id>,
    /// Nanoseconds of an insertion, the mean and the longest.
    insertion: (f64, f64),
}

impl Bench {
    /// Code is made when there are so many filters, and from then on by every change that needs it.
    fn new(filters: &[Filter], before: usize) -> Result<Bench, String> {
        let area = Shared::new((PACKETS * ROOM) as usize).map_err(text)?;
        let mut classifier = Classifier::new();
        classifier.lend(&area).map_err(text)?;
        classifier.hold(true);
        let (mut ids, mut longest, mut sum) = (Vec::new(), 0u128, 0u128);
        for filter in filters {
            let start = Instant::now();
            ids.push(classifier.insert(filter, Claim::default()).map_err(text)?);
            let spent = start.elapsed().as_nanos();
            longest = longest.max(spent);
            sum += spent;
            if ids.len() == before {
                classifier.hold(false);
            }
        }
        Ok(Bench {
            classifier,
            area,
            insertion: (sum as f64 / filters.len().max(1) as f64, longest as f64),
            ids,
        })
    }

    /// Puts packets in their places; the packet that is `n` of so many connections is far from the
    /// next.
    fn fill(&self, packet: impl Fn(u32) -> Vec<u8>) -> Result<Vec<PacketRef>, String> {
        (0..PACKETS)
            .map(|n| {
                let bytes = packet(n.wrapping_mul(0x9e37_79b1));
                self.area.write((n * ROOM) as usize, &bytes).map_err(text)?;
                Ok(PacketRef {
                    packet: Offset(self.area.offset().0 + n * ROOM),
                    wire: bytes.len() as u32,
                    captured: bytes.len() as u32,
                })
            })
            .collect()
    }

    /// Nanoseconds of a packet, with a call each and with a call for 64.
    fn packets(&mut self, places: &[PacketRef]) -> Result<[f64; 2], String> {
        let ready = self.classifier.ready().map_err(text)?;
        let best = best_of(
            ROUNDS,
            [
                &mut || {
                    for place in places {
                        let found = ready.find_at(place.packet, place.wire, place.captured);
                        black_box(found.ok());
                    }
                },
                &mut || drop(black_box(ready.find_all(places))),
            ],
        );
        Ok(best.map(|seconds| seconds * 1e9 / places.len() as f64))
    }
}

fn compile(source: &str) -> Result<Filter, String> {
    Filter::compile(source, &NoNames).map_err(|e| e.show(source))
}

/// All figures.
pub fn figures() -> Measured {
    let mut figures = Vec::new();
    let mut first = None;
    for count in [10u32, 100, 1000, 10_000, 100_000] {
        let filters: Result<Vec<Filter>, String> =
            (0..count).map(|n| compile(&connection(n))).collect();
        let mut bench = Bench::new(&filters?, 100)?;
        let places = bench.fill(|n| connection_packet(n % count))?;
        let ready = bench.classifier.ready().map_err(text)?;
        let found = ready.find_all(&places).map_err(text)?;
        let wanted = |n: usize| bench.ids[((n as u32).wrapping_mul(0x9e37_79b1) % count) as usize];
        if !found
            .iter()
            .enumerate()
            .all(|(n, id)| *id == Some(wanted(n)))
        {
            return Err("a packet's filter is not found".into());
        }
        let [one, batch] = bench.packets(&places)?;
        let [base, base_batch] = *first.get_or_insert([one, batch]);
        let how = "packets of all connections; baseline: ten filters";
        let note = format!("a packet among so many connections, a call for each; {how}");
        figures.push(
            Figure::plain(format!("filter.packet.{count}"), one, "ns", note)
                .against(base)
                .goal(Goal::RatioAtMost(4.0)),
        );
        let note = format!("the same, a call for 64; {how}");
        figures.push(
            Figure::plain(format!("filter.batch.{count}"), batch, "ns", note).against(base_batch),
        );
        if count >= 1000 {
            figures.extend(changes(&mut bench, count)?);
        }
        if count == 100_000 {
            let places = bench.fill(|n| connection_packet(count + n % count))?;
            let [one, _] = bench.packets(&places)?;
            let note = "a packet of none of the 100,000 connections";
            figures.push(Figure::plain("filter.stranger", one, "ns", note));
            figures.extend(broad(&mut bench)?);
        }
    }
    figures.extend(shapes()?);
    figures.extend(hosts()?);
    Ok(figures)
}

/// One filter with a long list, by itself and in a set. Half of the packets are to a host of the
/// list, which one is not foreseen.
fn hosts() -> Measured {
    let host = |n: u32| 10 << 24 | n << 9;
    let packet = |n: u32, count: u32| {
        let mut packet = connection_packet(n);
        let (place, other) = if n & 2 == 0 { (26, 30) } else { (30, 26) };
        let listed = (n >> 8) % count + if n & 1 == 0 { 0 } else { count };
        packet[place..place + 4].copy_from_slice(&host(listed).to_be_bytes());
        packet[other..other + 4].copy_from_slice(&[192, 168, 0, 1]);
        packet
    };
    let mut figures = Vec::new();
    let mut first = None;
    for count in [10, 100, 1000] {
        let name = |n: u32| std::net::Ipv4Addr::from_bits(host(n)).to_string();
        let names: Vec<String> = (0..count).map(name).collect();
        let filter = compile(&format!("ip host {}", names.join(" or ")))?;
        let mut bench = Bench::new(std::slice::from_ref(&filter), 1)?;
        let places = bench.fill(|n| packet(n, count))?;
        let loaded = filter.code().load(false).map_err(text)?;
        let seen = loaded.domain().share(&bench.area, Prot::Read);
        seen.map_err(text)?;
        let wanted = |place: &PacketRef| loaded.run_at(place.packet, place.wire, place.captured);
        let accepted = places
            .iter()
            .filter(|place| wanted(place).is_ok_and(|v| v != 0));
        let accepted = accepted.count();
        let ready = bench.classifier.ready().map_err(text)?;
        let found = ready.find_all(&places).map_err(text)?.into_iter().flatten();
        if accepted != places.len() / 2 || found.count() != accepted {
            return Err("a packet of a listed host is not accepted, or another is".into());
        }
        let [alone] = best_of(
            ROUNDS,
            [&mut || {
                for place in &places {
                    black_box(wanted(place).ok());
                }
            }],
        );
        let alone = alone * 1e9 / places.len() as f64;
        let [one, _] = bench.packets(&places)?;
        let base = *first.get_or_insert(alone);
        let note = "`ip host A or …` with so many hosts, alone; half of the packets are wanted";
        let row = Figure::plain(format!("filter.hosts.{count}"), alone, "ns", note);
        figures.push(row.against(base).goal(Goal::RatioAtMost(8.0)));
        let note = "the same as the only filter of a set";
        let row = Figure::plain(format!("filter.hosts-in-a-set.{count}"), one, "ns", note);
        figures.push(row.against(base));
    }
    Ok(figures)
}

/// Insertion and removal of one filter more.
fn changes(bench: &mut Bench, count: u32) -> Measured {
    let extra: Result<Vec<Filter>, String> = (0..CHANGES)
        .map(|n| compile(&connection(count + n)))
        .collect();
    let extra = extra?;
    let mut failed = None;
    let [both] = best_of(
        5,
        [&mut || {
            for filter in &extra {
                match bench.classifier.insert(filter, Claim::default()) {
                    Ok(id) => drop(bench.classifier.remove(id)),
                    Err(error) => failed = Some(error.to_string()),
                }
                if let Err(error) = bench.classifier.ready() {
                    failed = Some(error.to_string());
                }
            }
        }],
    );
    if let Some(error) = failed {
        return Err(error);
    }
    let row = |name: &str, nanoseconds: f64, note: &str| {
        Figure::plain(
            format!("filter.{name}.{count}"),
            nanoseconds / 1e3,
            "µs",
            note,
        )
    };
    Ok(vec![
        row(
            "change",
            both * 1e9 / f64::from(CHANGES),
            "insertion and removal of one filter more, with the ownership check, until packets see it",
        )
        .goal(Goal::AtMost(1000.0)),
        row("insertion", bench.insertion.0, "mean of all insertions that made the set, growing of tables included")
            .goal(Goal::AtMost(1000.0)),
        row("insertion-longest", bench.insertion.1, "the longest of them: a table grew"),
    ])
}

/// Insertion of filters that other owners' hundred thousand have to be compared with.
fn broad(bench: &mut Bench) -> Measured {
    let claim = Claim {
        owner: 1,
        priority: 1,
        may_steal: false,
    };
    let cases = [
        (
            "common",
            "udp",
            "contradicts what all of them have in common",
        ),
        ("each", "tcp and src net 11", "is compared with each"),
    ];
    let figures = cases.iter().map(|(name, source, what)| {
        let filter = compile(source)?;
        let mut inserted = Ok(());
        let [both] = best_of(
            5,
            [&mut || match bench.classifier.insert(&filter, claim) {
                Ok(id) => drop(bench.classifier.remove(id)),
                Err(error) => inserted = Err(error.to_string()),
            }],
        );
        inserted?;
        let note = format!("insertion of `{source}` among another owner's 100,000, which {what}");
        Ok(Figure::plain(
            format!("filter.broad.{name}"),
            both * 1e6,
            "µs",
            note,
        ))
    });
    figures.collect()
}

/// The worst case: no two filters have a shape, so that each must be asked.
fn shapes() -> Measured {
    const COUNTS: [u32; 2] = [100, 1000];
    let mut times = Vec::new();
    let mut compilation = 0.0;
    for count in COUNTS {
        let filters: Result<Vec<Filter>, String> = (0..count)
            .map(|n| compile(&format!("ip and len > {} and ip[8] > {}", 60 + n, n % 250)))
            .collect();
        let mut bench = Bench::new(&filters?, usize::MAX)?;
        let places = bench.fill(connection_packet)?;
        let start = Instant::now();
        bench.classifier.ready().map_err(text)?;
        compilation = start.elapsed().as_secs_f64() * 1e3;
        times.push(bench.packets(&places)?[0]);
    }
    let each = (times[1] - times[0]) / f64::from(COUNTS[1] - COUNTS[0]);
    Ok(vec![
        Figure::plain(
            "filter.shapes.1000",
            times[1],
            "ns",
            "the worst case: a packet for a thousand filters that have no shape in common",
        ),
        Figure::plain("filter.shapes.each", each, "ns", "what each of them adds"),
        Figure::plain(
            "filter.shapes.compilation",
            compilation,
            "ms",
            "making code of the thousand, once after any number of changes of shapes",
        ),
    ])
}
