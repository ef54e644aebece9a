//! Any text as a filter's expression or classic program: an error whose place lies in the source
//! and that prints, or code that the verifier accepts, that ends, and that gives the interpreter's
//! verdict. The input is the text, then after a zero byte a packet.
#![no_main]

mod input;
mod started;

use libfuzzer_sys::fuzz_target;
use postern_filter::{Databases, Filter, Names};
use started::STARTED;
use std::sync::LazyLock;

fn names() -> &'static Databases {
    static NAMES: LazyLock<Databases> = LazyLock::new(|| Databases {
        hosts: "10.0.0.7 alpha\n2001:db8::7 alpha\n".into(),
        networks: "lab 10.9\n".into(),
        services: "http 80/tcp www\ndomain 53/tcp\ndomain 53/udp\n".into(),
        protocols: "tcp 6 TCP\nudp 17 UDP\n".into(),
        ethers: "02:00:00:00:00:09 alpha\n".into(),
    });
    &NAMES
}

fuzz_target!(|bytes: &[u8]| {
    *STARTED;
    let (text, packet) = input::split(bytes);
    let Ok(text) = core::str::from_utf8(text) else {
        return;
    };
    let names: &dyn Names = names();
    let compiled = match Filter::compile(text, names) {
        Ok(filter) => Ok(filter),
        Err(error) => {
            assert!(error.at.start <= error.at.end && error.at.end <= text.len(), "{error}");
            assert!(!error.show(text).is_empty());
            Filter::classic(text)
        }
    };
    let Ok(filter) = compiled else {
        return;
    };
    let code = filter.code();
    let facts = code.verify().expect("what was compiled is accepted");
    assert!(facts.longest_path.is_some());
    let loaded = code.load(true).expect("what was accepted is loaded");
    let packet = &packet[..packet.len().min(4096)];
    for (length, longer) in [(packet.len(), 0), (packet.len(), 1000), (packet.len() / 2, 1)] {
        let (seen, wire) = (&packet[..length], packet.len() as u32 + longer);
        let verdict = loaded.run(seen, wire).expect("code does not fault");
        assert_eq!(verdict, filter.run(seen, wire), "{text}: {seen:02x?} of {wire}");
    }
});
