//! Filters as classic programs: the same verdict where the program is exact, and by the kernel's
//! gate no packet is left out that the filter accepts, with a tag that the kernel took out and
//! without. The input is an expression or a classic program, and after a zero byte a packet.
#![no_main]

mod input;
#[path = "../../filter/tests/support/machine.rs"]
mod machine;

use libfuzzer_sys::fuzz_target;
use machine::{Seen, run};
use postern_filter::classic::Gate;
use postern_filter::set::{Claim, Set};
use postern_filter::{Filter, NoNames};

const ETHERNET: u16 = 1;

fuzz_target!(|bytes: &[u8]| {
    let (text, packet) = input::split(bytes);
    let Ok(text) = core::str::from_utf8(text) else {
        return;
    };
    let compiled = Filter::compile(text, &NoNames).or_else(|_| Filter::classic(text));
    let Ok(filter) = compiled else {
        return;
    };
    let packet = &packet[..packet.len().min(4096)];
    let program = filter.to_classic();
    let mut single = Gate::default();
    single.filter(&[ETHERNET, 772], true, &filter);
    let mut set = Set::new();
    if let Ok(other) = Filter::compile("arp or host 10.0.0.7", &NoNames) {
        let _ = set.insert(&other, Claim::default());
    }
    let _ = set.insert(&filter, Claim { may_steal: true, ..Claim::default() });
    let mut many = Gate::default();
    many.set(&[], true, &set);
    let gates = [single.program(65535).0, many.program(65535).0];
    for length in [packet.len(), packet.len() / 2, packet.len().min(17)] {
        let bytes = &packet[..length];
        let whole = length as u32;
        if let Some(program) = &program {
            let seen = Seen { bytes, tag: None, hardware: ETHERNET };
            assert_eq!(run(program, &seen), filter.run(bytes, whole), "{text}: {bytes:02x?}");
        }
        // The tag stands in what the filter sees, and beside what the kernel sees.
        for tag in [None, Some((0x8100, 5)), Some((0x88a8, 0xefff))] {
            let mut put = bytes.to_vec();
            if let Some((kind, number)) = tag {
                if put.len() < 14 {
                    continue;
                }
                let [a, b, c, d] = ((u32::from(kind) << 16) | u32::from(number)).to_be_bytes();
                put.splice(12..12, [a, b, c, d]);
            }
            if filter.run(&put, put.len() as u32) == 0 {
                continue;
            }
            for gate in &gates {
                let seen = Seen { bytes, tag, hardware: ETHERNET };
                assert_ne!(run(gate, &seen), 0, "{text}: {tag:?} {bytes:02x?}");
            }
        }
    }
});
