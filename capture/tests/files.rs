//! Capture files: mapped whole or a piece at a time, arriving by a pipe, and cut short while they
//! are read.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use postern::FaultKind;
use postern_capture::{
    Demux, DemuxError, Next, PacketFilter, PacketRef, Rules, Source, SourceError,
};
use postern_filter::capture::{
    Origin, pcap_header, pcap_record, pcapng_header, pcapng_interface, pcapng_packet,
};
use postern_filter::{Filter, NoNames, Options};

const EXPRESSION: &str = "udp dst port 53";

/// A datagram to port 53 or 80, of so many bytes; what follows its header depends on its number.
fn packet(number: u32, length: usize) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..length as u32)
        .map(|at| (at * 7 + number) as u8)
        .collect();
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14..24].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17]);
    let port: u16 = if number.is_multiple_of(3) { 53 } else { 80 };
    packet[36..38].copy_from_slice(&port.to_be_bytes());
    packet
}

/// Packets of all kinds of lengths: none, some that fill pages exactly, and some of several pages.
fn packets() -> Vec<Vec<u8>> {
    let lengths = [60, 4080, 1, 8176, 9000, 38, 4096 - 16, 20_000, 333];
    let sized = |number: u32| {
        let length: usize = lengths[number as usize % lengths.len()];
        let mut whole = packet(number, length.max(60));
        whole.truncate(length);
        whole
    };
    (0..60).map(sized).collect()
}

fn pcap(packets: &[Vec<u8>], wire: u32) -> Vec<u8> {
    let mut file = pcap_header(1 << 18).to_vec();
    for (time, packet) in (0u64..).zip(packets) {
        file.extend(pcap_record(time, packet.len() as u32, wire));
        file.extend(packet);
    }
    file
}

fn pcapng(packets: &[Vec<u8>], wire: u32) -> Vec<u8> {
    let mut file = Vec::new();
    pcapng_header(&mut file);
    pcapng_interface(postern_filter::Link::Ethernet, 1 << 18, "", &mut file);
    for (time, packet) in (0u64..).zip(packets) {
        pcapng_packet(Origin::default(), time, packet, wire, &mut file);
    }
    file
}

fn write(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("file");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn filter() -> Filter {
    Filter::compile(EXPRESSION, &NoNames).unwrap()
}

fn judge(source: &mut Source) -> PacketFilter {
    let judge = PacketFilter::compiled(&filter().code()).unwrap();
    judge.watch(source).unwrap();
    judge
}

fn next(source: &mut Source) -> Option<PacketRef> {
    match source.next().unwrap() {
        Next::Packet(seen) => Some(seen),
        Next::End => None,
        Next::Idle => panic!("a file is never idle"),
    }
}

/// Every packet comes with its bytes, and the judge sees them where they lie.
fn gives(mut source: Source, wire: u32, expected: &[Vec<u8>]) {
    let (mut judge, filter) = (judge(&mut source), filter());
    let mut bytes = Vec::new();
    for (number, packet) in (0u64..).zip(expected) {
        let seen = next(&mut source).unwrap();
        assert_eq!((seen.time, seen.wire), (number, wire));
        source.read(&seen, &mut bytes).unwrap();
        assert!(bytes == *packet, "packet {number}");
        let verdict = judge.ask(&seen).unwrap();
        assert_eq!(verdict, filter.run(packet, wire), "packet {number}");
    }
    assert_eq!(next(&mut source), None);
    assert_eq!(next(&mut source), None);
    assert_eq!(source.counters().received, expected.len() as u64);
}

#[test]
fn pieces_and_pipes_give_what_the_whole_file_gives() {
    let folder = tempfile::tempdir().unwrap();
    let packets = packets();
    for file in [pcap(&packets, 30_000), pcapng(&packets, 30_000)] {
        let path = write(folder.path(), &file);
        for piece in [None, Some(1), Some(2 * 4096), Some(64 << 10)] {
            let source = Source::mapped(&path, piece).unwrap();
            gives(source, 30_000, &packets);
        }
        gives(
            Source::stream(std::io::Cursor::new(file.clone())).unwrap(),
            30_000,
            &packets,
        );
        let (from, mut to) = std::io::pipe().unwrap();
        let writer = std::thread::spawn(move || {
            for some in file.chunks(1000) {
                to.write_all(some).unwrap();
            }
        });
        gives(Source::stream(from).unwrap(), 30_000, &packets);
        writer.join().unwrap();
    }
}

/// Files that end inside of a record, in every way in which they are read.
#[test]
fn a_cut_file_gives_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let packets = packets();
    for file in [pcap(&packets, 30_000), pcapng(&packets, 30_000)] {
        let path = write(folder.path(), &file[..file.len() - 1]);
        let stream = std::fs::File::open(&path).unwrap();
        for mut source in [
            Source::mapped(&path, None).unwrap(),
            Source::mapped(&path, Some(4096)).unwrap(),
            Source::stream(stream).unwrap(),
        ] {
            for _ in 1..packets.len() {
                next(&mut source).unwrap();
            }
            let error = source.next().unwrap_err();
            assert!(matches!(error, SourceError::Format(_)), "{error:?}");
            assert_eq!(next(&mut source), None);
        }
    }
}

