//! Any bytes as a capture file: packets that lie in it, one behind the other, then its end or an
//! error with its place. What was read is written anew in both formats, and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_filter::capture::{
    Capture, Origin, pcap_header, pcap_record, pcapng_header, pcapng_interface, pcapng_packet,
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut capture) = Capture::new(&bytes) else {
        return;
    };
    let (mut pcap, mut pcapng) = (pcap_header(1 << 18).to_vec(), Vec::new());
    pcapng_header(&mut pcapng);
    pcapng_interface(postern_filter::Link::Ethernet, 1 << 18, "fuzz", &mut pcapng);
    let (mut last, mut list) = (0, Vec::new());
    for packet in &mut capture {
        match packet {
            Ok(packet) => {
                assert!(packet.bytes.start >= last && packet.bytes.end <= bytes.len());
                last = packet.bytes.end;
                let content = &bytes[packet.bytes];
                pcap.extend(pcap_record(packet.time, content.len() as u32, packet.wire));
                pcap.extend_from_slice(content);
                let link = postern_filter::Link::Ethernet;
                let origin = Origin { interface: 0, link, ..packet.origin };
                pcapng_packet(origin, packet.time, content, packet.wire, &mut pcapng);
                list.push((packet.time, packet.wire, content, origin));
            }
            Err(error) => assert!(error.at <= bytes.len() && !error.to_string().is_empty()),
        }
    }
    assert!(capture.next().is_none());
    for (file, whole) in [(&pcap, false), (&pcapng, true)] {
        let again = Capture::new(file).expect("what was written is read");
        let mut expected = list.iter();
        for packet in again {
            let packet = packet.expect("what was written is read");
            let (time, wire, content, origin) = expected.next().expect("no more than were written");
            // A pcap file's seconds have 32 bits.
            assert!(!whole || (packet.time, packet.origin) == (*time, *origin));
            assert_eq!((packet.wire, &file[packet.bytes]), (*wire, *content));
        }
        assert!(expected.next().is_none());
    }
});
