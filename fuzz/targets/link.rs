//! Packets of any link: a filter's machine code gives the interpreter's verdict, headers are found
//! inside of the packet or not at all, and a packet has a line. The input is a byte for the link,
//! an expression, and after a zero byte the packet.
#![no_main]

mod input;
mod started;

use libfuzzer_sys::fuzz_target;
use postern_capture::line::{self, Detail};
use postern_filter::{Filter, Link, NoNames, Options};
use started::STARTED;

fuzz_target!(|bytes: &[u8]| {
    *STARTED;
    let Some((first, bytes)) = bytes.split_first() else {
        return;
    };
    let link = Link::ALL[usize::from(*first) % Link::ALL.len()];
    let (text, packet) = input::split(bytes);
    let packet = &packet[..packet.len().min(4096)];
    for length in [packet.len(), packet.len() / 2, 30, 3, 0] {
        let seen = &packet[..length.min(packet.len())];
        if let Some((at, _)) = link.network(seen) {
            assert!(at <= seen.len() + 8, "{link:?}: {at} of {}", seen.len());
        }
        let wire = packet.len() as u32;
        let summary = line::summary_of(link, seen, wire);
        assert!(!summary.text(Detail::Verbose).is_empty() && !line::link_of(link, seen).is_empty());
    }
    let Ok(text) = core::str::from_utf8(text) else {
        return;
    };
    let options = Options { link, ..Options::default() };
    let Ok(filter) = Filter::compile_with(text, &NoNames, options) else {
        return;
    };
    for warning in postern_filter::warnings(text) {
        assert!(warning.at.end <= text.len() && !warning.show(text).is_empty());
    }
    let loaded = filter.code().load(true).expect("what was compiled is accepted");
    for (length, longer) in [(packet.len(), 0), (packet.len() / 2, 1), (packet.len().min(20), 0)] {
        let (seen, wire) = (&packet[..length], packet.len() as u32 + longer);
        let verdict = loaded.run(seen, wire).expect("code does not fault");
        assert_eq!(verdict, filter.run(seen, wire), "{link:?}, {text}: {seen:02x?} of {wire}");
    }
});