/// Somebody shortens the file while it is mapped: the packet that is gone is a fault of the judge
/// and an error of the host's copy, the next one is an error, and nobody dies. What the file's last
/// page has behind its end is not taken for packets.
#[test]
fn a_file_may_shrink() {
    let folder = tempfile::tempdir().unwrap();
    let packets: Vec<_> = (0..100).map(|number| packet(number, 1000)).collect();
    let record: usize = 16 + 1000;
    let file = pcap(&packets, 1000);
    for piece in [None, Some(2 * 4096)] {
        // The beginning of a page, the beginning of a record, inside of a packet's header, and
        // nothing at all.
        for left in [5 * 4096, 24 + 20 * record, 24 + 20 * record + 30, 0] {
            let path = write(folder.path(), &file);
            let mut source = Source::mapped(&path, piece).unwrap();
            let mut judge = judge(&mut source);
            let mut seen = None;
            for _ in 0..10 {
                seen = next(&mut source);
            }
            let seen = seen.unwrap();
            let whole = OpenOptions::new().write(true).open(&path).unwrap();
            whole.set_len(left as u64).unwrap();
            let mut bytes = Vec::new();
            if left == 0 {
                let fault = judge.ask(&seen).unwrap_err();
                assert_eq!(fault.fault().unwrap().kind, FaultKind::Bus);
                assert_eq!(judge.faults(), 1);
                let gone = source.read(&seen, &mut bytes).unwrap_err();
                assert!(gone.to_string().contains("must not shrink"), "{gone}");
            }
            let (mut count, mut error) = (10, None);
            while error.is_none() && count < 200 {
                match source.next() {
                    Ok(Next::Packet(seen)) => {
                        // It is whole, or its last bytes are what is left of a page.
                        assert_eq!((seen.captured, seen.wire), (1000, 1000), "{left}");
                        count += 1;
                    }
                    Ok(_) => panic!("{left}: no error"),
                    Err(found) => error = Some(found),
                }
            }
            assert!(count <= 10.max(left.div_ceil(record)), "{left}: {count}");
            let text = error.unwrap().to_string();
            assert!(text.contains("cut short"), "{text}");
            // Other files are read as ever, with the same judge.
            let mut other = Source::stream(std::io::Cursor::new(file.clone())).unwrap();
            judge.watch(&mut other).unwrap();
            let first = next(&mut other).unwrap();
            assert_ne!(judge.ask(&first).unwrap(), 0);
        }
    }
}

/// A demultiplexer says that its source failed, and keeps what it has.
#[test]
fn a_demultiplexer_survives_a_file_that_shrinks() {
    let folder = tempfile::tempdir().unwrap();
    let packets: Vec<_> = (0..100).map(|number| packet(number, 1000)).collect();
    let path = write(folder.path(), &pcap(&packets, 1000));
    let out = folder.path().join("out.pcap");
    let words = [format!("{}=udp", out.display())];
    let rules = Rules::words(&words, &NoNames, Options::default()).unwrap();
    let mut source = Source::file(&path).unwrap();
    let mut demux = Demux::new(&rules, &mut source, false).unwrap();
    let give = |demux: &mut Demux, source: &mut Source, seen: &PacketRef| {
        demux.packet(source, seen, &mut |name, _, error| {
            panic!("{name}: {error}")
        })
    };
    for _ in 0..10 {
        let seen = next(&mut source).unwrap();
        give(&mut demux, &mut source, &seen).unwrap();
    }
    let seen = next(&mut source).unwrap();
    let whole = OpenOptions::new().write(true).open(&path).unwrap();
    whole.set_len(0).unwrap();
    let error = give(&mut demux, &mut source, &seen).unwrap_err();
    assert!(
        matches!(error, DemuxError::Source(SourceError::Gone(_))),
        "{error:?}"
    );
    demux.finish().unwrap();
    gives(Source::file(&out).unwrap(), 1000, &packets[..10]);
}

/// A program in E-code is compiled on the spot, and its faults say where in the source.
#[test]
fn faults_of_programs_in_e_code_have_lines() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("wrong.ec");
    let text = "int filter(const unsigned char *packet, unsigned length, unsigned wire_length)\n{\n\treturn 60 / (int)(length - length);\n}\n";
    std::fs::write(&source, text).unwrap();
    let path = folder.path().join("some.pcap");
    std::fs::write(&path, pcap(&[vec![0; 60]], 60)).unwrap();
    let mut source_of = Source::file(&path).unwrap();
    let mut judge = PacketFilter::program(&postern_capture::load(&source).unwrap()).unwrap();
    judge.watch(&mut source_of).unwrap();
    let Next::Packet(seen) = source_of.next().unwrap() else {
        panic!("no packet");
    };
    let fault = judge.ask(&seen).unwrap_err();
    assert!(fault.to_string().contains("wrong.ec:3"), "{fault}");
}

/// A consumer's file that cannot be written takes nothing from the others: they have all that was
/// theirs.
#[test]
fn one_full_file_leaves_the_others_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (
        folder.path().join("in.pcap"),
        folder.path().join("out.pcap"),
    );
    std::fs::write(&path, pcap(&[vec![0; 60], vec![0; 60]], 60)).unwrap();
    let words = ["/dev/full=".to_owned(), format!("{}=", out.display())];
    let rules = Rules::words(&words, &NoNames, Options::default()).unwrap();
    let mut source = Source::file(&path).unwrap();
    let mut demux = Demux::new(&rules, &mut source, true).unwrap();
    while let Next::Packet(seen) = source.next().unwrap() {
        let mut faulted = |_: &str, _, _: &_| panic!("there are no handlers");
        demux.packet(&mut source, &seen, &mut faulted).unwrap();
    }
    let error = demux.finish().unwrap_err();
    assert!(error.to_string().contains("/dev/full"), "{error}");
    let mut written = Source::file(&out).unwrap();
    for _ in 0..2 {
        assert!(matches!(written.next().unwrap(), Next::Packet(_)));
    }
    assert_eq!(written.next().unwrap(), Next::End);
}
