//! Ten filters on real traffic, packet after packet as they were captured: branches that cannot be
//! foreseen and packets that are not in the nearest cache are part of these figures, unlike those
//! of Table 7.

use crate::kernel::Program;
use crate::support::pcap::Judge;
use crate::{Measured, filter};
use postern::{Offset, Prot, Shared};
use postern_figures::clock::best_of;
use postern_figures::figure::{Figure, Goal};
use postern_filter::capture::Capture;
use postern_filter::classifier::{Classifier, PacketRef};
use postern_filter::set::{Claim, Set};
use std::hint::black_box;

const ROUNDS: usize = 20;
/// Packets that the kernel is asked about, spread over all; it takes one at a time, and no larger
/// ones.
const ASKED: usize = 16;
const KERNELS_LARGEST: usize = 1500;

/// The filter of datagrams to one of ten ports.
fn flow(n: u16) -> String {
    format!(
        "ip and udp and src host 127.0.0.1 and src port 4000 and dst host 127.0.0.1 and dst port {}",
        5000 + n
    )
}

/// The figures for a capture file.
pub fn figures(file: &[u8]) -> Measured {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let capture = Capture::new(file).map_err(|e| text(&e))?;
    let mut packets: Vec<(&[u8], u32)> = Vec::new();
    for packet in capture {
        let packet = packet.map_err(|e| text(&e))?;
        packets.push((&file[packet.bytes], packet.wire));
    }
    let area = Shared::new(file.len()).map_err(|e| text(&e))?;
    let mut places = Vec::new();
    let mut at = 0;
    for (bytes, wire) in &packets {
        area.write(at, bytes).map_err(|e| text(&e))?;
        places.push(PacketRef {
            packet: Offset(area.offset().0 + at as u32),
            wire: *wire,
            captured: bytes.len() as u32,
        });
        at += bytes.len();
    }
    let sources: Vec<String> = (0..10).map(flow).collect();
    let judges: Result<Vec<Judge>, String> =
        sources.iter().map(|s| Judge::compile(s, true)).collect();
    let judges = judges?;
    let (mut set, mut classifier) = (Set::new(), Classifier::new());
    classifier.lend(&area).map_err(|e| text(&e))?;
    for source in &sources {
        let filter = filter(source)?;
        let claim = Claim::default();
        set.insert(&filter, claim).map_err(|e| text(&e))?;
        classifier.insert(&filter, claim).map_err(|e| text(&e))?;
    }
    let merged = set.merged().ok_or("ten filters are not merged")?;
    let merged = merged.code.load(false).map_err(|e| text(&e))?;
    let shared = merged.domain().share(&area, Prot::Read);
    shared.map_err(|e| text(&e))?;
    let ready = classifier.ready().map_err(|e| text(&e))?;
    let theirs =
        |(bytes, wire): &(&[u8], u32)| judges.iter().position(|j| j.run(bytes, *wire) != 0);
    let ours = ready.find_all(&places).map_err(|e| text(&e))?;
    let mut taken = 0;
    for ((packet, place), found) in packets.iter().zip(&places).zip(&ours) {
        let number = merged.run_at(place.packet, place.wire, place.captured);
        let number = number.map_err(|e| text(&e))?;
        let wanted = theirs(packet);
        let agree = found.map(|id| id.0 as usize) == wanted
            && number.checked_sub(1).map(|n| n as usize) == wanted;
        if !agree {
            return Err("libpcap answers otherwise".into());
        }
        taken += usize::from(wanted.is_some());
    }
    let best = best_of(
        ROUNDS,
        [
            &mut || {
                for packet in &packets {
                    black_box(theirs(packet));
                }
            },
            &mut || {
                for place in &places {
                    black_box(merged.run_at(place.packet, place.wire, place.captured).ok());
                }
            },
            &mut || drop(black_box(ready.find_all(&places))),
        ],
    );
    let count = packets.len();
    let [interpreted, merged, batch] = best.map(|seconds| seconds * 1e9 / count as f64);
    let what = format!("ten filters on {count} captured packets, of which they take {taken}");
    let how = "baseline: libpcap's bpf_filter, filter by filter";
    let row = |name: &str, value: f64, note: &str| {
        let note = format!("{what}: {note}; {how}");
        Figure::plain(format!("filter.captured.{name}"), value, "ns", note).against(interpreted)
    };
    let mut figures = vec![
        row("merged", merged, "one program, a call for each packet"),
        row("batch", batch, "a classifier, one call for 64 packets"),
    ];
    figures.push(match in_kernel(&judges, &packets) {
        Ok(kernel) => Figure::plain(
            "filter.captured.kernel",
            batch,
            "ns",
            format!("{what}: a classifier, one call for 64; baseline: the kernel's compiled programs one by one, on {ASKED} of the packets"),
        )
        .against(kernel)
        .goal(Goal::RatioAtMost(1.0)),
        Err(error) => Figure::plain("filter.captured.kernel", f64::NAN, "ns", error),
    });
    Ok(figures)
}

/// Nanoseconds of a packet in the kernel, by the mean of some.
fn in_kernel(judges: &[Judge], packets: &[(&[u8], u32)]) -> Result<f64, String> {
    let programs: Result<Vec<Program>, String> =
        judges.iter().map(|j| Program::load(&j.text())).collect();
    let programs = programs?;
    let small: Vec<&[u8]> = packets
        .iter()
        .map(|(bytes, _)| *bytes)
        .filter(|bytes| bytes.len() <= KERNELS_LARGEST)
        .collect();
    let asked: Vec<&[u8]> = small
        .iter()
        .step_by(small.len().div_ceil(ASKED).max(1))
        .copied()
        .collect();
    let mut sum = 0.0;
    for packet in &asked {
        for program in &programs {
            let (accepted, time) = program.run(packet)?;
            sum += time;
            if accepted {
                break;
            }
        }
    }
    Ok(sum / asked.len().max(1) as f64)
}
